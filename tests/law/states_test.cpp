// Optimizers, dtypes and scaled precisions: bytes per parameter and per token, derived by hand.
#include <gtest/gtest.h>

#include "src/machine/cluster.hpp"
#include "src/run/estimate.hpp"
#include "src/stack/optimizer.hpp"
#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

constexpr i64 kH = 64, kF = 192, kV = 1024, kLayers = 3;

Architecture small() { return llama({.h = kH, .heads = 4, .kv = 4, .d = 16, .f = kF, .layers = kLayers, .vocab = kV}); }

struct Parameters {
  i64 hidden = kLayers * (4 * kH * kH + 3 * kH * kF);  // matrices of layers
  i64 tables = 2 * kV * kH;                            // embedding and head
  i64 norms = (2 * kLayers + 1) * kH;
  i64 all() const { return hidden + tables + norms; }
};

i64 optimizer_bytes(const std::string& optimizer, Dtype moment, int zero = 0, i64 dp = 1) {
  const Stack& s = stack("textbook");  // which runs them all
  Recipe r = recipe_for(s, 64);
  r.optimizer = optimizer;
  r.master_dtype = Dtype::none;
  r.moment_dtype = moment;
  r.layout.zero = zero;
  r.layout.dp = r.global_batch = dp;
  const Case c = run(small(), s, r);
  return term_bytes(c.a, c.a.stages[0], Moment::init, Term::optimizer);
}

TEST(Optimizers, StatesOfEveryOneByHand) {
  const Parameters n;
  EXPECT_EQ(optimizer_bytes("adamw", Dtype::fp32), 8 * n.all());
  EXPECT_EQ(optimizer_bytes("adamw", Dtype::bf16), 4 * n.all());
  EXPECT_EQ(optimizer_bytes("adamw", Dtype::fp32, 1, 4), 2 * n.all());
  EXPECT_EQ(optimizer_bytes("adamw-schedule-free", Dtype::fp32), 8 * n.all());
  EXPECT_EQ(optimizer_bytes("sgd", Dtype::fp32), 0);
  EXPECT_EQ(optimizer_bytes("sgd-momentum", Dtype::fp32), 4 * n.all());
  EXPECT_EQ(optimizer_bytes("lion", Dtype::bf16), 2 * n.all());
  EXPECT_EQ(optimizer_bytes("muon", Dtype::fp32), 4 * n.hidden + 8 * (n.tables + n.norms));
  EXPECT_EQ(optimizer_bytes("adamw-8bit", Dtype::fp32), 2 * 65 * (n.hidden + n.tables) / 64 + 8 * n.norms);
  // Rows and columns: four square matrices, three of h x f, two tables of V x h; norms in full.
  const i64 sums = kLayers * (4 * 2 * kH + 3 * (kH + kF)) + 2 * (kV + kH);
  EXPECT_EQ(optimizer_bytes("adafactor", Dtype::fp32), 4 * (sums + n.norms));
}

// A step that goes from tensor to tensor holds two of the largest one's size, a step over all of them one of every
// tensor's, a fused one none.
TEST(Optimizers, AStepHoldsWhatItsImplementationNeeds) {
  Recipe r = recipe_for(stack("torchtitan"), 256);
  r.layout.dp = r.global_batch = 8;
  r.layout.zero = 3;
  const auto held = [&](const char* way, i64 pp) {
    r.optimizer_implementation = way;
    r.layout.pp = pp;
    r.global_batch = 8 * pp;
    const Case c = run(llama({.h = 256, .heads = 4, .kv = 4, .d = 64, .f = 640, .layers = 4, .vocab = 512}),
                       stack("torchtitan"), r);
    const Stage& middle = c.a.stages[pp > 2 ? 1 : 0];
    return std::pair(term_bytes(c.a, middle, Moment::optimizer_step, Term::transients) -
                         term_bytes(c.a, middle, Moment::end_of_backward, Term::transients),
                     stage_parameters(c.a, middle).get());
  };
  EXPECT_EQ(held("fused", 1).first, 0);
  const auto [all, parameters] = held("foreach", 1);
  EXPECT_EQ(all, 4 * (parameters / 8));
  EXPECT_EQ(held("for-loop", 1).first, 2 * 4 * 640 * 256 / 8);  // of the MLP; a table has 512 x 256
  EXPECT_EQ(held("for-loop", 4).first, 2 * 4 * 640 * 256 / 8);
  Recipe refused = recipe_for(stack("megatron"), 256);
  refused.optimizer_implementation = "foreach";
  const Result<Case> c = try_run(llama({.h = 256, .heads = 4, .kv = 4, .d = 64, .f = 640}), stack("megatron"), refused);
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.error().where, "--optimizer-implementation");
}

