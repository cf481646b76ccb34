// The measured step times that the parameters of data/time.csv are fitted to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/adapt/row_request.hpp"
#include "src/cost/parameters.hpp"
#include "src/run/estimate.hpp"

namespace preflop::fit {

// What is known of a GPU: products measured on it; only its data sheet, which names its architecture (kernel laws of
// its other GPUs hold); or the data sheet of one whose architecture is new as well.
enum class Known : std::uint8_t { tables, sheet, new_architecture };

struct Run {
  std::string id, source, model, gpu;
  std::string group;  // one model, precision, software and layout: its rows share a weight
  bool moe = false;
  bool fitted = false;  // false: only scored (the source flags the row, or it is a simulator's)
  bool full = false;    // fills its memory
  bool apart = false;   // fitted and scored apart from all others: stands_apart()
  double weight = 1;
  double measured = 0;  // seconds
  Problem problem;
  ComputeEstimate<double> compute;
  std::vector<std::string> owners;  // of both kinds

  double predict(const TimeParameters& parameters, Known known = Known::tables) const;
};

// Every row of data/measured whose step time is predicted today: those that stand apart, or all others.
Result<std::vector<Run>> load(const Catalogues& catalogues, bool apart);

// Parameters that only rows that stand apart are fitted to; these are fitted to no others.
bool is_apart(const Parameter& parameter);

}  // namespace preflop::fit
