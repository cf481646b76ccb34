// The memory of a step through time: preflop.timeline/1, and the same points as CSV.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "src/step/timeline.hpp"

namespace preflop {

nlohmann::json timeline_json_value(const MemoryTimeline& timeline);
// One line a point, a heading; what is not known is empty.
std::string timeline_csv(const MemoryTimeline& timeline);

}  // namespace preflop
