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
#include "src/search/seed.hpp"

namespace preflop {

namespace {

// Without the run's forecast, which takes longest, where nobody asks for it yet.
Result<Estimate> estimate_of(const Offer& offer, const Found& found, SharedDraws& draws, bool with_run = true) {
  auto analysed = analyse_plan(offer.question, offer.space, found.priced.ordinal);
  if (!analysed) return analysed.error();
  assume_planned(offer.question, analysed->recipe, "planned");
  if (!with_run) analysed->recipe.tokens.reset();
  Estimate out = estimate<double>(*analysed, offer.question.cluster, &draws);
  out.recipe.tokens = offer.question.recipe.tokens;
  return out;
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

double token_seconds(const Estimate& e) {
  const double tokens = static_cast<double>(e.recipe.global_batch) * static_cast<double>(e.recipe.seq);
  return e.step ? e.step->seconds.number() / tokens : 0;
}

// Least first, by what the objective compares between clusters: of the median run where its length is given, else of a
// token, whose cost is GPU time. A price or a power that is not known comes last.
double cost_of(Objective objective, const Estimate& e) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  const double gpus = static_cast<double>(e.cluster.gpus);
  const double seconds = e.run ? e.run->p50.number() : token_seconds(e);
  const StageMemory<double>& peak = e.memory.stages[e.memory.peak_stage];
  switch (objective) {
    case Objective::gpus:
      return gpus;
    case Objective::cost:
      if (e.run) return e.run->cost ? e.run->cost->number() : kUnknown;
      return seconds * gpus;
    case Objective::gpu_hours:
      return e.run ? e.run->gpu_hours.number() : seconds * gpus;
    case Objective::energy:
      if (e.run) return e.run->energy_kwh ? e.run->energy_kwh->number() : kUnknown;
      return seconds * gpus * e.cluster.datum("tdp_watts").value.value_or(kUnknown);
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

bool same_cluster(const Estimate& a, const Estimate& b) {
  return a.cluster.gpus == b.cluster.gpus && a.cluster.gpu.id == b.cluster.gpu.id;
}

// Of one cluster's plans the faster step is the shorter run; between clusters the runs of their best compare.
double order_of(const Plan& plan, const Estimate& e) {
  const Objective o = plan.objective;
  const bool by_seconds =
      o == Objective::time || o == Objective::cost || o == Objective::gpu_hours || o == Objective::energy;
  for (const Estimate& best : plan.clusters) {
    if (by_seconds && e.step && best.step && same_cluster(e, best))
      return cost_of(o, best) * (token_seconds(e) / token_seconds(best));
  }
  return cost_of(o, e);
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
    const std::optional<Sourced>& spares = q.recipe.run.spares;
    const double paid = static_cast<double>(q.cluster.gpus) +
                        (spares ? spares->value * static_cast<double>(q.cluster.gpus_per_node) : 0);
    const double per_second = q.recipe.run.price->value * paid / kHour;
    run = std::min(run, *asked.limits.budget / per_second);
  }
  const Recipe& r = q.recipe;
  const double checkpoint = summarise(*q.model).params_total.real() *
                            (width(r.weight_dtype) + width(r.master_dtype) + 2 * width(r.moment_dtype));
  const double steps =
      std::ceil(*q.recipe.tokens / (static_cast<double>(q.recipe.global_batch) * static_cast<double>(q.recipe.seq)));
  // The usual stretch is near the median's: what is a little slower is looked at, too, and best_of() decides.
  constexpr double kNear = 1.05;
  out.seconds = kNear * run / (steps * usual_stretch(r.run, q.cluster, checkpoint));
  return out;
}

Result<std::unique_ptr<Offer>> pose_offer(const Request& request, const Catalogues& catalogues) {
  auto out = std::make_unique<Offer>();
  out->request = request;
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

namespace {

std::string dollars(double usd) { return "$" + text::count(std::round(usd)); }

// What a layout misses of what was asked, in words, and how many times too large it is.
struct Miss {
  std::string why;
  double times = 0;
};

// By the median run; 1 or less: nothing is missed.
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
    const double cost = e.run->cost->number();
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

Result<std::vector<Estimate>> best_of(const Offer& offer, const PlanLimits& limits, std::size_t top,
                                      SharedDraws& draws) {
  std::vector<Recipe> shapes;
  std::vector<Estimate> out;
  for (const Found& found : offer.found.best) {
    if (out.size() == top) break;
    const auto recipe = recipe_at(offer.question, offer.space, offer.space.position(found.priced.ordinal));
    if (!recipe || std::any_of(shapes.begin(), shapes.end(), [&](const Recipe& r) { return same_shape(r, *recipe); }))
      continue;
    shapes.push_back(*recipe);
    auto e = estimate_of(offer, found, draws, out.empty() || limits.within || limits.budget);
    if (!e) return e.error();
    if (miss_of_run(*e, limits).times <= 1) out.push_back(std::move(e).value());
  }
  return out;
}

Status complete(std::vector<Estimate>& plans, const std::vector<std::unique_ptr<Offer>>& offers, SharedDraws& draws) {
  for (Estimate& e : plans) {
    if (e.run || !e.recipe.tokens) continue;
    const auto of = std::find_if(offers.begin(), offers.end(), [&](const auto& o) { return is_of(e, *o); });
    if (of == offers.end()) continue;
    const Question& q = (*of)->question;
    const auto analysed = analyse_recipe(*q.model, *q.stack, e.recipe);
    if (!analysed) return analysed.error();
    e = estimate<double>(*analysed, q.cluster, &draws);
  }
  return Nothing{};
}

bool is_of(const Estimate& e, const Offer& offer) {
  const Question& q = offer.question;
  return q.cluster.gpus == e.cluster.gpus && q.cluster.gpu.id == e.cluster.gpu.id &&
         q.recipe.precision == e.recipe.precision && q.recipe.optimizer == e.recipe.optimizer;
}

void keep_nearest_of(Plan& plan, const Offer& offer, SharedDraws& draws) {
  // What is within the limits by the usual stretch of a run, and not by this one's, is as slow as the rest.
  const bool slow = offer.found.slow || !offer.found.best.empty();
  const std::optional<Found> near = !offer.found.best.empty() ? std::optional(offer.found.best.front())
                                    : slow                    ? offer.found.slow
                                    : offer.found.tight       ? offer.found.tight
                                                              : offer.found.nearest;
  if (!near) return;
  const auto e = estimate_of(offer, *near, draws);
  if (!e) return;
  const Miss miss = slow ? miss_of_run(*e, plan.limits) : miss_of_memory(*e, plan.limits);
  if (plan.nearest && plan.nearest_times <= miss.times) return;
  plan.nearest = *e;
  plan.nearest_why = miss.why;
  plan.nearest_times = miss.times;
}

std::string gain_of_batch(const Offer& offer, const Estimate& best) {
  constexpr double kWorthSaying = 0.05;
  const auto assumed = [](const std::string& line) { return line.starts_with("global_batch="); };
  const std::vector<std::string>& lines = best.recipe.assumed;
  if (!best.step || best.recipe.mfu || std::none_of(lines.begin(), lines.end(), assumed)) return "";
  Question twice = offer.question;
  Recipe& r = twice.recipe;
  r.global_batch *= 2;
  const double tokens = static_cast<double>(r.global_batch) * static_cast<double>(r.seq);
  if (r.tokens && *r.tokens < tokens) return "";
  // A plan that is found at once, as good as the best or nearly.
  const double seconds = seconds_reached(twice, make_space(twice), Objective::time, {}, 1);
  const double less = 1 - seconds / 2 / best.step->seconds.number();
  if (!(less >= kWorthSaying)) return "";
  return "With --global-batch " + std::to_string(r.global_batch) +
         ", twice the batch that is assumed, these GPUs take " + text::percent(less) + " less time for a token.";
}

void keep_cluster(Plan& plan, const Estimate& best) {
  for (Estimate& known : plan.clusters) {
    if (!same_cluster(known, best)) continue;
    if (best.step && (!known.step || cost_of(plan.objective, best) < cost_of(plan.objective, known))) known = best;
    return;
  }
  plan.clusters.push_back(best);
}

void choose(Plan& plan, std::size_t top) {
  const auto timed = [](const Estimate& e) { return e.step.has_value(); };
  if (std::any_of(plan.plans.begin(), plan.plans.end(), timed)) std::erase_if(plan.plans, std::not_fn(timed));
  std::stable_sort(plan.plans.begin(), plan.plans.end(),
                   [&](const Estimate& a, const Estimate& b) { return order_of(plan, a) < order_of(plan, b); });
  if (plan.plans.size() > top) plan.plans.resize(top);
  mark_front(plan);
}

}  // namespace preflop
