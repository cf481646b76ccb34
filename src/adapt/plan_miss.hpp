// What a layout misses of what was asked, and which one misses it by least.
#pragma once

#include <string>

#include "src/adapt/plan_offer.hpp"

namespace preflop {

struct Miss {
  Plan::Miss kind = Plan::Miss::run;
  std::string why;   // in words
  double times = 0;  // what it takes over what there is
};
// Of the limits of the run, by the median run; times of 1 or less: nothing is missed.
Miss miss_of_run(const Estimate& e, const PlanLimits& limits);

// Where nothing fits: the layout that is short by least, if it is nearer than the one that is kept. What runs, but too
// long, is nearer than what does not run; within one kind of miss the ratio decides.
void keep_nearest_of(Plan& plan, const Offer& offer, SharedDraws& draws);

}  // namespace preflop
