// Why a plan is as it is: two estimates set against each other, and a plan's neighbours.
#pragma once

#include <string>
#include <vector>

#include "preflop/estimate.hpp"
#include "src/search/plan.hpp"

namespace preflop {

// One term of two estimates. `b - a` is the difference; seconds or bytes.
struct TermDifference {
  std::string name;  // "step.breakdown.bubble", "memory.activations"
  double a = 0, b = 0;
};
// Terms of the step, then of the memory of the fullest stages; those that differ, the largest first.
std::vector<TermDifference> step_differences(const Estimate& a, const Estimate& b);
std::vector<TermDifference> memory_differences(const Estimate& a, const Estimate& b);

// "pipeline bubble +120 ms, tensor-parallel communication -30 ms", at most `most` terms.
std::string difference_words(const std::vector<TermDifference>& differences, std::size_t most);

// Lines for people: the first plan against the next, what limits it, one degree more on each axis. The options are
// those of the search that found them.
std::vector<std::string> explain_plan(const Question& question, const std::vector<Estimate>& plans,
                                      const PlanOptions& options);

// The recipe with all that a plan chooses beside its sizes (virtual stages unless they are to be kept, split of the
// layers, recomputation, loss, shard group, cut of experts) chosen anew, by the same objective: within the limits where
// anything is, else the best of what fits, else what is short by least. Errors: no form of it is legal.
Result<Recipe> best_form(const Question& question, const Recipe& recipe, bool keep_chunks, const PlanOptions& options);

// What one recipe is against another, in one line: short by, over a limit, slower because.
std::string against(const Question& question, const Recipe& recipe, const Estimate& best, const Limits& limits);

// "tight", "9.1 GiB over --max-memory": the limits of a search that an estimate breaks. Empty: none.
std::string broken_limits(const Estimate& estimate, const Limits& limits);

// The words of a term of the step: "pipeline bubble".
const char* breakdown_words(Lost lost);

}  // namespace preflop
