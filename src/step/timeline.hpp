// The memory of every stage through one step: the schedule played event by event, and at each event the ledger with
// as many micro-batches in flight as there are then. The fullest point of a stage is the estimate's, to the bit.
#pragma once

#include <vector>

#include "src/step/memory.hpp"
#include "src/step/replay.hpp"

namespace preflop {

struct MemoryPoint {
  std::string_view event;            // "init", "forward" (after the pass), or the name of a moment
  std::int64_t micro_batch = -1;     // -1: of none
  std::int64_t chunk = -1;           // of an interleaved stage
  std::optional<double> start, end;  // seconds from the step's beginning; none: no rates
  double in_flight = 0;              // micro-batches, in units of the whole stage
  const Ledger<double>* bytes = nullptr;
};

struct StageTimeline {
  std::int64_t stage = 0;
  std::vector<MemoryPoint> points;  // in order
};

struct MemoryTimeline {
  std::int64_t micro_batches = 0, played = 0;  // of a long steady state only some are played
  std::vector<StageTimeline> stages;
  std::vector<std::unique_ptr<Ledger<double>>> ledgers;  // that the points share
};

// Errors: more points than anyone reads (gpipe with very many micro-batches); zero-bubble schedules (not built yet).
Result<MemoryTimeline> memory_timeline(const Analysed& a, const Cluster& cluster);

}  // namespace preflop
