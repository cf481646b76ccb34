// What each stack keeps and what a parameter costs on it, derived by hand from its own code.
#include <gtest/gtest.h>

#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

Recipe recipe_on(const char* stack_name, i64 dp, int zero, const std::string& precision = "bf16") {
  const Stack& s = stack(stack_name);
  Recipe r = recipe_for(s, 128);
  r.layout.dp = dp;
  r.layout.zero = zero;
  r.global_batch = dp;
  r.precision = precision;
  if (precision == "fp16" && r.weight_dtype == Dtype::bf16) r.weight_dtype = r.grad_dtype = Dtype::fp16;
  return r;
}

// Bytes of the terms that follow parameters, at a moment.
i64 parameter_bytes(const Analysed& a, Moment moment) {
  double bytes = 0;
  for (const Line& line : lines_at(a, a.stages[0], moment)) {
    const bool fixed = line.what == "workspaces" || line.what == "cached weight gradient";
    const bool state = line.term != Term::activations && line.term != Term::logits && !fixed;
    bytes += state ? line.bytes() : 0;
  }
  return whole(bytes);
}

struct PerParameter {
  const char* stack;
  i64 dp;
  int zero;
  const char* precision;
  double at_rest, in_step;  // bytes per parameter of the stage
};

TEST(BytesPerParameter, OfEveryStackAndItsZeroStages) {
  // dp divides every parameter count below.
  const PerParameter table[] = {
      {"megatron", 1, 1, "bf16", 18, 18},
      {"megatron", 4, 1, "bf16", 6 + 12 / 4.0, 6 + 12 / 4.0},
      {"megatron", 4, 0, "bf16", 18, 18},
      {"megatron-fsdp", 4, 3, "bf16", 16 / 4.0, 16 / 4.0},
      {"megatron-fsdp", 4, 2, "bf16", 2 + 14 / 4.0, 2 + 14 / 4.0},
      {"torchtitan", 4, 3, "bf16", 16 / 4.0, 16 / 4.0},
      {"fsdp1", 4, 3, "bf16", 16 / 4.0, 20 / 4.0},
      {"nanotron", 1, 1, "bf16", 18, 18},
      {"nanotron", 4, 1, "bf16", 8 + 12 / 4.0, 8 + 12 / 4.0},
      {"nanotron", 4, 0, "bf16", 20, 20},
      {"megatron-deepspeed", 4, 1, "bf16", 8 + 12 / 4.0, 8 + 12 / 4.0},
      {"megatron-deepspeed", 4, 1, "fp16", 4 + 14 / 4.0, 4 + 18 / 4.0},
      {"megatron-deepspeed", 4, 0, "fp16", 16, 24},
  };
  const Architecture model = llama({.h = 64, .heads = 4, .kv = 4, .d = 16, .f = 256, .layers = 2, .vocab = 1024});
  for (const PerParameter& p : table) {
    const Case c = run(model, stack(p.stack), recipe_on(p.stack, p.dp, p.zero, p.precision));
    const double n = stage_parameters(c.a, c.a.stages[0]).real();
    const std::string label = std::string(p.stack) + " dp " + std::to_string(p.dp) + " zero " + std::to_string(p.zero);
    EXPECT_EQ(static_cast<double>(parameter_bytes(c.a, Moment::init)), p.at_rest * n) << label;
    EXPECT_EQ(static_cast<double>(parameter_bytes(c.a, Moment::optimizer_step)), p.in_step * n) << label;
  }
}

// Bytes per token of a layer with LayerNorm and a plain MLP of 4h, nothing recomputed, no biases.
TEST(SavedBytes, MptOnFoundry) {
  const i64 h = 128, a = 4, s = 64;
  Architecture mpt = gpt({.h = h, .a = a, .dropout = 0});
  Recipe r = recipe_on("foundry", 1, 3);
  r.seq = s;
  // norms: 2 x (input and result 4h, two statistics 8); qkv 6h; result 2h and log-sum-exp 4a; MLP 8h + 8h
  EXPECT_EQ(saved(run(mpt, stack("foundry"), r).layer()), s * (32 * h + 16 + 4 * a));
  r.recompute.kind = RecomputeKind::full;
  EXPECT_EQ(saved(run(mpt, stack("foundry"), r).layer()), s * 2 * h);
}

TEST(SavedBytes, LlamaOnNanotron) {
  const i64 h = 128, a = 4, d = 32, f = 384, s = 64, kv = 2;
  const Architecture model = llama({.h = h, .heads = a, .kv = kv, .d = d, .f = f, .layers = 1});
  Recipe r = recipe_on("nanotron", 1, 1);
  r.seq = s;
  const i64 q = a * d, k = kv * d;
  // norms 8h + 8; the merged q, k, v (v is a view of it) and rotated q, k; result and log-sum-exp; MLP 4f + 2f + 2f
  EXPECT_EQ(saved(run(model, stack("nanotron"), r).layer()),
            s * (8 * h + 8 + 2 * (q + 2 * k) + 2 * (q + k) + 2 * q + 4 * a + 8 * f));
}

TEST(Stages, AreDealtByWorkWhereTheStackDoesSo) {
  // A layer multiplies 4 h^2 + 3 h f = 16384 x (4 + 9) elements, the head 8192 x 128: five layers' worth.
  const Architecture model = llama({.h = 128, .heads = 4, .kv = 4, .d = 32, .f = 384, .layers = 11, .vocab = 8192});
  Recipe r = recipe_on("nanotron", 1, 1);
  r.layout.pp = 4;
  r.global_batch = 8;
  const Case c = run(model, stack("nanotron"), r);
  std::vector<i64> layers;
  for (const Stage& stage : c.a.stages) layers.push_back(stage.layer_count());
  // Shares of (11 + 4.92) / 4 = 3.98: 4 pass it, 8 pass 7.96, 11 do not pass 11.94.
  EXPECT_EQ(layers, (std::vector<i64>{4, 4, 3, 0}));
  r.layout.layers_per_stage = {3, 3, 3, 2};
  EXPECT_EQ(run(model, stack("nanotron"), r).a.stages[3].layer_count(), 2);
}

TEST(Reserved, CountsWorkingSetsOfOtherMomentsWhereTheStackSaysSo) {
  const Architecture model = llama({.h = 128, .heads = 4, .kv = 4, .d = 32, .f = 384, .layers = 2, .vocab = 4096});
  const Cluster cluster;
  const Case summed = run(model, stack("torchtitan"), recipe_on("torchtitan", 4, 3));
  const StageMemory<double> s = memory_estimate<double>(summed.a, cluster).stages[0];
  EXPECT_GT(s.reserved.number(), 1.08 * s.allocated.number());
  const Case plain = run(model, stack("megatron"), recipe_on("megatron", 4, 1));
  const StageMemory<double> p = memory_estimate<double>(plain.a, cluster).stages[0];
  EXPECT_DOUBLE_EQ(p.reserved.number(), stack("megatron").reserved_factor.value * p.allocated.number());
}

}  // namespace
}  // namespace preflop::test
