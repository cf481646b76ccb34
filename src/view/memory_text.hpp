// The memory of an estimate's stages as a table.
#pragma once

#include <string>
#include <vector>

#include "preflop/estimate.hpp"

namespace preflop {

// Neighbouring stages that are equal to the byte: [first, last].
struct StageGroup {
  std::size_t first = 0, last = 0;
};
std::vector<StageGroup> stage_groups(const MemoryEstimate<double>& memory);

// "3" or "1-14".
std::string stage_range(const MemoryEstimate<double>& memory, const StageGroup& group);

// "the backward of the last layer".
std::string moment_words(Moment moment);

// Terms in rows, stages in columns, in GiB. Without `everything`, at most six columns: the fullest
// stage, the ends, and what fits of the others; what is left out is said.
std::string memory_table(const MemoryEstimate<double>& memory, bool everything);

}  // namespace preflop