TEST(Optimizers, EveryLineOfTheTableReadsAndHasASource) {
  ASSERT_GE(optimizers().size(), 8U);
  for (const Optimizer& o : optimizers()) {
    EXPECT_FALSE(o.says.empty() || o.source.empty()) << o.name;
    for (const OptimizerSlot& slot : o.slots) EXPECT_FALSE(slot.name.empty() || slot.source.empty()) << o.name;
    EXPECT_EQ(*find_optimizer(o.name), &o);
    for (const std::string& also : o.also) EXPECT_EQ(*find_optimizer(also), &o) << also;
  }
  const auto typo = find_optimizer("adamv");
  ASSERT_FALSE(typo.ok());
  EXPECT_NE(typo.error().text().find("adamw"), std::string::npos) << typo.error().text();
  const std::string head = "name,also,says,slot,width,over,source\n";
  for (const char* line : {"x,,x,m,wide,all,s\n", "x,,x,m,0,all,s\n", "x,,x,m,4,some,s\n", "x,,x,m,4,all,\n"})
    EXPECT_FALSE(read_optimizers(head + line, "f").ok()) << line;
}

// Weights, gradients, master weights and moments of every width: 4 to 20 bytes a parameter, none of them written down.
TEST(Optimizers, BytesPerParameterFollowFromTheDtypes) {
  struct Row {
    Dtype weight, grad, master, moment;
    const char* optimizer;
    i64 bytes;
  };
  const Row table[] = {
      {Dtype::bf16, Dtype::bf16, Dtype::none, Dtype::fp32, "sgd", 4},
      {Dtype::bf16, Dtype::bf16, Dtype::none, Dtype::bf16, "lion", 6},
      {Dtype::bf16, Dtype::bf16, Dtype::none, Dtype::bf16, "adamw", 8},
      {Dtype::bf16, Dtype::bf16, Dtype::fp32, Dtype::bf16, "lion", 10},
      {Dtype::bf16, Dtype::bf16, Dtype::fp32, Dtype::bf16, "adamw", 12},
      {Dtype::bf16, Dtype::fp32, Dtype::fp32, Dtype::bf16, "adamw", 14},
      {Dtype::bf16, Dtype::bf16, Dtype::fp32, Dtype::fp32, "adamw", 16},
      {Dtype::bf16, Dtype::fp32, Dtype::fp32, Dtype::fp32, "adamw", 18},
      {Dtype::fp32, Dtype::fp32, Dtype::fp32, Dtype::fp32, "adamw", 20},
  };
  const Stack& s = stack("textbook");
  for (const Row& row : table) {
    Recipe r = recipe_for(s, 64);
    r.weight_dtype = row.weight;
    r.grad_dtype = row.grad;
    r.master_dtype = row.master;
    r.moment_dtype = row.moment;
    r.optimizer = row.optimizer;
    const Case c = run(small(), s, r);
    EXPECT_EQ(state_bytes(c.a, c.a.stages[0]), row.bytes * Parameters{}.all()) << row.bytes;
  }
}

Recipe scaled_recipe(const Stack& s, const char* precision) {
  Recipe r = recipe_for(s, 64);
  r.precision = precision;
  return r;
}

TEST(ScaledPrecision, MegatronKeepsQuantisedInputsAndCachedWeights) {
  const Stack& s = stack("megatron@core-0.14");
  const i64 t = 64, q = kH;  // query and key heads are as wide as the model
  const auto kept = [&](const char* precision) { return saved(run(small(), s, scaled_recipe(s, precision)).layer()); };
  const i64 full = t * (8 * kH + 2 * (2 * q + 2 * q) + 4 * 4 + 8 + 6 * kF);
  EXPECT_EQ(kept("bf16"), full);
  // Two normalised inputs and the activation's result at one byte; the output projection shares the bf16 result.
  EXPECT_EQ(kept("fp8-tensorwise"), full - t * (2 * kH + kF));
  // Delayed scaling keeps one more: the output projection's input.
  EXPECT_EQ(kept("fp8-delayed"), full - t * (2 * kH + kF) + t * q);
  EXPECT_EQ(kept("mxfp8"), full - t * (4 * kH + 2 * kF) + 33 * t * (2 * kH + kF) / 32);
  EXPECT_EQ(kept("nvfp4"), full - t * (4 * kH + 2 * kF) + 9 * t * (2 * kH + kF) / 16);

  const auto weights = [&](const Stack& on, const char* precision) {
    const Case c = run(small(), on, scaled_recipe(on, precision));
    return term_bytes(c.a, c.a.stages[0], Moment::init, Term::weights);
  };
  const Parameters n;
  EXPECT_EQ(weights(s, "fp8-delayed"), 2 * n.all() + 2 * n.hidden);
  // Parameters kept and gathered in fp8: no bf16 copy of the layers' matrices beside them.
  EXPECT_EQ(weights(stack("megatron@nemo-24"), "fp8-delayed"), 2 * n.all());
  EXPECT_FALSE(try_run(small(), stack("textbook"), scaled_recipe(stack("textbook"), "mxfp8")).ok());
}

