// Keys of the whole run, and what the estimate makes of them.
#include "src/adapt/run_keys.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "src/run/calendar.hpp"
#include "src/run/estimate.hpp"
#include "src/run/forecast.hpp"
#include "src/view/json.hpp"
#include "src/view/run_text.hpp"

namespace preflop {
namespace {

const Catalogues& catalogues() {
  static const Result<Catalogues> loaded = Catalogues::load();
  return *loaded;
}

std::string base(const std::string& more) {
  return R"({"model": "llama3-8b", "on": "256xh100-sxm", "tp": 2, "seq": 8192, "global_batch": 512, "mfu": "40%")" +
         more + "}";
}
Result<Problem> posed(const std::string& more) { return pose(*request_from_json(base(more)), catalogues()); }
Estimate run_of(const std::string& more) {
  const Result<Problem> p = posed(more);
  EXPECT_TRUE(p.ok()) << more << ": " << (p.ok() ? "" : p.error().text());
  return p ? estimate<double>(p->analysed, p->cluster) : Estimate{};
}
std::string refusal(const std::string& more) {
  const Result<Problem> p = posed(more);
  return p ? "" : p.error().text();
}

constexpr const char* kTokens = R"(, "tokens": "1T")";

TEST(Run, TheLedgerSumsToTheWallClock) {
  for (const char* more :
       {R"(, "tokens": "1T")", R"(, "tokens": "30T", "mtbf": "2h", "checkpoint": "async")",
        R"(, "tokens": "1T", "checkpoint": "none", "mtbf": "30d")", R"(, "tokens": "1T", "mtbf": "none")",
        R"(, "tokens": "1T", "spares": 1, "repair": "3d", "maintenance": "4h/30d", "evaluation": "10m/500")",
        R"(, "tokens": "1T", "data_stalls": "2%", "stragglers": "3%", "batch_ramp": "128:128:100000")"}) {
    const Estimate e = run_of(more);
    ASSERT_TRUE(e.run.has_value()) << more;
    double sum = e.run->ideal.number();
    for (const Seconds<double>& s : e.run->losses) {
      EXPECT_GE(s.number(), 0) << more;
      sum += s.number();
    }
    EXPECT_EQ(sum, e.run->expected.number()) << more;
    EXPECT_EQ(e.run->ideal.number(), e.step->seconds.number() * std::ceil(*e.recipe.tokens / (512.0 * 8192))) << more;
    EXPECT_LE(e.run->p10.number(), e.run->p50.number()) << more;
    EXPECT_LE(e.run->p50.number(), e.run->p90.number()) << more;
  }
}

TEST(Run, TheSimulationsMeanIsTheExpectedTime) {
  for (const char* more :
       {R"(, "tokens": "15T", "mtbf": "6h")", R"(, "tokens": "15T", "mtbf": "3h", "checkpoint": "async")",
        R"(, "tokens": "15T", "mtbf": "10h", "maintenance": "2h/7d")"}) {
    const Estimate e = run_of(more);
    double mean = 0;
    for (const double s : e.run->finish) mean += s / static_cast<double>(e.run->finish.size());
    EXPECT_NEAR(mean / e.run->expected.number(), 1, 0.01) << more;
  }
}

TEST(Run, TheUsualStretchIsThatOfTheForecast) {
  for (const char* more :
       {R"(, "tokens": "15T")", R"(, "tokens": "15T", "mtbf": "5h")", R"(, "tokens": "15T", "mtbf": "none")",
        R"(, "tokens": "15T", "stragglers": "4%", "maintenance": "4h/10d", "checkpoint": "async")"}) {
    const Estimate e = run_of(more);
    EXPECT_NEAR(usual_stretch(e.recipe.run, e.cluster, e.memory.checkpoint->number()) /
                    (e.run->expected.number() / e.run->ideal.number()),
                1, 0.01)
        << more;
  }
}

TEST(Run, PracticeSpreadsTheFinishOfAPredictedStepTime) {
  EXPECT_EQ(run_of(kTokens).recipe.run.practice.high, 1);  // a given MFU is the run's own
  const Request request = *request_from_json(
      R"({"model": "llama3-8b", "on": "256xh100-sxm", "tp": 2, "seq": 8192, "global_batch": 512, "tokens": "1T"})");
  const auto finish = [&](const char* practice) {
    Request asked = request;
    if (practice != nullptr) asked.keys["practice"] = practice;
    const Result<Problem> p = pose(asked, catalogues());
    EXPECT_TRUE(p.ok()) << practice;
    return estimate<double>(p->analysed, p->cluster);
  };
  const Estimate none = finish("none"), usual = finish(nullptr), twice = finish("2:2:2");
  EXPECT_LT(none.run->p90.number() / none.run->p10.number(), 1.3);
  EXPECT_GT(usual.run->p90.number() / usual.run->p10.number(), 2);
  EXPECT_NEAR(twice.run->p50.number() / none.run->p50.number(), 2, 0.02);
  EXPECT_EQ(usual.run->expected.number(), none.run->expected.number());
  EXPECT_NE(run_text(usual).find("(assumed: published runs)"), std::string::npos);
  EXPECT_EQ(run_text(none).find("times in practice"), std::string::npos);
  EXPECT_NEAR(usual_stretch(usual.recipe.run, usual.cluster, usual.memory.checkpoint->number()),
              usual.recipe.run.practice.median * usual.run->expected.number() / usual.run->ideal.number(), 0.02);
}

TEST(Run, MoreTroubleTakesLonger) {
  const double usual = run_of(kTokens).run->expected.number();
  for (const char* more :
       {R"(, "tokens": "1T", "restart": "2h")", R"(, "tokens": "1T", "detection": "2h")",
        R"(, "tokens": "1T", "checkpoint_bandwidth": "1GB/s")", R"(, "tokens": "1T", "mtbf": "1h")",
        R"(, "tokens": "1T", "eviction": "8h")", R"(, "tokens": "1T", "stragglers": "5%")",
        R"(, "tokens": "1T", "spares": 0, "repair": "5d")", R"(, "tokens": "1T", "maintenance": "1d/10d")"})
    EXPECT_GT(run_of(more).run->expected.number(), usual) << more;
  for (const char* more : {R"(, "tokens": "1T", "mtbf": "none")", R"(, "tokens": "1T", "evaluation": "none")",
                           R"(, "tokens": "1T", "checkpoint": "async")"})
    EXPECT_LT(run_of(more).run->expected.number(), usual) << more;
}

TEST(Run, UnitsOfMtbf) {
  const double day = 86400;
  EXPECT_DOUBLE_EQ(run_of(R"(, "tokens": "1T", "mtbf": "2d")").run->mtbf->number(), 2 * day);
  EXPECT_DOUBLE_EQ(run_of(R"(, "tokens": "1T", "mtbf": "64d/node")").run->mtbf->number(), 2 * day);
  EXPECT_DOUBLE_EQ(run_of(R"(, "tokens": "1T", "mtbf": "512d/gpu")").run->mtbf->number(), 2 * day);
  EXPECT_FALSE(run_of(R"(, "tokens": "1T", "mtbf": "none")").run->mtbf.has_value());
}

TEST(Run, MoneyAndEnergy) {
  const Estimate e = run_of(R"(, "tokens": "1T", "price": 2.5, "watts": 1000, "pue": 1.2, "grid": 400)");
  const double hours = e.run->p50.number() * 256 / 3600;
  EXPECT_DOUBLE_EQ(e.run->gpu_hours.number(), hours);
  EXPECT_DOUBLE_EQ(e.run->cost->number(), hours * 2.5);
  EXPECT_NEAR(e.run->energy_kwh->number(), hours * 1.2, hours * 1e-12);
  EXPECT_NEAR(e.run->co2_kg->number(), hours * 1.2 * 0.4, hours * 1e-12);
  const Estimate spares = run_of(R"(, "tokens": "1T", "price": 2.5, "spares": 2, "repair": "1d")");
  EXPECT_DOUBLE_EQ(spares.run->gpu_hours.number(), spares.run->p50.number() * (256 + 16) / 3600);
  // LLaMA 65B: 1,022,362 h of 400 W at PUE 1.1 and 385 g/kWh are 449 MWh and 173 t (arXiv 2302.13971 table 15).
  const Estimate llama = run_of(R"(, "tokens": "1T", "watts": 400, "pue": 1.1, "grid": "us")");
  const double of_llama = 1022362 / llama.run->gpu_hours.number() / 1000;
  EXPECT_NEAR(llama.run->energy_kwh->number() * of_llama, 449, 1);
  EXPECT_NEAR(llama.run->co2_kg->number() * of_llama, 173, 0.5);
}

TEST(Run, AnUnknownPriceIsSaid) {
  const Result<Problem> p =
      pose(*request_from_json(R"({"model": "llama3-8b", "on": "64xmi300x", "tp": 1, "tokens": "1T", "mfu": 0.3})"),
           catalogues());
  ASSERT_TRUE(p.ok()) << p.error().text();
  const Estimate e = estimate<double>(p->analysed, p->cluster);
  EXPECT_FALSE(e.run->cost.has_value());
  EXPECT_TRUE(estimate_json_value(e)["run"]["cost_usd"].is_null());
  bool said = false;
  for (const std::string& w : e.warnings) said |= w.find("no cost") != std::string::npos;
  EXPECT_TRUE(said);
}

TEST(Run, FineTuningFollowsFromSamples) {
  const char* tuning =
      R"({"model": "llama3-8b", "on": "8xh100-sxm", "tp": 1, "samples": 52000, "epochs": 3, "max_length": 2048, "mean_length": 512)";
  const auto steps = [&](const std::string& more) {
    const Result<Problem> p = pose(*request_from_json(tuning + more + "}"), catalogues());
    EXPECT_TRUE(p.ok()) << (p.ok() ? "" : p.error().text());
    return p ? estimate<double>(p->analysed, p->cluster) : Estimate{};
  };
  const Estimate padded = steps(R"(, "packing": "off")"), packed = steps(R"(, "packing": "on")");
  EXPECT_EQ(padded.recipe.seq, 2048);
  EXPECT_EQ(padded.recipe.global_batch, 64);
  EXPECT_EQ(padded.run->steps, (52000 * 3 + 63) / 64);
  EXPECT_EQ(packed.run->steps, static_cast<int>(std::ceil(52000.0 * 3 * 512 / 2048 / 64)));
  EXPECT_EQ(padded.run->tokens.number(), 52000.0 * 3 * 512);
}

// At a given MFU every layout takes as long: the one that is taken is the one without it.
TEST(Run, AGivenMfuDoesNotChooseTheLayout) {
  const auto layout = [](const std::string& more) {
    const Result<Problem> p =
        pose(*request_from_json(R"({"model": "llama3-8b", "on": "64xh100-sxm")" + more + "}"), catalogues());
    EXPECT_TRUE(p.ok()) << (p.ok() ? "" : p.error().text());
    return p ? p->analysed.recipe : Recipe{};
  };
  const Recipe predicted = layout(""), given = layout(R"(, "mfu": "40%")");
  EXPECT_EQ(given.layout.tp, predicted.layout.tp);
  EXPECT_EQ(given.layout.pp, predicted.layout.pp);
  EXPECT_EQ(given.layout.dp, predicted.layout.dp);
  EXPECT_EQ(given.micro_batch, predicted.micro_batch);
  EXPECT_TRUE(given.mfu.has_value());
}

// Shorter samples, less attention: never more time, and none where a sample fills the sequence.
TEST(Run, PackedSamplesAttendWithinThemselves) {
  const auto attention = [](const std::string& more) {
    const Result<Problem> p =
        pose(*request_from_json(R"({"model": "llama3-8b", "on": "8xh100-sxm", "tp": 1, "seq": 8192)" + more + "}"),
             catalogues());
    EXPECT_TRUE(p.ok()) << (p.ok() ? "" : p.error().text());
    const Estimate e = p ? estimate<double>(p->analysed, p->cluster) : Estimate{};
    const nlohmann::json step = estimate_json_value(e)["step"];
    return step["breakdown"]["attention"].get<double>();
  };
  const double whole = attention(R"(, "samples": 1000000)");
  double before = whole;
  for (const char* mean : {"8192", "4096", "1000", "200", "20"}) {
    const double now = attention(std::string(R"(, "samples": 1000000, "packing": "on", "mean_length": )") + mean);
    EXPECT_LE(now, before) << mean;
    before = now;
  }
  EXPECT_LT(before, 0.2 * whole);
  EXPECT_EQ(attention(R"(, "samples": 1000000, "packing": "on")"), whole);
  EXPECT_EQ(attention(R"(, "samples": 1000000, "packing": "off", "mean_length": 200)"), whole);
}

TEST(Run, ChinchillaIsTwentyTokensAParameter) {
  const Estimate e = run_of(R"(, "tokens": "chinchilla")");
  EXPECT_EQ(e.run->tokens.number(), 20 * e.model.params_active.real());
  bool said = false;
  for (const std::string& a : e.recipe.assumed) said |= a.starts_with("tokens=") && a.find("aid") != std::string::npos;
  EXPECT_TRUE(said);
}

// A phase of longer sequences is a run of its own recipe: its steps and tokens add up.
TEST(Run, LongerSequencesAtTheEnd) {
  const Estimate plain = run_of(kTokens);
  const Estimate more = run_of(R"(, "tokens": "1T", "then_seq": "32768:100B")");
  const Estimate two = run_of(R"(, "tokens": "1T", "then_seq": "32768:100B,65536:50B")");
  EXPECT_EQ(more.run->tokens.number(), 1.1e12);
  EXPECT_EQ(two.run->tokens.number(), 1.15e12);
  const double step_tokens = 8192.0 * 512;
  EXPECT_EQ(more.run->steps, plain.run->steps + static_cast<std::int64_t>(std::ceil(1e11 / step_tokens)));
  EXPECT_GT(more.run->ideal.number(), plain.run->ideal.number());
  EXPECT_GT(two.run->ideal.number(), more.run->ideal.number());
  // Predicted steps, none given: longer sequences have more attention, so a token takes longer.
  const auto ideal = [&](const std::string& more_keys) {
    const Result<Problem> p = pose(
        *request_from_json(
            R"({"model": "llama3-8b", "on": "256xh100-sxm", "tp": 2, "seq": 8192, "global_batch": 512, "tokens": "1T")" +
            more_keys + "}"),
        catalogues());
    EXPECT_TRUE(p.ok()) << (p.ok() ? "" : p.error().text());
    return p ? estimate<double>(p->analysed, p->cluster).run->ideal.number() : 0;
  };
  EXPECT_GT(ideal(R"(, "then_seq": "131072:1T")"), 2 * ideal(""));
}

TEST(Run, CheckpointsThatAreKeptCostStorage) {
  const Estimate one = run_of(kTokens);
  const Estimate ten = run_of(R"(, "tokens": "1T", "keep": 10, "storage_price": 23)");
  ASSERT_TRUE(one.run->storage && ten.run->storage);
  const double months = ten.run->p50.number() / 86400 / 365 * 12;
  EXPECT_NEAR(ten.run->storage->number(), 10 * ten.memory.checkpoint->number() / 1e12 * 23 * months, 1e-6);
  EXPECT_NEAR(ten.run->storage->number(), 10 * one.run->storage->number(), 1e-6);
  EXPECT_FALSE(run_of(R"(, "tokens": "1T", "checkpoint": "none")").run->storage.has_value());
}

TEST(Run, RefusalsAreClear) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(, "tokens": "1T", "then_seq": "32768")", "--then-seq: '32768' has not two parts"},
      {R"(, "tokens": "1T", "then_seq": "32768:1T,")", "--then-seq: '' has not two parts"},
      {R"(, "tokens": "1T", "then_seq": "0:1T")", "--then-seq: a phase of no sequence"},
      {R"(, "tokens": "1T", "then_seq": "8192:10")", "--then-seq: a phase of no sequence"},
      {R"(, "tokens": "1T", "then_seq": "5000001:1T")", "--then-seq"},
      {R"(, "tokens": "1T", "checkpoint": "none", "keep": 2)", "--keep: no checkpoints are written"},
      {R"(, "tokens": "1T", "storage_price": -2)", "--storage-price"},
      {R"(, "tokens": "1T", "mtbf": "0s")", "--mtbf: no time at all between failures"},
      {R"(, "tokens": "1T", "mtbf": "1h/rack")", "--mtbf: a time per 'rack'"},
      {R"(, "tokens": "1T", "mtbf": "30s")", "hardly ever get anywhere"},
      {R"(, "tokens": "1T", "checkpoint_every": "1s")", "longer than the 1 s between saves"},
      {R"(, "tokens": "1T", "checkpoint": "async", "checkpoint_every": "1s")", "between saves"},
      {R"(, "tokens": "1T", "checkpoint_every": "0")", "no steps between saves"},
      {R"(, "tokens": "1T", "checkpoint": "none", "checkpoint_every": "10m")", "nothing is saved"},
      {R"(, "tokens": "1T", "checkpoint": "often")", "--checkpoint"},
      {R"(, "tokens": "1T", "checkpoint_bandwidth": "0GB/s")", "no bandwidth"},
      {R"(, "tokens": "1T", "checkpoint_stall": "1s")", "--checkpoint async"},
      {R"(, "tokens": "1T", "price": "-1")", "negative"},
      {R"(, "tokens": "1T", "price": "cheap")", "--price"},
      {R"(, "tokens": "1T", "budget": "0")", "no money"},
      {R"(, "tokens": "1T", "within": "0d")", "a time of 0"},
      {R"(, "tokens": "1T", "start": "2026-02-29")", "is no day"},
      {R"(, "tokens": "1T", "start": "tomorrow")", "is no day"},
      {R"(, "tokens": "1T", "seed": "-1")", "--seed"},
      {R"(, "tokens": "1T", "pue": "0.9")", "1 to 5"},
      {R"(, "tokens": "1T", "grid": "atlantis")", "atlantis"},
      {R"(, "tokens": "1T", "spares": 3)", "--repair"},
      {R"(, "tokens": "1T", "repair": "1d")", "--spares"},
      {R"(, "tokens": "1T", "maintenance": "5d/1d")", "--maintenance"},
      {R"(, "tokens": "1T", "maintenance": "5d")", "how often"},
      {R"(, "tokens": "1T", "evaluation": "10m/0")", "--evaluation"},
      {R"(, "tokens": "1T", "evaluation": "150%")", "--evaluation"},
      {R"(, "tokens": "1T", "stragglers": "2")", "--stragglers"},
      {R"(, "tokens": "1T", "practice": "1:2")", "--practice: '1:2' has not three parts"},
      {R"(, "tokens": "1T", "practice": "1:nan:2")", "--practice"},
      {R"(, "tokens": "1T", "practice": "0:1:2")", "--practice: factors that do not rise"},
      {R"(, "tokens": "1T", "practice": "1.1:1:2")", "--practice: factors that do not rise"},
      {R"(, "tokens": "1T", "practice": "1:1:1000")", "--practice: factors that do not rise"},
      {R"(, "tokens": "1T", "batch_ramp": "16")", "--batch-ramp"},
      {R"(, "tokens": "1T", "batch_ramp": "100:128:100000")", "--batch-ramp"},
      {R"(, "tokens": "1T", "batch_ramp": "128:128:100T")", "--batch-ramp"},
      {R"(, "tokens": "1T", "watts": 0)", "--watts"},
      {R"(, "tokens": "1T", "samples": 5)", "--tokens is given"},
      {R"(, "price": 2)", "no --tokens"},
      {R"(, "epochs": 2)", "--samples"},
      {R"(, "samples": 10)", "less than one step"},
      {R"(, "samples": 10000, "mean_length": 9000)", "longer than the sequence"},
      {R"(, "samples": 10000, "max_length": 9000)", "--max-length"},
      {R"(, "samples": 10000, "epochs": 0)", "no epochs"},
      {R"(, "tokens": "0")", "no tokens"}};
  for (const auto& [more, says] : cases)
    EXPECT_NE(refusal(more).find(says), std::string::npos) << more << ": " << refusal(more);
}

