// What would make a recipe fit that does not: the smallest legal changes of its layout, recomputation and
// loss, each with what it frees and what it costs. The training run itself (batch, precision, optimizer,
// dtypes) is never changed.
#pragma once

#include "preflop/estimate.hpp"
#include "src/step/memory.hpp"

namespace preflop {

// Fills memory.way_out of an estimate that does not fit: single changes that suffice; if there are none, the
// changes that free most, one after the other; if that leads nowhere, the first legal layout that fits.
// Empty only where no layout of this stack on this cluster fits.
template <class N>
void add_way_out(EstimateOf<N>& estimate, const Analysed& a);

}  // namespace preflop
