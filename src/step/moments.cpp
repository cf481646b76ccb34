// What is alive on a GPU of a stage at each named moment.
#include <algorithm>

#include "src/step/moment_parts.hpp"

namespace preflop {

namespace {

using moments::cost;
using moments::runs;

constexpr std::string_view kDeferred = "kept for the gradient of a weight";

// Micro-batches whose logits wait with the rest. All of them under gpipe; else the backward of the loss
// follows its forward at once, also on an interleaved stage, whose `flights` are those of its layers.
double flights_of(const Analysed& a, int block, double flights) {
  return a.model->at_end(block) && a.recipe.layout.order() != "gpipe" ? std::min(flights, 1.0) : flights;
}

// Saved tensors of a block, `layers` layers times `flights` micro-batches each.
void add_saved(std::vector<Line>& out, const BlockCost& block, double layers, double flights,
               const std::vector<bool>* alive) {
  if (layers * flights <= 0) return;
  static constexpr std::string_view kWhat[] = {"kept input", "kept output", "private copy", "row statistics",
                                               "quantised input"};
  for (std::size_t i = 0; i < block.saved.size(); ++i) {
    if (alive != nullptr && !(*alive)[i]) continue;
    const SavedItem& s = block.saved[i];
    out.push_back({s.is_logits ? Term::logits : Term::activations, kWhat[static_cast<int>(s.what)], name(s.tag),
                   s.volume, s.width, layers * flights, layers, s.source});
  }
}

// What waits on the GPU.
void add_waiting(std::vector<Line>& out, const Analysed& a, int block, double layers, double flights) {
  if (offloads(*a.model, a.recipe, block) || inside_unit(*a.model, a.recipe, block)) return;
  add_saved(out, cost(a, block), layers, flights, nullptr);
}

// Tensors that are alive for a time within the backward pass.
void add_working(std::vector<Line>& out, const std::vector<SavedItem>& items, std::string_view what, double layers) {
  for (const SavedItem& s : items)
    out.push_back({Term::transients, what, name(s.tag), s.volume, s.width, layers, layers, s.source});
}

// The other layers of a unit, which has been run forward again, while its last one (of `walking`) runs backward.
void add_unit(std::vector<Line>& out, const Analysed& a, const std::vector<BlockRun>& all, std::size_t walking) {
  std::int64_t left = a.recipe.recompute.layers - 1;
  for (std::size_t i = walking + 1; i-- > 0 && left > 0;) {
    const std::int64_t others = std::min(all[i].count - (i == walking ? 1 : 0), left);
    if (others <= 0) continue;
    left -= others;
    const BlockCost& block = cost(a, all[i].block);
    add_working(out, block.unit, "recomputed", static_cast<double>(others));
    if (inside_unit(*a.model, a.recipe, all[i].block))
      add_working(out, block.saved, "recomputed", static_cast<double>(others));
  }
}

void add_walk(std::vector<Line>& out, const BlockCost& block) {
  add_saved(out, block, 1, 1, &block.walk.alive);
  for (const TransientItem& t : block.walk.transients) {
    out.push_back({Term::transients, t.what, name(t.tag), t.volume, t.width, 1, 1, "backward walk of the block"});
  }
}

// What the gradients of weights read, of the layers of the current micro-batch whose backward pass is over.
void add_behind(std::vector<Line>& out, const Analysed& a, const std::vector<BlockRun>& all, std::size_t walking,
                bool last_of_run) {
  for (std::size_t i = walking; i < all.size(); ++i) {
    const std::int64_t over = i > walking ? all[i].count : last_of_run ? all[i].count - 1 : 0;
    if (over > 0) add_working(out, cost(a, all[i].block).deferred, kDeferred, static_cast<double>(over));
  }
}

// Activations when one block (the stage's `walking` layer, or its head) runs backward while the
// stage's other layers of `flights` micro-batches wait. Blocks of the current micro-batch that come
// after the walking one have been freed; so have the others of its own run where it is the `last_of_run`.
void add_activations(std::vector<Line>& out, const Analysed& a, const Stage& stage, double flights, std::size_t walking,
                     bool last_of_run) {
  const std::vector<BlockRun> all = runs(a, stage);
  // Of an interleaved stage the first chunks may be all that there is yet.
  const double current = std::min(flights, 1.0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int block = all[i].block;
    const double count = static_cast<double>(all[i].count);
    add_waiting(out, a, block, count, flights_of(a, block, flights) - 1);
    if (i < walking) add_waiting(out, a, block, count, current);
    if (i == walking && !last_of_run) add_waiting(out, a, block, count - 1, current);
  }
  // While a layer runs backward the one before it comes back from the host.
  if (!last_of_run && all[walking].count > 1 && offloads(*a.model, a.recipe, all[walking].block))
    add_saved(out, cost(a, all[walking].block), 1, 1, nullptr);
  const bool in_unit = a.recipe.recompute.units() && !a.model->at_end(all[walking].block);
  if (in_unit && !last_of_run) add_unit(out, a, all, walking);
  if (splits_backward(a.recipe.layout)) add_behind(out, a, all, walking, last_of_run);
  add_walk(out, cost(a, all[walking].block));
}

// Logits that the trainer refers to while the layers run backward.
void add_held_outputs(std::vector<Line>& out, const Analysed& a, const Stage& stage, std::size_t walking) {
  const Scalar& held = a.stack->outputs_held;
  const std::vector<BlockRun> all = runs(a, stage);
  if (held.value == 0 || !stage.head || walking + 1 == all.size()) return;
  for (const SavedItem& s : cost(a, a.model->head).saved) {
    if (s.is_logits)
      out.push_back(
          {Term::activations, "logits that the trainer keeps", name(s.tag), s.volume, s.width, 1, 1, held.source});
  }
}

// The blocks of a stage, by position, that may be the fullest at a moment: of several, the fullest counts.
std::vector<std::size_t> walking_blocks(const Analysed& a, const Stage& stage, Moment moment) {
  const std::vector<BlockRun> all = runs(a, stage);
  if (moment == Moment::loss && stage.head) return {all.size() - 1};
  const std::size_t first_layer = stage.embedding ? 1 : 0;
  const std::size_t layers = stage.layers.size();
  if (layers == 0) return {};
  if (moment == Moment::first_layer_backward) return {first_layer};
  if (moment != Moment::last_layer_backward) return {};
  // The last layer of each kind: one before the last may be fuller than that by more than what has been freed. Of units
  // that are recomputed together the last one counts.
  const bool together = a.recipe.recompute.units() && a.recipe.recompute.layers > 1;
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first_layer);
  const auto end = begin + static_cast<std::ptrdiff_t>(layers);
  std::vector<std::size_t> out;
  for (auto at = begin; at != end; ++at) {
    const bool again = std::any_of(at + 1, end, [&](const BlockRun& later) { return later.block == at->block; });
    if (at + 1 == end || (!together && !again)) out.push_back(static_cast<std::size_t>(at - all.begin()));
  }
  for (std::size_t i = first_layer + layers; i + 1 < all.size(); ++i) out.push_back(i);  // multi-token prediction
  return out;
}

}  // namespace

