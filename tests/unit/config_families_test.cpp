// Every family once, as its own files write it, against the catalogue's row of the same model: two
// descriptions from different sources must come to the same architecture, to the last bias.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "src/adapt/hf_config.hpp"
#include "src/adapt/model_catalogue.hpp"
#include "src/adapt/shape_string.hpp"
#include "tests/unit/expert_cases.hpp"
#include "tests/unit/param_oracle.hpp"

namespace preflop {
namespace {

struct Case {
  const char* id;  // of the catalogue, or a shape string
  const char* json;
};

const Case kCases[] = {
    {"llama-7b",
     R"({"architectures":["LLaMAForCausalLM"],"hidden_size":4096,"intermediate_size":11008,"num_attention_heads":32,
      "num_hidden_layers":32,"vocab_size":32000})"},
    {"llama3-70b",
     R"({"architectures":["LlamaForCausalLM"],"hidden_size":8192,"intermediate_size":28672,"num_attention_heads":64,
      "num_hidden_layers":80,"num_key_value_heads":8,"vocab_size":128256,"max_position_embeddings":8192,"hidden_act":"silu","tie_word_embeddings":false})"},
    {"yi-34b",
     R"({"model_type":"Yi","hidden_size":7168,"intermediate_size":20480,"num_attention_heads":56,"num_hidden_layers":60,
      "num_key_value_heads":8,"vocab_size":64000,"max_position_embeddings":4096})"},
    {"mistral-7b",
     R"({"architectures":["MistralForCausalLM"],"hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,
      "num_hidden_layers":32,"num_key_value_heads":8,"sliding_window":4096,"vocab_size":32000,"max_position_embeddings":32768})"},
    {"mistral-nemo-12b",
     R"({"architectures":["MistralForCausalLM"],"hidden_size":5120,"intermediate_size":14336,"num_attention_heads":32,"head_dim":128,
      "num_hidden_layers":40,"num_key_value_heads":8,"sliding_window":null,"vocab_size":131072,"max_position_embeddings":131072})"},
    {"mistral-small-24b",
     R"({"architectures":["Mistral3ForConditionalGeneration"],"vision_config":{"hidden_size":1024},"text_config":{"model_type":"mistral",
      "hidden_size":5120,"intermediate_size":32768,"num_attention_heads":32,"head_dim":128,"num_hidden_layers":40,"num_key_value_heads":8,
      "sliding_window":null,"vocab_size":131072,"max_position_embeddings":32768}})"},
    {"qwen1-7b",
     R"({"architectures":["QWenLMHeadModel"],"hidden_size":4096,"intermediate_size":22016,"num_attention_heads":32,"kv_channels":128,
      "num_hidden_layers":32,"vocab_size":151936,"no_bias":true})"},
    {"qwen2.5-7b",
     R"({"architectures":["Qwen2ForCausalLM"],"hidden_size":3584,"intermediate_size":18944,"num_attention_heads":28,"num_hidden_layers":28,
      "num_key_value_heads":4,"vocab_size":152064,"max_position_embeddings":131072,"use_sliding_window":false,"sliding_window":131072,"max_window_layers":28})"},
    {"qwen3-4b",
     R"({"architectures":["Qwen3ForCausalLM"],"hidden_size":2560,"intermediate_size":9728,"num_attention_heads":32,"head_dim":128,
      "num_hidden_layers":36,"num_key_value_heads":8,"vocab_size":151936,"max_position_embeddings":40960,"tie_word_embeddings":true})"},
    {"gemma-7b",
     R"({"architectures":["GemmaForCausalLM"],"hidden_size":3072,"intermediate_size":24576,"num_attention_heads":16,"head_dim":256,
      "num_hidden_layers":28,"num_key_value_heads":16,"vocab_size":256000,"hidden_act":"gelu","hidden_activation":"gelu_pytorch_tanh","max_position_embeddings":4096})"},
    {"gemma2-9b",
     R"({"architectures":["Gemma2ForCausalLM"],"hidden_size":3584,"intermediate_size":14336,"num_attention_heads":16,"head_dim":256,
      "num_hidden_layers":42,"num_key_value_heads":8,"vocab_size":256000,"sliding_window":4096,"max_position_embeddings":8192})"},
    {"gemma3-1b",
     R"({"architectures":["Gemma3ForCausalLM"],"hidden_size":1152,"intermediate_size":6912,"num_attention_heads":4,"head_dim":256,
      "num_hidden_layers":26,"num_key_value_heads":1,"vocab_size":262144,"sliding_window":512,"sliding_window_pattern":6,"max_position_embeddings":32768})"},
    {"gemma3-4b",
     R"({"architectures":["Gemma3ForConditionalGeneration"],"model_type":"gemma3","vision_config":{},"text_config":{"model_type":"gemma3_text",
      "hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":34,"sliding_window":1024}})"},
    {"phi1.5",
     R"({"architectures":["PhiForCausalLM"],"hidden_size":2048,"intermediate_size":8192,"num_attention_heads":32,"num_hidden_layers":24,
      "num_key_value_heads":null,"vocab_size":51200,"max_position_embeddings":2048,"hidden_act":"gelu_new"})"},
    {"phi2",
     R"({"architectures":["PhiForCausalLM"],"model_type":"phi-msft","n_embd":2560,"n_inner":null,"n_head":32,"n_head_kv":null,"n_layer":32,
      "vocab_size":51200,"n_positions":2048,"activation_function":"gelu_new","resid_pdrop":0.1,"attn_pdrop":0.0,"embd_pdrop":0.0})"},
    {"phi3-mini",
     R"({"architectures":["Phi3ForCausalLM"],"hidden_size":3072,"intermediate_size":8192,"num_attention_heads":32,"num_hidden_layers":32,
      "num_key_value_heads":32,"vocab_size":32064,"sliding_window":2047,"max_position_embeddings":4096})"},
    {"phi4-mini",
     R"({"architectures":["Phi3ForCausalLM"],"hidden_size":3072,"intermediate_size":8192,"num_attention_heads":24,"num_hidden_layers":32,
      "num_key_value_heads":8,"vocab_size":200064,"sliding_window":262144,"max_position_embeddings":131072,"tie_word_embeddings":true})"},
    {"gpt2-xl",
     R"({"architectures":["GPT2LMHeadModel"],"n_embd":1600,"n_head":25,"n_layer":48,"n_positions":1024,"vocab_size":50257})"},
    {"gpt-j-6b",
     R"({"architectures":["GPTJForCausalLM"],"n_embd":4096,"n_head":16,"n_inner":null,"n_layer":28,"n_positions":2048,"rotary_dim":64,"vocab_size":50400})"},
    {"pythia-1b",
     R"({"architectures":["GPTNeoXForCausalLM"],"hidden_size":2048,"intermediate_size":8192,"num_attention_heads":8,"num_hidden_layers":16,
      "vocab_size":50304,"max_position_embeddings":2048,"use_parallel_residual":true})"},
    {"santacoder",
     R"({"architectures":["GPTBigCodeForCausalLM"],"n_embd":2048,"n_head":16,"n_inner":8192,"n_layer":24,"n_positions":2048,"vocab_size":49280,
      "multi_query":true,"attn_pdrop":0.1,"resid_pdrop":0.1,"embd_pdrop":0.1})"},
    {"opt-6.7b",
     R"({"architectures":["OPTForCausalLM"],"hidden_size":4096,"ffn_dim":16384,"num_attention_heads":32,"num_hidden_layers":32,"vocab_size":50272,
      "word_embed_proj_dim":4096,"max_position_embeddings":2048,"dropout":0.1,"attention_dropout":0.0,"do_layer_norm_before":true})"},
    {"bloom-176b",
     R"({"architectures":["BloomForCausalLM"],"hidden_size":14336,"n_layer":70,"num_attention_heads":112,"vocab_size":250880})"},
    {"falcon-7b",
     R"({"architectures":["FalconForCausalLM"],"hidden_size":4544,"num_attention_heads":71,"num_hidden_layers":32,"vocab_size":65024,
      "multi_query":true,"parallel_attn":true,"new_decoder_architecture":false,"max_position_embeddings":2048})"},
    {"falcon-7b",
     R"({"architectures":["RWForCausalLM"],"model_type":"RefinedWebModel","hidden_size":4544,"n_head":71,"n_layer":32,"vocab_size":65024,
      "multi_query":true,"parallel_attn":true,"n_positions":2048})"},
    {"falcon-40b",
     R"({"architectures":["FalconForCausalLM"],"hidden_size":8192,"num_attention_heads":128,"num_kv_heads":8,"num_hidden_layers":60,
      "vocab_size":65024,"new_decoder_architecture":true,"max_position_embeddings":2048})"},
    {"falcon-rw-1b",
     R"({"architectures":["FalconForCausalLM"],"hidden_size":2048,"num_attention_heads":32,"num_hidden_layers":24,"vocab_size":50304,
      "alibi":true,"bias":true,"multi_query":false,"parallel_attn":false})"},
    {"mpt-7b",
     R"({"architectures":["MPTForCausalLM"],"d_model":4096,"n_heads":32,"n_layers":32,"expansion_ratio":4,"max_seq_len":2048,"vocab_size":50432,
      "no_bias":true,"attn_config":{"alibi":true,"attn_type":"multihead_attention"}})"},
    {"mpt-1b",
     R"({"model_type":"mpt","d_model":2048,"n_heads":16,"n_layers":24,"expansion_ratio":4,"max_seq_len":2048,"vocab_size":50368,"no_bias":true})"},
    {"starcoder2-7b",
     R"({"architectures":["Starcoder2ForCausalLM"],"hidden_size":4608,"intermediate_size":18432,"num_attention_heads":36,"num_key_value_heads":4,
      "num_hidden_layers":32,"vocab_size":49152,"sliding_window":4096,"max_position_embeddings":16384,"attention_dropout":0.1,"residual_dropout":0.1,"embedding_dropout":0.1})"},
    {"olmo-1b",
     R"({"architectures":["OlmoForCausalLM"],"hidden_size":2048,"intermediate_size":8192,"num_attention_heads":16,"num_hidden_layers":16,
      "vocab_size":50304,"max_position_embeddings":2048,"tie_word_embeddings":true})"},
    {"olmo2-32b",
     R"({"architectures":["Olmo2ForCausalLM"],"hidden_size":5120,"intermediate_size":27648,"num_attention_heads":40,"num_key_value_heads":8,
      "num_hidden_layers":64,"vocab_size":100352,"max_position_embeddings":4096})"},
    {"smollm3-3b",
     R"({"architectures":["SmolLM3ForCausalLM"],"hidden_size":2048,"intermediate_size":11008,"num_attention_heads":16,"num_key_value_heads":4,
      "num_hidden_layers":36,"vocab_size":128256,"max_position_embeddings":65536,"no_rope_layer_interval":4})"},
    {"granite-3.3-2b",
     R"({"architectures":["GraniteForCausalLM"],"hidden_size":2048,"intermediate_size":8192,"num_attention_heads":32,"num_key_value_heads":8,
      "num_hidden_layers":40,"vocab_size":49159,"max_position_embeddings":131072,"tie_word_embeddings":true,"embedding_multiplier":12.0})"},
    {"aya-expanse-8b",
     R"({"architectures":["CohereForCausalLM"],"hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_key_value_heads":8,
      "num_hidden_layers":32,"vocab_size":256000,"max_position_embeddings":8192,"use_qk_norm":false})"},
    {"nemotron4-15b",
     R"({"architectures":["NemotronForCausalLM"],"hidden_size":6144,"intermediate_size":24576,"num_attention_heads":48,"num_key_value_heads":8,
      "num_hidden_layers":32,"vocab_size":256000,"max_position_embeddings":4096,"hidden_act":"relu2"})"},
    {"glm4-9b",
     R"({"architectures":["ChatGLMModel"],"hidden_size":4096,"ffn_hidden_size":13696,"num_attention_heads":32,"num_layers":40,"kv_channels":128,
      "multi_query_attention":true,"multi_query_group_num":2,"padded_vocab_size":151552,"vocab_size":151552,"seq_length":131072,"add_qkv_bias":true})"},
    {"glm4-9b",
     R"({"architectures":["GlmForCausalLM"],"hidden_size":4096,"intermediate_size":13696,"num_attention_heads":32,"num_hidden_layers":40,"head_dim":128,
      "num_key_value_heads":2,"vocab_size":151552,"max_position_embeddings":131072,"attention_bias":true})"},
    {"internlm2-7b",
     R"({"architectures":["InternLM2ForCausalLM"],"hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_key_value_heads":8,
      "num_hidden_layers":32,"vocab_size":92544,"bias":false,"max_position_embeddings":32768})"},
    {"baichuan2-7b",
     R"({"architectures":["BaichuanForCausalLM"],"hidden_size":4096,"intermediate_size":11008,"num_attention_heads":32,"num_hidden_layers":32,
      "vocab_size":125696,"max_position_embeddings":4096})"},
    {"baichuan2-13b",
     R"({"architectures":["BaichuanForCausalLM"],"hidden_size":5120,"intermediate_size":13696,"num_attention_heads":40,"num_hidden_layers":40,"vocab_size":125696})"},
    // Families without a row of their own: written down as shapes.
    {"llama:layers=32,hidden=4096,heads=32,ffn=13696,vocab=151552,kv_heads=2,head_dim=128,placement=sandwich",
     R"({"architectures":["Glm4ForCausalLM"],"hidden_size":4096,"intermediate_size":13696,"num_attention_heads":32,"num_hidden_layers":32,"head_dim":128,
      "num_key_value_heads":2,"vocab_size":151552})"},
    {"llama:layers=24,hidden=2048,heads=32,ffn=5632,vocab=100352,norm=layer,qkv_bias=true,seq=4096",
     R"({"architectures":["StableLmForCausalLM"],"hidden_size":2048,"intermediate_size":5632,"num_attention_heads":32,"num_key_value_heads":32,
      "num_hidden_layers":24,"vocab_size":100352,"use_qkv_bias":true,"max_position_embeddings":4096})"},
    {"llama:layers=40,hidden=5120,heads=32,kv_heads=8,ffn=13824,vocab=100352,norm=layer,placement=shared_pre,qk_norm="
     "per_head,seq=4096",
     R"({"architectures":["StableLmForCausalLM"],"hidden_size":5120,"intermediate_size":13824,"num_attention_heads":32,"num_key_value_heads":8,
      "num_hidden_layers":40,"vocab_size":100352,"use_parallel_residual":true,"qk_layernorm":true,"max_position_embeddings":4096})"},
    {"llama:layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=256000,tied=true,norm=layer_no_bias,placement="
     "shared_pre,window=4096,full_every=4,nope_every=4,seq=8192",
     R"({"architectures":["Cohere2ForCausalLM"],"hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_key_value_heads":8,
      "num_hidden_layers":32,"vocab_size":256000,"sliding_window":4096,"max_position_embeddings":8192})"},
    {"llama:layers=32,hidden=4096,heads=32,ffn=11008,vocab=100278,placement=post,qk_norm=full,window=4096,full_every=4,"
     "seq=65536",
     R"({"architectures":["Olmo3ForCausalLM"],"hidden_size":4096,"intermediate_size":11008,"num_attention_heads":32,"num_hidden_layers":32,"vocab_size":100278,
      "sliding_window":4096,"max_position_embeddings":65536})"},
    {"llama:layers=6,hidden=4096,heads=32,kv_heads=8,ffn=12288,vocab=131072,window=32768,full_every=3",
     R"({"architectures":["MinistralForCausalLM"],"hidden_size":4096,"intermediate_size":12288,"num_attention_heads":32,"num_hidden_layers":6,"num_key_value_heads":8,
      "vocab_size":131072,"sliding_window":32768,"layer_types":["sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","full_attention"]})"},
};

