// Published GPU-hours of whole runs beside the forecast: data/whole_runs.csv holds what is assumed of each.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/adapt/request.hpp"

namespace preflop {

struct WholeRun {
  std::string set;  // "first": the rules were changed after its errors were seen; "second": written down before
  std::string id, model, on, assumed, source;
  bool steps_only = false;  // the source counts iterations x their time: compared with ideal hours
  double tokens = 0;
  double measured_hours = 0;
  std::optional<double> ideal_hours, predicted_hours, low_hours, high_hours;  // GPU-hours; low, high: P10 and P90
  std::optional<double> error;                                                // predicted / measured - 1
  std::string layout;                                                         // as predicted
  std::string why_not;                                                        // where nothing is predicted
};

// Errors: a broken table. A run that cannot be predicted is an entry that says why.
Result<std::vector<WholeRun>> whole_runs(const Catalogues& catalogues);

// The median of |error| of a set; nothing where nothing is predicted.
std::optional<double> median_error(const std::vector<WholeRun>& runs, std::string_view set);

// docs/whole-runs.md: a table of each set, and Llama 3's interruptions as the rates of other clusters predict them.
std::string whole_runs_page(const std::vector<WholeRun>& runs, const RunData& data);

}  // namespace preflop
