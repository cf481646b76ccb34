// With a given layout and nothing said of recomputation: what is chosen, against every policy that the stack has.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/adapt/question.hpp"
#include "src/run/estimate.hpp"
#include "src/search/space.hpp"

namespace preflop {
namespace {

const Catalogues& catalogues() {
  static const Catalogues kLoaded = std::move(Catalogues::load()).value();
  return kLoaded;
}

struct Case {
  const char* model;
  const char* on;
  std::map<std::string, std::string, std::less<>> keys;
};

Request request_of(const Case& c) {
  Request out;
  out.model = c.model;
  out.on = c.on;
  out.keys = c.keys;
  return out;
}

Estimate chosen(const Case& c) {
  const Result<Problem> p = pose(request_of(c), catalogues());
  EXPECT_TRUE(p.ok()) << (p.ok() ? "" : p.error().text());
  return estimate<double>(p->analysed, p->cluster);
}

// The same recipe under every policy of the stack.
std::vector<Estimate> all_policies(const Case& c) {
  const Result<Problem> p = pose(request_of(c), catalogues());
  Question q;
  q.model = p->model.get();
  q.stack = p->stack;
  q.cluster = p->cluster;
  q.recipe = p->analysed.recipe;
  q.recipe.given.insert(kPlannedKeys.begin(), kPlannedKeys.end());
  q.recipe.given.erase("recompute");
  std::vector<Estimate> out;
  for (const Recompute& policy : make_space(q).recompute) {
    Recipe recipe = p->analysed.recipe;
    recipe.recompute = policy;
    const Result<Analysed> a = analyse_recipe(*q.model, *q.stack, recipe);
    if (a) out.push_back(estimate<double>(*a, q.cluster));
  }
  return out;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"deepseek-v3", "2048xh100-sxm", {{"tp", "4"}, {"pp", "8"}, {"vpp", "4"}, {"ep", "32"}}},
      {"deepseek-v3", "2048xh100-sxm", {{"tp", "2"}, {"pp", "16"}, {"ep", "64"}}},
      {"llama3-70b", "64xh100-sxm", {{"tp", "4"}, {"pp", "4"}, {"stack", "megatron"}}},
      {"llama3-70b", "64xh100-sxm", {{"tp", "8"}, {"stack", "torchtitan"}}},
      {"llama3-8b", "8xa100-40", {{"tp", "1"}, {"zero", "3"}, {"stack", "torchtitan"}}},
      {"llama3-8b", "8xh100-sxm", {{"tp", "2"}, {"stack", "megatron"}}},
      {"qwen3-30b-a3b", "16xh100-sxm", {{"ep", "8"}, {"stack", "megatron"}}},
  };
  return kCases;
}

TEST(Recompute, WhatIsNotGivenIsTheFastestThatFits) {
  int by_modules = 0;
  for (const Case& c : cases()) {
    const Estimate e = chosen(c);
    SCOPED_TRACE(std::string(c.model) + " " + c.on);
    ASSERT_TRUE(e.step.has_value());
    if (e.memory.verdict == Verdict::no) {
      EXPECT_EQ(e.recipe.recompute.kind, RecomputeKind::full);
      continue;
    }
    by_modules += e.recipe.recompute.kind == RecomputeKind::modules ? 1 : 0;
    const bool always = pose(request_of(c), catalogues())->stack->recompute_default != "none";
    for (const Estimate& other : all_policies(c)) {
      if (always && other.recipe.recompute.kind == RecomputeKind::none) continue;  // a stack that recomputes anyway
      if (other.memory.verdict == Verdict::fits) {
        EXPECT_LE(e.step->seconds.number(), other.step->seconds.number() * (1 + 1e-9));
      }
    }
  }
  EXPECT_GT(by_modules, 0);  // or the cases show nothing
}

TEST(Recompute, IsSaidWithItsReason) {
  const Estimate e = chosen(cases().front());
  EXPECT_TRUE(std::any_of(e.recipe.assumed.begin(), e.recipe.assumed.end(), [](const std::string& line) {
    return line.starts_with("recompute=") && line.ends_with("(the fastest that fits)");
  }));
}

TEST(Recompute, WithoutTimesTheLeastThatFits) {
  for (const char* on : {"64x12GB", "64x24GB", "64x40GB"}) {
    const Estimate e = chosen({"llama3-8b", on, {{"tp", "2"}, {"stack", "megatron"}, {"seq", "8192"}}});
    EXPECT_NE(e.recipe.recompute.kind, RecomputeKind::modules) << on;
    if (e.memory.verdict == Verdict::no) {
      EXPECT_EQ(e.recipe.recompute.kind, RecomputeKind::full) << on;
    }
  }
}

}  // namespace
}  // namespace preflop