Result<Architecture> expected_of(const ModelCatalogue& catalogue, const char* id) {
  return looks_like_shape(id) ? read_shape(id, "test") : catalogue.find(id);
}

// The first difference in what is computed, or "". Names, sources and notes may differ.
std::string difference(const Architecture& a, const Architecture& b) {
  const auto differs = [](const char* what, auto x, auto y) {
    return std::string(what) + ": " + std::to_string(x) + " against " + std::to_string(y);
  };
  if (a.hidden != b.hidden) return differs("hidden", a.hidden.get(), b.hidden.get());
  if (a.vocab != b.vocab) return differs("vocab", a.vocab.get(), b.vocab.get());
  if (a.tied != b.tied) return "tied";
  if (a.final_norm != b.final_norm || a.has_final_norm != b.has_final_norm) return "final norm";
  if (a.embedding_norm != b.embedding_norm) return "embedding norm";
  if (a.embedding_dropout != b.embedding_dropout)
    return differs("embedding dropout", a.embedding_dropout, b.embedding_dropout);
  if (a.positions != b.positions || a.position_rows != b.position_rows) return "positions";
  if (a.head_bias != b.head_bias) return "head bias";
  if (a.max_seq && b.max_seq && *a.max_seq != *b.max_seq) return differs("max_seq", a.max_seq->get(), b.max_seq->get());
  if (a.layers.size() != b.layers.size()) return differs("runs of layers", a.layers.size(), b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    const LayerKind &x = a.layers[i].kind, &y = b.layers[i].kind;
    if (a.layers[i].count != b.layers[i].count) return differs("layers of a run", a.layers[i].count, b.layers[i].count);
    if (x.attention.dropout != y.attention.dropout || x.dropout != y.dropout) return "dropout";
    if (!(x.attention == y.attention)) return "attention";
    if (!(x.mlp == y.mlp)) return "mlp";
    if (!(x == y)) return "norms of a layer";
  }
  return {};
}

