// The prediction band of a step: where rows say so, runs that fill their memory have a slow end of their own.
#include <gtest/gtest.h>

#include "src/adapt/request.hpp"
#include "src/run/estimate.hpp"

namespace preflop {
namespace {

Estimate of(const char* json) {
  static const Result<Catalogues> catalogues = Catalogues::load();
  const Result<Request> request = request_from_json(json);
  EXPECT_TRUE(request.ok());
  const Result<Problem> posed = pose(*request, *catalogues);
  EXPECT_TRUE(posed.ok()) << (posed.ok() ? "" : posed.error().text());
  return estimate<double>(posed->analysed, posed->cluster);
}

double slow_end(const Estimate& e) { return e.step->high->number() / e.step->seconds.number(); }
double fast_end(const Estimate& e) { return e.step->low->number() / e.step->seconds.number(); }

TEST(TimeBand, RunsThatFillTheirMemoryHaveASlowTail) {
  const Estimate full = of(
      R"({"model": "mpt-30b", "on": "8xa100-80", "stack": "foundry", "seq": 2048, "micro_batch": 2, "recompute": "full"})");
  const Estimate roomy = of(
      R"({"model": "mpt-30b", "on": "64xa100-80", "stack": "foundry", "seq": 2048, "micro_batch": 1, "recompute": "full"})");
  EXPECT_TRUE(fills_memory(full.memory));
  EXPECT_FALSE(fills_memory(roomy.memory));
  EXPECT_GT(slow_end(full), slow_end(roomy) + 0.05);
  EXPECT_DOUBLE_EQ(fast_end(full), fast_end(roomy));
}

// No rows of this stack say so: one band, however full.
TEST(TimeBand, OtherStacksHaveOneBand) {
  const Estimate full =
      of(R"({"model": "llama3-8b", "on": "8xh100-sxm", "stack": "megatron", "tp": 1, "micro_batch": 4, "seq": 8192})");
  const Estimate roomy = of(R"({"model": "llama3-8b", "on": "8xh100-sxm", "stack": "megatron", "tp": 8, "seq": 2048})");
  EXPECT_TRUE(fills_memory(full.memory));
  EXPECT_FALSE(fills_memory(roomy.memory));
  EXPECT_DOUBLE_EQ(slow_end(full), slow_end(roomy));
}

}  // namespace
}  // namespace preflop