bool at_rest(Moment moment) {
  return moment == Moment::init || moment == Moment::end_of_backward || moment == Moment::optimizer_step;
}

std::vector<Line> lines_at(const Analysed& a, const Stage& stage, Moment moment) {
  return lines_at(a, stage, moment, in_flight(a.recipe.layout, stage.index, a.recipe.micro_batches()));
}

std::vector<Line> lines_between(const Analysed& a, const Stage& stage, double flights) {
  std::vector<Line> out = lines_at(a, stage, Moment::init);
  for (const BlockRun& run : runs(a, stage))
    add_waiting(out, a, run.block, static_cast<double>(run.count), flights_of(a, run.block, flights));
  return out;
}

bool offloads(const Model& model, const Recipe& recipe, int block) {
  return recipe.offload.activations > 0 && model.is_layer(block) && !model.at_end(block) && block == model.kind(block);
}

bool inside_unit(const Model& model, const Recipe& recipe, int block) {
  return recipe.recompute.units() && model.is_layer(block) && block != model.kind(block);
}

std::vector<Line> deferred_lines(const Analysed& a, const Stage& stage, double micro_batches) {
  std::vector<Line> out;
  if (micro_batches <= 0) return out;
  for (const BlockRun& run : stage.layers)
    add_working(out, cost(a, run.block).deferred, kDeferred, static_cast<double>(run.count));
  for (Line& line : out) line.copies *= micro_batches;
  return out;
}

std::vector<Line> host_lines(const Analysed& a, const Stage& stage) {
  std::vector<Line> out;
  if (!a.recipe.offload.any()) return out;
  moments::add_host_states(out, a, stage);
  const double flights = in_flight(a.recipe.layout, stage.index, a.recipe.micro_batches());
  for (const BlockRun& run : stage.layers) {
    if (offloads(*a.model, a.recipe, run.block))
      add_saved(out, cost(a, run.block), static_cast<double>(run.count), flights, nullptr);
  }
  return out;
}

bool has_moment(const Analysed& a, const Stage& stage, Moment moment) {
  if (moment == Moment::reduction) return false;
  return at_rest(moment) || !walking_blocks(a, stage, moment).empty();
}

std::vector<Line> resting_lines(const Analysed& a, const Stage& stage) {
  std::vector<Line> out = state_lines(a, stage);
  moments::add_buffers(out, a, stage);
  return out;
}

std::vector<Line> lines_at(const Analysed& a, const Stage& stage, Moment moment, double flights) {
  if (!has_moment(a, stage, moment)) return {};
  return lines_at(a, stage, moment, flights, resting_lines(a, stage));
}

std::vector<Line> lines_at(const Analysed& a, const Stage& stage, Moment moment, double flights,
                           const std::vector<Line>& resting) {
  std::vector<Line> out;
  if (!has_moment(a, stage, moment)) return out;
  constexpr std::size_t kRoom = 128;  // what a moment adds, mostly
  out.reserve(resting.size() + kRoom);
  out = resting;
  if (moment == Moment::optimizer_step) moments::add_optimizer_temporary(out, a, stage);
  moments::add_live(out, a, stage, moment);
  if (at_rest(moment)) return out;
  std::vector<Line> fullest;
  double most = -1;
  for (const std::size_t walking : walking_blocks(a, stage, moment)) {
    std::vector<Line> lines;
    // The first layer runs last: of its own run only it is left.
    add_activations(lines, a, stage, flights, walking, moment == Moment::first_layer_backward);
    add_held_outputs(lines, a, stage, walking);
    double bytes = 0;
    for (const Line& line : lines) bytes += line.bytes();
    if (bytes <= most) continue;
    most = bytes;
    fullest = std::move(lines);
  }
  out.insert(out.end(), fullest.begin(), fullest.end());
  return out;
}

}  // namespace preflop
