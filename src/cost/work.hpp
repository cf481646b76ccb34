// FLOPs, bytes moved and collectives of a block, operator by operator.
#pragma once

#include "src/cost/block_cost.hpp"
#include "src/cost/link.hpp"

namespace preflop {

void collect_work(BlockCost& out, const Block& block, const Link& link, const Setting& setting);
void collect_collectives(BlockCost& out, const Block& block, const Link& link, const Setting& setting);

}  // namespace preflop