TEST(Run, LimitsAndDates) {
  const Estimate e = run_of(R"(, "tokens": "1T", "start": "2026-03-01", "within": "1d", "budget": "100M$")");
  const std::string text = run_text(e);
  EXPECT_NE(text.find("NOT within the limit"), std::string::npos) << text;
  EXPECT_NE(text.find("within the budget"), std::string::npos) << text;
  const nlohmann::json json = estimate_json_value(e);
  EXPECT_EQ(json["run"]["start"], "2026-03-01");
  EXPECT_EQ(json["run"]["end"]["p50"], date_text({2026, 3, 1}, e.run->p50.number()));
  EXPECT_EQ(json["recipe"]["start"], "2026-03-01");
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    EXPECT_LE(end - from, 80U) << text.substr(from, end - from);
    from = end + 1;
  }
}

TEST(Calendar, DaysAfter) {
  EXPECT_EQ(date_text({2026, 3, 1}, 0), "2026-03-01");
  EXPECT_EQ(date_text({2024, 2, 28}, 86400), "2024-02-29");
  EXPECT_EQ(date_text({2023, 2, 28}, 86400 * 1.5), "2023-03-01");
  EXPECT_EQ(date_text({2026, 12, 31}, 86400), "2027-01-01");
  EXPECT_EQ(date_text({1970, 1, 1}, 86400.0 * 20000), "2024-10-04");
  EXPECT_EQ(date_text({2026, 1, 1}, 1e300), "");
}

