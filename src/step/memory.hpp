// Memory of every stage by named moments, as ledgers of storages.
#pragma once

#include <vector>

#include "preflop/estimate.hpp"
#include "src/cost/block_cost.hpp"
#include "src/model/model.hpp"
#include "src/stack/stack.hpp"
#include "src/step/lines.hpp"
#include "src/step/stages.hpp"

namespace preflop {

// All that memory and time need: the model rewritten by the stack, analysed block by block.
struct Analysed {
  const Model* model = nullptr;
  const Stack* stack = nullptr;
  Recipe recipe;
  Segment segment;                // what the layers recompute; no tags = nothing
  std::vector<BlockCost> blocks;  // by block index
  std::vector<Stage> stages;
  std::string split_how;
};

// Errors: legality of the recipe on this stack and model (src/stack/legality), pipeline split.
Result<Analysed> analyse_recipe(const Model& model, const Stack& stack, const Recipe& recipe);

// The layers' operators whose saves a recipe drops; several modules are one segment. No tags = nothing
// is recomputed. Errors: a module that the stack does not have.
Result<Segment> recompute_segment(const Stack& stack, const Recompute& recompute);

// Parameters that a stage holds on one GPU, padded vocabulary and replicated copies included.
Count stage_parameters(const Analysed& a, const Stage& stage);

// What is alive on a GPU of this stage at a moment. Empty = the stage has no such moment.
std::vector<Line> lines_at(const Analysed& a, const Stage& stage, Moment moment);

template <class N>
MemoryEstimate<N> memory_estimate(const Analysed& a, const Cluster& cluster);

// Ranks' communicators of more than one member: tp, cp, dp, pp.
int communicators(const Layout& layout);

}  // namespace preflop
