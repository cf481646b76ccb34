// How long a pipeline takes to fill and to drain around the work of its slowest stage, in closed form.
//
// A step is as long as the longest chain of passes that wait for each other. Every chain here stays on one stage s
// for all its work, is reached through the first forwards of the stages before it and left through their last
// backwards. Its warm-up (and, mirrored, its cool-down) may run elsewhere:
//   aside(u)   down to stage u, there through u's warm-up, back with the first backward;
//   waiting    on a slower stage before s (interleaved: the warm-up is long);
//   wrapped(u) on a later stage u until its forwards come round to s again (interleaved).
// Equal stages: exactly (pp - 1) / vpp micro-batches. Unequal ones: a lower bound of the replay, within 2 % of it
// (tests/law/time_test.cpp). The chunks of one stage count as equal.
#pragma once

#include <cstddef>

#include "src/step/time/compose.hpp"

namespace preflop {

// Seconds beyond micro_batches x slowest. `stages`: in the order of the pipeline, equal neighbours together.
template <class N>
Seconds<N> fill_and_drain(const StageRun<N>* stages, std::size_t n, const Schedule<N>& schedule,
                          const Seconds<N>& slowest);
// The same but for rounding, in one pass.
Seconds<double> fill_and_drain_seconds(const StageRun<double>* stages, std::size_t n, const Schedule<double>& schedule,
                                       const Seconds<double>& slowest);

}  // namespace preflop