TEST(RunData, EveryFigureHasASourceAndOverlaysReplace) {
  const RunData& data = catalogues().run;
  for (const auto& [key, value] : data.defaults) EXPECT_FALSE(value.source.empty()) << key;
  for (const Price& p : data.prices) {
    EXPECT_FALSE(p.source.empty() || p.date.empty()) << p.gpu;
    EXPECT_TRUE(catalogues().machines.gpu(p.gpu).ok()) << p.gpu;
    EXPECT_EQ((*catalogues().machines.gpu(p.gpu))->id, p.gpu);
  }
  EXPECT_FALSE(RunData::load({{"prices.csv", "gpu,kind,usd,date,source\nh100-sxm,on-demand,2,2026-01,\n"}}).ok());
  EXPECT_FALSE(RunData::load({{"prices.csv", "gpu,kind,usd,date,source\nh100-sxm,on-demand,-2,2026-01,x\n"}}).ok());
  const auto own = RunData::load({{"prices.csv", "gpu,kind,usd,date,source\nh100-sxm,on-demand,2,2026-01,ours\n"}});
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->price("h100-sxm", "on-demand")->usd, 2);
}

TEST(Run, TheIntervalsCurveHasItsLeastAtTheChosenOne) {
  const Result<Problem> p = posed(kTokens);
  ASSERT_TRUE(p.ok());
  const Estimate e = estimate<double>(p->analysed, p->cluster);
  const IntervalCurve curve = interval_curve(p->analysed, p->cluster, e);
  ASSERT_FALSE(curve.points.empty());
  double least = curve.points[0].stretch;
  for (const CurvePoint& point : curve.points) least = std::min(least, point.stretch);
  EXPECT_NEAR(stretch(curve.chosen, curve.save, curve.pending, curve.hazard) / least, 1, 1e-3);
  EXPECT_NEAR(curve.chosen, e.run->interval->number(), 1e-9);
}

}  // namespace
}  // namespace preflop
