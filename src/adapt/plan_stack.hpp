// One comparison, one software: the stack of clusters that are compared.
#pragma once

#include <string>
#include <vector>

#include "src/adapt/request.hpp"

namespace preflop {

// Where no stack is given and the clusters' defaults differ (they go by the number of GPUs), all get one: the default
// of the largest that runs on all of them. A line on what was done; empty: nothing.
std::string share_stack(std::vector<Request>& clusters, const Catalogues& catalogues);

}  // namespace preflop