TEST(ConfigFamilies, AgreeWithTheCatalogue) {
  const Result<ModelCatalogue> catalogue = ModelCatalogue::load();
  ASSERT_TRUE(catalogue.ok()) << catalogue.error().text();
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.id);
    const Result<Architecture> read = read_hf_config(c.json, "config.json");
    ASSERT_TRUE(read.ok()) << read.error().text();
    const Result<Architecture> expected = expected_of(*catalogue, c.id);
    ASSERT_TRUE(expected.ok()) << expected.error().text();
    EXPECT_EQ(difference(*read, *expected), "");
    EXPECT_EQ(oracle::parameters(*read), oracle::parameters(*expected));
  }
}

// A family that is in the table but in no test is a family nobody has seen working.
TEST(ConfigFamilies, EveryClassIsTested) {
  std::set<std::string> seen;
  for (const Case& c : kCases) {
    const Result<Architecture> read = read_hf_config(c.json, "config.json");
    if (read.ok()) seen.insert(read->family);
  }
  for (const ExpertCase& c : kExpertCases) {
    const Result<Architecture> read = read_hf_config(c.json, "config.json");
    if (read.ok()) seen.insert(read->family);
  }
  // Other spellings of a class above, or the same reader without a difference.
  seen.insert({"BaiChuanForCausalLM", "ChatGLMForConditionalGeneration", "MptForCausalLM", "StableLMEpochForCausalLM",
               "Ministral3ForCausalLM", "PhimoeForCausalLM"});
  for (const std::string& name : hf_config_families()) EXPECT_TRUE(seen.count(name)) << name;
}

