// `--open`: numerics that a plan may change. Without it no plan changes the training run; what opening would gain is
// said in a line.
#pragma once

#include <string>
#include <vector>

#include "src/adapt/plan_offer.hpp"
#include "src/adapt/request.hpp"

namespace preflop {

// One request for each choice of the keys that `open` lists ("precision,optimizer"); the request itself where it is
// empty. Errors: a key that cannot be opened, one that is given.
Result<std::vector<Request>> opened(const Request& request, const std::string& open, const Catalogues& catalogues);

// "With --open precision: fp8 on the best layout takes 2.41 s a step, 18.2 % less.": the fastest precision of those
// that the stack and the GPU have, within the limits of the plan. Empty: none is faster.
std::string gain_of_opening(const Offer& offer, const Estimate& best, const Limits& limits,
                            const Catalogues& catalogues);

}  // namespace preflop
