// Which software runs a request: what is given, else a default that the chips and the model decide.
#pragma once

#include "src/adapt/request.hpp"

namespace preflop {

// `--stack`; an error where it does not run on these chips. Not given: maxtext on TPUs; elsewhere transformers on one
// GPU, torchtitan up to 64 GPUs without tp, pp, cp or ep, else the newest megatron, which also takes the place of a
// default that is not built, does not run the model's layers or lacks what was asked for by name. The choice goes to
// recipe.assumed.
Result<const Stack*> pick_stack(const Request& request, const StackCatalogue& stacks, const Architecture& model,
                                const Cluster& cluster, Recipe& recipe);
// Has it the layers of this model? Experts are left to check_legal.
Status runs_layers(const Stack& stack, const Architecture& model);

}  // namespace preflop
