#include "src/adapt/plan_offer.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "src/adapt/question.hpp"
#include "src/base/text.hpp"
#include "src/run/estimate.hpp"
#include "src/run/forecast.hpp"

namespace preflop {

namespace {

Result<Estimate> estimate_of(const Offer& offer, const Found& found) {
  auto analysed = analyse_plan(offer.question, offer.space, found.priced.ordinal);
  if (!analysed) return analysed.error();
  assume_planned(offer.question, analysed->recipe, "planned");
  return estimate<double>(*analysed, offer.question.cluster);
}

// Do two plans differ in what a table of plans shows? Of those that do not, the best stands for all.
bool same_shape(const Recipe& a, const Recipe& b) {
  const auto shape = [](const Recipe& r) {
    const Layout& l = r.layout;
    return std::tuple(l.tp, l.cp, l.pp, l.vpp, l.dp, l.ep, l.etp, l.zero, r.micro_batch, r.recompute.kind,
                      r.recompute.modules);
  };
  return shape(a) == shape(b);
}

// Largest first by what the objective compares between clusters.
double cost_of(Objective objective, const Estimate& e) {
  const double seconds = e.step ? e.step->seconds.number() /
                                      (static_cast<double>(e.recipe.global_batch) * static_cast<double>(e.recipe.seq))
                                : 0;
  const double gpus = static_cast<double>(e.cluster.gpus);
  const StageMemory<double>& peak = e.memory.stages[e.memory.peak_stage];
  switch (objective) {
    case Objective::gpus:
      return gpus;
    case Objective::cost:
    case Objective::gpu_hours:
      return seconds * gpus;
    case Objective::energy:
      return seconds * gpus * e.cluster.datum("tdp_watts").value.value_or(1);
    case Objective::memory:
      return (peak.allocated + peak.context).number();
    case Objective::micro_batch:
      return -static_cast<double>(e.recipe.micro_batch);
    case Objective::seq:
      return -static_cast<double>(e.recipe.seq);
    case Objective::time:
      break;
  }
  return seconds;
}

std::optional<double> dollars_of(const Estimate& e) {
  return e.run && e.run->cost ? std::optional(e.run->cost->number()) : std::nullopt;
}

void mark_front(Plan& plan) {
  for (std::size_t i = 0; i < plan.clusters.size(); ++i) {
    const auto beats = [&](const Estimate& a, const Estimate& b) {
      const double ta = cost_of(Objective::time, a), tb = cost_of(Objective::time, b);
      const std::optional<double> ca = dollars_of(a), cb = dollars_of(b);
      const bool cheaper = ca && cb && *ca < *cb, dearer = ca && cb && *ca > *cb;
      return a.cluster.gpus <= b.cluster.gpus && ta <= tb && !dearer &&
             (a.cluster.gpus < b.cluster.gpus || ta < tb || cheaper);
    };
    bool beaten = false;
    for (const Estimate& other : plan.clusters) beaten = beaten || beats(other, plan.clusters[i]);
    if (!beaten) plan.pareto.push_back(i);
  }
}

}  // namespace

Limits step_limits(const PlanAsk& asked, const Question& q) {
  Limits out;
  out.allow_tight = asked.limits.allow_tight;
  out.device_bytes = asked.limits.max_memory.value_or(0);
  if (!q.recipe.tokens || (!asked.limits.within && !asked.limits.budget)) return out;
  // The whole run must end in time, and for the money: a step takes at most this.
  double run = asked.limits.within.value_or(std::numeric_limits<double>::infinity());
  if (asked.limits.budget && q.recipe.run.price) {
    constexpr double kHour = 3600;
    const double per_second = q.recipe.run.price->value * static_cast<double>(q.cluster.gpus) / kHour;
    run = std::min(run, *asked.limits.budget / per_second);
  }
  const Recipe& r = q.recipe;
  const double checkpoint = summarise(*q.model).params_total.real() *
                            (width(r.weight_dtype) + width(r.master_dtype) + 2 * width(r.moment_dtype));
  const double steps =
      std::ceil(*q.recipe.tokens / (static_cast<double>(q.recipe.global_batch) * static_cast<double>(q.recipe.seq)));
  out.seconds = run / (steps * usual_stretch(r.run, q.cluster, checkpoint));
  return out;
}

Result<std::unique_ptr<Offer>> pose_offer(const Request& request, const Catalogues& catalogues) {
  auto out = std::make_unique<Offer>();
  auto drafted = draft(request, catalogues);
  if (!drafted) return drafted.error();
  out->draft = std::move(drafted).value();
  auto question = ask(request, out->draft);
  if (!question) return question.error();
  out->question = std::move(question).value();
  if (Status s = prepare(out->question); !s) return s.error();
  out->space = make_space(out->question);
  return out;
}

Result<std::vector<Estimate>> best_of(const Offer& offer, std::size_t top) {
  std::vector<Recipe> shapes;
  std::vector<Estimate> out;
  for (const Found& found : offer.found.best) {
    if (out.size() == top) break;
    const auto recipe = recipe_at(offer.question, offer.space, offer.space.position(found.priced.ordinal));
    if (!recipe || std::any_of(shapes.begin(), shapes.end(), [&](const Recipe& r) { return same_shape(r, *recipe); }))
      continue;
    shapes.push_back(*recipe);
    auto e = estimate_of(offer, found);
    if (!e) return e.error();
    out.push_back(std::move(e).value());
  }
  return out;
}

void add_space(SpaceReport& sum, const SearchResult& found) {
  const SpaceReport one = report(found);
  sum.space += one.space;
  sum.pruned += one.pruned;
  sum.checked += one.checked;
  sum.priced += one.priced;
  if (sum.rejected.empty()) {
    sum.rejected = one.rejected;
    return;
  }
  for (const SpaceReport::Rejected& r : one.rejected) {
    const auto same =
        std::find_if(sum.rejected.begin(), sum.rejected.end(), [&](const auto& s) { return s.reason == r.reason; });
    if (same == sum.rejected.end())
      sum.rejected.push_back(r);
    else
      same->count += r.count;
  }
  std::stable_sort(sum.rejected.begin(), sum.rejected.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
}

namespace {

std::string dollars(double usd) { return "$" + text::count(std::round(usd)); }

// What a layout misses of what was asked, in words, and how many times too large it is.
struct Miss {
  std::string why;
  double times = 0;
};

Miss miss_of_run(const Estimate& e, const PlanLimits& limits) {
  Miss out{"slower than the limit", 1};
  if (!e.run) return out;
  const auto consider = [&](double has, double most, const std::string& why) {
    if (most > 0 && has / most > out.times) out = {why, has / most};
  };
  if (limits.within) {
    const double run = e.run->p50.number();
    consider(run, *limits.within, text::seconds(run) + " for the run, --within " + text::seconds(*limits.within));
  }
  if (limits.budget && e.run->cost) {
    const double cost = e.run->cost->number() / e.run->expected.number() * e.run->p50.number();
    consider(cost, *limits.budget, dollars(cost) + " for the run, --budget " + dollars(*limits.budget));
  }
  return out;
}

Miss miss_of_memory(const Estimate& e, const PlanLimits& limits) {
  const StageMemory<double>& peak = e.memory.stages[e.memory.peak_stage];
  const double margin = e.memory.margin ? e.memory.margin->number() : 0;
  if (margin < 0)
    return {"short of memory by " + text::gib(-margin),
            (peak.allocated + peak.context).number() / e.memory.capacity->number()};
  const double device = peak.device.number(), most = limits.max_memory.value_or(0);
  if (most > 0 && device > most)
    return {text::gib(device) + " on the device, --max-memory " + text::gib(most), device / most};
  return {"fits, but tightly (--allow-tight)", 1};
}

}  // namespace

void keep_nearest_of(Plan& plan, const Offer& offer) {
  const bool slow = offer.found.slow.has_value();
  const std::optional<Found>& near = slow                ? offer.found.slow
                                     : offer.found.tight ? offer.found.tight
                                                         : offer.found.nearest;
  if (!near) return;
  const auto e = estimate_of(offer, *near);
  if (!e) return;
  const Miss miss = slow ? miss_of_run(*e, plan.limits) : miss_of_memory(*e, plan.limits);
  if (plan.nearest && plan.nearest_times <= miss.times) return;
  plan.nearest = *e;
  plan.nearest_why = miss.why;
  plan.nearest_times = miss.times;
}

void keep_cluster(Plan& plan, const Estimate& best) {
  for (Estimate& known : plan.clusters) {
    if (known.cluster.gpus != best.cluster.gpus || known.cluster.gpu.id != best.cluster.gpu.id) continue;
    if (best.step && (!known.step || cost_of(plan.objective, best) < cost_of(plan.objective, known))) known = best;
    return;
  }
  plan.clusters.push_back(best);
}

void choose(Plan& plan, std::size_t top) {
  const auto timed = [](const Estimate& e) { return e.step.has_value(); };
  if (std::any_of(plan.plans.begin(), plan.plans.end(), timed)) std::erase_if(plan.plans, std::not_fn(timed));
  std::stable_sort(plan.plans.begin(), plan.plans.end(), [&](const Estimate& a, const Estimate& b) {
    return cost_of(plan.objective, a) < cost_of(plan.objective, b);
  });
  if (plan.plans.size() > top) plan.plans.resize(top);
  mark_front(plan);
}

}  // namespace preflop
