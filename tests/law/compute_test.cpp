// FLOPs by convention, and the one formula behind a number and its explanation.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "tests/support/draw.hpp"

namespace preflop::test {
namespace {

double flops(const Case& c, const char* convention, bool replay = false) {
  return flops_per_token<double>(c.a, *find_convention(convention), replay).number();
}

TEST(Conventions, PalmIsSixNAndTwelveLhs) {
  for (i64 layers : {1, 7, 32}) {
    for (i64 h : {512, 4096}) {
      for (i64 s : {1024, 8192}) {
        const Case c = run(gpt({.h = h, .a = 8, .layers = layers, .vocab = 5000}), stack("textbook"),
                           recipe_for(stack("textbook"), s));
        const i64 n = layers * (12 * h * h + 13 * h) + 2 * 5000 * h + 2 * h;
        EXPECT_EQ(whole(flops(c, "6n")), 6 * n);
        EXPECT_EQ(whole(flops(c, "palm")), 6 * n + 12 * layers * h * s);
        EXPECT_EQ(whole(attention_flops_per_token<double>(c.a, *find_convention("palm")).number()),
                  12 * layers * h * s);
        EXPECT_EQ(whole(flops(c, "6n-no-embedding")), 6 * (n - 5000 * h));
        // Executed products: 72 h^2 a layer, 6 V h of the head; half the attention under a causal mask.
        EXPECT_EQ(whole(flops(c, "nemo24")), layers * (72 * h * h + 12 * h * s) + 6 * 5000 * h);
        EXPECT_EQ(whole(flops(c, "bridge")), layers * (72 * h * h + 6 * h * s) + 6 * 5000 * h);
        // arXiv:2104.04473: 96 B s L h^2 (1 + s / 6h + V / 16 L h), a token's share.
        EXPECT_EQ(whole(flops(c, "narayanan")), layers * (96 * h * h + 16 * h * s) + 6 * 5000 * h);
      }
    }
  }
}

TEST(Conventions, AttentionFollowsQueryHeadsNotHidden) {
  Architecture a = llama({.h = 1024, .heads = 8, .kv = 2, .d = 256, .f = 4096, .layers = 3, .vocab = 1280});
  const Case c = run(a, stack("textbook"), recipe_for(stack("textbook"), 2048));
  EXPECT_EQ(whole(flops(c, "palm") - flops(c, "6n")), 12 * 3 * (8 * 256) * i64{2048});
}

TEST(Conventions, FullRecomputationAddsOneForwardOfTheLayers) {
  const i64 h = 1024, s = 2048, layers = 4;
  Recipe r = recipe_for(stack("textbook"), s);
  r.recompute.kind = RecomputeKind::full;
  const Case c = run(gpt({.h = h, .a = 8, .layers = layers, .vocab = 5000}), stack("textbook"), r);
  EXPECT_EQ(whole(flops(c, "palm", true) - flops(c, "palm")), layers * (24 * h * h + 4 * h * s));
  r.recompute.kind = RecomputeKind::selective;  // the core alone: the attention's own products
  const Case core = run(gpt({.h = h, .a = 8, .layers = layers, .vocab = 5000}), stack("textbook"), r);
  EXPECT_EQ(whole(flops(core, "palm", true) - flops(core, "palm")), layers * 4 * h * s);
}

RC_GTEST_PROP(Conventions, HardwareIsNeverLessThanModel, ()) {
  const Draw d = draw();
  const Case c = d.analysed();
  const ComputeEstimate<double> e = compute_estimate<double>(c.a, *find_convention("palm"));
  RC_ASSERT(e.hardware >= e.model);
  RC_ASSERT(e.model >= e.six_n);
  RC_ASSERT(e.model.number() == e.six_n.number() + e.attention.number());
  if (d.recipe.recompute.kind == RecomputeKind::none) RC_ASSERT(e.hardware == e.model);
  if (d.recipe.recompute.kind != RecomputeKind::none) RC_ASSERT(e.hardware > e.model);
}

RC_GTEST_PROP(Conventions, ATokenCostsTheSameHoweverItIsSplit, ()) {
  const Draw d = draw();
  Recipe one = d.recipe;
  one.layout = Layout{};
  one.layout.schedule = "1f1b";
  one.micro_batch = one.global_batch = 1;
  const Case split = d.analysed(), alone = d.analysed(one);
  for (const char* convention : {"palm", "6n", "6n-no-embedding"}) {
    RC_ASSERT(flops(split, convention) == flops(alone, convention));
    RC_ASSERT(flops(split, convention, true) == flops(alone, convention, true));
  }
}

// --- Traced and double: the same bits ---

template <class N>
std::vector<double> numbers(const EstimateOf<N>& e) {
  std::vector<double> out;
  const auto put = [&](const auto& q) { out.push_back(plain(q.number())); };
  const auto maybe = [&](const auto& q) { q ? put(*q) : out.push_back(-1); };
  maybe(e.memory.capacity);
  maybe(e.memory.margin);
  maybe(e.memory.checkpoint);
  out.push_back(static_cast<double>(e.memory.peak_stage));
  out.push_back(static_cast<double>(e.memory.verdict));
  for (const StageMemory<N>& s : e.memory.stages) {
    out.push_back(static_cast<double>(s.moment));
    for (const auto& m : s.moments) maybe(m);
    for (const auto& t : s.terms) put(t);
    for (const auto* q : {&s.allocated, &s.reserved, &s.context, &s.device}) put(*q);
  }
  for (const auto* q : {&e.compute.model, &e.compute.hardware, &e.compute.six_n, &e.compute.attention}) put(*q);
  for (const auto& c : e.compute.conventions) put(c.second);
  if (e.step) {
    put(e.step->seconds);
    put(e.step->tokens_per_second);
    put(e.step->tokens_per_second_per_gpu);
    put(e.step->mfu);
    put(e.step->hfu);
    put(e.step->peak);
    for (const auto& b : e.step->breakdown) maybe(b);
  }
  if (e.run) {
    put(e.run->tokens);
    out.push_back(static_cast<double>(e.run->steps));
    put(e.run->ideal);
    put(e.run->gpu_hours);
  }
  return out;
}

RC_GTEST_PROP(Traced, IsTheSameNumberBitForBit, ()) {
  Draw d = draw();
  if (coin()) d.recipe.mfu = 0.4;
  if (coin()) d.recipe.tokens = static_cast<double>(pick(1, 1000000000));
  const Case c = d.analysed();
  const Result<Cluster> cluster = machines().cluster(std::to_string(8 * d.recipe.layout.world()) + "x" +
                                                     one_of<std::string>({"h100-sxm", "a100-80", "v100-32"}) + "/8");
  RC_ASSERT(cluster.ok());
  const std::vector<double> fast = numbers(estimate<double>(c.a, *cluster));
  const std::vector<double> traced = numbers(estimate<preflop::Traced>(c.a, *cluster));
  RC_ASSERT(fast.size() == traced.size());
  for (std::size_t i = 0; i < fast.size(); ++i) {
    RC_ASSERT(std::bit_cast<std::uint64_t>(fast[i]) == std::bit_cast<std::uint64_t>(traced[i]));
    RC_ASSERT(fast[i] == fast[i] && fast[i] < 1e300);
  }
}

RC_GTEST_PROP(Step, BreakdownSumsToTheSeconds, ()) {
  const Draw d = draw();
  const Case c = d.analysed();
  const Result<Cluster> cluster = machines().cluster(std::to_string(8 * d.recipe.layout.world()) + "xh100-sxm");
  RC_ASSERT(cluster.ok());
  const EstimateOf<double> e = estimate<double>(c.a, *cluster);
  RC_ASSERT(e.step.has_value());
  double sum = 0;
  for (const auto& part : e.step->breakdown) {
    RC_ASSERT(part.has_value() && part->number() >= 0);
    sum += part->number();
  }
  RC_ASSERT(sum == e.step->seconds.number());
  // A first stage so much slower than the rest that it never waits has no bubble: all is imbalance.
  const double bubble = e.step->breakdown[static_cast<int>(Lost::bubble)]->number();
  const double imbalance = e.step->breakdown[static_cast<int>(Lost::imbalance)]->number();
  RC_ASSERT((bubble + imbalance > 0) == (d.recipe.layout.pp > 1));
  RC_ASSERT(imbalance > 0 || (bubble > 0) == (d.recipe.layout.pp > 1));
  RC_ASSERT(e.step->mfu.number() > 0 && e.step->mfu <= e.step->hfu);
}

TEST(Step, GivenMfuIsThePagesArithmetic) {
  Recipe r = recipe_for(stack("textbook"), 2048);
  r.layout.dp = 8;
  r.global_batch = 64;
  r.mfu = 0.4;
  const Case c = run(gpt({.h = 1024, .a = 8, .layers = 4, .vocab = 5000}), stack("textbook"), r);
  const Result<Cluster> cluster = machines().cluster("8xh100-sxm");
  ASSERT_TRUE(cluster.ok());
  const EstimateOf<double> e = estimate<double>(c.a, *cluster);
  ASSERT_TRUE(e.step.has_value());
  const double n = summarise(*c.model).params_total.real();
  EXPECT_DOUBLE_EQ(e.step->seconds.number(),
                   6 * n * (64.0 * 2048) / (8 * cluster->datum("bf16_flops").value.value_or(0) * 0.4));
}

}  // namespace
}  // namespace preflop::test
