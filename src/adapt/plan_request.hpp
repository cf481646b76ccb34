// What the flags of the search say: the objective, the limits, and the clusters to look at.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "preflop/plan.hpp"
#include "src/adapt/request.hpp"

namespace preflop {

// The flags of the search as text; empty = not given.
struct PlanWords {
  std::vector<std::string> on;              // several clusters; COUNT may be LO..HI
  std::map<std::string, ConfigText> files;  // those of `on` that name a cluster file, read
  std::string objective, within, budget, max_memory, open, top;
  bool allow_tight = false;
};

// The same, understood.
struct PlanAsk {
  Objective objective = Objective::time;
  PlanLimits limits;
  std::size_t top = 5;
  struct Asked {
    std::string as;  // what was written: "64xh100-sxm", the path of a file
    std::optional<ConfigText> file;
    Cluster cluster;
    std::size_t range = 0;  // the LO..HI that it is of, from 1; 0: none
  };
  std::vector<Asked> on;           // each once
  std::vector<std::string> again;  // of what is asked about twice, a line each
};
// Errors: a word or a cluster that is not understood.
Result<PlanAsk> read_plan_words(const Request& request, const PlanWords& words, const Catalogues& catalogues);

// Cluster specifications of an --on: LO..HIxGPU becomes its counts (multiples of a node by 1, 2, 3, 4, 6, 8, ...).
Result<std::vector<std::string>> cluster_counts(const std::string& on, const MachineCatalogue& machines);

}  // namespace preflop
