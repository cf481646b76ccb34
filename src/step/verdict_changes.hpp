// Which of the choices that nobody made would change the verdict, and to what.
#pragma once

#include <string>
#include <vector>

#include "src/step/memory.hpp"

namespace preflop {

struct VerdictChange {
  std::string choice;  // a recipe key and its other value: "recompute=full"
  Verdict verdict = Verdict::unknown;
  double margin = 0;  // bytes on the fullest stage; negative: short
};

// Other values of keys that the recipe was not given (recompute, micro_batch, seq, grad_dtype, zero), one at a time,
// with all else as it is; those that the stack runs and that lead to another verdict than `now`. At most `most`,
// the likeliest first. Empty where there is no verdict.
std::vector<VerdictChange> verdict_changes(const Analysed& a, const Cluster& cluster, Verdict now, std::size_t most);

}  // namespace preflop
