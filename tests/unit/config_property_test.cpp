// Mutated configs: whatever is done to the keys of a good file, the reader returns a sane architecture
// or an error with something in it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/adapt/hf_config.hpp"
#include "tests/unit/architecture_sanity.hpp"
#include "tests/unit/expert_cases.hpp"

namespace preflop {
namespace {

using Json = nlohmann::json;

// Keys that only families with experts read: any other class refuses them.
void add_expert_keys(const std::string& model_class, Json& c) {
  if (model_class.find("Mamba") != std::string::npos) return;  // no experts
  bool reads = model_class == "PhimoeForCausalLM";
  for (const ExpertCase& known : kExpertCases)
    reads = reads || std::string(known.json).find("\"" + model_class + "\"") != std::string::npos;
  if (!reads) return;
  c.update(Json::parse(
      R"({"num_experts_per_tok":2,"num_experts":8,"moe_intermediate_size":32,"n_shared_experts":1,"shared_expert_intermediate_size":32,
    "intermediate_size_mlp":96,"first_k_dense_replace":1,"q_lora_rank":24,"kv_lora_rank":16,"qk_nope_head_dim":8,"qk_rope_head_dim":4,"v_head_dim":8,
    "num_nextn_predict_layers":1,"index_n_heads":2,"index_head_dim":8,"index_topk":16,"topk_method":"noaux_tc","mlp_only_layers":[2],
    "swa_num_attention_heads":4,"swa_num_key_value_heads":4,"swa_head_dim":16,"swa_v_head_dim":8,"hybrid_layer_pattern":[0,1,1,1,1,0],
    "add_swa_attention_sink_bias":true,"qk_norm_type":"per_layer","use_mtp":true,"num_mtp_modules":2,"attention_chunk_size":32,
    "ffn_config":{"ffn_hidden_size":32,"moe_num_experts":8,"moe_top_k":2}})"));
  if (model_class.find("MiMo") != std::string::npos) c["moe_layer_freq"] = Json::parse("[0,1,1,1,1,1]");
}

// State spaces in a class that does not read them are refused.
void add_state_keys(const std::string& model_class, Json& c) {
  if (model_class == "MambaLMHeadModel" || model_class == "Mamba2ForCausalLM") {
    c.update(Json::parse(R"({"n_layer":6,"num_heads":8,"state_size":16,"n_groups":2,"chunk_size":32,
      "ssm_cfg":{"layer":"Mamba2","d_state":16,"headdim":16,"chunk_size":32,"bias":true},"attn_layer_idx":[],"d_intermediate":0})"));
  } else if (model_class == "NemotronHForCausalLM") {
    c.update(Json::parse(
        R"({"hybrid_override_pattern":"M-M*ME","mamba_num_heads":8,"mamba_head_dim":16,"n_groups":2,"ssm_state_size":16,
      "conv_kernel":4,"chunk_size":32,"use_conv_bias":true,"mamba_proj_bias":true,"mlp_hidden_act":"relu2","n_routed_experts":8,
      "moe_shared_expert_intermediate_size":32,"moe_latent_size":16})"));
    c.erase("num_experts");
    c.erase("moe_num_experts");
  } else if (model_class == "GraniteMoeHybridForCausalLM") {
    c.update(Json::parse(
        R"({"layer_types":["mamba","mamba","attention","mamba","mamba","mamba"],"mamba_n_heads":8,"mamba_d_head":16,
      "mamba_n_groups":1,"mamba_d_state":16,"mamba_d_conv":4,"mamba_chunk_size":32,"num_local_experts":8,"shared_intermediate_size":32,
      "position_embedding_type":"nope"})"));
  } else if (model_class.starts_with("Qwen3_5") || model_class.starts_with("Qwen3Next")) {
    c.update(Json::parse(
        R"({"layer_types":["linear_attention","linear_attention","full_attention","linear_attention","linear_attention",
      "full_attention"],"linear_key_head_dim":8,"linear_num_key_heads":2,"linear_num_value_heads":4,"linear_value_head_dim":8,
      "linear_conv_kernel_dim":4,"full_attention_interval":3,"mtp_num_hidden_layers":1})"));
  }
}

// A file with every key that any family reads: each class finds what it needs.
Json every_key(const std::string& model_class) {
  Json c = Json::parse(
      R"({"hidden_size":64,"intermediate_size":176,"num_attention_heads":4,"num_key_value_heads":2,"num_hidden_layers":6,
    "vocab_size":1000,"max_position_embeddings":128,"head_dim":16,"hidden_act":"silu","attention_dropout":0.1,"tie_word_embeddings":true,
    "attention_bias":true,"mlp_bias":false,"sliding_window":32,"use_sliding_window":false,"max_window_layers":3,"bias":false,
    "no_rope_layers":[1,1,1,0,1,1],"sliding_window_pattern":3,"layer_types":["full_attention","sliding_attention","full_attention","sliding_attention",
    "full_attention","sliding_attention"],"d_model":64,"n_layers":6,"n_heads":4,"max_seq_len":128,"expansion_ratio":4,"no_bias":true,
    "attn_config":{"alibi":true,"attn_type":"grouped_query_attention","kv_n_heads":2},"ffn_config":{"ffn_type":"mptglu"},"multi_query":false,
    "multi_query_attention":true,"multi_query_group_num":2,"kv_channels":16,"num_layers":6,"ffn_hidden_size":176,"rmsnorm":true,
    "new_decoder_architecture":true,"num_ln_in_parallel_attn":2,"resid_pdrop":0.1,"use_qk_norm":true,"word_embed_proj_dim":64,
    "hidden_dropout":0.0,"use_parallel_residual":true,"activation_function":"gelu_new","n_head_kv":2})");
  c["architectures"] = Json::array({model_class});
  add_expert_keys(model_class, c);
  add_state_keys(model_class, c);
  c["text_config"] = c;
  return c;
}

