#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>

#include "src/adapt/request.hpp"
#include "src/explain/explain.hpp"
#include "src/explain/parameters.hpp"
#include "src/explain/paths.hpp"
#include "src/explain/terms.hpp"
#include "src/run/estimate.hpp"
#include "src/view/explain_text.hpp"
#include "src/view/json.hpp"
#include "src/view/trace_tree.hpp"

namespace preflop {
namespace {

const Catalogues& catalogues() {
  static const Result<Catalogues> loaded = Catalogues::load();
  return *loaded;
}

Problem problem(const char* json) {
  const Result<Request> request = request_from_json(json);
  EXPECT_TRUE(request.ok());
  Result<Problem> posed = pose(*request, catalogues());
  EXPECT_TRUE(posed.ok()) << (posed.ok() ? "" : posed.error().text());
  return std::move(posed).value();
}

constexpr const char* kRequests[] = {
    R"({"model": "llama3-70b", "on": "64xh100-sxm", "tp": 8, "pp": 2, "tokens": "15T"})",
    R"({"model": "gpt2", "on": "1xa100-40", "stack": "textbook"})",
    R"({"model": "llama3.1-405b", "on": "1024xh100-sxm", "tp": 8, "pp": 16, "recompute": "full", "tokens": "1T"})",
    R"({"model": "gpt3-175b", "on": "1024xa100-80", "tp": 8, "pp": 8, "vpp": 2, "schedule": "interleaved", "global_batch": 1536})",
    R"({"model": "llama3-8b", "on": "64xh100-sxm", "tp": 1, "mfu": "40%", "tokens": "1T"})",
    R"({"model": "llama3-8b", "on": "1x80GB"})",
    R"({"model": "llama3-8b", "on": "64xh100-sxm", "tp": 2, "pp": 2, "global_batch": 512, "tokens": "1T", "checkpoint": "async", "batch_ramp": "64:64:100000", "spares": 1, "repair": "3d", "maintenance": "4h/30d", "evaluation": "5m/500", "eviction": "20d"})",
    R"({"model": "llama3-70b", "on": "64xh100-sxm", "stack": "megatron", "tp": 8, "pp": 4, "recompute": "full:7"})",
    R"({"model": "llama3-70b", "on": "64xh100-sxm", "stack": "megatron", "tp": 8, "pp": 4, "recompute": "full:uniform:5"})",
    R"({"model": "maxtext-128b", "on": "1024xtpu-v5e", "tp": 16, "hsdp": 16, "micro_batch": 16, "seq": 2048, "recompute": "qkv_proj_offloaded"})",
    R"({"model": "gpt2", "on": "16xtpu-v5p", "tp": 2, "recompute": "qkv_proj_offloaded"})",
    R"({"model": "mpt-30b", "on": "8xa100-80", "stack": "foundry", "seq": 2048, "micro_batch": 2, "recompute": "full"})"};

TEST(Explain, EveryNumberIsTheEstimatesToTheBit) {
  for (const char* request : kRequests) {
    const Problem p = problem(request);
    const Estimate e = estimate<double>(p.analysed, p.cluster);
    const EstimateOf<Traced> traced = estimate<Traced>(p.analysed, p.cluster);
    std::map<std::string, std::optional<double>> plain_numbers;
    for_each_number(e, [&](const std::string& path, const std::optional<double>& value, const char*) {
      EXPECT_TRUE(plain_numbers.emplace(path, value).second) << path << " twice";
    });
    std::size_t seen = 0;
    for_each_number(traced, [&](const std::string& path, const std::optional<Traced>& value, const char*) {
      ++seen;
      const auto other = plain_numbers.find(path);
      ASSERT_NE(other, plain_numbers.end()) << path;
      ASSERT_EQ(other->second.has_value(), value.has_value()) << path;
      if (!value) return;
      EXPECT_EQ(std::bit_cast<std::uint64_t>(*other->second), std::bit_cast<std::uint64_t>(value->value()))
          << request << " " << path;
      EXPECT_EQ(value->node()->value, value->value()) << path;
    });
    EXPECT_EQ(seen, plain_numbers.size());
  }
}

TEST(Explain, EveryTermPrintsWithinEightyColumns) {
  const Problem p = problem(kRequests[0]);
  std::size_t count = 0;
  for (const TermLine& term : explainable(p.analysed, p.cluster)) {
    EXPECT_FALSE(term.says.empty()) << term.term;
    if (count++ % 3 != 0) continue;  // each is a whole traced estimate; the test above compares the bits of all
    const Result<Explanation> e = explain(term.term, p.analysed, p.cluster);
    EXPECT_EQ(e.ok(), term.value.has_value()) << term.term;
    if (!e) continue;
    EXPECT_EQ(e->value, *term.value) << term.term;
    const std::string text = explain_text(*e, false);
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t end = text.find('\n', from);
      EXPECT_LE(end - from, 80U) << text.substr(from, end - from);
      from = end + 1;
    }
    if (count % 8 != 0) continue;
    const nlohmann::json whole = explain_json_value(*e);  // megabytes: of some terms only
    EXPECT_EQ(json_text(whole.at("tree").at("value")), json_text(json_number(e->value))) << term.term;
  }
}

// Every reference names an id that stands once, and above it.
void expect_references(const nlohmann::json& node, std::set<std::int64_t>& ids) {
  if (node.contains("same_as")) {
    EXPECT_TRUE(ids.contains(node["same_as"].get<std::int64_t>()));
    EXPECT_FALSE(node.contains("inputs"));
  }
  if (node.contains("id")) {
    EXPECT_TRUE(ids.insert(node["id"].get<std::int64_t>()).second);
  }
  if (!node.contains("inputs")) return;
  for (const nlohmann::json& input : node["inputs"]) expect_references(input, ids);
}

TEST(Explain, EqualTermsOfASumAreCounted) {
  const Traced two = leaf<Traced>(2, [] { return Origin{"a", "s", "here", {}}; });
  const Traced three = leaf<Traced>(3, [] { return Origin{"b", "s", "there", {}}; });
  const Traced sum = two * three + three + (two * three + three) + two;
  Signatures signatures;
  const Formula f = formula(*sum.node(), signatures);
  EXPECT_EQ(f.names, "2 x a x b + 2 x b + a");
  EXPECT_EQ(f.operands.size(), 2U);
  const Traced product = (two + three + two) * three;
  EXPECT_EQ(formula(*product.node(), signatures).names, "(2 x a + b) x b");
  // Layers of two kinds that take turns: two terms, not a term for every layer.
  const Problem p = problem(R"({"model": "nemotron-h-8b", "on": "8xh100-sxm", "stack": "megatron"})");
  const Result<Explanation> e = explain("step.breakdown.gemm", p.analysed, p.cluster);
  ASSERT_TRUE(e.ok());
  EXPECT_LT(explain_text(*e, false).size(), 20'000U);
}

TEST(Explain, WhatIsSharedIsWrittenOnce) {
  for (const char* request : kRequests) {
    const Problem p = problem(request);
    for (const char* term : {"step.seconds", "step.mfu", "run.expected_seconds", "memory.peak_device_bytes"}) {
      const Result<Explanation> e = explain(term, p.analysed, p.cluster);
      if (!e) continue;
      const nlohmann::json json = explain_json_value(*e);
      std::set<std::int64_t> ids;
      expect_references(json.at("tree"), ids);
      EXPECT_LT(json_text(json).size(), 2'000'000U) << request << " " << term;
    }
  }
}

TEST(Explain, AStagesMemberWithoutTheStageIsTheFullestStages) {
  const Problem p = problem(kRequests[2]);
  const Estimate e = estimate<double>(p.analysed, p.cluster);
  ASSERT_GT(e.memory.stages.size(), 1U);
  const std::string full = "memory.stages[" + std::to_string(e.memory.peak_stage) + "].activations";
  const Result<Explanation> brief = explain("memory.activations", p.analysed, p.cluster);
  ASSERT_TRUE(brief.ok());
  EXPECT_EQ(brief->path, full);
  EXPECT_EQ(brief->value, explain(full, p.analysed, p.cluster)->value);
  EXPECT_TRUE(explain("memory.stages[15].activations", p.analysed, p.cluster).ok());
  EXPECT_FALSE(explain("memory.stages[16].activations", p.analysed, p.cluster).ok());
}

TEST(Explain, ParametersAreASumOverWeights) {
  const Problem p = problem(kRequests[1]);  // tied
  const ModelSummary s = summarise(*p.model);
  EXPECT_EQ(traced_parameters(*p.model, "total").value(), s.params_total.real());
  EXPECT_EQ(traced_parameters(*p.model, "active").value(), s.params_active.real());
  EXPECT_EQ(traced_parameters(*p.model, "embedding").value(), s.params_embedding.real());
}

TEST(Explain, Refusals) {
  const Problem p = problem(kRequests[5]);
  EXPECT_NE(explain("memory.wieghts", p.analysed, p.cluster).error().valid.find("memory.weights"), std::string::npos);
  EXPECT_NE(explain("step.seconds", p.analysed, p.cluster).error().what.find("not known"), std::string::npos);
  EXPECT_NE(explain("run.steps", p.analysed, p.cluster).error().what.find("--tokens"), std::string::npos);
}

}  // namespace
}  // namespace preflop
