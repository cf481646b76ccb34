// What the families with experts share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "src/adapt/hf_config_family.hpp"

namespace preflop {

// How many experts, how many of them per token and how wide: by any of the names that are in use.
// `width_keys`: some classes call the width of an expert intermediate_size, some moe_intermediate_size.
ExpertSpec read_experts(ConfigReader& c, const Keys& width_keys, Activation activation);

// n_shared_experts times the width of one; absent, null and 0 are none.
Count read_shared_width(ConfigReader& c, Count expert_width);

// One entry per layer: layers without experts have an MLP.
using HasExperts = std::function<bool(std::int64_t)>;
// The window of a layer, where it has one.
using WindowOf = std::function<std::optional<Count>(std::int64_t)>;
void append_expert_layers(Architecture& a, const Decoder& d, const ExpertSpec& experts, const HasExperts& has_experts,
                          const WindowOf& window = nullptr);

// first_k_dense_replace and moe_layer_freq of DeepSeek's kin.
HasExperts dense_first(ConfigReader& c, std::int64_t layers);

void read_mixtral(ConfigReader& c, Architecture& a);
void read_phimoe(ConfigReader& c, Architecture& a);
void read_olmoe(ConfigReader& c, Architecture& a);
void read_qwen2_moe(ConfigReader& c, Architecture& a);
void read_qwen3_moe(ConfigReader& c, Architecture& a);
void read_minimax_m2(ConfigReader& c, Architecture& a);
void read_dbrx(ConfigReader& c, Architecture& a);
void read_grok1(ConfigReader& c, Architecture& a);
void read_gpt_oss(ConfigReader& c, Architecture& a);
void read_llama4(ConfigReader& c, Architecture& a);
void read_glm4_moe(ConfigReader& c, Architecture& a);
void read_mimo_v2(ConfigReader& c, Architecture& a);
void read_deepseek(ConfigReader& c, Architecture& a);
void read_deepseek_v3(ConfigReader& c, Architecture& a);
void read_glm_dsa(ConfigReader& c, Architecture& a);

}  // namespace preflop
