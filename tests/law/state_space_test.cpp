// State spaces: what a Mamba-2 layer keeps and costs, how it is cut, where it is refused.
//
// In Megatron-Core one kernel (mamba_ssm MambaSplitConv1dScanCombinedFn) convolves, scans and gates; it keeps what it
// read and its result before the gate. T tokens, t = tp; bf16, sequence parallelism on:
//   in_proj fused with its norm: input and normalised input   2 * 2Th/t       statistics 4T/t
//   z, x, B, C, dt                                            2T(2di + 2gN + m)/t
//   result before the gate                                    2Tdi/t
//   gated result (= input of its norm), normalised result     2 * 2Tdi/t      statistics of every group 4Tg/t
#include <gtest/gtest.h>

#include "src/adapt/model_catalogue.hpp"
#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

Architecture catalogued(const char* id) {
  static const Result<ModelCatalogue> models = ModelCatalogue::load();
  Result<Architecture> a = models->find(id);
  if (!a) ADD_FAILURE() << a.error().text();
  return *a;
}

Recipe recipe_of(const Stack& s, i64 tp) {
  Recipe r = recipe_for(s, 8192);
  r.layout.tp = tp;
  r.layout.sp = tp > 1 && s.sp_allowed;
  return r;
}

// Of Nemotron-H 56B: layer kinds in the order of the pattern, M then - then *.
constexpr i64 T = 8192, h = 8192, m = 256, di = 256 * 64, g = 8, gN = 8 * 256, f = 32768;
constexpr std::size_t kMamba = 0, kMlp = 1, kAttention = 2;

TEST(StateSpace, EveryTpSizeKeepsItsShareOnMegatron) {
  for (const i64 t : {1, 2, 4, 8}) {
    const Case c = run(catalogued("nemotron-h-56b"), stack("megatron"), recipe_of(stack("megatron"), t));
    const i64 mamba = 2 * 2 * T * h + 4 * T + 2 * T * (2 * di + 2 * gN + m) + 3 * 2 * T * di + 4 * T * g;
    EXPECT_EQ(saved(c.layer(kMamba)), mamba / t) << t;
    EXPECT_EQ(saved(c.layer(kMlp)), (2 * 2 * T * h + 4 * T + 2 * 2 * T * f) / t) << t;
    const i64 attention = 2 * 2 * T * h + 4 * T + 2 * T * (2 * 64 + 2 * 8) * 128 + 4 * T * 64;
    EXPECT_EQ(saved(c.layer(kAttention)), attention / t) << t;
  }
}

// Without that kernel each operator keeps what it reads: convolution x, B, C; scan their results and dt; gate z, the
// scan's result and silu(z); its norm and the output product what they read.
TEST(StateSpace, TheTextbookKeepsWhatItsOperatorsRead) {
  const Case c = run(catalogued("nemotron-h-56b"), stack("textbook"), recipe_of(stack("textbook"), 1));
  EXPECT_EQ(saved(c.layer(kMamba)), 2 * 2 * T * h + 2 * T * (2 * (di + 2 * gN) + m + 3 * di + 2 * di));
}

TEST(StateSpace, FullRecomputationKeepsTheInputAlone) {
  Recipe r = recipe_of(stack("megatron"), 4);
  r.recompute.kind = RecomputeKind::full;
  const Case c = run(catalogued("nemotron-h-56b"), stack("megatron"), r);
  for (const std::size_t kind : {kMamba, kMlp, kAttention}) EXPECT_EQ(saved(c.layer(kind)), 2 * T * h / 4);
  r.recompute.kind = RecomputeKind::selective;  // attention alone
  const Case some = run(catalogued("nemotron-h-56b"), stack("megatron"), r);
  const Case none = run(catalogued("nemotron-h-56b"), stack("megatron"), recipe_of(stack("megatron"), 4));
  EXPECT_EQ(saved(some.layer(kMamba)), saved(none.layer(kMamba)));
  EXPECT_LT(saved(some.layer(kAttention)), saved(none.layer(kAttention)));
}

