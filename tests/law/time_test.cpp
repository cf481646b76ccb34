// What must hold of step times whatever the parameters are.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "src/base/embedded.hpp"
#include "src/cost/kernels.hpp"
#include "src/machine/cluster.hpp"
#include "src/step/replay.hpp"
#include "src/step/stages.hpp"
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
double closed(const std::vector<std::pair<double, double>>& stages, double vpp, double m, bool all_forward = false,
              const char* played = nullptr, const std::vector<double>& weights = {}) {
  std::vector<StageRun<double>> runs;
  for (const auto& [forward, backward] : stages) {
    StageRun<double> run;
    run.time.forward = Seconds<double>(forward);
    run.time.backward = Seconds<double>(backward);
    run.time.parts[0] = Seconds<double>(forward + backward);
    if (!weights.empty()) run.time.weights = Seconds<double>(weights[runs.size()]);
    runs.push_back(run);
  }
  Schedule<double> s;
  s.played = played;
  s.pp = static_cast<double>(stages.size());
  s.vpp = vpp;
  s.micro_batches = m;
  s.all_forward = all_forward;
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
        for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {
          const bool interleaved = std::string(schedule) == "interleaved";
          if (interleaved != (v > 1) || (interleaved && p == 1)) continue;
          const double expected = closed(stages, n, static_cast<double>(m), std::string(schedule) == "gpipe");
          const Replay r = replay(schedule, work, m);
          EXPECT_FALSE(r.deadlock) << schedule << " p " << p << " v " << v << " m " << m;
          EXPECT_NEAR(r.seconds, expected, 1e-9 * expected) << schedule << " p " << p << " v " << v << " m " << m;
        }
      }
    }
  }
}

// Stages within a quarter of their mean: the closed form is never above the replay and at most 2 % under it, whatever
// the schedule (interleaved: one case in a hundred up to 5 % under and none 2 % above).
TEST(Schedules, ClosedFormIsTheReplayWithinTwoPercentOnUnequalStages) {
  std::uint64_t seed = 1;
  const auto random = [&] {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(seed >> 11) / 9007199254740992.0;
  };
  const char* kSchedules[] = {"1f1b", "interleaved", "gpipe", "1f1b"};
  std::map<std::string, std::array<int, 2>> all;  // of each schedule: cases, those further off
  for (int i = 0; i < 10000; ++i) {
    const std::string schedule = kSchedules[i % 4];
    const bool interleaved = schedule == "interleaved";
    const auto p = static_cast<std::size_t>(2 + random() * 11);
    const auto v = static_cast<std::size_t>(interleaved ? 2 + random() * 4 : 1);
    const i64 groups = 1 + static_cast<i64>(random() * 6);
    const i64 m = interleaved || i % 8 < 4 ? groups * static_cast<i64>(p) : 1 + static_cast<i64>(random() * 60);
    const double ratio = 0.8 + random() * 2;
    ReplayWork work;
    std::vector<std::pair<double, double>> stages;
    const double n = static_cast<double>(v);
    for (std::size_t k = 0; k < p; ++k) {
      const double f = 0.75 + random() * 0.5, b = ratio * (0.75 + random() * 0.5);
      work.forward.emplace_back(v, f);
      work.backward.emplace_back(v, b);
      stages.emplace_back(f * n, b * n);
    }
    const Replay r = replay(schedule, work, m);
    ASSERT_FALSE(r.deadlock);
    const double error = closed(stages, n, static_cast<double>(m), schedule == "gpipe") / r.seconds - 1;
    EXPECT_GE(error, interleaved ? -0.05 : -0.02) << schedule << " p " << p << " v " << v << " m " << m;
    EXPECT_LE(error, interleaved ? 0.02 : 1e-9) << schedule << " p " << p << " v " << v << " m " << m;
    all[schedule][0] += 1;
    all[schedule][1] += std::fabs(error) > (schedule == "gpipe" ? 1e-9 : 0.02);
  }
  EXPECT_EQ(all["gpipe"][1], 0);
  EXPECT_EQ(all["1f1b"][1], 0);
  EXPECT_LE(all["interleaved"][1], all["interleaved"][0] / 100);
}