TEST(ScaledPrecision, RecomputedSegmentsKeepWhatEntersThem) {
  const Stack& s = stack("megatron");
  Recipe r = scaled_recipe(s, "mxfp8");
  r.recompute.kind = RecomputeKind::full;
  EXPECT_EQ(saved(run(small(), s, r).layer()), 64 * 2 * kH);
}

TEST(WayOut, IsThereWhereSomethingFitsAndSaysWhatItFrees) {
  const Result<Cluster> cluster = machines().cluster("8xa100-40");
  ASSERT_TRUE(cluster.ok());
  const Architecture model =
      llama({.h = 4096, .heads = 32, .kv = 8, .d = 128, .f = 14336, .layers = 32, .vocab = 128256});
  const Stack& s = stack("megatron");
  Recipe r = recipe_for(s, 8192);
  r.layout.zero = 1;
  r.layout.dp = r.global_batch = 8;
  const Case c = run(model, s, r);
  const Estimate e = estimate<double>(c.a, *cluster);
  ASSERT_EQ(e.memory.verdict, Verdict::no);
  ASSERT_FALSE(e.memory.way_out.empty());
  for (const WayOut<double>& way : e.memory.way_out) {
    EXPECT_GE(way.freed.number(), -e.memory.margin->number()) << way.change;
    ASSERT_TRUE(way.seconds_factor.has_value()) << way.change;
    EXPECT_GT(way.seconds_factor->number(), 0.5) << way.change;
  }
  // What fits has no way out to look for.
  r.layout.tp = 8;
  r.layout.dp = 1;
  r.layout.sp = true;
  r.recompute.kind = RecomputeKind::full;
  EXPECT_TRUE(estimate<double>(run(model, s, r).a, *cluster).memory.way_out.empty());
}

TEST(Bands, EnclosePredictionsWhereTheStackHasThem) {
  Cluster cluster;
  cluster.gpu.data["capacity_bytes"] = Datum{80e9, Rung::given, "the test"};
  const Case c = run(small(), stack("megatron"), recipe_for(stack("megatron"), 64));
  const MemoryEstimate<double> m = memory_estimate<double>(c.a, cluster);
  ASSERT_TRUE(m.low_device && m.high_device);
  EXPECT_LT(*m.low_device, m.stages[0].device);
  EXPECT_LT(m.stages[0].device, *m.high_device);
  ASSERT_TRUE(m.low_allocated && m.high_allocated && m.low_reserved && m.high_reserved);
  EXPECT_LT(*m.low_allocated, m.stages[0].allocated);
  EXPECT_LT(m.stages[0].allocated, *m.high_allocated);
  EXPECT_LT(*m.low_reserved, m.stages[0].reserved);
  EXPECT_LT(m.stages[0].reserved, *m.high_reserved);
  // The verdict goes by what may be allocated at most.
  ASSERT_TRUE(m.margin && m.capacity);
  EXPECT_EQ(m.margin->number(), m.capacity->number() - (m.high_allocated->number() + m.stages[0].context.number()));
  const Case bare = run(small(), stack("textbook"), recipe_for(stack("textbook"), 64));
  EXPECT_FALSE(memory_estimate<double>(bare.a, cluster).low_device.has_value());
}

// What is reserved at most, with what lives outside the allocator, makes a plan tight; where the band is another
// stack's, what is reserved.
TEST(Bands, TheirUpperEndsDecide) {
  for (const char* name : {"megatron", "torchtitan", "nanotron", "fsdp1"}) {
    Recipe r = recipe_for(stack(name), 64);
    r.layout.zero = stack(name).zero_default;
    const Case c = run(small(), stack(name), r);
    Cluster cluster;
    Datum& capacity = cluster.gpu.data["capacity_bytes"];
    capacity = Datum{80e9, Rung::given, "the test"};
    const MemoryEstimate<double> m = memory_estimate<double>(c.a, cluster);
    const StageMemory<double>& peak = m.stages[0];
    const bool own = std::string(name) != "fsdp1";
    EXPECT_EQ(m.tight_band, own ? m.reserved_band : 0) << name;
    EXPECT_GT(m.reserved_band, 0) << name;
    const double most = (own ? *m.high_reserved : peak.reserved).number() + peak.context.number();
    const double needed = m.high_allocated.value_or(peak.allocated).number() + peak.context.number();
    ASSERT_LT(needed, most) << name;
    const auto verdict = [&](double bytes) {
      capacity.value = bytes;
      return memory_estimate<double>(c.a, cluster).verdict;
    };
    EXPECT_EQ(verdict(most), Verdict::fits) << name;
    EXPECT_EQ(verdict(most - 1), Verdict::tight) << name;
    EXPECT_EQ(verdict(needed), Verdict::tight) << name;
    EXPECT_EQ(verdict(needed - 1), Verdict::no) << name;
  }
}

}  // namespace
}  // namespace preflop::test
