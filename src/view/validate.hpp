// Predicted against measured: JSON, tables of at most 80 columns, pages and pictures for docs/.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "src/validate/summary.hpp"

namespace preflop {

nlohmann::json validate_json_value(const Report& report);

struct ValidateTextOptions {
  std::size_t worst = 10;   // rows that are farthest off, in each metric's list
  bool everything = false;  // every reason for a skip
  bool brief = false;       // one line
};
std::string validate_text(const Report& report, const ValidateTextOptions& options);

// One row: its recipe as a command line, what was assumed, and the prediction's ledger beside what was measured.
std::string explain_row_text(const Row& row, const Explained& explained);

// docs/accuracy.md.
std::string accuracy_page(const Report& report);
// docs/user-cases.md: what users asked about memory, saw, and what preflop says. Error: the questions' data file.
Result<std::string> user_case_page(const Report& report);
// Predicted against measured of one metric, both axes logarithmic. Empty: nothing to draw.
std::string accuracy_svg(const Report& report, const std::string& metric);

}  // namespace preflop
