// Requests for models with experts: the expert mesh, multi-token prediction, load; what is assumed and refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "src/adapt/request.hpp"
#include "src/explain/explain.hpp"
#include "src/run/estimate.hpp"

namespace preflop {
namespace {

using Keys = std::map<std::string, std::string, std::less<>>;

Result<Problem> ask(const std::string& model, const std::string& on, Keys keys) {
  static const Result<Catalogues> catalogues = Catalogues::load();
  Request request;
  request.model = model;
  request.on = on;
  request.keys = std::move(keys);
  return pose(request, *catalogues);
}
std::string error_of(const std::string& model, const std::string& on, Keys keys) {
  const Result<Problem> p = ask(model, on, std::move(keys));
  return p ? "posed" : p.error().text();
}
bool assumes(const Recipe& r, const std::string& start) {
  return std::any_of(r.assumed.begin(), r.assumed.end(), [&](const std::string& a) { return a.starts_with(start); });
}
const Recipe& recipe_of(const Problem& p) { return p.analysed.recipe; }

TEST(ExpertRequests, TheMeshIsRead) {
  const Result<Problem> p =
      ask("deepseek-v3", "2048xh100-sxm", {{"pp", "16"}, {"ep", "32"}, {"etp", "2"}, {"stack", "megatron"}});
  ASSERT_TRUE(p.ok()) << p.error().text();
  const Layout& l = recipe_of(*p).layout;
  EXPECT_EQ(l.ep, 32);
  EXPECT_EQ(l.etp, 2);
  EXPECT_EQ(l.edp(), 2);
  EXPECT_EQ(recipe_of(*p).mtp, 1);
  EXPECT_TRUE(assumes(recipe_of(*p), "mtp=1"));
  EXPECT_TRUE(assumes(recipe_of(*p), "imbalance=1"));
}

TEST(ExpertRequests, NothingGivenSpreadsTheExperts) {
  const Result<Problem> p = ask("qwen3-30b-a3b", "128xh100-sxm", {});
  ASSERT_TRUE(p.ok()) << p.error().text();
  EXPECT_GT(recipe_of(*p).layout.ep, 1);
  const Result<Problem> dense = ask("llama3-8b", "128xh100-sxm", {{"stack", "megatron"}});
  ASSERT_TRUE(dense.ok());
  EXPECT_EQ(recipe_of(*dense).layout.ep, 1);
  EXPECT_FALSE(assumes(recipe_of(*dense), "imbalance"));
}

TEST(ExpertRequests, PredictionLayersCanBeLeftOut) {
  const Keys layout = {{"pp", "16"}, {"ep", "8"}, {"stack", "megatron"}, {"recompute", "full"}};
  Keys without = layout;
  without["mtp"] = "0";
  const Result<Problem> with = ask("deepseek-v3", "1024xh100-sxm", layout);
  const Result<Problem> none = ask("deepseek-v3", "1024xh100-sxm", without);
  ASSERT_TRUE(with.ok()) << with.error().text();
  ASSERT_TRUE(none.ok()) << none.error().text();
  const Convention& bridge = *find_convention("bridge");
  EXPECT_GT(flops_per_token<double>(with->analysed, bridge, false).number(),
            1.03 * flops_per_token<double>(none->analysed, bridge, false).number());
  EXPECT_EQ(summarise(*with->model).params_total, summarise(*none->model).params_total);
}

TEST(ExpertRequests, LoadMovesMemoryAndTime) {
  const Keys even = {{"ep", "8"}, {"stack", "megatron"}, {"recompute", "none"}};
  Keys uneven = even;
  uneven["imbalance"] = "1.5";
  const Result<Problem> a = ask("mixtral-8x7b", "64xh100-sxm", even), b = ask("mixtral-8x7b", "64xh100-sxm", uneven);
  ASSERT_TRUE(a.ok() && b.ok());
  const Estimate x = estimate<double>(a->analysed, a->cluster), y = estimate<double>(b->analysed, b->cluster);
  EXPECT_LT(x.memory.stages[0].allocated, y.memory.stages[0].allocated);
  EXPECT_LT(x.step->seconds, y.step->seconds);
  EXPECT_EQ(x.compute.model.number(), y.compute.model.number());  // useful work is the same
  EXPECT_GT(x.step->breakdown[static_cast<int>(Lost::ep_comm)]->number(), 0);
}

TEST(ExpertRequests, Refused) {
  EXPECT_NE(error_of("qwen3-30b-a3b", "8xh100-sxm", {{"ep", "3"}}).find("--ep: 3 does not divide the 128 experts"),
            std::string::npos);
  EXPECT_NE(
      error_of("qwen3-30b-a3b", "8xh100-sxm", {{"ep", "8"}, {"etp", "2"}}).find("does not divide tp x cp x dp = 8"),
      std::string::npos);
  EXPECT_NE(error_of("llama3-8b", "8xh100-sxm", {{"ep", "2"}}).find("--ep: the model has no experts"),
            std::string::npos);
  EXPECT_NE(error_of("llama3-8b", "8xh100-sxm", {{"imbalance", "2"}}).find("the model has no experts"),
            std::string::npos);
  EXPECT_NE(error_of("qwen3-30b-a3b", "8xh100-sxm", {{"imbalance", "nan"}}).find("--imbalance"), std::string::npos);
  EXPECT_NE(error_of("qwen3-30b-a3b", "8xh100-sxm", {{"capacity_factor", "-1"}}).find("--capacity-factor"),
            std::string::npos);
  EXPECT_NE(error_of("deepseek-v3", "8xh100-sxm", {{"mtp", "65"}}).find("--mtp"), std::string::npos);
}

// The explanation of each count of parameters ends in the same number.
TEST(ExpertRequests, CountsExplainThemselves) {
  for (const char* model : {"deepseek-r1", "glm5", "gpt-oss-20b", "qwen1.5-moe-a2.7b"}) {
    const Result<Problem> p = ask(model, "1024xb200", {{"pp", "1"}, {"ep", "4"}, {"stack", "megatron"}});
    ASSERT_TRUE(p.ok()) << p.error().text();
    const ModelSummary s = summarise(*p->model);
    const std::pair<const char*, Count> terms[] = {{"model.params_total", s.params_total},
                                                   {"model.params_active", s.params_active},
                                                   {"model.params_embedding", s.params_embedding}};
    for (const auto& [term, count] : terms) {
      const auto explained = explain(term, p->analysed, p->cluster);
      ASSERT_TRUE(explained.ok()) << term;
      EXPECT_EQ(explained->value, count.real()) << model << " " << term;
    }
  }
}

}  // namespace
}  // namespace preflop
