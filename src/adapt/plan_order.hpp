// The order of plans: within a cluster, and between the best of several.
#pragma once

#include "preflop/plan.hpp"

namespace preflop {

// Does the faster of two plans do better by it? Memory, micro-batch and sequence are sizes.
constexpr bool wants_speed(Objective objective) {
  return objective != Objective::memory && objective != Objective::micro_batch && objective != Objective::seq;
}

// The best of a cluster, whatever numerics are open.
void keep_cluster(Plan& plan, const Estimate& best);

// The best `top` of all, and the front between clusters. What is unknown is never best: where the memory of some
// clusters is known, those of which it is not are dropped, `clusters` too; where the objective takes a time, so are
// plans without one beside any that has one, else beside those of the same cluster (numerics without known rates).
void choose(Plan& plan, std::size_t top);

}  // namespace preflop