// Equal stages, forward = input gradient = weight gradient: zb-h1 leaves a third of 1f1b's bubble, (p - 1)(F + B - W),
// zb-2p nothing (arXiv:2401.10241 section 2.3), and no rank holds more than the memory that in_flight() counts.
TEST(Schedules, ZeroBubbleIsItsClosedForm) {
  for (i64 p : {2, 3, 4, 8, 16}) {
    for (i64 m : {2 * p, 2 * p + 1, 5 * p}) {
      for (const char* schedule : {"zb-h1", "zb-1p", "zb-2p"}) {
        const auto n = static_cast<std::size_t>(p);
        const double third = 1.5;
        const ReplayWork work{{n, {third}}, {n, {2 * third}}, {n, {third}}, 0};
        const Replay r = replay(schedule, work, m);
        EXPECT_FALSE(r.deadlock);
        const double idle = std::string(schedule) == "zb-2p" ? 0 : third * static_cast<double>(p - 1);
        EXPECT_NEAR(r.seconds, 3 * third * static_cast<double>(m) + idle, 1e-9) << schedule << " p " << p << " m " << m;
        if (idle == 0) {
          EXPECT_NEAR(r.seconds, zero_bubble_least(work, m), 1e-9) << schedule << " p " << p << " m " << m;
        }
        Layout layout;
        layout.pp = p;
        layout.schedule = schedule;
        for (i64 i = 0; i < p; ++i) {
          const auto alive = static_cast<double>(r.most_alive[static_cast<std::size_t>(i)]);
          EXPECT_LE(alive, in_flight(layout, i, m)) << schedule << " p " << p << " m " << m << " rank " << i;
        }
      }
    }
  }
}

// Passes whose lengths (ms, and of an exchange) give the rates of idle time that table 5 of arXiv:2401.10241 has for
// zb-1p of its four models give those of zb-2p too, which the paper's search finds: the shortest chain, not the plain
// order.
TEST(Schedules, ZeroBubbleIsAsIdleAsPublished) {
  struct Model {
    double forward, input, weights, hop;
    i64 p, m;
    double one, two;  // published idle shares of zb-1p and zb-2p
  };
  for (const Model& q :
       {Model{18.5, 18.1, 9.3, 0.6, 8, 24, 0.1585, 0.0433}, Model{18.5, 18.1, 9.3, 0.6, 8, 32, 0.1242, 0.0039},
        Model{29.7, 29.4, 19.9, 0.53, 8, 24, 0.1323, 0.0029}, Model{29.7, 29.4, 19.9, 0.53, 8, 32, 0.1045, 0.0022},
        Model{11.3, 11.2, 8.1, 0.38, 16, 48, 0.1397, 0.0066}, Model{10.4, 10.2, 7.7, 0.41, 32, 96, 0.1421, 0.0038},
        Model{10.4, 10.2, 7.7, 0.41, 32, 128, 0.1106, 0.0029}}) {
    const auto n = static_cast<std::size_t>(q.p);
    const ReplayWork work{{n, {q.forward}}, {n, {q.input + q.weights}}, {n, {q.weights}}, q.hop};
    const double busy = (q.forward + q.input + q.weights) * static_cast<double>(q.m);
    EXPECT_NEAR(1 - busy / replay("zb-1p", work, q.m).seconds, q.one, 0.003) << q.p << " " << q.m;
    EXPECT_NEAR(1 - busy / zero_bubble_least(work, q.m), q.two, 0.007) << q.p << " " << q.m;
    EXPECT_LT(zero_bubble_least(work, q.m), replay("zb-2p", work, q.m).seconds);
  }
}

// The step of a played schedule is the replay, whatever the stages, and of zb-2p the least that any order can take;
// never below the slowest's work.
RC_GTEST_PROP(Schedules, ZeroBubbleIsPlayed, ()) {
  const auto p = static_cast<std::size_t>(*rc::gen::inRange(2, 9));
  const int m = *rc::gen::inRange(1, 40);
  ReplayWork work;
  std::vector<std::pair<double, double>> stages;
  std::vector<double> weights;
  for (std::size_t i = 0; i < p; ++i) {
    stages.emplace_back(*rc::gen::inRange(1, 20), *rc::gen::inRange(10, 40));
    weights.push_back(*rc::gen::inRange(1, 10));
    work.forward.push_back({stages.back().first});
    work.backward.push_back({stages.back().second});
    work.weights.push_back({weights.back()});
  }
  const auto schedule = *rc::gen::element("zb-h1", "zb-1p", "zb-2p");
  const double least = zero_bubble_least(work, m);
  for (const char* any : {"zb-h1", "zb-1p", "zb-2p"}) RC_ASSERT(least <= replay(any, work, m).seconds * (1 + 1e-12));
  RC_ASSERT(zero_bubble_seconds(work, m) == replay("zb-1p", work, m).seconds);
  RC_ASSERT(zero_bubble_seconds(work, m, true) == replay("zb-2p", work, m).seconds);
  const double played = std::string(schedule) == "zb-2p" ? least : replay(schedule, work, m).seconds;
  const double step = closed(stages, 1, m, false, schedule, weights);
  RC_ASSERT(std::fabs(step - played) <= 1e-9 * played);
  double slowest = 0;
  for (const auto& [forward, backward] : stages) slowest = std::max(slowest, forward + backward);
  RC_ASSERT(played >= slowest * m * (1 - 1e-12));
}

