// A pipeline's schedule, micro-batch by micro-batch: for drawing, in units of one forward pass.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace preflop {

struct Slot {
  std::int64_t stage = 0, micro_batch = 0, chunk = 0;  // chunk: virtual stage on this rank
  bool backward = false;
  double start = 0, end = 0;
};

struct Timeline {
  std::vector<Slot> slots;  // by stage, in the order in which they run
  double length = 0;
};

// Forward passes take 1 / vpp, backward passes twice that; nothing else takes time. gpipe, 1f1b and interleaved
// (micro-batches a multiple of pp); empty for other schedules.
Timeline pipeline_timeline(std::string_view schedule, std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches);

}  // namespace preflop
