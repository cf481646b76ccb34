// The memory of a step through time: its fullest point is the estimate's peak, whatever the recipe and the stack.
#include "src/step/timeline.hpp"

#include <gtest/gtest.h>

#include "tests/support/draw.hpp"

namespace preflop::test {
namespace {

Cluster cluster_of(i64 gpus) {
  static const MachineCatalogue machines = std::move(MachineCatalogue::load()).value();
  Cluster c = *machines.cluster("8xh100-sxm");
  c.gpus = gpus;
  return c;
}

// Where the stack or the architecture does not cut the model so: without that, and what `more` changes.
template <class More>
Result<Analysed> analyse_or_uncut(const Model& model, const Stack& s, Recipe& r, const More& more) {
  Result<Analysed> a = analyse_recipe(model, s, r);
  if (a) return a;
  r.layout.tp = r.layout.cp = r.layout.ep = r.layout.etp = 1;
  r.layout.sp = false;
  more();
  return analyse_recipe(model, s, r);
}

void fullest_point_is_the_peak(const Stack& s) {
  const Architecture architecture = draw_architecture(2);
  Recipe r = draw_recipe(architecture, s);
  r.recompute = draw_layers(r, architecture, s);
  r.offload = draw_offload(r, s);
  const auto model = std::make_shared<Model>(build_model(architecture));
  const Result<Analysed> a = analyse_or_uncut(*model, s, r, [&] {
    r.layout.pp = 1;
    r.offload = draw_offload(r, s);
  });
  RC_PRE(a.ok());
  const Cluster cluster = cluster_of(r.layout.world());
  const MemoryEstimate<double> memory = memory_estimate<double>(*a, cluster);
  const Result<MemoryTimeline> timeline = memory_timeline(*a, cluster);
  RC_ASSERT(timeline.ok());
  RC_ASSERT(timeline->stages.size() == memory.stages.size());
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    double most = 0, alive = 0;
    for (const MemoryPoint& p : timeline->stages[i].points) {
      most = std::max(most, p.bytes->allocated.number());
      alive = std::max(alive, p.in_flight);
      std::vector<double> terms;
      for (const Bytes<double>& term : p.bytes->terms) terms.push_back(term.number());
      RC_ASSERT(p.bytes->allocated.number() == total(terms));
      RC_ASSERT(p.start.has_value() && *p.start <= *p.end);
    }
    RC_ASSERT(most == memory.stages[i].allocated.number());
    RC_ASSERT(alive == in_flight(r.layout, static_cast<i64>(i), r.micro_batches()));
    RC_ASSERT(timeline->stages[i].points.back().event == "optimizer_step");
  }
}

TEST(Timeline, FullestPointIsThePeakToTheBit) {
  const std::vector<Stack>& all = stacks().all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Stack& s = all[i];
    if (i + 1 < all.size() && all[i + 1].name == s.name) continue;  // the newest generation of each
    SCOPED_TRACE(s.name);
    EXPECT_TRUE(rc::check("fullest point is the peak on " + s.name, [&] { fullest_point_is_the_peak(s); }));
  }
}

// Zero-bubble schedules play within the memory that the estimate counts: the first stage reaches it to the bit (zb-2p:
// all but one micro-batch), no stage passes it, every W frees what its B left, and nothing is left at the end.
void zero_bubble_stays_within_the_peak() {
  const Stack& s = **stacks().find("megatron@2023");
  Architecture architecture = draw_architecture(2);
  architecture.layers.front().count += 1;  // a pipeline has two layers or more
  Recipe r = draw_recipe(architecture, s);
  r.recompute = {};
  r.layout.vpp = 1;
  r.layout.schedule = one_of<std::string>({"zb-h1", "zb-1p", "zb-2p"});
  r.layout.pp = std::min<i64>(one_of<i64>({2, 3, 4}), architecture.layer_count());
  r.global_batch = pick(1, 24) * r.micro_batch * r.layout.dp;
  const auto model = std::make_shared<Model>(build_model(architecture));
  const Result<Analysed> a = analyse_or_uncut(*model, s, r, [] {});
  RC_PRE(a.ok());
  const Cluster cluster = cluster_of(r.layout.world());
  const MemoryEstimate<double> memory = memory_estimate<double>(*a, cluster);
  const Result<MemoryTimeline> timeline = memory_timeline(*a, cluster);
  RC_ASSERT(timeline.ok());
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    double most = 0, alive = 0, before = 0;
    for (const MemoryPoint& p : timeline->stages[i].points) {
      const double bytes = p.bytes->allocated.number();
      most = std::max(most, bytes);
      alive = std::max(alive, p.in_flight);
      RC_ASSERT(p.deferred >= 0);
      if (p.event == "weights") RC_ASSERT(bytes < before);
      before = bytes;
    }
    RC_ASSERT(timeline->stages[i].points.back().deferred == 0);
    RC_ASSERT(most <= memory.stages[i].allocated.number());
    const double limit = in_flight(r.layout, static_cast<i64>(i), r.micro_batches());
    if (i > 0) continue;
    const bool twice = r.layout.schedule == "zb-2p" && r.micro_batches() >= 2 * r.layout.pp;
    RC_ASSERT(alive == limit - (twice ? 1 : 0));
    if (!twice) RC_ASSERT(most == memory.stages[i].allocated.number());
  }
}

