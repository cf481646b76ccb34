// Recomputation of some layers only, and of modules that are not always kernels of their own.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/support/draw.hpp"
#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

constexpr i64 kLayers = 8;
const Llama kSmall{.h = 256, .heads = 4, .kv = 2, .d = 64, .f = 640, .layers = kLayers, .vocab = 512};

Recipe some(const char* stack_name, RecomputeLayers which, i64 n, i64 pp = 1, i64 vpp = 1) {
  Recipe r = recipe_for(stack(stack_name), 256);
  r.layout.zero = stack(stack_name).zero_default;
  r.recompute.kind = RecomputeKind::full;
  r.recompute.which = which;
  r.recompute.layers = which == RecomputeLayers::all ? 0 : n;
  r.layout.pp = pp;
  r.layout.vpp = vpp;
  if (vpp > 1) r.layout.schedule = "interleaved";
  r.global_batch = 4 * pp;
  r.micro_batch = 1;
  return r;
}
Case run_some(const char* stack_name, RecomputeLayers which, i64 n, i64 pp = 1, i64 vpp = 1) {
  return run(llama(kSmall), stack(stack_name), some(stack_name, which, n, pp, vpp));
}

double allocated(const Case& c, Moment moment, std::size_t stage = 0) {
  double bytes = 0;
  for (const Line& line : lines_at(c.a, c.a.stages[stage], moment)) bytes += line.bytes();
  return bytes;
}

// Each further layer that is recomputed keeps its input instead of all that a layer keeps.
TEST(SomeLayers, EachFreesWhatItKeepsBeyondItsInput) {
  const double whole_layer = run_some("megatron", RecomputeLayers::first, 1).a.blocks.back().saved_bytes();
  Recipe none = some("megatron", RecomputeLayers::all, 0);
  none.recompute = {};
  const Case plain = run(llama(kSmall), stack("megatron"), none);
  const double layer = plain.layer().saved_bytes();
  const double input = run_some("megatron", RecomputeLayers::all, 0).layer().saved_bytes();
  EXPECT_EQ(input, 2.0 * 256 * 256);
  EXPECT_GT(layer, 10 * input);
  EXPECT_GT(whole_layer, 0);
  for (i64 n = 1; n <= kLayers; ++n) {
    const Case c = run_some("megatron", RecomputeLayers::first, n);
    EXPECT_EQ(allocated(plain, Moment::loss) - allocated(c, Moment::loss), static_cast<double>(n) * (layer - input));
  }
}

// On every (virtual) stage: the count is of its layers, not of the model's.
TEST(SomeLayers, AreCountedOnEveryVirtualStage) {
  for (const auto& [pp, vpp, n, recomputed] :
       {std::tuple<i64, i64, i64, i64>{2, 1, 1, 1}, {2, 1, 3, 3}, {2, 2, 1, 2}, {4, 1, 2, 2}, {4, 2, 1, 2}}) {
    const Case c = run_some("megatron", RecomputeLayers::first, n, pp, vpp);
    for (const Stage& stage : c.a.stages) {
      i64 again = 0;
      for (const BlockRun& layer : stage.layers) again += layer.block == c.a.model->kind(layer.block) ? layer.count : 0;
      EXPECT_EQ(again, recomputed) << "pp " << pp << " vpp " << vpp << " full:" << n;
      EXPECT_EQ(stage.layer_count(), kLayers / pp);
    }
  }
}

// activation_checkpoint.selective_ac_option = "2" wraps the second, the fourth, ... block.
TEST(SomeLayers, EveryNthBeginsWithTheNth) {
  const Recipe r = some("torchtitan", RecomputeLayers::every, 3);
  const Case c = run(llama(kSmall), stack("torchtitan"), r);
  std::vector<bool> again;
  for (const BlockRun& layer : c.a.stages[0].layers) {
    for (i64 i = 0; i < layer.count; ++i) again.push_back(layer.block == c.a.model->kind(layer.block));
  }
  EXPECT_EQ(again, (std::vector<bool>{false, false, true, false, false, true, false, false}));
}

// As many as a stage has: full, to the bit.
TEST(SomeLayers, AllOfThemAreFull) {
  const Case full = run_some("megatron", RecomputeLayers::all, 0, 2);
  const Case c = run_some("megatron", RecomputeLayers::first, kLayers, 2);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    for (int m = 0; m < kMoments; ++m)
      EXPECT_EQ(allocated(c, static_cast<Moment>(m), stage), allocated(full, static_cast<Moment>(m), stage));
  }
  const Convention* hfu = find_convention("hfu");
  EXPECT_NEAR(flops_per_token<double>(c.a, *hfu, true).number(), flops_per_token<double>(full.a, *hfu, true).number(),
              1e-9 * flops_per_token<double>(full.a, *hfu, true).number());
}