// Search prunes by it: no pass that takes longer makes a step shorter.
RC_GTEST_PROP(Schedules, StepsAreMonotoneInEveryPass, ()) {
  const auto p = static_cast<std::size_t>(*rc::gen::inRange(2, 9));
  const int v = *rc::gen::inRange(1, 5);
  const int m = v > 1 ? static_cast<int>(p) * *rc::gen::inRange(1, 5) : *rc::gen::inRange(1, 30);
  std::vector<std::pair<double, double>> stages;
  for (std::size_t i = 0; i < p; ++i) stages.emplace_back(*rc::gen::inRange(1, 20), *rc::gen::inRange(1, 40));
  const bool all_forward = v == 1 && *rc::gen::arbitrary<bool>();
  const double before = closed(stages, v, m, all_forward);
  auto& at = stages[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(p)))];
  (*rc::gen::arbitrary<bool>() ? at.first : at.second) += *rc::gen::inRange(1, 20);
  RC_ASSERT(closed(stages, v, m, all_forward) >= before * (1 - 1e-12));
}

TEST(Schedules, LiveMicroBatches) {
  ReplayWork work;
  work.forward.assign(4, {1.0});
  work.backward.assign(4, {2.0});
  EXPECT_EQ(replay("1f1b", work, 8).most_alive, (std::vector<i64>{4, 3, 2, 1}));
  EXPECT_EQ(replay("gpipe", work, 8).most_alive, (std::vector<i64>{8, 8, 8, 8}));
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

// The optimizer moves the states that it keeps, no more and no less.
// What products hide of an exchange they hide inside a scale-up domain; across, all of it is exposed.
TEST(Pieces, ExchangesAcrossDomainsAreExposed) {
  const Cluster cluster = machines().cluster("16xh100-sxm").value();
  const Stack& s = stack("megatron@nemo-24.11");
  const auto exchange = [&](i64 tp, double exposed) {
    Recipe r = recipe_for(s, 512);
    r.layout.tp = tp;
    r.layout.sp = true;
    const Case c = run(llama({.h = 256, .heads = 16, .kv = 16, .d = 16, .f = 512, .layers = 2, .vocab = 1024}), s, r);
    Prices<double> prices = preflop::prices<double>(cluster, s, c.a.recipe, TimeParameters::built_in());
    prices.tp_exposed = exposed;
    const Piece<double> piece = price_block(c.layer(), c.a.recipe, true, prices);
    return piece.forward[static_cast<std::size_t>(Lost::tp_comm)].number();
  };
  EXPECT_GT(exchange(8, 0.25), 0);
  EXPECT_NEAR(exchange(8, 0.5), 2 * exchange(8, 0.25), 1e-15);
  EXPECT_EQ(exchange(16, 0.25), exchange(16, 1));
}

TEST(Optimizer, UpdateBytesFollowItsStates) {
  const auto bytes = [](const char* name, Dtype moment) {
    Recipe r;
    r.optimizer = name;
    r.moment_dtype = moment;
    return state_terms(r, nothing_else()).update_bytes;
  };
  const double adam = bytes("adamw", Dtype::fp32);
  EXPECT_DOUBLE_EQ(adam, 4 * 4 + 2 + 2 * (4 + 8));  // fp32 gradients, bf16 weights, fp32 master and moments
  EXPECT_DOUBLE_EQ(bytes("adamw", Dtype::bf16), adam - 2 * 4);
  EXPECT_DOUBLE_EQ(bytes("lion", Dtype::fp32), adam - 2 * 4);
  EXPECT_DOUBLE_EQ(bytes("sgd", Dtype::fp32), adam - 2 * 8);
  EXPECT_DOUBLE_EQ(bytes("adamw-8bit", Dtype::fp32), adam - 2 * (8 - 2 * 1.015625));
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
