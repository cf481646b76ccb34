#pragma once

#include <vector>

#include "src/adapt/row_request.hpp"

namespace preflop {

// One reading for each quantity that the row measured; where it measured nothing, one that says so.
std::vector<Reading> row_readings(const Row& row, const SourceRules& rules);

}  // namespace preflop
