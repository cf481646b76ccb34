// Published runs: the page's example, Llama 3's 54 days, the whole-run table.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/run/estimate.hpp"
#include "src/run/interruptions.hpp"
#include "src/run/simulate.hpp"
#include "src/validate/whole_runs.hpp"

namespace preflop {
namespace {

const Catalogues& catalogues() {
  static const Result<Catalogues> loaded = Catalogues::load();
  return *loaded;
}

TEST(Forecast, ThePagesExample) {
  const Result<Problem> p = pose(*request_from_json(R"({"model": "llama3-70b", "on": "2048xh100-sxm", "tp": 8,
      "mfu": "40%", "tokens": "1.4T"})"),
                                 catalogues());
  ASSERT_TRUE(p.ok()) << p.error().text();
  const Estimate e = estimate<double>(p->analysed, p->cluster);
  EXPECT_NEAR(e.run->ideal.number() / 86400, 8.47, 0.01);
  const double more = e.run->expected.number() / e.run->ideal.number() - 1;
  EXPECT_GE(more, 0.10);
  EXPECT_LE(more, 0.30);
}

// 54 days on 16,384 H100 (arXiv 2407.21783 table 5): 419 unexpected interruptions, effective time above 90 %.
TEST(Forecast, Llama3WithItsOwnRateIsConsistent) {
  constexpr double kDay = 86400;
  const double mtbf = 54 * kDay / 419;
  EXPECT_NEAR(mtbf / 3600, 3.09, 0.005);
  EXPECT_NEAR(1000 / (mtbf / kDay * 2048), 3.79, 0.005);
  // 2 TB/s of store (its section 3.3.1) for 14 bytes a parameter. Above 90 % needs restarts of a quarter of an hour;
  // with this project's 25 minutes it would be 86 %.
  const double save = 405.85e9 * 14 / 2e12;
  const auto effective = [&](double restart) {
    const Hazard h{mtbf, {restart + save, 0, 0}};
    return 1 / stretch(best_interval(save, 0, h, 1, kDay), save, 0, h);
  };
  EXPECT_GT(effective(15 * 60.0), 0.90);
  EXPECT_NEAR(effective(25 * 60.0), 0.86, 0.01);
}

TEST(Forecast, Llama3WithTheRatesOfOtherClusters) {
  // Meta's RSC-1 and RSC-2 (arXiv 2410.21680), hardware alone: 719 and 259 interruptions beside the published
  // 419, of which about 78 % were hardware's.
  EXPECT_NEAR(54 * 2048 * 6.5 / 1000, 719, 0.5);
  EXPECT_NEAR(54 * 2048 * 2.34 / 1000, 259, 0.5);
}

TEST(WholeRuns, EveryRowIsThereAndMostArePredicted) {
  const auto runs = whole_runs(catalogues());
  ASSERT_TRUE(runs.ok()) << runs.error().text();
  EXPECT_EQ(runs->size(), 26U + 27U);
  std::size_t predicted = 0;
  for (const WholeRun& r : *runs) {
    EXPECT_NE(r.error.has_value(), !r.why_not.empty()) << r.id;
    predicted += r.error ? 1 : 0;
    if (r.error) {
      EXPECT_TRUE(std::isfinite(*r.error)) << r.id;
      EXPECT_GE(*r.predicted_hours, *r.ideal_hours) << r.id;
    }
  }
  EXPECT_GE(predicted, 24U);
}

TEST(WholeRuns, WhatIsAssumedOfPracticeIsWhatTheyShow) {
  const auto runs = whole_runs(catalogues());
  ASSERT_TRUE(runs.ok());
  std::vector<double> ratios;
  for (const WholeRun& r : *runs) {
    if (r.error) ratios.push_back(1 / (1 + *r.error));
  }
  std::sort(ratios.begin(), ratios.end());
  constexpr double kStale = 0.1;  // the step time's model moves on; the data file follows when it moved far
  EXPECT_NEAR(quantile(ratios, 0.1) / catalogues().run.value("practice_low").value, 1, kStale);
  EXPECT_NEAR(quantile(ratios, 0.5) / catalogues().run.value("practice_median").value, 1, kStale);
  EXPECT_NEAR(quantile(ratios, 0.9) / catalogues().run.value("practice_high").value, 1, kStale);
}

}  // namespace
}  // namespace preflop
