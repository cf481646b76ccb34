// Sentences that stand beside a ranking.
#pragma once

#include <string>

#include "preflop/plan.hpp"

namespace preflop {

// Why no time is known of a plan.
std::string no_time_of(const Estimate& e);
// Where batches differ between clusters: the one of most of them, and where it is another. Empty: nowhere.
std::string differing_batches(const Plan& plan);
// Beside plans: the cluster without one that comes nearest.
std::string nearest_of_the_rest(const Plan& plan, const Cluster& missed);
// How the fewest GPUs of a range were found: the count that does, and the last below it that does not.
std::string fewest_by_halving(const std::string& does, const std::string& does_not);

}  // namespace preflop
