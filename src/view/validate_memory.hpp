// Parts of the pages and tables of `validate` that speak of memory only.
#pragma once

#include <string>
#include <vector>

#include "src/validate/summary.hpp"

namespace preflop {

// How often verdicts are wrong, one sentence for each kind of row.
std::vector<std::string> verdict_lines(const std::vector<Summary>& all);
// Bands, and rows whose model is left out of fit and band: for a terminal, and for docs/accuracy.md.
std::string left_out_text(const std::vector<Entry>& entries);
std::string left_out_section(const std::vector<Entry>& entries);
// data/contradictions.csv for docs/accuracy.md.
std::string contradiction_section();

}  // namespace preflop
