// Mutated configs: whatever is done to the keys of a good file, the reader returns a sane architecture
// or an error with something in it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/adapt/hf_config.hpp"
#include "tests/unit/architecture_sanity.hpp"

namespace preflop {
namespace {

using Json = nlohmann::json;

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