// n of L layers pay n / L of the second forward pass.
TEST(SomeLayers, PayTheirShareOfTheSecondForwardPass) {
  const Convention* hfu = find_convention("hfu");
  const auto executed = [&](RecomputeLayers which, i64 n) {
    return flops_per_token<double>(run_some("megatron", which, n).a, *hfu, true).number();
  };
  const double once = flops_per_token<double>(run_some("megatron", RecomputeLayers::all, 0).a, *hfu, false).number();
  // The convention replays by itself: what is left of it without any replay is the model's own FLOPs.
  const double model =
      flops_per_token<double>(run_some("megatron", RecomputeLayers::all, 0).a, *find_convention("korthikanti"), false)
          .number();
  const double full = executed(RecomputeLayers::all, 0);
  EXPECT_EQ(once, full);
  for (i64 n = 1; n <= kLayers; ++n) {
    EXPECT_NEAR(executed(RecomputeLayers::first, n), model + static_cast<double>(n) / kLayers * (full - model),
                1e-9 * full);
  }
}

TEST(SomeLayers, AreRefusedWhereTheStackHasNoSuchPolicy) {
  for (const char* name : {"torchtitan", "nanotron", "fsdp1", "foundry", "megatron-deepspeed"}) {
    const Result<Analysed> a =
        analyse_recipe(build_model(llama(kSmall)), stack(name), some(name, RecomputeLayers::first, 2));
    ASSERT_FALSE(a.ok()) << name;
    EXPECT_EQ(a.error().where, "--recompute") << name;
    EXPECT_NE(a.error().what.find("full:2"), std::string::npos) << a.error().text();
  }
}

// full:uniform:N keeps the input of the first of N layers; what the others of a unit keep is alive while the last of
// them runs backward. Here a stage of 8 layers, whose whole layer keeps `layer` bytes and its input `input`.
TEST(Units, KeepOneInputAndHoldTheirLayers) {
  Recipe none = some("megatron", RecomputeLayers::all, 0);
  none.recompute = {};
  const double layer = run(llama(kSmall), stack("megatron"), none).layer().saved_bytes();
  const Case full = run_some("megatron", RecomputeLayers::all, 0);
  const double input = full.layer().saved_bytes();
  double least_kept = 0, most_held = 0;
  for (const i64 n : {2, 4, 8}) {
    const Case c = run_some("megatron", RecomputeLayers::units, n);
    const auto units = static_cast<double>(kLayers / n);
    const auto more = [&](Moment m) { return allocated(c, m) - allocated(full, m); };
    EXPECT_EQ(more(Moment::loss), (units - kLayers) * input) << n;
    // Waiting: an input a unit instead of one of each layer but the walking one; held: the first layer beyond its
    // input, and all of those between it and the last.
    EXPECT_EQ(more(Moment::last_layer_backward),
              (units - (kLayers - 1)) * input + static_cast<double>(n - 1) * layer - input)
        << n;
    EXPECT_EQ(more(Moment::first_layer_backward), 0) << n;
    if (n > 2) {
      EXPECT_LT(more(Moment::loss), least_kept);
      EXPECT_GT(more(Moment::last_layer_backward), most_held);
    }
    least_kept = more(Moment::loss);
    most_held = more(Moment::last_layer_backward);
  }
}

// What waits for a pipeline is inputs of units, as often as there are micro-batches in flight.
TEST(Units, WaitInAPipelineByTheirInputs) {
  const Case full = run_some("megatron", RecomputeLayers::all, 0, 2);
  const Case c = run_some("megatron", RecomputeLayers::units, 4, 2);  // one unit a stage
  const double input = full.layer().saved_bytes();
  // Of the micro-batch that is not at work, a stage of four layers keeps one input instead of four.
  EXPECT_EQ(allocated(c, Moment::first_layer_backward) - allocated(full, Moment::first_layer_backward), -3 * input);
  EXPECT_EQ(allocated(c, Moment::first_layer_backward, 1) - allocated(full, Moment::first_layer_backward, 1), 0);
}

RC_GTEST_PROP(Units, OfOneLayerAreFullToTheBit, ()) {
  const Architecture architecture = draw_architecture(2);
  Recipe r = draw_recipe(architecture, stack("megatron"));
  r.recompute = {RecomputeKind::full, 0, {}};
  const Result<Case> full = try_run(architecture, stack("megatron"), r);
  RC_PRE(full.ok());
  r.recompute = {RecomputeKind::full, 1, {}, RecomputeLayers::units};
  const Case one = run(architecture, stack("megatron"), r);
  for (std::size_t stage = 0; stage < one.a.stages.size(); ++stage) {
    for (int m = 0; m < kMoments; ++m)
      RC_ASSERT(allocated(one, static_cast<Moment>(m), stage) == allocated(*full, static_cast<Moment>(m), stage));
  }
}

