// The memory of every stage through one step: the schedule played event by event, and at each event the ledger with
// as many micro-batches in flight as there are then. The fullest point of a stage is the estimate's, to the bit.
// Zero-bubble schedules are given a limit of memory, which the estimate counts on every stage: the first one reaches it
// with its last forward pass before a backward pass (zb-2p: but for one micro-batch), no other stage passes it, and how
// near they come depends on the gaps that there are for the gradients of weights.
#pragma once

#include <vector>

#include "src/step/memory.hpp"
#include "src/step/replay.hpp"

namespace preflop {

struct MemoryPoint {
  std::string_view event;            // "init", "forward", "weights" (after the pass), or the name of a moment
  std::int64_t micro_batch = -1;     // -1: of none
  std::int64_t chunk = -1;           // of an interleaved stage
  std::optional<double> start, end;  // seconds from the step's beginning; none: no rates
  double in_flight = 0;              // micro-batches, in units of the whole stage
  const Ledger<double>* bytes = nullptr;
  double deferred = 0;  // micro-batches that are not in flight and whose gradients of weights are not made
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

// Errors: more points than anyone reads (gpipe with very many micro-batches).
Result<MemoryTimeline> memory_timeline(const Analysed& a, const Cluster& cluster);

}  // namespace preflop
