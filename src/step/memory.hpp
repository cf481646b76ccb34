// Memory of every stage by named moments, as ledgers of storages.
#pragma once

#include <vector>

#include "preflop/estimate.hpp"
#include "src/cost/block_cost.hpp"
#include "src/model/model.hpp"
#include "src/stack/optimizer.hpp"
#include "src/stack/stack.hpp"
#include "src/step/lines.hpp"
#include "src/step/stages.hpp"

namespace preflop {

// All that memory and time need: the model rewritten by the stack, analysed block by block.
struct Analysed {
  const Model* model = nullptr;
  const Stack* stack = nullptr;
  Recipe recipe;
  std::vector<Segment> segments;  // what the layers recompute; empty = nothing
  std::vector<BlockCost> blocks;  // by block index; where some layers are treated apart, twins follow
  std::vector<Stage> stages;
  std::string split_how;
  std::vector<std::int64_t> chunk_layers;  // of every virtual stage, in the order of the model
};

// Errors: legality of the recipe on this stack and model (src/stack/legality), pipeline split.
Result<Analysed> analyse_recipe(const Model& model, const Stack& stack, const Recipe& recipe);

// Its parts, for tables: how layers are dealt to stages, and under what a block is analysed. `segments` must
// outlive the setting.
Result<Split> split_model(const Model& model, const Stack& stack, const Layout& layout);
Setting setting_of(const Model& model, const Stack& stack, const Recipe& recipe, const std::vector<Segment>& segments,
                   int block);

// Blocks of an analysis: those of the model and, where some layers are not treated as the others, their twins.
int block_kinds(const Model& model, const Recipe& recipe);

// The parts of a layer that a recipe recomputes; none = nothing. Errors: a module that the stack does not have.
Result<std::vector<Segment>> recompute_segments(const Stack& stack, const Recipe& recipe);
// The same errors, and of a module that the model does not have.
Status check_recompute(const Model& model, const Stack& stack, const Recipe& recipe);

// Parameters that a stage holds on one GPU, padded vocabulary and replicated copies included.
enum class Which : std::uint8_t { all, dense, expert };
Count stage_parameters(const Analysed& a, const Stage& stage, Which which = Which::all);

bool has_moment(const Analysed& a, const Stage& stage, Moment moment);
// What is alive on a GPU of this stage at a moment that it has.
std::vector<Line> lines_at(const Analysed& a, const Stage& stage, Moment moment);
// The same while so many micro-batches (in units of the whole stage) are in flight instead of the most.
std::vector<Line> lines_at(const Analysed& a, const Stage& stage, Moment moment, double flights);
// Between steps, or while only states are touched: no micro-batch is alive, and equal stages have equal lines.
bool at_rest(Moment moment);
// What is alive at every moment of the stage: states, buffers. Handed to lines_at, it is not counted again for each.
std::vector<Line> resting_lines(const Analysed& a, const Stage& stage);
std::vector<Line> lines_at(const Analysed& a, const Stage& stage, Moment moment, double flights,
                           const std::vector<Line>& resting);
// What a rank of the stage keeps in the host's memory, when most is in flight.
std::vector<Line> host_lines(const Analysed& a, const Stage& stage);
// Of a line: the optimizer goes from tensor to tensor, and the largest of them counts.
inline constexpr std::string_view kOneTensor = "temporaries of the largest tensor";

// Does a layer of this block keep what it keeps on the host?
bool offloads(const Model& model, const Recipe& recipe, int block);
// Is a layer of this block one of those whose input nobody keeps: not the first of those recomputed together?
bool inside_unit(const Model& model, const Recipe& recipe, int block);
// Between two passes, with what they have kept so far.
std::vector<Line> lines_between(const Analysed& a, const Stage& stage, double flights);
// Of so many micro-batches whose gradients of inputs are made and those of weights are not (zero-bubble schedules),
// what the latter read. The output layer's is made at once, as its operands are logits: an assumption.
std::vector<Line> deferred_lines(const Analysed& a, const Stage& stage, double micro_batches);

template <class N>
MemoryEstimate<N> memory_estimate(const Analysed& a, const Cluster& cluster);
// What a GPU of the fullest stage needs at most, by which a plan fits or not: the upper end of what tensors take, and
// what lives outside the allocator.
template <class N>
Bytes<N> needed_at_most(const MemoryEstimate<N>& m) {
  const StageMemory<N>& peak = m.stages[m.peak_stage];
  return m.high_allocated.value_or(peak.allocated) + peak.context;
}
// Does a node need more host memory than it has?
template <class N>
bool host_short(const MemoryEstimate<N>& m) {
  return m.host && m.host_capacity && *m.host_capacity < *m.host;
}

// Parts that the search's tables (src/search) share with the ledger.
// How many ranks share the states of a weight: those of dp x cp; of an expert's weight those left beside ep
// and etp (the world of a stage is the same for both); at most hsdp of them.
std::int64_t shard_group(const Layout& layout, bool expert);
// Does a stage of sharding have several ranks to share a state between?
bool can_shard(const Model& model, const Layout& layout);
// Reserved memory over allocated; and does this moment's working set (logits and transients) add to what is
// reserved at the peak of another moment? Where the peak is the optimizer step and any does, so does the most
// that is kept for the backward pass at those moments.
const Scalar& reserved_factor_of(const Stack& stack, const Recipe& recipe);
bool reserved_beside_peak(const Stack& stack, Moment moment);
// Of one moment: what is kept for the backward pass, and its working set (logits and transients).
template <class N>
struct MomentParts {
  Moment moment = Moment::init;
  Bytes<N> kept, working;
};
template <class N>
Bytes<N> reserved_bytes(const Stack& stack, const Recipe& recipe, const Bytes<N>& allocated, Moment peak,
                        const std::vector<MomentParts<N>>& moments);
// Of a stage, at every moment alike: weights and their copies in a scaled precision, gradients, optimizer states; and
// caches and workspaces, of which more layers of a kind need no more.
std::vector<Line> state_lines(const Analysed& a, const Stage& stage);
std::vector<Line> buffer_lines(const Analysed& a, const Stage& stage);
// CUDA context, kernels and communicators.
template <class N>
Bytes<N> outside_allocator(const Stack& stack, const Recipe& recipe, const Cluster& cluster);

// The upper end of a band; `bytes` where there is none.
template <class N>
Bytes<N> upper_end(const Bytes<N>& bytes, const Scalar& band, const char* name);
// Upper ends decide, each with what lives outside the allocator: what tensors need, and what the allocator may reserve
// for them. Bytes.
Verdict verdict_of(double capacity, double needed, double reserved, bool host_short);

// Ranks of the node whose ranks keep most on the host, by stage: `by_stage` bytes of one rank.
std::vector<std::pair<std::size_t, double>> fullest_node(const Layout& layout, std::int64_t gpus_per_node,
                                                         const std::vector<double>& by_stage);

// Elements of a state that an optimizer keeps, of the whole model and uncut.
double state_elements(const Analysed& a, const OptimizerSlot& slot);

// Ranks' communicators of more than one member: tp, cp, dp, pp, ep, etp.
int communicators(const Layout& layout);

}  // namespace preflop