const std::vector<std::string>& classes() {
  static const std::vector<std::string> names = hf_config_families();
  return names;
}

TEST(ConfigProperty, EveryClassReadsTheFullFile) {
  for (const std::string& name : classes()) {
    const Result<Architecture> a = read_hf_config(every_key(name).dump(), "config.json");
    ASSERT_TRUE(a.ok()) << name << ": " << a.error().text();
    EXPECT_EQ(insane(*a), "") << name;
    EXPECT_EQ(a->layer_count(), 6) << name;
  }
}

RC_GTEST_PROP(ConfigProperty, MutatedKeys, ()) {
  const std::vector<Json> values = {nullptr,
                                    0,
                                    1,
                                    -1,
                                    2,
                                    3,
                                    7,
                                    64,
                                    2.5,
                                    1e18,
                                    2147483647,
                                    2147483648LL,
                                    INT64_MAX,
                                    UINT64_MAX,
                                    "x",
                                    "",
                                    true,
                                    false,
                                    Json::array(),
                                    Json::object(),
                                    Json::array({1, "full_attention", nullptr}),
                                    0.999999,
                                    10000,
                                    10001};
  Json config = every_key(*rc::gen::elementOf(classes()));
  const int changes = *rc::gen::inRange(1, 8);
  for (int i = 0; i < changes; ++i) {
    Json& object = *rc::gen::element(0, 1) == 0 ? config : config["text_config"];
    if (!object.is_object() || object.empty()) continue;
    auto it = object.begin();
    std::advance(it, *rc::gen::inRange<std::size_t>(0, object.size()));
    if (it.key() == "architectures" && *rc::gen::element(0, 1) == 0) continue;
    if (*rc::gen::element(0, 1, 2, 3) == 0) {
      object.erase(it);
    } else {
      *it = *rc::gen::elementOf(values);
    }
  }
  const Result<Architecture> a = read_hf_config(config.dump(), "config.json");
  if (a.ok()) {
    RC_ASSERT(insane(*a) == "");
  } else {
    RC_ASSERT(!a.error().what.empty());
    RC_ASSERT(a.error().where.rfind("config.json", 0) == 0);
  }
}

RC_GTEST_PROP(ConfigProperty, MutatedBytes, ()) {
  std::string text = every_key(*rc::gen::elementOf(classes())).dump();
  const int changes = *rc::gen::inRange(1, 6);
  for (int i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = *rc::gen::inRange<std::size_t>(0, text.size());
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        text[at] = static_cast<char>(*rc::gen::inRange(0, 256));
        break;
      case 1:
        text.erase(at, *rc::gen::inRange<std::size_t>(1, 20));
        break;
      case 2:
        text.resize(at);
        break;
      default:
        text.insert(at, text.substr(at / 2, 9));
        break;
    }
  }
  const Result<Architecture> a = read_hf_config(text, "config.json");
  if (a.ok()) {
    RC_ASSERT(insane(*a) == "");
  } else {
    RC_ASSERT(!a.error().text().empty());
  }
}

}  // namespace
}  // namespace preflop
