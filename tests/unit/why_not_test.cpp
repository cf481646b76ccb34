// What why-not makes of two plans.
#include <gtest/gtest.h>

#include "src/adapt/request.hpp"
#include "src/run/estimate.hpp"
#include "src/view/plan.hpp"

namespace preflop {
namespace {

Estimate llama(const char* tp, Verdict verdict) {
  static const Catalogues kLoaded = std::move(Catalogues::load()).value();
  Request r;
  r.model = "llama3-8b";
  r.on = "8xh100-sxm";
  r.keys = {{"stack", "megatron"}, {"tp", tp}, {"recompute", "full"}};
  const auto problem = pose(r, kLoaded);
  EXPECT_TRUE(problem.ok());
  Estimate out = estimate<double>(problem->analysed, problem->cluster);
  out.memory.verdict = verdict;
  return out;
}

Plan of(const Estimate& e) {
  Plan out;
  if (e.memory.verdict == Verdict::fits)
    out.plans.push_back(e);
  else
    out.nearest = e;
  return out;
}

TEST(WhyNot, ATightLayoutIsNeverSaidToBeTheBest) {
  const Estimate fast = llama("2", Verdict::tight), slow = llama("8", Verdict::tight);
  const Estimate best = llama("8", Verdict::fits);
  ASSERT_LT(fast.step->seconds.number(), best.step->seconds.number());
  EXPECT_EQ(why_not(of(fast), of(best), {}).verdict, WhyNot::Verdict::tight);
  EXPECT_EQ(why_not(of(slow), of(best), {}).verdict, WhyNot::Verdict::tight);
  EXPECT_EQ(why_not(of(best), of(best), {}).verdict, WhyNot::Verdict::best);
  EXPECT_EQ(why_not(of(slow), of(fast), {}).verdict, WhyNot::Verdict::slower);  // where nothing fits but tightly
  EXPECT_TRUE(why_not(of(slow), of(fast), {}).tight);
  EXPECT_NE(why_not_text(why_not(of(fast), of(best), {})).find("Fits only tightly"), std::string::npos);
}

// A batch that differs is no difference of speed.
TEST(WhyNot, ComparesTokensNotSteps) {
  Estimate best = llama("8", Verdict::fits), twice = best;
  twice.recipe.global_batch *= 2;
  twice.step->seconds = twice.step->seconds * 2.0;
  EXPECT_EQ(why_not(of(twice), of(best), {}).verdict, WhyNot::Verdict::best);
}

TEST(WhyNot, TheReasonNamesWhatIsAskedAbout) {
  Plan asked;
  asked.space.rejected = {{"pipelines", "--vpp: 9 chunks", 1000}, {"heads", "--tp: 3 does not divide", 10}};
  const Plan best = of(llama("8", Verdict::fits));
  EXPECT_EQ(why_not(asked, best, {"--tp"}).because, "--tp: 3 does not divide");
  EXPECT_EQ(why_not(asked, best, {"--cp"}).because, "--vpp: 9 chunks");
}

}  // namespace
}  // namespace preflop
