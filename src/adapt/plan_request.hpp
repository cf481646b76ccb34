// From a request and the flags of the search to a plan.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "preflop/plan.hpp"
#include "src/adapt/question.hpp"

namespace preflop {

// The flags of the search as text; empty = not given.
struct PlanWords {
  std::vector<std::string> on;  // several clusters; COUNT may be LO..HI
  std::string objective, within, budget, max_memory, open, top;
  bool allow_tight = false;
};

// Runs a search to its end: callers with threads split it into parts.
using Searcher = std::function<SearchResult(const Question&, const Space&, const PlanOptions&)>;

Result<Plan> make_plan(const Request& request, const PlanWords& words, const Catalogues& catalogues,
                       const Searcher& search);

// Cluster specifications of an --on: LO..HIxGPU becomes its counts (multiples of a node by 1, 2, 3, 4, 6, 8, ...).
Result<std::vector<std::string>> cluster_counts(const std::string& on, const MachineCatalogue& machines);

}  // namespace preflop
