// The simple rule that chooses a layout when none is given, until the planner takes its place: the
// least tp within a node, then the least pp, then the least zero stage, that fits; without
// recomputation if any such layout fits, else with selective, else with full. If nothing fits, the
// layout that is short by least.
#pragma once

#include <functional>

#include "src/step/memory.hpp"

namespace preflop {

// `recipe` has everything but its layout, global batch and (unless given) recomputation.
struct LayoutChoice {
  Recipe recipe;
  bool fits = false;
};
// Sets the global batch that the recipe trains with at a data-parallel size.
using SetBatch = std::function<void(Recipe&)>;
Result<LayoutChoice> choose_layout(const Model& model, const Stack& stack, const Cluster& cluster, const Recipe& recipe,
                                   bool recompute_given, const SetBatch& set_batch);

}  // namespace preflop