TEST(ConfigFamilies, DefaultsAreSaid) {
  const Result<Architecture> a = read_hf_config(kCases[0].json, "config.json");
  ASSERT_TRUE(a.ok());
  const std::vector<std::string> expected = {"num_key_value_heads=32", "hidden_act=silu",
                                             "attention_dropout=0.0",  "tie_word_embeddings=false",
                                             "attention_bias=false",   "mlp_bias=false"};
  EXPECT_EQ(a->defaulted, expected);
  EXPECT_EQ(a->layer_count(), 32);
  EXPECT_FALSE(a->max_seq.has_value());
}

// Transformers' MPT always uses ALiBi; llm-foundry's learns positions unless told otherwise.
TEST(ConfigFamilies, TheTwoMptClassesDiffer) {
  const std::string sizes = R"("d_model":2048,"n_heads":16,"n_layers":24,"max_seq_len":2048,"vocab_size":50368})";
  const Result<Architecture> hub = read_hf_config(R"({"architectures":["MptForCausalLM"],)" + sizes, "config.json");
  const Result<Architecture> foundry = read_hf_config(R"({"architectures":["MPTForCausalLM"],)" + sizes, "config.json");
  ASSERT_TRUE(hub.ok() && foundry.ok());
  EXPECT_EQ(hub->positions, Positions::alibi);
  EXPECT_EQ(foundry->positions, Positions::learned);
  EXPECT_EQ(foundry->position_rows, Count(2048));
}

TEST(ConfigFamilies, QwenWindowsStartAtMaxWindowLayers) {
  const Result<Architecture> a = read_hf_config(
      R"({"architectures":["Qwen2ForCausalLM"],"hidden_size":64,"intermediate_size":128,"num_attention_heads":4,
    "num_hidden_layers":10,"num_key_value_heads":2,"vocab_size":100,"use_sliding_window":true,"sliding_window":32,"max_window_layers":7})",
      "config.json");
  ASSERT_TRUE(a.ok()) << a.error().text();
  ASSERT_EQ(a->layers.size(), 2u);
  EXPECT_EQ(a->layers[0].count, 7);
  EXPECT_FALSE(a->layers[0].kind.attention.window.has_value());
  EXPECT_EQ(*a->layers[1].kind.attention.window, Count(32));
}

}  // namespace
}  // namespace preflop
