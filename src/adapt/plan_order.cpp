#include "src/adapt/plan_order.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "src/machine/cluster.hpp"
#include "src/step/memory.hpp"

namespace preflop {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

double token_seconds(const Estimate& e) {
  const double tokens = static_cast<double>(e.recipe.global_batch) * static_cast<double>(e.recipe.seq);
  return e.step ? e.step->seconds.number() / tokens : kUnknown;
}

bool by_seconds(Objective o) {
  return o == Objective::time || o == Objective::cost || o == Objective::gpu_hours || o == Objective::energy;
}

// Least first, by what the objective compares between clusters: of the median run where its length is given, else of a
// token, whose cost is GPU time. A time, a price or a power that is not known comes last.
double cost_of(Objective objective, const Estimate& e) {
  const double gpus = static_cast<double>(e.cluster.gpus);
  const double seconds = e.run ? e.run->p50.number() : token_seconds(e);
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
      return needed_at_most(e.memory).number();
    case Objective::micro_batch:
      return -static_cast<double>(e.recipe.micro_batch);
    case Objective::seq:
      return -static_cast<double>(e.recipe.seq);
    case Objective::time:
      break;
  }
  return seconds;
}

// Of one cluster's plans the faster step is the shorter run; between clusters the runs of their best compare.
double order_of(const Plan& plan, const Estimate& e) {
  const Objective o = plan.objective;
  for (const Estimate& best : plan.clusters) {
    if (by_seconds(o) && e.step && best.step && same_cluster(e.cluster, best.cluster))
      return cost_of(o, best) * (token_seconds(e) / token_seconds(best));
  }
  return cost_of(o, e);
}

std::optional<double> dollars_of(const Estimate& e) {
  return e.run && e.run->cost ? std::optional(e.run->cost->number()) : std::nullopt;
}

void mark_front(Plan& plan) {
  for (std::size_t i = 0; i < plan.clusters.size(); ++i) {
    if (!plan.clusters[i].step) continue;
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

void keep_cluster(Plan& plan, const Estimate& best) {
  for (Estimate& known : plan.clusters) {
    if (!same_cluster(known.cluster, best.cluster)) continue;
    if (best.step && (!known.step || cost_of(plan.objective, best) < cost_of(plan.objective, known))) known = best;
    return;
  }
  plan.clusters.push_back(best);
}

void choose(Plan& plan, std::size_t top) {
  // Where some are known to fit, what cannot be checked does not win.
  const auto checked = [](const Estimate& e) { return e.memory.verdict != Verdict::unknown; };
  if (std::any_of(plan.plans.begin(), plan.plans.end(), checked)) {
    std::erase_if(plan.plans, std::not_fn(checked));
    std::erase_if(plan.clusters, std::not_fn(checked));
  }
  std::vector<Estimate> comparable;
  for (const Estimate& e : plan.plans) {
    const auto outdone = [&](const Estimate& other) {
      return other.step && (by_seconds(plan.objective) || same_cluster(other.cluster, e.cluster));
    };
    if (e.step || std::none_of(plan.plans.begin(), plan.plans.end(), outdone)) comparable.push_back(e);
  }
  plan.plans = std::move(comparable);
  std::stable_sort(plan.plans.begin(), plan.plans.end(),
                   [&](const Estimate& a, const Estimate& b) { return order_of(plan, a) < order_of(plan, b); });
  if (plan.plans.size() > top) plan.plans.resize(top);
  mark_front(plan);
}

}  // namespace preflop
