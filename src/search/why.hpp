// Why a plan is as it is: two estimates set against each other, and a plan's neighbours.
#pragma once

#include <string>
#include <vector>

#include "preflop/estimate.hpp"
#include "src/search/space.hpp"

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

// Lines for people: the first plan against the next, what limits it, one degree more on each axis.
std::vector<std::string> explain_plan(const Question& question, const std::vector<Estimate>& plans);

// What one recipe is against another, in one line: illegal because, short by, slower because.
std::string against(const Question& question, const Recipe& recipe, const Estimate& best);

// The words of a term of the step: "pipeline bubble".
const char* breakdown_words(Lost lost);

}  // namespace preflop
