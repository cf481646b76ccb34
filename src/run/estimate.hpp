// Puts the parts together: one recipe on one cluster.
#pragma once

#include "src/step/compute.hpp"
#include "src/step/memory.hpp"
#include "src/step/time.hpp"

namespace preflop {

template <class N>
EstimateOf<N> estimate(const Analysed& a, const Cluster& cluster);

}  // namespace preflop
