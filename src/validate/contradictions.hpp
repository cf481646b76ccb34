// Verdicts of measured rows that another measured row contradicts: data/contradictions.csv.
#pragma once

#include <map>
#include <string>

#include "preflop/result.hpp"

namespace preflop {

struct Contradiction {
  std::string against;  // ids of the rows that say the contrary
  std::string reason;
};
// By the id of the row that is not believed. Errors: a broken table.
Result<std::map<std::string, Contradiction, std::less<>>> contradictions();

}  // namespace preflop
