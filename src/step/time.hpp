// Step time from the prices of kernels and links (src/cost/price), pieces and a pipeline (src/step/time).
// With a given MFU the step is that utilisation's own arithmetic instead.
#pragma once

#include <optional>

#include "src/cost/parameters.hpp"
#include "src/cost/price.hpp"
#include "src/step/compute.hpp"
#include "src/step/replay.hpp"

namespace preflop {

// What a rate lacks, when no time can be given: "v100-16 has no bf16 rate". Empty = nothing.
std::string missing_rates(const Recipe& recipe, const Cluster& cluster);

// Empty when the machine's rates are unknown.
template <class N>
std::optional<StepEstimate<N>> step_estimate(const Analysed& a, const Cluster& cluster,
                                             const ComputeEstimate<N>& compute,
                                             const TimeParameters& parameters = TimeParameters::built_in());

// What the replay plays: seconds of one micro-batch on every chunk (those of a stage count as equal) and of a hop.
// Empty when the machine's rates are unknown or a given MFU takes their place.
std::optional<ReplayWork> replay_work(const Analysed& a, const Cluster& cluster);

}  // namespace preflop
