// The backward walk of a block: which gradients, gathered copies and temporaries are alive when, and
// what has been freed by then. It frees as early as autograd can, so it is a lower bound; what a stack
// frees later is in its data.
#pragma once

#include "src/cost/block_cost.hpp"
#include "src/cost/link.hpp"
#include "src/cost/saved.hpp"

namespace preflop {

Walk walk_backward(const Block& block, const Link& link, const SavedSet& saved, const Extents& extents,
                   const Setting& setting);

}  // namespace preflop
