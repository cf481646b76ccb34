#include "src/run/forecast.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/math.hpp"
#include "src/base/text.hpp"
#include "src/run/napkin.hpp"
#include "src/run/safety.hpp"
#include "src/run/simulate.hpp"
#include "src/run/sourced.hpp"
#include "src/step/compute.hpp"
#include "src/step/time.hpp"

namespace preflop {

namespace {

template <class N>
void put(RunEstimate<N>& out, RunLoss loss, const N& seconds, const char* label) {
  out.losses[static_cast<int>(loss)] = named(Seconds<N>(seconds), label, "s");
}

// What planned interruptions cost: maintenance by the clock, or a share of the unplanned ones.
template <class N>
N planned(const RunPlan<N>& plan, const RunSettings& s, const N& running, const N& count) {
  if (s.maintenance_every)
    return running / take<N>(*s.maintenance_every, "time between maintenance", "s") *
           take<N>(*s.maintenance_takes, "maintenance", "s");
  return count * take<N>(s.planned, "planned interruptions for each unplanned one", "") *
         (plan.safety.restart + plan.safety.loading);
}

// What failures and saves cost, in the closed form of src/run/interruptions.
template <class N>
void put_interruptions(RunEstimate<N>& out, const RunPlan<N>& plan, const RunSettings& s) {
  const Safety<N>& safety = plan.safety;
  const Segments& segments = plan.interval.segments;
  const N saves = leaf<N>(segments.count, [] { return Origin{"saves", "", "one at the end of each interval", {}}; });
  const N saving = s.saving == Saving::none ? N(0.0) : saves * safety.save;
  put(out, RunLoss::checkpoints, saving, "checkpoints");
  const double grows = mean_running(segments, safety.hazard.mtbf) / (segments.count * segments.length());
  const N repeated = leaf<N>(grows, [&] {
    return Origin{"running over useful time",
                  "",
                  "mean over interruptions of segments of " + text::seconds(segments.length()) +
                      " (Daly 2006, src/run/interruptions.hpp)",
                  {}};
  });
  const N useful = plan.work.training.number() + saving;
  const N running = named(useful * repeated, "running time, repeated work included", "s");
  put(out, RunLoss::lost_work, running - useful, "work done again");
  const N count = named(running * safety.rate, "interruptions", "");
  out.interruptions = Ratio<N>(count);
  const Restart& restart = safety.hazard.restart;
  const double mean = restart.seconds + restart.share * restart.waiting;
  const N again = leaf<N>(mean > 0 ? mean_recovery(safety.hazard) / mean : 1, [] {
    return Origin{"attempts a restart", "", "restarts can be interrupted, too (src/run/interruptions.hpp)", {}};
  });
  const N attempts = named(count * again, "restarts", "");
  put(out, RunLoss::detection, attempts * safety.detection, "detection");
  put(out, RunLoss::restart, attempts * safety.restart, "restarting");
  put(out, RunLoss::loading, attempts * safety.loading, "loading checkpoints");
  const N wait = leaf<N>(safety.wait.share * safety.wait.seconds, [] {
    return Origin{"wait for a node", "s", "share of failures without a spare x time until one is repaired", {}};
  });
  put(out, RunLoss::spares, attempts * wait, "waiting for nodes");
  put(out, RunLoss::planned, planned(plan, s, running, count), "planned interruptions");
}

// The band of the step time as factors of its centre, where there is one.
template <class N>
Uncertainty uncertainty_of(const StepEstimate<N>& step, const RunSettings& s) {
  Uncertainty out;
  out.rate_spread = s.mtbf ? 0 : s.spread;
  out.practice_low = s.practice.low;
  out.practice_median = s.practice.median;
  out.practice_high = s.practice.high;
  if (step.low && step.high) {
    out.step_low = plain(step.low->number()) / plain(step.seconds.number());
    out.step_high = plain(step.high->number()) / plain(step.seconds.number());
  }
  return out;
}

template <class N>
RunModel model_of(const RunPlan<N>& plan, const RunEstimate<N>& run, const RunSettings& s) {
  RunModel out;
  out.startup = plain(run.losses[static_cast<int>(RunLoss::startup)].number());
  out.segments = plan.interval.segments;
  out.hazard = plan.safety.hazard;
  if (s.maintenance_every) {
    out.planned_rate = 1 / s.maintenance_every->value;
    out.planned_seconds = s.maintenance_takes->value;
  } else {
    out.planned_rate = plain(plan.safety.rate) * s.planned.value;
    out.planned_seconds = plain(plan.safety.restart) + plain(plan.safety.loading);
  }
  return out;
}

// Fewer runs where each has very many interruptions: their number then varies little.
int runs_of(const RunSettings& s, double interruptions) {
  constexpr double kEvents = 3e5;
  constexpr double kLeast = 200;
  return static_cast<int>(std::min<double>(s.runs, std::max(kLeast, kEvents / (interruptions + 1))));
}

template <class N>
void put_finish(RunEstimate<N>& out, const RunPlan<N>& plan, const StepEstimate<N>& step, const RunSettings& s,
                SharedDraws* shared) {
  const int runs = runs_of(s, plain(out.interruptions.number()));
  const std::vector<double> all = simulate(model_of(plan, out, s), uncertainty_of(step, s), s.seed, runs, shared);
  for (int percent = 1; percent < 100; ++percent) out.finish.push_back(quantile(all, percent / 100.0));
  const auto at = [&](int percent, const char* label) {
    return Seconds<N>(leaf<N>(out.finish[static_cast<std::size_t>(percent - 1)], [&] {
      return Origin{label, "s", "", text::grouped(runs) + " simulated runs, seed " + std::to_string(s.seed)};
    }));
  };
  out.p10 = at(10, "10 % quantile");
  out.p50 = at(50, "median");
  out.p90 = at(90, "90 % quantile");
}

// Of a run as long as the median: limits and objectives go by it, too.
template <class N>
void put_money(RunEstimate<N>& out, const Cluster& cluster, const RunSettings& s,
               const std::optional<Bytes<N>>& checkpoint) {
  constexpr double kJoulesPerKwh = 3.6e6;
  const N gpus = leaf<N>(static_cast<double>(cluster.gpus), [] { return Origin{"GPUs", "", "--on", {}}; });
  N paid = gpus;
  if (s.spares)
    paid = gpus + leaf<N>(s.spares->value * static_cast<double>(cluster.gpus_per_node),
                          [] { return Origin{"GPUs held ready", "", "--spares", {}}; });
  out.gpu_hours = Ratio<N>(named(out.p50.number() * paid / N(kSecondsPerHour), "GPU-hours", "h"));
  if (s.price)
    out.cost = Usd<N>(named(out.gpu_hours.number() * take<N>(*s.price, "price of a GPU-hour", "USD/h"), "cost", "USD"));
  if (s.storage && checkpoint && s.saving != Saving::none) {
    const N bytes = checkpoint->number() * leaf<N>(s.kept, [] { return Origin{"checkpoints kept", "", "--keep", {}}; });
    out.storage = Usd<N>(named(bytes * out.p50.number() * take<N>(*s.storage, "price of storage", "USD/B/s"),
                               "storage of checkpoints", "USD"));
  }
  if (!s.watts) return;
  const N joules = out.p50.number() * gpus * take<N>(*s.watts, "watts of a GPU and its share of the host", "W") *
                   take<N>(s.pue, "PUE: all of the site's power over that of its machines", "");
  out.energy_kwh = Ratio<N>(named(joules / N(kJoulesPerKwh), "energy", "kWh"));
  out.co2_kg = Ratio<N>(named(out.energy_kwh->number() * take<N>(s.grid, "CO2e of a kWh", "kg/kWh"), "CO2e", "kg"));
}

}  // namespace

const char* name(RunLoss loss) {
  static constexpr const char* kNames[kRunLosses] = {"startup",    "ramp",        "data_stalls", "stragglers",
                                                     "evaluation", "checkpoints", "lost_work",   "detection",
                                                     "restart",    "loading",     "spares",      "planned"};
  return kNames[static_cast<int>(loss)];
}

template <class N>
RunEstimate<N> forecast(const Analysed& a, const Cluster& cluster, const EstimateOf<N>& e, SharedDraws* shared) {
  const RunSettings& s = a.recipe.run;
  const RunPlan<N> plan = plan_run<N>(a, cluster, *e.step, e.memory.checkpoint);
  RunEstimate<N> out;
  double tokens = *a.recipe.tokens;
  for (const SequencePhase& phase : s.then) tokens += phase.tokens;
  out.tokens = Tokens<N>(leaf<N>(tokens, [&] {
    return Origin{"tokens", "tokens", s.then.empty() ? "--tokens" : "--tokens, and those of --then-seq", {}};
  }));
  out.steps = plan.work.steps;
  out.ideal = plan.work.ideal;
  put(out, RunLoss::startup, plan.safety.restart, "first start");
  put(out, RunLoss::ramp, plan.work.ramp.number(), "batch ramp");
  put(out, RunLoss::data_stalls, plan.work.data_stalls.number(), "data stalls");
  put(out, RunLoss::stragglers, plan.work.stragglers.number(), "stragglers");
  put(out, RunLoss::evaluation, plan.work.evaluation.number(), "evaluation");
  put_interruptions(out, plan, s);
  std::vector<N> parts = {out.ideal.number()};
  for (const Seconds<N>& loss : out.losses) parts.push_back(loss.number());
  out.expected = Seconds<N>(named(total(parts), "expected time", "s"));
  out.effective = Ratio<N>(named(out.ideal.number() / out.expected.number(), "effective training time", ""));
  if (plain(plan.safety.rate) > 0)
    out.mtbf = Seconds<N>(named(N(1.0) / plan.safety.rate, "time between interruptions", "s"));
  if (s.saving != Saving::none)
    out.interval = Seconds<N>(leaf<N>(plan.interval.segments.work, [&] {
      const bool given = s.interval_seconds || s.interval_steps;
      return Origin{"training between saves", "s", given ? "--checkpoint-every" : "the least loss, in whole steps", {}};
    }));
  put_finish(out, plan, *e.step, s, shared);
  put_money(out, cluster, s, e.memory.checkpoint);
  return out;
}
template RunEstimate<double> forecast<double>(const Analysed&, const Cluster&, const EstimateOf<double>&, SharedDraws*);
template RunEstimate<Traced> forecast<Traced>(const Analysed&, const Cluster&, const EstimateOf<Traced>&, SharedDraws*);

namespace {

Status check_ramp(const Analysed& a) {
  const Recipe& r = a.recipe;
  const BatchRamp& ramp = *r.run.ramp;
  if (ramp.start >= r.global_batch || (r.global_batch - ramp.start) % ramp.increment != 0)
    return Error{"--batch-ramp",
                 "steps of " + std::to_string(ramp.increment) + " from " + std::to_string(ramp.start) +
                     " do not lead to the global batch of " + std::to_string(r.global_batch),
                 "a start below it, and an increment that divides the difference"};
  if (static_cast<double>(ramp.samples) > *r.tokens / static_cast<double>(r.seq))
    return Error{"--batch-ramp", "more samples than the run has", "fewer samples"};
  const Result<Analysed> first = ramp_recipe(a);
  if (!first) return Error{"--batch-ramp", "its first batch: " + first.error().what, first.error().valid};
  return Nothing{};
}

}  // namespace

Status check_run(const Analysed& a, const Cluster& cluster) {
  constexpr double kMostStretch = 100;
  const RunSettings& s = a.recipe.run;
  if (s.ramp) {
    if (Status ramp = check_ramp(a); !ramp) return ramp;
  }
  const auto compute = compute_estimate<double>(a, *find_convention("palm"));
  const auto step = step_estimate<double>(a, cluster, compute);
  if (!step) return Nothing{};
  const auto memory = memory_estimate<double>(a, cluster);
  const RunPlan<double> plan = plan_run<double>(a, cluster, *step, memory.checkpoint);
  if (plan.work.refused) return *plan.work.refused;
  const bool given = s.interval_seconds || s.interval_steps;
  const double takes = std::max(plan.safety.save, plan.safety.pending);
  if (given && takes > plan.interval.chosen)
    return Error{"--checkpoint-every",
                 "a save takes " + text::seconds(takes) + ", longer than the " + text::seconds(plan.interval.chosen) +
                     " between saves",
                 "a longer interval, or a higher --checkpoint-bandwidth"};
  const double useful = plan.work.training.number();
  if (mean_elapsed(plan.interval.segments, plan.safety.hazard) < kMostStretch * useful) return Nothing{};
  return Error{s.mtbf ? "--mtbf" : "--tokens",
               "an interruption every " + text::seconds(plan.safety.hazard.mtbf) + ", with restarts of " +
                   text::seconds(plan.safety.hazard.restart.seconds) + ": the run would hardly ever get anywhere",
               "a longer time between failures, shorter restarts or more frequent checkpoints"};
}

double usual_stretch(const RunSettings& s, const Cluster& cluster, double checkpoint_bytes) {
  const Safety<double> safety = safety_of<double>(s, cluster, Bytes<double>(checkpoint_bytes));
  const double training = 1 + s.data_stalls.value + s.stragglers.value + s.evaluation.value;
  constexpr double kMost = 1e8;  // seconds
  const double interval = s.saving == Saving::none ? kMost
                          : s.interval_seconds     ? *s.interval_seconds
                                                   : best_interval(safety.save, safety.pending, safety.hazard,
                                                                   std::max(1.0, safety.pending), kMost);
  const double planned = s.maintenance_every ? s.maintenance_takes->value / s.maintenance_every->value
                                             : safety.rate * s.planned.value * (safety.restart + safety.loading);
  return s.practice.median * training *
         (stretch(interval, safety.save, std::min(safety.pending, interval), safety.hazard) + planned);
}

IntervalCurve interval_curve(const Analysed& a, const Cluster& cluster, const Estimate& e) {
  IntervalCurve out;
  if (!e.step || !a.recipe.tokens || a.recipe.run.saving == Saving::none) return out;
  const RunPlan<double> plan = plan_run<double>(a, cluster, *e.step, e.memory.checkpoint);
  out.save = plan.safety.save;
  out.pending = plan.safety.pending;
  out.hazard = plan.safety.hazard;
  if (std::isinf(out.hazard.mtbf) || out.save <= 0) return out;
  out.young = young_interval(out.save, out.hazard.mtbf);
  out.daly = daly_interval(out.save, out.hazard.mtbf);
  out.best = plan.interval.best;
  out.chosen = plan.interval.segments.work;
  constexpr int kPoints = 61;
  constexpr double kRange = 10;  // from a tenth of the best to ten times it
  for (int i = 0; i < kPoints; ++i) {
    const double interval = out.best / kRange * math::pow(kRange * kRange, i / (kPoints - 1.0));
    out.points.push_back(
        {interval, out.save / interval, stretch(interval, out.save, std::min(out.pending, interval), out.hazard)});
  }
  return out;
}

}  // namespace preflop
