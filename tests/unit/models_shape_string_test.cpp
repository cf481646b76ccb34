#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "src/adapt/shape_string.hpp"
#include "tests/unit/param_oracle.hpp"

namespace preflop {
namespace {

std::string error_of(const std::string& text) {
  const Result<Architecture> a = read_shape(text, "MODEL");
  return a.ok() ? "read" : a.error().text();
}

TEST(ShapeString, Gpt3) {
  const Result<Architecture> a = read_shape("gpt:layers=96,hidden=12288,heads=96,vocab=51200", "MODEL");
  ASSERT_TRUE(a.ok()) << a.error().text();
  const std::int64_t l = 96, h = 12288;
  EXPECT_EQ(oracle::parameters(*a), l * (12 * h * h + 13 * h) + 51200 * h + 2048 * h + 2 * h);
  EXPECT_EQ(oracle::parameters(*a), 174615846912);
  EXPECT_EQ(a->layers.front().kind.dropout, 0.1);
  EXPECT_EQ(a->layers.front().kind.attention.dropout, 0.1);
  EXPECT_EQ(a->embedding_dropout, 0.1);
  EXPECT_EQ(a->name, "gpt:layers=96,hidden=12288,heads=96,vocab=51200");
  EXPECT_NE(std::find(a->defaulted.begin(), a->defaulted.end(), "ffn=49152"), a->defaulted.end());
  EXPECT_NE(std::find(a->defaulted.begin(), a->defaulted.end(), "dropout=0.1"), a->defaulted.end());
}

TEST(ShapeString, LlamaFfnRule) {
  const std::pair<int, int> widths[] = {{4096, 11008}, {5120, 13824}, {6656, 17920}, {8192, 22016}};
  for (const auto& [hidden, ffn] : widths) {
    const Result<Architecture> a =
        read_shape("llama:layers=2,heads=1,vocab=32000,hidden=" + std::to_string(hidden), "MODEL");
    ASSERT_TRUE(a.ok());
    EXPECT_EQ(a->layers.front().kind.mlp.width, Count(ffn));
  }
  EXPECT_EQ(oracle::parameters(*read_shape("llama:layers=32,hidden=4096,heads=32,vocab=32000", "MODEL")), 6738415616);
}

TEST(ShapeString, EveryKeyChangesSomething) {
  const std::string base = "gpt:layers=8,hidden=64,heads=4,vocab=1Ki";
  const Architecture plain = *read_shape(base, "MODEL");
  const char* settings[] = {"kv_heads=2",
                            "head_dim=32",
                            "ffn=100",
                            "seq=512",
                            "tied=false",
                            "gated=true,ffn=100",
                            "activation=relu2",
                            "norm=rms",
                            "placement=sandwich",
                            "bias=false",
                            "qkv_bias=false",
                            "out_bias=false",
                            "mlp_bias=false",
                            "head_bias=true",
                            "qk_norm=head",
                            "positions=rope",
                            "position_rows=4096",
                            "dropout=0",
                            "attention_dropout=0",
                            "embedding_dropout=0",
                            "window=16",
                            "window=16,full_every=2",
                            "positions=rope,nope_every=4",
                            "embedding_norm=true",
                            "final_norm=false",
                            "window=16,chunked=true",
                            "sinks=true",
                            "value_dim=8",
                            "kv_lora=32,nope_dim=8,rope_dim=4,value_dim=8",
                            "kv_lora=32,nope_dim=8,rope_dim=4,value_dim=8,q_lora=16",
                            "kv_lora=32,nope_dim=8,rope_dim=4,value_dim=8,index_heads=2,index_dim=4,index_top_k=16",
                            "experts=4,top_k=2,expert_ffn=10",
                            "experts=4,top_k=2,expert_ffn=10,shared_ffn=10,shared_gate=true,expert_bias=true",
                            "experts=4,top_k=2,expert_ffn=10,router_bias=true,correction_bias=true,dense_first=1",
                            "experts=4,top_k=2,expert_ffn=10,experts_every=2",
                            "experts=4,top_k=2,expert_ffn=10,expert_groups=4,top_groups=2",
                            "mtp=1,counted=main+mtp",
                            "mtp=2,mtp_shared=true,counted=main+mtp",
                            "attention_gate=true",
                            "positions=rope,rope_theta=1000",
                            "positions=rope,rope_share=0.5",
                            "norm_eps=0.5",
                            "experts=4,top_k=2,expert_ffn=10,expert_latent=16",
                            "pattern=*-*-*-*-",
                            "pattern=MMMMMMMa,ssm_heads=4,ssm_dim=8,ssm_state=16",
                            "pattern=mmmammma,ssm_heads=4,ssm_dim=8,ssm_state=16,ssm_groups=2,ssm_conv=3,ssm_chunk=64",
                            "pattern=mmmammma,scan=gated-delta,ssm_heads=4,ssm_dim=8,ssm_state=16,ssm_bias=true"};
  std::set<std::string> seen = {"layers", "hidden", "heads", "vocab"};
  for (const std::string setting : settings) {
    const Result<Architecture> a = read_shape(base + "," + setting, "MODEL");
    ASSERT_TRUE(a.ok()) << a.error().text();
    const bool same = a->layers.size() == plain.layers.size() && a->layers.front().kind == plain.layers.front().kind &&
                      a->max_seq == plain.max_seq && a->rope_theta == plain.rope_theta &&
                      a->rope_share == plain.rope_share && a->norm_eps == plain.norm_eps &&
                      a->embedding_dropout == plain.embedding_dropout &&
                      oracle::parameters(*a) == oracle::parameters(plain);
    EXPECT_FALSE(same) << setting;
    for (const std::string& key : shape_keys()) {
      if (("," + setting).find("," + key + "=") != std::string::npos) seen.insert(key);
    }
  }
  EXPECT_EQ(seen.size(), shape_keys().size());
  EXPECT_EQ(plain.vocab, Count(1024));
}

// Parts of experts and of latent attention make no sense alone.
TEST(ShapeString, PartsOfPartsAreRefused) {
  const std::string base = "llama:layers=2,hidden=64,heads=4,vocab=10,";
  const std::pair<const char*, const char*> wrong[] = {
      {"top_k=2", "top_k: is given without experts"},
      {"q_lora=2", "q_lora: is given without kv_lora"},
      {"experts=4,top_k=5,expert_ffn=8", "top_k: is 5 of 4 experts"},
      {"experts=4,expert_ffn=8", "top_k: is not given"},
      {"kv_lora=4,nope_dim=4,rope_dim=4", "value_dim: is not given"},
      {"mtp=65", "mtp: is 65"},
      {"ssm_dim=8", "ssm_dim: is given without ssm_heads"},
      {"ssm_heads=4,ssm_dim=8,ssm_state=8", "is given without a pattern"},
      {"pattern=MM", "has a layer 'M' that its keys do not describe"},
      {"pattern=E-", "has a layer 'E' that its keys do not describe"},
      {"pattern=x-", "has a layer 'x'"},
      {"pattern=*", "pattern: has 1 layers of 2"},
      {"pattern=M-,ssm_heads=4,ssm_groups=3,ssm_dim=8,ssm_state=8", "ssm_groups: is 3"},
      {"pattern=**,window=8,full_every=2", "full_every: is given with a pattern"},
      {"chunked=true", "chunked: is given without a window"}};
  for (const auto& [keys, message] : wrong) {
    const Result<Architecture> a = read_shape(base + keys, "MODEL");
    ASSERT_FALSE(a.ok()) << keys;
    EXPECT_NE(a.error().text().find(message), std::string::npos) << a.error().text();
  }
}

TEST(ShapeString, LayersWithAndWithoutWindow) {
  const Architecture a =
      *read_shape("llama:layers=7,hidden=64,heads=4,vocab=10,window=16,full_every=3,nope_every=7", "MODEL");
  std::string pattern;
  for (const LayerRun& run : a.layers) {
    for (std::int64_t i = 0; i < run.count; ++i)
      pattern += !run.kind.attention.rope ? 'n' : run.kind.attention.window ? 's' : 'f';
  }
  EXPECT_EQ(pattern, "ssfssfn");
  EXPECT_EQ(a.layers.size(), 5u);
}

TEST(ShapeString, Errors) {
  const auto expect = [](const std::string& text, const std::string& part) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(part), std::string::npos) << "got: " << error << "\nwanted: " << part;
  };
  expect("gpt", "has no colon");
  expect("gtp:layers=1,hidden=8,heads=1,vocab=8", "unknown shape 'gtp'; did you mean gpt");
  expect("gpt:", "is not KEY=VALUE");
  expect("gpt:layers", "'layers' is not KEY=VALUE");
  expect("gpt:layers=1,,hidden=8", "is not KEY=VALUE");
  expect("gpt:layers=,hidden=8", "'layers=' is not KEY=VALUE");
  expect("gpt:hidden=8,heads=1,vocab=8", "MODEL: layers: is not given; valid: layers=N");
  expect("gpt:layers=1,heads=1,vocab=8", "hidden: is not given");
  expect("gpt:layers=1,hidden=8,vocab=8", "heads: is not given");
  expect("gpt:layers=1,hidden=8,heads=1", "vocab: is not given");
  const std::string good = "gpt:layers=1,hidden=8,heads=1,vocab=8";
  ASSERT_EQ(error_of(good), "read");
  expect(good + ",layer=3", "unknown key 'layer'; did you mean layers");
  expect(good + ",layers=3", "layers: is given twice");
  expect("gpt:layers=0,hidden=8,heads=1,vocab=8", "layers: is '0'; valid: a whole number from 1 to 10000");
  expect("gpt:layers=1.5,hidden=8,heads=1,vocab=8", "layers: is '1.5'");
  expect("gpt:layers=1,hidden=-8,heads=1,vocab=8", "hidden: is '-8'");
  expect("gpt:layers=1,hidden=1e18,heads=1,vocab=8", "hidden: is '1e18'");
  expect("gpt:layers=1,hidden=8,heads=3,vocab=8", "heads: is 3, which does not divide hidden=8");
  expect(good + ",kv_heads=2", "kv_heads: is 2, which does not divide heads=1");
  expect(good + ",gated=true", "ffn: is not given");
  expect(good + ",gated=yes", "gated: is 'yes'; valid: true or false");
  expect(good + ",activation=swish", "activation: is 'swish'; valid: gelu, relu, relu2, silu or quick_gelu");
  expect(good + ",norm=batch", "norm: is 'batch'");
  expect(good + ",dropout=1", "dropout: is '1'; valid: a probability");
  expect(good + ",dropout=nan", "dropout: is 'nan'");
  expect(good + ",full_every=2", "full_every: is given without a window");
  expect(good + ",nope_every=2", "nope_every: is given, but positions are not rope");
  expect(good + ",positions=rope,position_rows=2", "position_rows: is given, but positions are not learned");
}

TEST(ShapeString, IsTold) {
  EXPECT_TRUE(looks_like_shape("gpt:layers=1"));
  EXPECT_TRUE(looks_like_shape("gtp:layers=1"));
  EXPECT_FALSE(looks_like_shape("llama3-70b"));
  EXPECT_FALSE(looks_like_shape("./a:b/config.json"));
  EXPECT_FALSE(looks_like_shape("C:\\models\\config.json"));
  EXPECT_FALSE(looks_like_shape(":x"));
}

RC_GTEST_PROP(ShapeString, JunkNeverCrashes, (const std::string& junk)) {
  const Result<Architecture> a = read_shape("gpt:layers=1,hidden=8,heads=1," + junk, "MODEL");
  if (!a.ok()) RC_ASSERT(!a.error().text().empty());
}

}  // namespace
}  // namespace preflop
