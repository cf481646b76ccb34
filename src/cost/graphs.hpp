// What CUDA graphs take off the host: it launches a graph as one, and the GPU does not wait between its kernels.
#pragma once

#include "preflop/recipe.hpp"

namespace preflop {

// Of the host's work for a sublayer, the share that graphs hold. Routing and what comes before the exchange of rows are
// about half of what a sublayer of experts launches (Megatron-LM's scopes moe_router and moe_preprocess); the exchange
// and the experts themselves, whose sizes are known as late as that, are in graphs of the whole iteration only.
struct Graphed {
  double attention = 0, scan = 0, mlp = 0, experts = 0;
};
Graphed graphed(const Recipe& recipe);

}  // namespace preflop