TEST(Timeline, ZeroBubbleStaysWithinThePeak) {
  EXPECT_TRUE(rc::check("zero-bubble schedules stay within the peak", zero_bubble_stays_within_the_peak));
}

// Korthikanti's layer of 34 s b h: the gradients of its weights read 14 s b h of inputs and 18 s b h of gradients of
// results (32 s b h in the appendix of arXiv:2401.10241).
TEST(Timeline, GradientsOfWeightsRead32OfEach34Bytes) {
  const Stack& s = **stacks().find("megatron@2023");
  Recipe r = recipe_for(s, 512);
  r.layout.pp = 2;
  r.layout.schedule = "zb-h1";
  r.global_batch = 8;
  const i64 h = 256;
  const Case c = run(gpt({.h = h, .a = 4, .layers = 4}), s, r);
  double bytes = 0;
  for (const SavedItem& item : c.layer().deferred) bytes += item.bytes();
  EXPECT_EQ(bytes, static_cast<double>(32 * 512 * h));
  EXPECT_EQ(run(gpt({.h = h, .a = 4, .layers = 4}), s, recipe_for(s, 512)).layer().deferred.size(), 0u);
}

// One stage has no order of passes to choose: under every schedule's name memory and time are those of 1f1b.
TEST(Timeline, OneStageHasNoSchedule) {
  const Architecture small = llama({.h = 256, .heads = 4, .kv = 2, .d = 64, .f = 640, .layers = 4, .vocab = 512});
  int compared = 0;
  for (const Stack& s : stacks().all()) {
    Recipe r = recipe_for(s, 256);
    r.layout.dp = 4;
    r.layout.zero = s.zero_allowed.back();
    r.global_batch = 32;
    r.layout.schedule = "1f1b";
    const Cluster cluster = cluster_of(4);
    const Case plain = run(small, s, r);
    const Estimate wanted = bare_estimate<double>(plain.a, cluster);
    for (const std::string& schedule : s.schedules) {
      if (schedule == "interleaved") continue;  // which needs virtual stages, and they a pipeline
      SCOPED_TRACE(s.full_name() + " " + schedule);
      r.layout.schedule = schedule;
      const Case c = run(small, s, r);
      const Estimate e = bare_estimate<double>(c.a, cluster);
      EXPECT_EQ(e.memory.stages[0].device.number(), wanted.memory.stages[0].device.number());
      ASSERT_TRUE(e.step && wanted.step);
      EXPECT_EQ(e.step->seconds.number(), wanted.step->seconds.number());
      const Result<MemoryTimeline> timeline = memory_timeline(c.a, cluster);
      ASSERT_TRUE(timeline.ok());
      double most = 0;
      for (const MemoryPoint& p : timeline->stages[0].points) most = std::max(most, p.bytes->allocated.number());
      EXPECT_EQ(most, e.memory.stages[0].allocated.number());
      compared += schedule != "1f1b";
    }
  }
  EXPECT_GT(compared, 3);
}

// A long steady state is played in part: the same levels, fewer repeats.
TEST(Timeline, ALongStepIsShown) {
  const Stack& s = stack("megatron");
  const Architecture small = llama({.h = 256, .heads = 4, .kv = 2, .d = 64, .f = 640, .layers = 8, .vocab = 512});
  Recipe r = recipe_for(s, 256);
  r.layout.pp = 4;
  r.layout.vpp = 2;
  r.layout.schedule = "interleaved";
  r.global_batch = 4000;
  const Case c = run(small, s, r);
  const Result<MemoryTimeline> timeline = memory_timeline(c.a, cluster_of(4));
  ASSERT_TRUE(timeline.ok());
  EXPECT_EQ(timeline->micro_batches, 4000);
  EXPECT_EQ(timeline->played, 16);
  r.layout.vpp = 1;
  r.layout.schedule = "gpipe";
  r.global_batch = 1000000;
  const Case many = run(small, stack("textbook"), [&] {
    r.stack = "textbook";
    r.attention = stack("textbook").kernels.front();
    r.loss = stack("textbook").losses.front().kind;
    return r;
  }());
  const Result<MemoryTimeline> refused = memory_timeline(many.a, cluster_of(4));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().where, "--timeline");
}

}  // namespace
}  // namespace preflop::test
