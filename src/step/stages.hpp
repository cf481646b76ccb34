// Pipeline stages as slices of the slot list embedding | layers | head. L/pp appears nowhere.
#pragma once

#include <cstdint>
#include <vector>

#include "preflop/recipe.hpp"
#include "preflop/result.hpp"
#include "src/model/model.hpp"
#include "src/stack/stack.hpp"

namespace preflop {

struct Stage {
  std::int64_t index = 0;
  std::vector<BlockRun> layers;  // in model order; runs of equal kinds
  bool embedding = false;
  bool head = false;

  std::int64_t layer_count() const {
    std::int64_t n = 0;
    for (const BlockRun& run : layers) n += run.count;
    return n;
  }
};

// The same blocks as often: equal work, equal states.
bool same_work(const Stage& a, const Stage& b);

// Layers per stage: the recipe's own split; else even; else, where the stack can, embedding and loss
// count as slots; else equal middle stages with the rest on the first and last. Errors: more stages
// than layers, a split that does not add up, no legal split. `how` says which rule was taken ("" = even).
struct Split {
  std::vector<std::int64_t> layers;
  std::string how;
  std::vector<std::int64_t> chunks;  // layers of every virtual stage, pp x vpp of them in the order of the model
};
// Multi-token prediction layers stand on the last stage, whose last chunk is as many layers short where the stack can.
// Where neither layers nor slots divide over the stages, a stack that takes any layout (stage_layouts) has equal
// chunks and a short last one.
// `costs`: work of every layer and, last, of the head, for stacks that deal layers by it (split_by_cost).
Result<Split> split_layers(std::int64_t layers, const Layout& layout, const Stack& stack, std::int64_t mtp = 0,
                           const std::vector<double>& costs = {});

// As many layers on every stage, and no virtual stages. Errors: another split is given, or the layers do not divide.
Result<Split> split_evenly(std::int64_t layers, const Layout& layout, const Stack& stack);

// Where only some layers are recomputed or keep what they keep on the host, the others are twins of their kind
// (Model::twin); where several are recomputed together, all but the first of them. Recompute and offload of `recipe`
// count, and vpp.
std::vector<Stage> make_stages(const Model& model, const Split& split, const Recipe& recipe);

// Layers are recomputed in units (full:uniform:N) where these divide every virtual stage, and without multi-token
// prediction, whose layers are recomputed one by one. Else an error.
Status check_units(const Model& model, const Split& split, const Recompute& recompute);

// Do gradients of weights have passes of their own: a zero-bubble schedule?
bool splits_backward(const Layout& layout);

// Micro-batches whose activations a stage holds at once, in units of the whole stage: min(pp - i, m)
// for 1f1b, m for gpipe, chunks / vpp for interleaved schedules.
double in_flight(const Layout& layout, std::int64_t stage, std::int64_t micro_batches);

}  // namespace preflop
