// Utilisation: the arithmetic, peaks that are recognised, and causes that are named only when they fit.
#include "src/view/mfu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "src/adapt/request.hpp"
#include "src/run/utilisation.hpp"

namespace preflop {
namespace {

const Catalogues& catalogues() {
  static const Result<Catalogues> loaded = Catalogues::load();
  if (!loaded) ADD_FAILURE() << loaded.error().text();
  return *loaded;
}
const Gpu& gpu(const char* id) { return **catalogues().machines.gpu(id); }

struct Posed {
  Problem problem;
  Estimate estimate;
};
Posed pose_it(const std::string& model, const std::string& on, std::map<std::string, std::string, std::less<>> keys) {
  Request request;
  request.model = model;
  request.on = on;
  request.keys = std::move(keys);
  Result<Problem> problem = pose(request, catalogues());
  if (!problem) ADD_FAILURE() << problem.error().text();
  Posed out{std::move(problem).value(), {}};
  out.estimate = estimate<double>(out.problem.analysed, out.problem.cluster);
  return out;
}

Utilisation use_of(const Posed& p, Measurement m, std::optional<double> peak = {}) {
  Result<Utilisation> use = utilisation(p.problem.analysed, p.estimate, m, peak, catalogues().machines);
  if (!use) ADD_FAILURE() << use.error().text();
  return use ? *use : Utilisation{};
}

std::set<std::string> kinds(const Utilisation& use) {
  std::set<std::string> out;
  for (const Cause& cause : use.causes) {
    EXPECT_FALSE(cause.text.empty());
    EXPECT_TRUE(out.insert(cause.kind).second) << cause.kind << " twice";
  }
  return out;
}

TEST(KnownPeaks, SparseHeadlinesAreRecognised) {
  for (const auto& [id, sparse] : std::initializer_list<std::pair<const char*, double>>{
           {"h100-sxm", 1979e12}, {"h200", 1979e12}, {"a100-80", 624e12}, {"b200", 4500e12}, {"rtx4090", 660.6e12}}) {
    const std::vector<KnownPeak> known = known_peaks(sparse, gpu(id), catalogues().machines);
    const auto own = std::find_if(known.begin(), known.end(), [&, name = std::string(id)](const KnownPeak& k) {
      return k.gpu == name && k.sparse;
    });
    ASSERT_NE(own, known.end()) << id;
    EXPECT_FALSE(own->source.empty());
  }
}

TEST(KnownPeaks, WithinHalfAPercent) {
  const auto has = [](double flops) { return !known_peaks(flops, gpu("h100-sxm"), catalogues().machines).empty(); };
  EXPECT_TRUE(has(989e12));
  EXPECT_TRUE(has(989.4e12));
  EXPECT_TRUE(has(989e12 * 1.0049));
  EXPECT_TRUE(has(1979e12 * 0.9951));
  EXPECT_FALSE(has(777e12));
  EXPECT_FALSE(has(1.0));
}

TEST(KnownPeaks, OwnFirst) {
  const std::vector<KnownPeak> known = known_peaks(989e12, gpu("h200"), catalogues().machines);
  ASSERT_GT(known.size(), 2u);
  EXPECT_EQ(known.front().gpu, "h200");
}

TEST(Mfu, IsTokensTimesFlopsOverPeak) {
  const Posed p = pose_it("llama3-8b", "8xh100-sxm", {{"seq", "8192"}, {"tp", "1"}});
  const Utilisation use = use_of(p, {Measurement::Kind::tokens_per_second, 56000, nullptr});
  EXPECT_EQ(use.tokens_per_second_per_gpu, 7000);
  ASSERT_EQ(use.conventions.size(), conventions().size());
  for (const ConventionUse& c : use.conventions) {
    EXPECT_DOUBLE_EQ(c.mfu, c.flops_per_token * 7000 / 989e12) << c.convention->name;
    EXPECT_FALSE(c.mfu_of_given);
  }
  EXPECT_EQ(std::string(use.conventions.front().convention->name), "palm");
  EXPECT_EQ(*use.unexplained, *use.predicted_mfu - use.mfu);
  EXPECT_EQ(*use.predicted_mfu, p.estimate.step->mfu.number());
}

TEST(Mfu, ThePredictionMeasuredLeavesNothingUnexplained) {
  const Posed p = pose_it("llama3-8b", "8xh100-sxm", {{"seq", "8192"}, {"tp", "1"}});
  const double rate = p.estimate.step->tokens_per_second.number();
  EXPECT_NEAR(*use_of(p, {Measurement::Kind::tokens_per_second, rate, nullptr}).unexplained, 0, 1e-12);
  const double seconds = p.estimate.step->seconds.number();
  EXPECT_NEAR(*use_of(p, {Measurement::Kind::step_seconds, seconds, nullptr}).unexplained, 0, 1e-12);
}

TEST(Mfu, CausesFitTheNumbers) {
  const Posed p = pose_it("llama3-8b", "16xh100-sxm", {{"seq", "8192"}, {"tp", "1"}});
  using K = Measurement::Kind;
  EXPECT_TRUE(kinds(use_of(p, {K::tokens_per_second_per_gpu, 8 * 7000, nullptr})).contains("per_node"));
  EXPECT_TRUE(kinds(use_of(p, {K::tokens_per_second_per_gpu, 16 * 7000, nullptr})).contains("per_cluster"));
  EXPECT_FALSE(kinds(use_of(p, {K::tokens_per_second_per_gpu, 7000, nullptr})).contains("per_node"));
  EXPECT_TRUE(kinds(use_of(p, {K::tokens_per_second, 7000, nullptr})).contains("per_gpu"));
  EXPECT_FALSE(kinds(use_of(p, {K::tokens_per_second, 16 * 7000, nullptr})).contains("per_gpu"));
  const std::set<std::string> over = kinds(use_of(p, {K::tokens_per_second_per_gpu, 18000, nullptr}));
  EXPECT_TRUE(over.contains("over_peak") && over.contains("other_gpu") && over.contains("precision"));
  EXPECT_FALSE(over.contains("sparse_peak"));
}

TEST(Mfu, RefusesWhatNoMachineDoes) {
  const Posed p = pose_it("llama3-8b", "8xh100-sxm", {});
  using K = Measurement::Kind;
  for (double value : {1e18, 1e300}) {
    const auto use =
        utilisation(p.problem.analysed, p.estimate, {K::tokens_per_second, value, nullptr}, {}, catalogues().machines);
    ASSERT_FALSE(use.ok());
    EXPECT_EQ(use.error().where, "--tokens-per-second");
  }
  EXPECT_FALSE(
      utilisation(p.problem.analysed, p.estimate, {K::step_seconds, 1e-300, nullptr}, {}, catalogues().machines).ok());
}

TEST(Mfu, EveryGpuAndViewIsSane) {
  for (const Gpu& each : catalogues().machines.gpus()) {
    const Posed p = pose_it("llama3-8b", "8x" + each.id + "/8", {{"seq", "8192"}});
    const auto use =
        utilisation(p.problem.analysed, p.estimate, {Measurement::Kind::tokens_per_second_per_gpu, 1000, nullptr}, {},
                    catalogues().machines);
    if (!use) {
      EXPECT_EQ(use.error().where, "--peak") << each.id;
      EXPECT_FALSE(p.problem.cluster.datum("bf16_flops").value) << each.id;
      continue;
    }
    for (const ConventionUse& c : use->conventions) EXPECT_TRUE(std::isfinite(c.mfu) && c.mfu > 0) << each.id;
    EXPECT_EQ(mfu_json_value(*use, p.estimate)["schema"], "preflop.mfu/1");
    const std::string text = mfu_text(*use, p.estimate, {true, false});
    EXPECT_EQ(text.find("n/a"), std::string::npos) << each.id;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      ASSERT_NE(end, std::string::npos);
      EXPECT_LE(end - at, 80u) << each.id << ": " << text.substr(at, end - at);
    }
  }
}

}  // namespace
}  // namespace preflop
