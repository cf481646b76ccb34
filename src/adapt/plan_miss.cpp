#include "src/adapt/plan_miss.hpp"

#include <utility>

#include "src/base/text.hpp"
#include "src/step/memory.hpp"

namespace preflop {

Miss miss_of_run(const Estimate& e, const PlanLimits& limits) {
  Miss out{Plan::Miss::run, "slower than the limit", 1};
  if (!e.run) return out;
  const auto consider = [&](double has, double most, const std::string& why) {
    if (most > 0 && has / most > out.times) out = {Plan::Miss::run, why, has / most};
  };
  if (limits.within) {
    const double run = e.run->p50.number();
    consider(run, *limits.within, text::seconds(run) + " for the run, --within " + text::seconds(*limits.within));
  }
  if (limits.budget && e.run->cost) {
    const double cost = e.run->cost->number();
    consider(cost, *limits.budget, text::dollars(cost) + " for the run, --budget " + text::dollars(*limits.budget));
  }
  return out;
}

namespace {

Miss miss_of_memory(const Estimate& e, const PlanLimits& limits) {
  const double margin = e.memory.margin ? e.memory.margin->number() : 0;
  if (margin < 0)
    return {Plan::Miss::memory, "short of memory by " + text::gib(-margin),
            needed_at_most(e.memory).number() / e.memory.capacity->number()};
  if (host_short(e.memory)) {
    const double host = e.memory.host->number(), most = e.memory.host_capacity->number();
    return {Plan::Miss::memory, "short of host memory by " + text::gib(host - most) + " a node", host / most};
  }
  const double device = e.memory.stages[e.memory.peak_stage].device.number(), most = limits.max_memory.value_or(0);
  if (most > 0 && device > most)
    return {Plan::Miss::limit, text::gib(device) + " on the device, --max-memory " + text::gib(most), device / most};
  // What would do but for the allocator's reserve is as near as can be.
  const std::string tight = "fits, but tightly (--allow-tight)";
  const Miss run = miss_of_run(e, limits);
  if (run.times > 1) return {Plan::Miss::tight, tight + ", and " + run.why, run.times};
  return {Plan::Miss::run, tight, 1};
}

}  // namespace

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
  const auto kept = std::pair(plan.nearest_miss, plan.nearest_times);
  if (plan.nearest && kept <= std::pair(miss.kind, miss.times)) return;
  plan.nearest = *e;
  plan.nearest_miss = miss.kind;
  plan.nearest_why = miss.why;
  plan.nearest_times = miss.times;
}

}  // namespace preflop
