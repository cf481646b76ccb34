// What would make a recipe fit that does not: the smallest legal changes of its layout, recomputation and
// loss, each with what it frees and what it costs. The training run itself (batch, precision, optimizer,
// dtypes) is never changed.
#pragma once

#include "preflop/estimate.hpp"
#include "src/step/memory.hpp"

namespace preflop {

// Fills memory.way_out of an estimate that does not fit: single changes that suffice; if there are none, the
// changes that free most, one after the other; if that leads nowhere, the first legal layout that fits.
// Where no layout of this cluster fits, the least number of the same GPUs, in doublings, on which one does. Empty only
// where that is more than 16,384.
template <class N>
void add_way_out(EstimateOf<N>& estimate, const Analysed& a);

}  // namespace preflop
