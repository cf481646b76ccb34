#include "src/adapt/hf_config_refuse.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace preflop {
namespace {

using Json = nlohmann::json;

// Reasons only for a class that is not known to have such parts.
constexpr const char* kExperts = "experts in a class that is not known to have them";
constexpr const char* kLatent = "latent attention in a class that is not known to have it";
constexpr const char* kIndexer = "an indexer in a class that is not known to have one";
constexpr const char* kSparse = "block-sparse attention";
constexpr const char* kCompressed = "compressed sparse attention and hyper-connections";
constexpr const char* kBeside = "experts beside a dense MLP";
constexpr const char* kState = "state-space or linear-attention layers";
constexpr const char* kBlocks = "layers with widths of their own or without attention (block_configs)";
constexpr const char* kEncoder = "encoder-only models";
constexpr const char* kEncoderDecoder = "encoder-decoder models";
constexpr const char* kVision = "vision and vision-language models";
constexpr const char* kDiffusion = "diffusion models";
constexpr const char* kSpeech = "audio models";

// A key that, present and not null, zero, false or empty, gives the reason. More than `above`, where it is a number.
struct KeyReason {
  std::string_view key;
  const char* reason;
  double above;
};
constexpr std::array kRefusedKeys = {
    KeyReason{"num_experts", kExperts, 1},
    KeyReason{"num_local_experts", kExperts, 1},
    KeyReason{"n_routed_experts", kExperts, 1},
    KeyReason{"moe_num_experts", kExperts, 1},
    KeyReason{"num_experts_per_tok", kExperts, 0},
    KeyReason{"num_experts_per_token", kExperts, 0},
    KeyReason{"expert_dim", kExperts, 0},
    KeyReason{"kv_lora_rank", kLatent, 0},
    KeyReason{"o_lora_rank", kCompressed, 0},
    KeyReason{"compress_ratios", kCompressed, 0},
    KeyReason{"hc_mult", kCompressed, 0},
    KeyReason{"enable_moe_block", kBeside, 0},
    KeyReason{"index_topk", kIndexer, 0},
    KeyReason{"sparse_attention_config", kSparse, 0},
    KeyReason{"hybrid_override_pattern", kState, 0},
    KeyReason{"linear_attn_config", kState, 0},
    KeyReason{"linear_num_value_heads", kState, 0},
    KeyReason{"mamba_d_state", kState, 0},
    KeyReason{"mamba_num_heads", kState, 0},
    KeyReason{"ssm_cfg", kState, 0},
    KeyReason{"ssm_config", kState, 0},
    KeyReason{"attn_layer_period", kState, 0},
    KeyReason{"block_configs", kBlocks, 0},
};

// A part of a class name or model_type, lower case, that gives the reason.
constexpr std::array kNames = {
    std::pair{"mamba", kState},
    std::pair{"rwkv", kState},
    std::pair{"jamba", kState},
    std::pair{"zamba", kState},
    std::pair{"bamba", kState},
    std::pair{"nemotronh", kState},
    std::pair{"recurrentgemma", kState},
    std::pair{"qwen3next", kState},
    std::pair{"qwen3_5", kState},
    std::pair{"deci", kBlocks},
    std::pair{"roberta", kEncoder},
    std::pair{"deberta", kEncoder},
    std::pair{"bertfor", kEncoder},
    std::pair{"bertmodel", kEncoder},
    std::pair{"electra", kEncoder},
    std::pair{"t5for", kEncoderDecoder},
    std::pair{"bartfor", kEncoderDecoder},
    std::pair{"pegasus", kEncoderDecoder},
    std::pair{"m2m100", kEncoderDecoder},
    std::pair{"marian", kEncoderDecoder},
    std::pair{"whisper", kSpeech},
    std::pair{"wav2vec", kSpeech},
    std::pair{"vitfor", kVision},
    std::pair{"clip", kVision},
    std::pair{"llava", kVision},
    std::pair{"mllama", kVision},
    std::pair{"qwen2vl", kVision},
    std::pair{"qwen2_5_vl", kVision},
    std::pair{"qwen3vl", kVision},
    std::pair{"internvl", kVision},
    std::pair{"paligemma", kVision},
    std::pair{"idefics", kVision},
    std::pair{"swinfor", kVision},
    std::pair{"unet", kDiffusion},
    std::pair{"diffusion", kDiffusion},
    std::pair{"transformer2dmodel", kDiffusion},
};

bool speaks(const Json& value, double above) {
  if (value.is_null()) return false;
  if (const auto* b = value.get_ptr<const bool*>()) return *b;
  if (value.is_number_unsigned()) return static_cast<double>(*value.get_ptr<const Json::number_unsigned_t*>()) > above;
  if (value.is_number_integer()) return static_cast<double>(*value.get_ptr<const Json::number_integer_t*>()) > above;
  if (value.is_number_float()) return *value.get_ptr<const Json::number_float_t*>() > above;
  return !value.empty();
}

bool is_soft(std::string_view reason) { return reason == kExperts || reason == kLatent || reason == kIndexer; }

void read_keys(const Json& config, FamilyReads reads, std::vector<std::string>& out) {
  const auto add = [&out](std::string_view reason) {
    if (std::find(out.begin(), out.end(), reason) == out.end()) out.emplace_back(reason);
  };
  for (const KeyReason& k : kRefusedKeys) {
    if ((reads.experts && is_soft(k.reason)) || (reads.states && std::string_view(k.reason) == kState)) continue;
    const auto it = config.find(k.key);
    if (it != config.end() && speaks(*it, k.above)) add(k.reason);
  }
  const auto types = config.find("layer_types");
  if (types != config.end() && types->is_array() && !reads.states) {
    for (const Json& type : *types) {
      const auto* s = type.get_ptr<const Json::string_t*>();
      if (s != nullptr && (*s == "linear_attention" || *s == "mamba" || *s == "recurrent")) add(kState);
    }
  }
  const auto two_parts = config.find("is_encoder_decoder");
  if (two_parts != config.end() && speaks(*two_parts, 0)) add(kEncoderDecoder);
}

}  // namespace

std::vector<std::string> unbuilt_parts(const Json& config, std::string_view model_class, FamilyReads reads) {
  std::vector<std::string> out;
  read_keys(config, reads, out);
  for (std::string_view nested : {"text_config", "llm_config", "language_config", "ffn_config"}) {
    const auto it = config.find(nested);
    if (it != config.end() && it->is_object()) read_keys(*it, reads, out);
  }
  // What no class has yet is the reason; that this class lacks a part is one only where nothing else is.
  if (std::any_of(out.begin(), out.end(), [](const std::string& reason) { return !is_soft(reason); }))
    std::erase_if(out, [](const std::string& reason) { return is_soft(reason); });
  if (!out.empty() || reads.experts || reads.states) return out;
  std::string lower(model_class);
  for (char& ch : lower) ch = ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch - 'A' + 'a') : ch;
  for (const auto& [part, reason] : kNames) {
    if (lower.find(part) != std::string::npos) return {reason};
  }
  return out;
}

}  // namespace preflop
