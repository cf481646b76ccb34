// One comparison, one software: the stack of clusters that are compared.
#pragma once

#include <string>
#include <vector>

#include "src/adapt/plan_offer.hpp"

namespace preflop {

// Where no stack is given and the clusters' defaults differ (they go by the number of GPUs), all get one: the default
// of the largest that runs on all of them. A line on what was done; empty: nothing.
std::string share_stack(std::vector<Request>& clusters, const Catalogues& catalogues);

// Of the clusters that would be given another stack alone: the one that gains most by it, in words, with the command
// that plans it there. Empty: none is faster so. `offers` are those of the comparison.
std::string gain_alone(const std::vector<std::unique_ptr<Offer>>& offers, const Plan& plan, const PlanAsk& asked,
                       const Catalogues& catalogues);

}  // namespace preflop
