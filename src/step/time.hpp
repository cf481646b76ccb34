// Step time, first order: a roofline per operator, bandwidths of the datasheet, one bubble term. It
// says so in `method`; launch gaps, overlap and kernel efficiencies are not in it. With a given MFU the
// step is that utilisation's own arithmetic instead.
#pragma once

#include <optional>

#include "src/step/compute.hpp"

namespace preflop {

// What a rate lacks, when no time can be given: "v100-16 has no bf16 rate". Empty = nothing.
std::string missing_rates(const Analysed& a, const Cluster& cluster);

// The field of the machine's data that holds the dense peak of a precision: "bf16_flops".
std::string_view peak_field(std::string_view precision);

// Empty when the machine's rates are unknown.
template <class N>
std::optional<StepEstimate<N>> step_estimate(const Analysed& a, const Cluster& cluster,
                                             const ComputeEstimate<N>& compute);

}  // namespace preflop
