// What is kept on the host leaves the GPU, to the byte, and what the transfers cost is first order: bytes over rates.
#include <gtest/gtest.h>

#include "tests/support/draw.hpp"

namespace preflop::test {
namespace {

const Llama kSmall{.h = 256, .heads = 4, .kv = 2, .d = 64, .f = 640, .layers = 8, .vocab = 512};

Cluster machine(const char* text = "8xh100-sxm") {
  static const MachineCatalogue machines = std::move(MachineCatalogue::load()).value();
  return *machines.cluster(text);
}

Recipe on(const char* stack_name, i64 dp = 8) {
  const Stack& s = stack(stack_name);
  Recipe r = recipe_for(s, 1024);
  r.layout.dp = dp;
  r.layout.zero = s.zero_default;
  r.global_batch = dp;
  return r;
}

// A state that an offload moves is gone from the GPU and stands on the host instead.
TEST(Offload, MovesStatesToTheByte) {
  for (const Stack& s : stacks().all()) {
    const bool all = s.offloads("all");
    if (!all && !s.offloads("optimizer")) continue;
    Recipe r = recipe_for(s, 1024);
    r.layout.dp = r.global_batch = 8;
    r.layout.zero = s.zero_default;
    r.layout.zero = std::max(r.layout.zero, 1);
    const Case before = run(llama(kSmall), s, r);
    r.offload.optimizer = 1;
    r.offload.params = all;
    const Case after = run(llama(kSmall), s, r);
    const auto states = [&](const std::vector<Line>& lines) {
      double bytes = 0;
      for (const Line& line : lines) {
        const bool moved = line.term == Term::optimizer || (all && line.term <= Term::gradients);
        if (moved && line.what != "gathered weight") bytes += line.bytes();
      }
      return bytes;
    };
    const double there = states(host_lines(after.a, after.a.stages[0]));
    EXPECT_GT(there, 0) << s.name;
    EXPECT_EQ(states(lines_at(before.a, before.a.stages[0], Moment::init)) -
                  states(lines_at(after.a, after.a.stages[0], Moment::init)),
              there)
        << s.name;
  }
}

// A share of the states is that share, with the gradients that the host's update reads.
TEST(Offload, APartOfTheOptimizerIsAPart) {
  Recipe r = on("megatron", 1);
  r.layout.zero = 1;
  const auto host = [&](double share) {
    r.offload.optimizer = share;
    const Case c = run(llama(kSmall), stack("megatron"), r);
    double bytes = 0;
    for (const Line& line : host_lines(c.a, c.a.stages[0])) bytes += line.bytes();
    return bytes / stage_parameters(c.a, c.a.stages[0]).real();
  };
  EXPECT_DOUBLE_EQ(host(1), 16);  // master weight and two moments, the gradient
  EXPECT_DOUBLE_EQ(host(0.25), 4);
}

// Layers whose activations leave keep nothing on the GPU until they run backward.
TEST(Offload, ActivationsOfTheFirstLayersLeave) {
  Recipe r = on("textbook", 1);  // megatron moves fewer than all
  r.recompute = {};
  const auto at_loss = [&](i64 layers) {
    r.offload.activations = layers;
    const Case c = run(llama(kSmall), stack("textbook"), r);
    double bytes = 0;
    for (const Line& line : lines_at(c.a, c.a.stages[0], Moment::loss)) bytes += line.bytes();
    return bytes;
  };
  r.offload = {};
  const double layer = run(llama(kSmall), stack("textbook"), r).layer().saved_bytes();
  for (i64 n = 1; n <= 8; ++n) EXPECT_EQ(at_loss(0) - at_loss(n), static_cast<double>(n) * layer) << n;
  EXPECT_EQ(at_loss(8), at_loss(Offload::kAllLayers));
}

TEST(Offload, IsRefusedWhereTheStackHasNone) {
  const auto refused = [](const char* stack_name, const Offload& o, auto change) {
    Recipe r = on(stack_name);
    r.offload = o;
    change(r);
    const Result<Case> c = try_run(llama(kSmall), stack(stack_name), r);
    ASSERT_FALSE(c.ok()) << stack_name;
    EXPECT_EQ(c.error().where, "--offload") << c.error().text();
    EXPECT_FALSE(c.error().valid.empty());
  };
  const auto as_it_is = [](Recipe&) {};
  refused("nanotron", {1, false, 0}, as_it_is);
  refused("torchtitan", {1, false, 0}, as_it_is);  // all or nothing
  refused("torchtitan", {0, true, 0}, as_it_is);
  refused("megatron", {1, true, 0}, as_it_is);
  refused("megatron", {0, false, Offload::kAllLayers}, as_it_is);
  refused("megatron-deepspeed", {0.5, false, 0}, as_it_is);
  refused("megatron", {1, false, 0}, [](Recipe& r) { r.layout.zero = 0; });
  refused("megatron", {0, false, 4}, [](Recipe& r) { r.recompute.kind = RecomputeKind::full; });
  refused("megatron", {0, false, 4}, [](Recipe& r) { r.layout.pp = 2, r.layout.dp = 4; });
}

// The host's update is bytes over rates, beside nothing.
TEST(Offload, TheHostsUpdateTakesItsBytesOverTheRates) {
  Recipe r = on("megatron");
  const auto offloaded = [&](double share, const char* cluster) {
    r.offload.optimizer = share;
    const Case c = run(llama(kSmall), stack("megatron"), r);
    return estimate<double>(c.a, machine(cluster)).step->breakdown[static_cast<int>(Lost::offload)]->number();
  };
  EXPECT_EQ(offloaded(0, "8xh100-sxm"), 0);
  const double all = offloaded(1, "8xh100-sxm");
  const Case c = run(llama(kSmall), stack("megatron"), r);
  const double owned = stage_parameters(c.a, c.a.stages[0]).real() / 8;
  // gradient 4 down and weight 2 up at 63 GB/s; read 4 + 2 x 12, write of the weight 2 at 76.8 GB/s
  EXPECT_NEAR(all, owned * (6 / 63e9 + 30 / 76.8e9), 1e-6 * all);
  EXPECT_NEAR(offloaded(0.5, "8xh100-sxm"), all / 2, 1e-6 * all);
  EXPECT_LT(offloaded(1, "8xgb200"), all);  // a faster link and memory
}

// A node's memory is what its ranks keep together; more than it has is no fit.
TEST(Offload, HostMemoryIsANodesAndCounts) {
  Recipe r = on("megatron");
  r.offload.optimizer = 1;
  const Case c = run(llama(kSmall), stack("megatron"), r);
  Cluster cluster = machine();
  const MemoryEstimate<double> enough = memory_estimate<double>(c.a, cluster);
  double rank = 0;
  for (const Line& line : host_lines(c.a, c.a.stages[0])) rank += line.bytes();
  ASSERT_TRUE(enough.host.has_value());
  EXPECT_EQ(enough.host->number(), 8 * rank);
  EXPECT_EQ(enough.verdict, Verdict::fits);
  cluster.platform.data["host_bytes"].value = 7.9 * rank;
  EXPECT_EQ(memory_estimate<double>(c.a, cluster).verdict, Verdict::no);
}

// Of a part of the states the host needs that part: where half fits and all does not, the verdicts say so, and the
// plan's tables with them (Search).
TEST(Offload, OfAPartTheHostNeedsThePart) {
  Recipe r = on("megatron");
  Cluster cluster = machine();
  const auto need = [&](double share) {
    r.offload.optimizer = share;
    return memory_estimate<double>(run(llama(kSmall), stack("megatron"), r).a, cluster);
  };
  const double all = need(1).host->number();
  EXPECT_NEAR(need(0.5).host->number(), all / 2, 1);
  cluster.platform.data["host_bytes"].value = 0.7 * all;
  EXPECT_EQ(need(1).verdict, Verdict::no);
  EXPECT_EQ(need(0.5).verdict, Verdict::fits);
}

// Nodes that hold several stages.
TEST(Offload, TheFullestNodeIsFoundAmongStages) {
  Layout l;
  l.tp = 2;
  l.dp = 3;
  l.pp = 3;  // ranks 0-5, 6-11, 12-17; nodes of four
  const auto node = fullest_node(l, 4, {1, 10, 5});
  ASSERT_EQ(node.size(), 1u);
  EXPECT_EQ(node[0], (std::pair<std::size_t, double>{1, 4}));
  const auto mixed = fullest_node(l, 8, {1, 10, 5});
  EXPECT_EQ(mixed, (std::vector<std::pair<std::size_t, double>>{{1, 4}, {2, 4}}));
}

}  // namespace
}  // namespace preflop::test
