// The forecast's closed forms against the literature and against the simulation of the same model.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/base/math.hpp"
#include "src/base/random.hpp"
#include "src/run/interruptions.hpp"
#include "src/run/phases.hpp"
#include "src/run/simulate.hpp"

namespace preflop {
namespace {

constexpr double kHour = 3600, kDay = 86400;

TEST(Interruptions, BlockingSavesAreDalysCompleteModel) {
  for (const double mtbf : {600.0, 7200.0, 1e6}) {
    for (const double restart : {0.0, 300.0, 1500.0}) {
      const Segments s{100, 900, 30, 0};
      const double daly = mtbf * std::exp(restart / mtbf) * (std::exp(930 / mtbf) - 1) * 100;
      EXPECT_NEAR(mean_elapsed(s, {mtbf, {restart, 0, 0}}) / daly, 1, 1e-12) << mtbf << " " << restart;
    }
  }
}

TEST(Interruptions, NothingFailsForAnInfiniteTime) {
  const double never = std::numeric_limits<double>::infinity();
  EXPECT_EQ(mean_elapsed({10, 100, 5, 3}, {never, {600, 0, 0}}), 1050);
  EXPECT_EQ(best_interval(5, 0, {never, {600, 0, 0}}, 1, 1000), 1000);
}

// Mean of the simulation over many runs, and of its parts.
RunTrace mean_trace(const RunModel& m, int runs) {
  RunTrace sum;
  for (int i = 0; i < runs; ++i) {
    const RunTrace t = simulate_one(m, 7, static_cast<std::uint64_t>(i));
    sum.seconds += t.seconds / runs;
    sum.running += t.running / runs;
    sum.recovering += t.recovering / runs;
    sum.planned += t.planned / runs;
    sum.interruptions += t.interruptions;
  }
  return sum;
}

TEST(Interruptions, ClosedFormIsTheMeanOfTheSimulationOverAGrid) {
  constexpr int kRuns = 1500;
  int cells = 0;
  for (const double mtbf : {1.0 * kHour, 5 * kHour, 30 * kHour}) {
    for (const double interval : {300.0, 1500.0, 6000.0}) {
      for (const double pending : {0.0, 0.3, 1.0}) {
        for (const double share : {0.0, 0.2}) {
          RunModel m;
          m.startup = 900;
          m.segments = {std::ceil(20 * 5 * kHour / interval), interval, 20, pending * (interval + 20)};
          m.training = m.segments.count * interval;
          m.hazard = {mtbf, {700, 1800, share}};
          m.planned_rate = 0.112 / mtbf;
          m.planned_seconds = 900;
          const RunTrace mean = mean_trace(m, kRuns);
          const double running = mean_running(m.segments, mtbf);
          const std::string cell = std::to_string(mtbf) + " " + std::to_string(interval) + " " +
                                   std::to_string(pending) + " " + std::to_string(share);
          const double expected =
              m.startup + mean_elapsed(m.segments, m.hazard) + running * m.planned_rate * m.planned_seconds;
          EXPECT_NEAR(mean.seconds / expected, 1, 0.01) << cell;
          EXPECT_NEAR(mean.running / running, 1, 0.01) << cell;
          EXPECT_NEAR(static_cast<double>(mean.interruptions) / kRuns / (running / mtbf), 1, 0.03) << cell;
          ++cells;
        }
      }
    }
  }
  EXPECT_EQ(cells, 54);
}

TEST(Interruptions, IntervalsOfYoungAndDaly) {
  // Young 1974: sqrt(2 C M). Five minutes every day: two hours.
  EXPECT_DOUBLE_EQ(young_interval(300, kDay), 7200);
  EXPECT_DOUBLE_EQ(daly_first_order(300, kDay), 6900);
  // BLOOM's 40 s and a GPU a week: 66 steps of 105 s, where its team came to save every 100.
  EXPECT_NEAR(young_interval(40, 7 * kDay) / 105.22, 66.1, 0.1);
  // Daly's higher order is the optimum of his complete model, nearly; Young's is its first order.
  for (const double mtbf : {1800.0, 3 * kHour, 1 * kDay, 30 * kDay}) {
    for (const double save : {5.0, 60.0, 300.0}) {
      const Hazard h{mtbf, {1500, 0, 0}};
      const double best = best_interval(save, 0, h, 1, 100 * kDay);
      EXPECT_NEAR(best / daly_interval(save, mtbf), 1, 0.005) << mtbf << " " << save;
      EXPECT_NEAR(best / young_interval(save, mtbf), 1, 0.5 * std::sqrt(save / mtbf) + save / best) << mtbf;
      for (const double other : {0.5, 0.9, 1.1, 2.0})
        EXPECT_LT(stretch(best, save, 0, h), stretch(best * other, save, 0, h)) << mtbf << " " << save << " " << other;
    }
  }
}

TEST(Interruptions, PublishedFormulaOfMetasClustersIsNear) {
  // arXiv 2410.21680: E[ETTR] ~ (1 - N r (u0 + dt / 2)) / (1 + w / dt), said to be good to 5 % of a simulation.
  constexpr double kRate = 6.5 / 1000 / kDay;
  for (const double nodes : {64.0, 256.0, 1024.0}) {
    for (const double restart : {300.0, 900.0}) {
      for (const double save : {10.0, 60.0}) {
        const double rate = nodes * kRate, interval = std::sqrt(2 * save / rate);
        const double theirs = (1 - rate * (restart + interval / 2)) / (1 + save / interval);
        EXPECT_NEAR(1 / stretch(interval, save, 0, {1 / rate, {restart, 0, 0}}) / theirs, 1, 0.05) << nodes;
      }
    }
  }
  EXPECT_NEAR(1 / (2048 * kRate) / kHour, 1.8, 0.01);    // their projections: 16,384 GPUs 1.8 h,
  EXPECT_NEAR(1 / (16384 * kRate) / kHour, 0.23, 0.01);  // 131,072 GPUs 0.23 h
}

TEST(Simulation, SameSeedSameRuns) {
  RunModel m;
  m.segments = {1000, 1000, 10, 0};
  m.training = 1e6;
  m.hazard = {20000, {900, 0, 0}};
  const Uncertainty u{0.9, 1.2, 0.7};
  const std::vector<double> a = simulate(m, u, 3, 500), b = simulate(m, u, 3, 500), c = simulate(m, u, 4, 500);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  EXPECT_EQ(simulate_one(m, 3, 17).seconds, simulate_one(m, 3, 17).seconds);
  EXPECT_LE(quantile(a, 0.1), quantile(a, 0.5));
  EXPECT_LE(quantile(a, 0.5), quantile(a, 0.9));
}

// Whatever was simulated before with them, and with whichever seed.
TEST(Simulation, SharedDrawsChangeNothing) {
  SharedDraws shared;
  for (const std::uint64_t seed : {3, 4, 3}) {
    for (const double mtbf : {20000.0, 3000.0, 50000.0}) {
      RunModel m;
      m.segments = {400, 1000, 10, 100};
      m.training = 4e5;
      m.hazard = {mtbf, {900, 5000, 0.3}};
      m.planned_rate = 1e-5;
      m.planned_seconds = 600;
      const Uncertainty u{0.9, 1.2, 0.7};
      for (const int runs : {200, 500}) EXPECT_EQ(simulate(m, u, seed, runs, &shared), simulate(m, u, seed, runs));
    }
  }
}

TEST(Simulation, TheBandOfTheStepTimeIsTheBandOfTheFinish) {
  RunModel m;
  m.segments = {100, 1000, 0, 0};
  m.training = 1e5;
  m.hazard = {std::numeric_limits<double>::infinity(), {}};
  const std::vector<double> all = simulate(m, {0.8, 1.5, 0}, 1, 2000);
  EXPECT_NEAR(quantile(all, 0.1) / 8e4, 1, 0.005);
  EXPECT_NEAR(quantile(all, 0.5) / 1e5, 1, 0.005);
  EXPECT_NEAR(quantile(all, 0.9) / 1.5e5, 1, 0.005);
}

TEST(Simulation, WhatPracticeMakesOfItIsTheBandOfTheFinish) {
  RunModel m;
  m.segments = {100, 1000, 0, 0};
  m.training = 1e5;
  m.hazard = {std::numeric_limits<double>::infinity(), {}};
  const std::vector<double> all = simulate(m, {1, 1, 0, 0.8, 1.1, 2}, 1, 2000);
  EXPECT_NEAR(quantile(all, 0.1) / 0.8e5, 1, 0.005);
  EXPECT_NEAR(quantile(all, 0.5) / 1.1e5, 1, 0.005);
  EXPECT_NEAR(quantile(all, 0.9) / 2e5, 1, 0.005);
  // Wrong steps and practice have nothing to do with each other: variances of logarithms add up.
  const std::vector<double> both = simulate(m, {1 / 1.5, 1.5, 0, 1 / 1.5, 1, 1.5}, 1, 2000);
  EXPECT_NEAR(math::log(quantile(both, 0.9) / 1e5), math::log(1.5) * std::sqrt(2.0), 0.03);
}

TEST(Random, UniformAndIndependentOfOrder) {
  double sum = 0, squares = 0, waits = 0;
  constexpr int kN = 200000;
  CounterRandom random(1, 2);
  int buckets[16] = {};
  for (int i = 0; i < kN; ++i) {
    const double u = random.uniform();
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
    ++buckets[static_cast<int>(u * 16)];
    waits += random.exponential();
  }
  EXPECT_NEAR(sum / kN, 0.5, 0.003);
  EXPECT_NEAR(squares / kN, 1.0 / 3, 0.003);
  EXPECT_NEAR(waits / kN, 1, 0.01);
  double chi = 0;
  for (const int b : buckets) chi += (b - kN / 16.0) * (b - kN / 16.0) / (kN / 16.0);
  EXPECT_LT(chi, 37.7);  // 99.9 % of 15 degrees of freedom
  EXPECT_EQ(CounterRandom(5, 6).next(), CounterRandom(5, 6).next());
  EXPECT_NE(CounterRandom(5, 6).next(), CounterRandom(5, 7).next());
  EXPECT_NE(CounterRandom(5, 6).next(), CounterRandom(6, 6).next());
}

TEST(Random, NormalQuantiles) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-12);
  EXPECT_NEAR(normal_quantile(0.9), 1.2815515655446004, 2e-9);
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167813, 5e-9);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 3e-9);
}

TEST(BatchRamp, LevelsShareTheSamples) {
  const RampSteps r = ramp_steps({16, 16, 320}, 96);  // five levels of 64 samples: 16, 32, 48, 64, 80
  EXPECT_EQ(r.levels, 5);
  EXPECT_EQ(r.steps, 4 + 2 + 2 + 1 + 1);
  EXPECT_EQ(r.sequences, 64 + 64 + 96 + 64 + 80);
}

}  // namespace
}  // namespace preflop
