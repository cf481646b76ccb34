// Least squares on the logarithm of predicted over measured, with priors: every fitted parameter starts at
// its prior, strays from it at a price (`sigma` of its row, relative), and stays within its bounds.
#pragma once

#include <functional>

#include "tools/fit/rows.hpp"

namespace preflop::fit {

struct Options {
  int steps = 12;         // of Gauss-Newton, at most
  double noise = 0.0231;  // of one row, relative
  double elbow = 0.02;    // residuals beyond count linearly, as the mean absolute error that predictions are judged by
  // Parameters that move; the others stay as they are. Empty: all that runs of this kind are fitted to.
  std::function<bool(const Parameter&)> free = {};
};

// Fits in place to the runs that `use` accepts (and that are `fitted`). Parameters that none of them depends on
// go back to their prior. Deterministic.
void solve(TimeParameters& parameters, const std::vector<Run>& runs, const std::function<bool(const Run&)>& use,
           const Options& options);

// Rows that depend on each parameter.
std::vector<std::vector<std::size_t>> users(const TimeParameters& parameters, const std::vector<Run>& runs);

}  // namespace preflop::fit
