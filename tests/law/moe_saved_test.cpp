// What layers with experts and latent attention keep on Megatron, byte for byte, and what each recomputed
// module takes away: Megatron-Core's multi_latent_attention.py, moe/*.py and Transformer Engine's modules.
// T tokens, h hidden, H heads; all bytes bf16 unless said.
#include <gtest/gtest.h>

#include "src/adapt/model_catalogue.hpp"
#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

constexpr i64 T = 4096, h = 7168, H = 128, q_lora = 1536, kv_lora = 512, nope = 128, rope = 64, v = 128;
constexpr i64 f = 18432, fm = 2048, fs = 2048, E = 256, k = 8;
constexpr i64 Tr = T * k;

Architecture v3() {
  static const Result<ModelCatalogue> models = ModelCatalogue::load();
  return *models->find("deepseek-v3");
}

// Layer kinds: 0 dense, 1 experts.
i64 kept(std::size_t kind, std::vector<std::string> modules = {}, i64 ep = 1) {
  Recipe r = recipe_for(stack("megatron"), T);
  r.layout.dp = r.layout.ep = ep;
  r.global_batch = ep;
  if (!modules.empty()) r.recompute = {RecomputeKind::modules, 0, std::move(modules)};
  return saved(run(v3(), stack("megatron"), r).layer(kind));
}

constexpr i64 kAttention = 2 * T * 2 * h                             // norm in and out
                           + 2 * T * 2 * q_lora                      // latent of the queries, and its norm
                           + 2 * T * (2 * kv_lora + rope)            // of keys and values, rotary key beside it
                           + 2 * T * H * (2 * (nope + rope) + v)     // q, k and v, contiguous
                           + 2 * T * H * v + 4 * T * H + 3 * 4 * T;  // result, log-sum-exp, three deviations
constexpr i64 kDense = 2 * T * 2 * h + 6 * T * f + 4 * T;
constexpr i64 kExperts = 2 * T * 2 * h + 4 * T + 2 * Tr * h + 6 * Tr * fm + 6 * T * fs + 16 * T * E;

TEST(ExpertSaves, LatentAttentionAndDense) { EXPECT_EQ(kept(0), kAttention + kDense); }
TEST(ExpertSaves, LatentAttentionAndExperts) {
  EXPECT_EQ(kept(1), kAttention + kExperts);
  EXPECT_EQ(kept(1, {}, 8), kAttention + kExperts);  // balanced: ep moves rows, it does not change their number
}
TEST(ExpertSaves, ModulesTakeAwayWhatTheyMakeAgain) {
  EXPECT_EQ(kept(1, {"moe_act"}), kAttention + kExperts - 2 * Tr * fm);
  EXPECT_EQ(kept(1, {"shared_experts"}), kAttention + kExperts - 6 * T * fs);
  EXPECT_EQ(kept(1, {"moe"}), kAttention + 2 * T * 2 * h + 4 * T);
  EXPECT_EQ(kept(1, {"mla_up_proj"}),
            kAttention + kExperts - 2 * T * H * (2 * (nope + rope) + v) - 2 * T * (q_lora + kv_lora) - 2 * 4 * T);
  EXPECT_EQ(kept(1, {"moe_act", "shared_experts"}), kAttention + kExperts - 2 * Tr * fm - 6 * T * fs);
}

TEST(ExpertSaves, SequenceParallelCutsRowsLatentsAndRouter) {
  Recipe r = recipe_for(stack("megatron"), T);
  r.layout.tp = 4;
  r.layout.sp = true;
  const BlockCost block = run(v3(), stack("megatron"), r).layer(1);
  EXPECT_EQ(saved(block), (kAttention + kExperts) / 4);
}

}  // namespace
}  // namespace preflop::test
