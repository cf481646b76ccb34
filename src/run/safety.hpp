// What a run does against failures, and how often they come: rates, saves, restarts, the interval.
#pragma once

#include <optional>

#include "preflop/estimate.hpp"
#include "src/run/interruptions.hpp"
#include "src/run/phases.hpp"

namespace preflop {

// Failures that find no spare: their share, and the wait until a node is repaired. Broken nodes are Poisson
// with mean hardware rate x repair time; the first of spares + 1 to come back ends the wait.
struct Waiting {
  double share = 0, seconds = 0;
};

template <class N>
struct Safety {
  N rate;                    // interruptions per second of the whole job; 0: never
  N save, pending, loading;  // seconds
  N detection, restart;      // seconds
  Waiting wait;
  Hazard hazard{0, {}};
};

template <class N>
Safety<N> safety_of(const RunSettings& settings, const Cluster& cluster, const std::optional<Bytes<N>>& checkpoint);

// Seconds of training between saves, and the segments that follow: equal ones, never longer than chosen.
struct Interval {
  double best = 0;    // the least loss; not rounded
  double chosen = 0;  // as asked for, else the best to whole steps
  Segments segments;
};

template <class N>
struct RunPlan {
  Work<N> work;
  Safety<N> safety;
  Interval interval;
  double step = 0;  // seconds of a step, stalls and evaluation included
};
template <class N>
RunPlan<N> plan_run(const Analysed& a, const Cluster& cluster, const StepEstimate<N>& step,
                    const std::optional<Bytes<N>>& checkpoint);

}  // namespace preflop