// Units of kinds that alternate: every layer of the last unit but the last one is alive, each as its own kind.
TEST(Units, HoldLayersOfSeveralKinds) {
  Architecture a = llama(kSmall);
  LayerRun wide = a.layers[0];
  a.layers[0].count = wide.count = 1;
  wide.kind.mlp.width = 1280;
  a.layers = {a.layers[0], wide, a.layers[0], wide};
  const auto at = [&](RecomputeLayers which, i64 n) { return run(a, stack("megatron"), some("megatron", which, n)); };
  Recipe none = some("megatron", RecomputeLayers::all, 0);
  none.recompute = {};
  const Case plain = run(a, stack("megatron"), none);
  const Case full = at(RecomputeLayers::all, 0), four = at(RecomputeLayers::units, 4);
  const double narrow = plain.layer(0).saved_bytes(), broad = plain.layer(1).saved_bytes();
  const double input = full.layer().saved_bytes();
  EXPECT_GT(broad, narrow);
  EXPECT_EQ(allocated(four, Moment::last_layer_backward) - allocated(full, Moment::last_layer_backward),
            (1 - 3) * input + 2 * narrow + broad - input);
}

// The same passes in another grouping: no FLOP and no second more.
TEST(Units, TakeTheTimeOfFull) {
  const Cluster cluster = *machines().cluster("2xh100-sxm");
  const Estimate full = estimate<double>(run_some("megatron", RecomputeLayers::all, 0, 2).a, cluster);
  const Case units = run_some("megatron", RecomputeLayers::units, 4, 2);
  const Estimate e = estimate<double>(units.a, cluster);
  EXPECT_DOUBLE_EQ(e.step->seconds.number(), full.step->seconds.number());
  const Convention* hfu = find_convention("hfu");
  EXPECT_EQ(flops_per_token<double>(units.a, *hfu, true).number(),
            flops_per_token<double>(run_some("megatron", RecomputeLayers::all, 0, 2).a, *hfu, true).number());
}

// What costs memory says so; what saves it does not.
TEST(Units, SayWhenTheyCostMemory) {
  const Cluster cluster = *machines().cluster("1xh100-sxm");
  const auto warned = [&](i64 n, i64 layers) {
    Llama l = kSmall;
    l.layers = layers;
    l.vocab = 128;
    const Case c = run(llama(l), stack("megatron"), some("megatron", RecomputeLayers::units, n));
    const Estimate e = estimate<double>(c.a, cluster);
    return std::any_of(e.warnings.begin(), e.warnings.end(),
                       [](const std::string& w) { return w.find("costs memory") != std::string::npos; });
  };
  EXPECT_TRUE(warned(8, 8));
  EXPECT_FALSE(warned(2, 64));
}

TEST(Units, AreRefusedWhereTheyDoNotDivide) {
  const auto refusal = [&](const char* stack_name, i64 n, i64 pp, i64 vpp, const Architecture& a, i64 mtp) {
    Recipe r = some(stack_name, RecomputeLayers::units, n, pp, vpp);
    r.mtp = mtp;
    const Result<Case> c = try_run(a, stack(stack_name), r);
    return c ? std::string() : c.error().text();
  };
  const Architecture small = llama(kSmall);
  EXPECT_EQ(refusal("megatron", 2, 2, 2, small, 0), "");
  EXPECT_NE(refusal("megatron", 3, 1, 1, small, 0).find("do not divide the 8 layers of a stage"), std::string::npos);
  EXPECT_NE(refusal("megatron", 4, 2, 2, small, 0).find("the 2 layers of a virtual stage"), std::string::npos);
  EXPECT_NE(refusal("megatron", 16, 1, 1, small, 0).find("full:uniform:16"), std::string::npos);
  EXPECT_NE(refusal("torchtitan", 2, 1, 1, small, 0).find("does not run full:uniform:2"), std::string::npos);
  Architecture predicts = small;
  predicts.mtp_layers = 1;
  EXPECT_NE(refusal("megatron", 2, 1, 1, predicts, 1).find("multi-token prediction"), std::string::npos);
}

// Transformer Engine fuses the norm into the product behind it: recomputing "layernorm" frees nothing in a dense
// layer, and one copy of the normalised input where a router reads it.
TEST(Modules, NormsAreRecomputedWhereTheyStandAlone) {
  const i64 h = 256, s = 256;
  Recipe r = recipe_for(stack("megatron"), s);
  const auto kept = [&](const Architecture& a) {
    r.recompute = {};
    const double without = run(a, stack("megatron"), r).layer().saved_bytes();
    r.recompute.kind = RecomputeKind::modules;
    r.recompute.modules = {"layernorm"};
    return without - run(a, stack("megatron"), r).layer().saved_bytes();
  };
  Architecture dense = llama(kSmall);
  EXPECT_EQ(kept(dense), 0);
  Architecture experts = dense;
  ExpertSpec e;
  e.count = 8;
  e.top_k = 2;
  e.width = 128;
  experts.layers[0].kind.experts = e;
  EXPECT_EQ(kept(experts), static_cast<double>(2 * s * h + 4 * s));  // and the statistics of its rows
}

}  // namespace
}  // namespace preflop::test
