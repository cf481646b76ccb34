#include "src/search/tables.hpp"

#include <algorithm>

#include "src/cost/saved.hpp"
#include "src/stack/rules/rules.hpp"

namespace preflop {

namespace {

std::size_t digit(const Position& at, PlanAxis axis) { return at[static_cast<std::size_t>(axis)]; }

double weights_of(const Items& items) {
  double out = 0;
  for (const Item item : {Item::dense, Item::tied, Item::with_head, Item::expert})
    out += items[static_cast<std::size_t>(item)];
  return out;
}

std::array<double, 2> largest_weight(const BlockCost& block) {
  std::array<double, 2> out{};
  for (const WeightItem& w : block.weights) {
    double& most = out[w.expert() ? 1 : 0];
    most = std::max(most, w.volume.elements.real());
  }
  return out;
}

// Has some state of an optimizer, or a weight itself, not every weight? The forms count each state for all of them.
bool states_of_some_weights(const Question& question) {
  const ScaledPrecision* scaled = question.stack->precision(question.recipe.precision);
  if (scaled != nullptr && scaled->replaces_weights) return true;
  const Result<const Optimizer*> optimizer = find_optimizer(question.recipe.optimizer);
  return optimizer && std::any_of((*optimizer)->slots.begin(), (*optimizer)->slots.end(),
                                  [](const OptimizerSlot& slot) { return slot.over != OptimizerSlot::Over::all; });
}

// Of each option of recomputation the first that makes the same operators of a block again by the same segments.
std::vector<std::uint32_t> same_segments(const std::array<Block, 2>& rewritten, const Block& kind, bool is_layer,
                                         const std::vector<std::vector<Segment>>& options) {
  std::vector<std::vector<std::string>> seen;  // per option: which segment makes each operator again
  std::vector<std::uint32_t> out;
  for (const std::vector<Segment>& option : options) {
    Setting setting;
    std::vector<std::string> what;
    for (const Segment& s : option) {
      if (s.applies_to(kind)) setting.segments.push_back(&s);
    }
    for (std::size_t b = 0; is_layer && b < rewritten.size(); ++b) {
      for (const Op& op : rewritten[b].ops) {
        const int at = segment_of(op, setting);
        what.push_back(at < 0 ? "" : setting.segments[static_cast<std::size_t>(at)]->name);
      }
    }
    const auto known = std::find(seen.begin(), seen.end(), what);
    out.push_back(static_cast<std::uint32_t>(known - seen.begin()));
    seen.push_back(std::move(what));
  }
  return out;
}

}  // namespace

Tables::Tables(const Question& question, const Space& space) : question_(question), space_(space) {
  for (int i = 0; i < kPlanAxes; ++i) sizes_[static_cast<std::size_t>(i)] = space.size(static_cast<PlanAxis>(i));
  const Model& model = *question.model;
  Recipe recipe = question.recipe;
  for (const Recompute& option : space.recompute) {
    recipe.recompute = option;
    auto segments = recompute_segments(*question.stack, recipe);
    segments_.push_back(segments ? std::move(segments).value() : std::vector<Segment>{});
  }
  const std::size_t kinds = static_cast<std::size_t>(block_kinds(model, question.recipe));
  for (std::size_t i = 0; i < kinds; ++i) {
    const Block& kind = model.blocks[static_cast<std::size_t>(model.kind(static_cast<int>(i)))];
    std::array<Block, 2> both;
    for (const std::int64_t cp : {1, 2}) {
      recipe.layout.cp = cp;
      both[static_cast<std::size_t>(cp - 1)] = rewrite(kind, *question.stack, recipe);
    }
    std::vector<std::uint32_t> canonical = same_segments(both, kind, model.is_layer(static_cast<int>(i)), segments_);
    rewritten_.push_back(std::move(both));
    canonical_.push_back(std::move(canonical));
    add_index(static_cast<int>(i));
  }
  weights_.resize(kinds);
  for (auto& of_block : weights_)
    of_block.resize(std::size_t{2} * space.tp.size() * space.ep.size() * space.etp.size());
  structures_.resize(space.pp.size() * space.vpp.size() * space.split.size());
  const ScaledPrecision* scaled = question.stack->precision(question.recipe.precision);
  residue_by_shards_ = states_of_some_weights(question);
  states_differ_ = residue_by_shards_ || (scaled != nullptr && scaled->weight_copies > 0);
  largest_matters_ = std::any_of(question.stack->live.begin(), question.stack->live.end(),
                                 [](const LiveRule& rule) { return rule.unit == LiveRule::Unit::layer; });
  for (const auto pp : space.pp) {
    for (const int zero : space.zero) {
      recipe.layout.pp = pp;
      recipe.layout.zero = zero;
      accumulates_[accumulates(recipe) ? 1 : 0] = true;
    }
  }
  recipe = question.recipe;
  recipe.layout.pp = 1;  // where zero 3 is what adds no gradients up
  for (const LossKind loss : space.loss) {
    for (int kind = 0; kind < 4 && !question.cluster.memory_only; ++kind) {
      recipe.loss = loss;
      recipe.layout.vpp = kind >= 2 ? 2 : 1;
      recipe.layout.zero = kind % 2 == 1 ? 0 : 3;
      prices_.push_back(preflop::prices<double>(question.cluster, *question.stack, recipe, TimeParameters::built_in()));
    }
  }
}

// Pieces, where there are none yet, and memory where it is asked for.
void Tables::fill(BlockRow& out, int block, const Position& at, bool memory) const {
  const std::size_t b = static_cast<std::size_t>(block);
  const Recipe r = digits_at(question_, space_, at);
  const std::vector<Segment>& segments = segments_[digit(at, PlanAxis::recompute)];
  const Setting setting = setting_of(*question_.model, *question_.stack, r, segments, block);
  const Block& rewritten = rewritten_[b][r.layout.cp > 1 ? 1 : 0];
  const bool timed = out.timed || prices_.empty();
  const BlockCost cost = timed    ? analyse_memory(rewritten, setting)
                         : memory ? analyse(rewritten, setting)
                                  : analyse_work(rewritten, setting);
  out.legal = out.legal && cost.legal;
  out.items = items_of(cost);
  out.timed = true;
  for (std::size_t kind = 0; kind < 2 && !timed; ++kind) {
    if (!accumulates_[kind]) continue;
    const Piece<double> piece =
        price_block(cost, r, question_.model->is_layer(block), prices(false, kind == 1, digit(at, PlanAxis::loss)));
    out.pieces[kind] = static_cast<const PieceSums<double>&>(piece);  // a table needs no more of it
  }
}

// A row for every combination of what the block can see.
void Tables::add_index(int block) {
  const bool layer = question_.model->is_layer(block);
  const bool experts = rewritten_.back()[0].extents[Axis::experts].get() > 0;
  std::array<std::size_t, kPlanAxes> strides{};
  std::size_t positions = 1;
  const auto sees = [&](PlanAxis axis, bool seen) {
    if (!seen) return;
    strides[index(axis)] = positions;
    positions *= size(axis);
  };
  // Side by side what is asked for one after the other.
  sees(PlanAxis::recompute, layer);
  sees(PlanAxis::loss, !layer && block != question_.model->embedding);
  for (const PlanAxis axis : {PlanAxis::etp, PlanAxis::ep}) sees(axis, experts);
  for (const PlanAxis axis : {PlanAxis::micro_batch, PlanAxis::sp, PlanAxis::cp, PlanAxis::tp}) sees(axis, true);
  strides_.push_back(strides);
  index_.emplace_back(positions, -1);
}

const BlockRow& Tables::row(int block, const Position& at, bool memory) {
  const std::size_t b = static_cast<std::size_t>(block);
  const std::array<std::size_t, kPlanAxes>& strides = strides_[b];
  const std::uint32_t recompute = canonical_[b][digit(at, PlanAxis::recompute)];
  std::size_t n = strides[index(PlanAxis::recompute)] * recompute;
  for (const PlanAxis axis :
       {PlanAxis::tp, PlanAxis::cp, PlanAxis::sp, PlanAxis::micro_batch, PlanAxis::ep, PlanAxis::etp, PlanAxis::loss})
    n += strides[index(axis)] * digit(at, axis);
  std::int32_t& entry = index_[b][n];
  if (entry >= 0 && (entry % 2 == 1 || !memory)) return row_of(entry);
  memory = memory || prices_.empty();
  if (entry < 0) {
    if (filled_ % kChunk == 0) rows_.push_back(std::make_unique<std::array<BlockRow, kChunk>>());
    entry = static_cast<std::int32_t>(2 * filled_++);
  }
  entry += memory ? 1 : 0;
  Position seen{};  // what this block does not see stays at its first value
  for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = strides[i] > 0 ? at[i] : 0;
  if (strides[index(PlanAxis::recompute)] > 0) seen[index(PlanAxis::recompute)] = recompute;
  BlockRow& out = row_of(entry);
  fill(out, block, seen, memory);
  return out;
}

const BlockRow& Tables::weights(int block, const Position& at) {
  const std::size_t b = static_cast<std::size_t>(block);
  const bool experts = rewritten_[b][0].extents[Axis::experts].get() > 0;
  const bool cp = space_.cp[digit(at, PlanAxis::cp)] > 1;
  std::size_t n = digit(at, PlanAxis::tp) * 2 + (cp ? 1 : 0);
  n = n * space_.ep.size() + (experts ? digit(at, PlanAxis::ep) : 0);
  n = n * space_.etp.size() + (experts ? digit(at, PlanAxis::etp) : 0);
  std::unique_ptr<BlockRow>& slot = weights_[b][n];
  if (slot) return *slot;
  slot = std::make_unique<BlockRow>();
  const Setting setting =
      setting_of(*question_.model, *question_.stack, digits_at(question_, space_, at), segments_.front(), block);
  BlockCost block_weights = analyse_weights(rewritten_[b][cp ? 1 : 0], setting);
  slot->legal = block_weights.legal;
  slot->items = items_of(block_weights);
  const double elements = weights_of(slot->items);
  const std::array<double, 2> largest = largest_weight(block_weights);
  slot->weights = std::make_unique<BlockWeights>(BlockWeights{elements, largest, std::move(block_weights)});
  return *slot;
}

}  // namespace preflop