TEST(StateSpace, SharesOfWeightsAndFlopsSumToTheWhole) {
  const Architecture a = catalogued("nemotron-h-56b");
  const Case whole_case = run(a, stack("megatron"), recipe_of(stack("megatron"), 1));
  for (const i64 t : {2, 4, 8}) {
    const Case c = run(a, stack("megatron"), recipe_of(stack("megatron"), t));
    EXPECT_EQ(forward_flops(c.layer(kMamba), 0) * t, forward_flops(whole_case.layer(kMamba), 0)) << t;
    i64 cut = 0, all = 0;
    for (const WeightItem& w : c.layer(kMamba).weights) cut += w.volume.elements.get();
    for (const WeightItem& w : whole_case.layer(kMamba).weights) all += w.volume.elements.get();
    EXPECT_EQ((cut - h) * t, all - h) << t;  // the norm before it is whole on every rank
  }
  Recipe r = recipe_of(stack("megatron"), 2);
  r.layout.cp = 4;
  const Case over_context = run(a, stack("megatron"), r);
  EXPECT_EQ(forward_flops(over_context.layer(kMamba), 0) * 8, forward_flops(whole_case.layer(kMamba), 0));
  EXPECT_EQ(saved(over_context.layer(kMamba)) * 8, saved(whole_case.layer(kMamba)));
}

// One column-parallel and one row-parallel product, as in attention.
TEST(StateSpace, ExchangesOfTensorParallelism) {
  const Case c = run(catalogued("nemotron-h-56b"), stack("megatron"), recipe_of(stack("megatron"), 8));
  for (const std::size_t kind : {kMamba, kMlp, kAttention}) {
    EXPECT_EQ(collectives(c.layer(kind), CollectiveKind::all_gather, false), 1);
    EXPECT_EQ(collectives(c.layer(kind), CollectiveKind::reduce_scatter, false), 1);
  }
}

TEST(StateSpace, RefusedWithTheReason) {
  const auto refusal = [](const char* id, const char* on, const Layout& layout) {
    Recipe r = recipe_for(stack(on), 8192);
    r.layout = layout;
    r.layout.schedule = stack(on).schedules.front();
    r.layout.zero = stack(on).zero_allowed.front();
    const Result<Case> c = try_run(catalogued(id), stack(on), r);
    return c.ok() ? std::string() : c.error().text();
  };
  Layout sixteen;
  sixteen.tp = 16;
  EXPECT_NE(refusal("nemotron-h-56b", "megatron", sixteen).find("16 does not divide the 8 groups of state-space heads"),
            std::string::npos);
  Layout contexts;
  contexts.cp = 3;
  EXPECT_NE(refusal("nemotron-h-56b", "megatron", contexts).find("3 does not divide the 256 heads"), std::string::npos);
  EXPECT_EQ(refusal("nemotron-h-56b", "megatron", Layout{}), "");
  for (const char* other : {"torchtitan", "nanotron", "foundry", "megatron-deepspeed", "fsdp1", "megatron@2021"}) {
    EXPECT_NE(refusal("nemotron-h-56b", other, Layout{}).find("mamba2 layers on stack"), std::string::npos) << other;
  }
  EXPECT_NE(refusal("qwen3.5-27b", "megatron", Layout{}).find("gated-delta layers on stack megatron"),
            std::string::npos);
  EXPECT_EQ(refusal("qwen3.5-27b", "textbook", Layout{}), "");
  // A stack that a refusal names runs the model.
  for (const char* id : {"nemotron-h-56b", "qwen3.5-27b"}) {
    for (const Stack& on : stacks().all()) {
      const std::string text = refusal(id, on.full_name().c_str(), Layout{});
      const std::string valid = text.substr(std::min(text.size(), text.find("; ")));
      for (const Stack& other : stacks().all()) {
        if (valid.find(other.name) == std::string::npos) continue;
        EXPECT_EQ(refusal(id, other.name.c_str(), Layout{}), "") << text;
      }
    }
  }
}

// A prediction that repeats one layer costs its FLOPs again and no parameters.
TEST(StateSpace, RepeatedPredictionsShareTheirWeights) {
  Architecture a = catalogued("nemotron3.5-lightning");
  const auto at = [&](i64 layers, bool shared) {
    a.mtp_layers = layers;
    a.mtp_shared = shared;
    return run(a, stack("megatron"), recipe_of(stack("megatron"), 1));
  };
  const Case one = at(1, true), repeated = at(2, true), own = at(2, false);
  EXPECT_EQ(state_bytes(one.a, one.a.stages[0]), state_bytes(repeated.a, repeated.a.stages[0]));
  EXPECT_GT(state_bytes(own.a, own.a.stages[0]), state_bytes(repeated.a, repeated.a.stages[0]));
  const Convention& c = *find_convention("korthikanti");
  const double single = flops_per_token<double>(one.a, c, false).number();
  EXPECT_GT(flops_per_token<double>(repeated.a, c, false).number(), single);
  EXPECT_EQ(flops_per_token<double>(repeated.a, c, false).number(), flops_per_token<double>(own.a, c, false).number());
}

}  // namespace
}  // namespace preflop::test
