// What must hold of step times whatever the parameters are.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "src/base/embedded.hpp"
#include "src/cost/kernels.hpp"
#include "src/step/replay.hpp"
#include "src/step/time/compose.hpp"
#include "tests/support/draw.hpp"

namespace preflop::test {
namespace {

// Prices under which nothing but the work given counts.
Prices<double> nothing_else() {
  Prices<double> p{};
  p.passes = BytesPerSecond<double>(1);
  return p;
}

// The closed form of the step over stages of (forward, backward) seconds.
double closed(const std::vector<std::pair<double, double>>& stages, double vpp, double m) {
  std::vector<StageRun<double>> runs;
  for (const auto& [forward, backward] : stages) {
    StageRun<double> run;
    run.time.forward = Seconds<double>(forward);
    run.time.backward = Seconds<double>(backward);
    run.time.parts[0] = Seconds<double>(forward + backward);
    runs.push_back(run);
  }
  Schedule<double> s;
  s.pp = static_cast<double>(stages.size());
  s.vpp = vpp;
  s.micro_batches = m;
  return compose(runs.data(), runs.size(), s, StateTerms<double>{}, nothing_else()).seconds.number();
}

TEST(Schedules, ClosedFormIsTheReplay) {
  for (i64 p : {1, 2, 3, 4, 8}) {
    for (i64 v : {1, 2, 3}) {
      for (i64 groups : {1, 2, 5}) {
        const i64 m = p * groups;
        const double f = 2, b = 4;  // per chunk
        ReplayWork work;
        work.forward.assign(static_cast<std::size_t>(p), std::vector<double>(static_cast<std::size_t>(v), f));
        work.backward.assign(static_cast<std::size_t>(p), std::vector<double>(static_cast<std::size_t>(v), b));
        const double n = static_cast<double>(v);
        const std::vector<std::pair<double, double>> stages(static_cast<std::size_t>(p), {f * n, b * n});
        const double expected = closed(stages, n, static_cast<double>(m));
        for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {
          const bool interleaved = std::string(schedule) == "interleaved";
          if (interleaved != (v > 1) || (interleaved && p == 1)) continue;
          const Replay r = replay(schedule, work, m);
          EXPECT_FALSE(r.deadlock) << schedule << " p " << p << " v " << v << " m " << m;
          EXPECT_NEAR(r.seconds, expected, 1e-9 * expected) << schedule << " p " << p << " v " << v << " m " << m;
        }
      }
    }
  }
}

// Stages within a quarter of their mean, backward twice the forward. The closed form lets every micro-batch wait
// for the slowest stage; a pipeline of few micro-batches does not, so it is slow by up to a fifth there and by
// a percent at the median.
TEST(Schedules, ClosedFormIsAFewPercentSlowOnUnequalStages) {
  std::uint64_t seed = 1;
  const auto random = [&] {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(seed >> 11) / 9007199254740992.0;
  };
  int within = 0, all = 0;
  double worst = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto p = static_cast<std::size_t>(2 + random() * 15);
    const auto m = static_cast<i64>((1 + static_cast<i64>(random() * 8)) * static_cast<i64>(p));
    ReplayWork work;
    std::vector<std::pair<double, double>> stages;
    for (std::size_t k = 0; k < p; ++k) {
      const double f = 0.75 + random() * 0.5;
      work.forward.push_back({f});
      work.backward.push_back({2 * f});
      stages.emplace_back(f, 2 * f);
    }
    const Replay r = replay("1f1b", work, m);
    ASSERT_FALSE(r.deadlock);
    const double error = std::fabs(closed(stages, 1, static_cast<double>(m)) / r.seconds - 1);
    worst = std::max(worst, error);
    within += error <= 0.02;
    ++all;
  }
  EXPECT_GE(within, all * 65 / 100) << "worst " << worst;
  EXPECT_LE(worst, 0.2);
}

TEST(Schedules, LiveMicroBatches) {
  ReplayWork work;
  work.forward.assign(4, {1.0});
  work.backward.assign(4, {2.0});
  EXPECT_EQ(replay("1f1b", work, 8).most_alive, (std::vector<i64>{4, 3, 2, 1}));
  EXPECT_EQ(replay("gpipe", work, 8).most_alive, (std::vector<i64>{8, 8, 8, 8}));
}

const MachineCatalogue& machines() {
  static const Result<MachineCatalogue> loaded = MachineCatalogue::load();
  return *loaded;
}

double seconds(const Case& c, Cluster cluster) {
  const auto compute = compute_estimate<double>(c.a, *find_convention("palm"));
  const auto step = step_estimate<double>(c.a, cluster, compute);
  return step ? step->seconds.number() : -1;
}

// More bandwidth, faster memory or a higher rate of products is never slower.
RC_GTEST_PROP(Time, BetterMachinesAreNeverSlower, ()) {
  const Draw d = draw();
  const Case c = d.analysed();
  Result<Cluster> cluster = machines().cluster(std::to_string(8 * d.recipe.layout.world()) + "xh100-sxm");
  RC_ASSERT(cluster.ok());
  const double before = seconds(c, *cluster);
  RC_ASSERT(before > 0);
  for (const char* field : {"memory_bandwidth", "scaleup_bandwidth", "scaleout_bandwidth", "matmul_bf16_flops"}) {
    Cluster better = *cluster;
    Datum datum = better.datum(field);
    if (!datum.value) continue;
    *datum.value *= 1.3;
    better.gpu.data[field] = datum;
    better.platform.data.erase(field);
    RC_ASSERT(seconds(c, better) <= before * (1 + 1e-12));
  }
}

TEST(Kernels, FactorsAreAtLeastOneAndFallWithSize) {
  const GemmLaw law;
  double last = 1e9;
  for (double n : {128.0, 512.0, 2048.0, 8192.0, 32768.0}) {
    const double f = gemm_factor(law, {n, n, n, 1});
    EXPECT_GE(f, 1);
    EXPECT_LE(f, last * 1.02);
    last = f;
  }
  EXPECT_LT(last, 1.02);
  EXPECT_DOUBLE_EQ(corner_factor(1, 0, 3), 1);
  EXPECT_NEAR(corner_factor(2, 2, 2), std::sqrt(2.0), 1e-15);
}

// The parameters of this build: read without error, and written back as the same bytes.
TEST(Parameters, AreReadAndWrittenByteForByte) {
  const std::string_view text = embedded("time.csv");
  const auto parsed = TimeParameters::parse(text, "time.csv");
  ASSERT_TRUE(parsed.ok()) << parsed.error().text();
  EXPECT_EQ(parsed->csv(), text);
  EXPECT_GT(TimeParameters::built_in().all().size(), 100U);
  for (const Parameter& p : parsed->all()) EXPECT_FALSE(p.source.empty());
}

TEST(Parameters, FaultsAreNamed) {
  const std::string head = "owner,field,value,unit,prior,low,high,sigma,source\n";
  const auto error = [&](const std::string& row) {
    const auto parsed = TimeParameters::parse(head + row, "t.csv");
    return parsed ? std::string() : parsed.error().text();
  };
  EXPECT_NE(error("gpu *,a,x,1,,,,,s\n").find("'x' under value is no number"), std::string::npos);
  EXPECT_NE(error("gpu *,a,2,1,1,0.5,1.5,0.1,s\n").find("outside its bounds"), std::string::npos);
  EXPECT_NE(error("gpu *,a,2,1,,,,,\n").find("has no source"), std::string::npos);
  EXPECT_NE(error("gpu *,a,2,1,,,,,s\ngpu *,a,3,1,,,,,s\n").find("stands twice"), std::string::npos);
}

}  // namespace
}  // namespace preflop::test
