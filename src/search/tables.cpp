#include "src/search/tables.hpp"

#include <algorithm>
#include <cmath>

#include "src/cost/saved.hpp"
#include "src/stack/rules/rules.hpp"

namespace preflop {

namespace {

std::size_t digit(const Position& at, PlanAxis axis) { return at[static_cast<std::size_t>(axis)]; }

bool same_stage(const Stage& a, const Stage& b) {
  const auto equal = [](const BlockRun& x, const BlockRun& y) { return x.block == y.block && x.count == y.count; };
  return a.embedding == b.embedding && a.head == b.head &&
         std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(), equal);
}

StageClass make_class(const Model& model, const Stage& stage) {
  StageClass out;
  out.stage = stage;
  const auto add = [&](const BlockRun& run) {
    for (auto& [block, count] : out.runs) {
      if (block != run.block) continue;
      count += run.count;
      return;
    }
    out.runs.emplace_back(run.block, run.count);
  };
  if (stage.embedding) add({model.embedding, 1});
  for (const BlockRun& run : stage.layers) add(run);
  if (stage.head) {
    for (const BlockRun& run : model.mtp) add(run);
    add({model.head, 1});
  }
  for (const auto& [block, count] : out.runs) out.blocks.push_back(block);
  std::sort(out.blocks.begin(), out.blocks.end());
  return out;
}

double weights_of(const Items& items) {
  double out = 0;
  for (const Item item : {Item::dense, Item::tied, Item::with_head, Item::expert})
    out += items[static_cast<std::size_t>(item)];
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

}  // namespace

double evaluate(const Linear& form, const std::vector<const BlockRow*>& rows, const StageSizes& sizes) {
  double out = form.constant;
  for (const FormTerm& t : form.terms) out += rows[t.block]->items[t.item] * (t.fixed + t.per_flight * sizes.flights);
  if (form.dense_whole != 0) out += form.dense_whole * sizes.dense;
  if (form.expert_whole != 0) out += form.expert_whole * sizes.expert;
  if (form.dense_shard != 0) out += form.dense_shard * std::ceil(sizes.dense / static_cast<double>(sizes.dense_group));
  if (form.expert_shard != 0)
    out += form.expert_shard * std::ceil(sizes.expert / static_cast<double>(sizes.expert_group));
  return out;
}

double parameters_of(const StageForms& forms, const std::vector<const BlockRow*>& rows, bool expert) {
  double out = 0;
  for (const FormTerm& t : forms.parameters) {
    if ((t.item == static_cast<std::uint8_t>(Item::expert)) == expert) out += rows[t.block]->items[t.item] * t.fixed;
  }
  return out;
}

namespace {

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
  residue_by_layers_ = residue_by_shards_ || (scaled != nullptr && scaled->weight_copies > 0);
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
  out.weights = weights_of(out.items);
  out.timed = true;
  out.memory = memory;
  out.block.extents = cost.extents;
  out.block.legal = out.legal;
  for (std::size_t kind = 0; kind < 2 && !timed; ++kind) {
    if (!accumulates_[kind]) continue;
    out.pieces[kind] =
        price_block(cost, r, question_.model->is_layer(block), prices(false, kind == 1, digit(at, PlanAxis::loss)));
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
  for (const PlanAxis axis : {PlanAxis::tp, PlanAxis::cp, PlanAxis::sp, PlanAxis::micro_batch}) sees(axis, true);
  for (const PlanAxis axis : {PlanAxis::ep, PlanAxis::etp}) sees(axis, experts);
  sees(PlanAxis::recompute, layer);
  sees(PlanAxis::loss, !layer && block != question_.model->embedding);
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
  std::int32_t& slot = index_[b][n];
  if (slot >= 0 && (rows_[static_cast<std::size_t>(slot)]->memory || !memory))
    return *rows_[static_cast<std::size_t>(slot)];
  if (slot < 0) {
    slot = static_cast<std::int32_t>(rows_.size());
    rows_.push_back(std::make_unique<BlockRow>());
  }
  Position seen{};  // what this block does not see stays at its first value
  for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = strides[i] > 0 ? at[i] : 0;
  if (strides[index(PlanAxis::recompute)] > 0) seen[index(PlanAxis::recompute)] = recompute;
  BlockRow& out = *rows_[static_cast<std::size_t>(slot)];
  fill(out, block, seen, memory || prices_.empty());
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
  slot->block = analyse_weights(rewritten_[b][cp ? 1 : 0], setting);
  slot->legal = slot->block.legal;
  slot->items = items_of(slot->block);
  slot->weights = weights_of(slot->items);
  return *slot;
}

const Structure& Tables::structure(const Position& at) {
  const std::array<std::size_t, 3> key = {digit(at, PlanAxis::pp), digit(at, PlanAxis::vpp),
                                          digit(at, PlanAxis::split)};
  std::unique_ptr<Structure>& slot = structures_[(key[0] * space_.vpp.size() + key[1]) * space_.split.size() + key[2]];
  if (slot) return *slot;
  slot = std::make_unique<Structure>();
  Structure& out = *slot;
  const Model& model = *question_.model;
  Layout layout = question_.recipe.layout;
  layout.pp = space_.pp[key[0]];
  layout.vpp = space_.vpp[key[1]];
  const auto choice = split_choice(layer_count(model), layout.pp, layout.vpp, space_.split[key[2]], *question_.stack);
  out.exists = choice.has_value();
  if (!choice) return out;
  if (!choice->empty()) layout.layers_per_stage = *choice;
  const Result<Split> split = split_model(model, *question_.stack, layout);
  if (!split) {
    out.refused = split.error();
    return out;
  }
  // The stack's own rule, where it is in the space, may come to the same split.
  const bool rule_too = std::find(space_.split.begin(), space_.split.end(), 0) != space_.split.end();
  if (!choice->empty() && rule_too) {
    Layout own = layout;
    own.layers_per_stage.clear();
    const Result<Split> rule = split_model(model, *question_.stack, own);
    out.exists = !rule || rule->layers != split->layers;
    if (!out.exists) return out;
  }
  if (Status s = check_units(model, *split, question_.recipe.recompute); !s) {
    out.refused = s.error();
    return out;
  }
  out.layers_per_stage = *choice;
  Recipe recipe = question_.recipe;
  recipe.layout = layout;
  for (const Stage& stage : make_stages(model, *split, recipe)) {
    if (!out.classes.empty() && same_stage(out.classes.back().stage, stage)) {
      ++out.classes.back().count;
      continue;
    }
    out.classes.push_back(make_class(model, stage));
    StageClass& made = out.classes.back();
    made.forms = &family_of(stage, layout.pp > 1);
    std::vector<std::pair<int, std::int64_t>> family = made.runs;
    for (auto& run : family) run.second = residue_by_layers_ ? run.second : 1;
    made.family = static_cast<std::size_t>(std::find(families_.begin(), families_.end(), family) - families_.begin());
    if (made.family == families_.size()) families_.push_back(std::move(family));
  }
  return out;
}

namespace {

// Is `a` never more than `b`? With one micro-batch in flight or more and sizes that are not negative, no term may be,
// and what `b` has beside them may not take away.
bool never_more(const Linear& a, const Linear& b) {
  const auto term_of = [](const Linear& form, const FormTerm& like) {
    for (const FormTerm& t : form.terms) {
      if (t.block == like.block && t.item == like.item) return t;
    }
    return FormTerm{like.block, like.item, 0, 0};
  };
  const auto at_most = [](const FormTerm& x, const FormTerm& y) {
    return x.fixed + x.per_flight <= y.fixed + y.per_flight && x.per_flight <= y.per_flight;
  };
  const auto here = [&](const FormTerm& t) { return at_most(t, term_of(b, t)); };
  const auto there = [&](const FormTerm& t) { return at_most(term_of(a, t), t); };
  return a.constant <= b.constant && std::all_of(a.terms.begin(), a.terms.end(), here) &&
         std::all_of(b.terms.begin(), b.terms.end(), there);
}

void rank_activations(FormFamily& family) {
  const std::vector<const Linear*>& all = family.activations;
  family.above.assign(all.size(), {});
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (i != j && never_more(*all[i], *all[j])) family.above[i].push_back(j);
    }
  }
}

}  // namespace

FormFamily& Tables::family_of(const Stage& stage, bool pipeline) {
  for (const auto& known : form_families_) {
    if (known->pipeline == pipeline && same_stage(known->stage, stage)) return *known;
  }
  form_families_.push_back(std::make_unique<FormFamily>());
  form_families_.back()->pipeline = pipeline;
  form_families_.back()->stage = stage;
  return *form_families_.back();
}

const StageForms& Tables::forms(const StageClass& kind, int zero, bool dense_sharded, bool expert_sharded,
                                const std::vector<const BlockRow*>& rows) {
  int largest = -1;
  if (largest_matters_) {
    double most = 0;
    for (const BlockRun& run : kind.stage.layers) {
      const double weights = rows[static_cast<std::size_t>(run.block)]->weights;
      if (!(most < weights)) continue;
      most = weights;
      largest = run.block;
    }
  }
  const std::size_t blocks = kinds() + 1;
  const std::size_t slot =
      ((static_cast<std::size_t>(zero) * 2 + (dense_sharded ? 1 : 0)) * 2 + (expert_sharded ? 1 : 0)) * blocks +
      static_cast<std::size_t>(largest + 1);
  FormFamily& family = *kind.forms;
  if (family.forms.size() <= slot) family.forms.resize(4 * 4 * blocks);
  std::unique_ptr<StageForms>& out = family.forms[slot];
  if (out) return *out;
  const FormKey key{kind.stage.embedding, kind.stage.head, family.pipeline, zero,
                    dense_sharded,        expert_sharded,  largest,         kind.stage.layers};
  Recipe base = question_.recipe;
  if (!question_.fixed("schedule")) base.layout.schedule = question_.stack->schedules.front();
  out = std::make_unique<StageForms>(stage_forms(*question_.model, *question_.stack, base, key));
  std::vector<StageForm>& all = out->forms;
  for (StageForm& form : all) {
    const auto alike =
        std::find_if(all.begin(), all.end(), [&](const StageForm& other) { return other.states == form.states; });
    form.states_of = static_cast<std::size_t>(alike - all.begin());
    const auto same = std::find_if(family.activations.begin(), family.activations.end(),
                                   [&](const Linear* known) { return known->terms == form.activations.terms; });
    form.activation = static_cast<std::size_t>(same - family.activations.begin());
    if (same == family.activations.end()) family.activations.push_back(&form.activations);
  }
  rank_activations(family);
  return *out;
}

// The stage's blocks by their weights, as the ledger takes them.
const Analysed& Tables::analysed(const Recipe& recipe, const std::vector<const BlockRow*>& rows) {
  if (scratch_rows_ != rows) {
    scratch_rows_ = rows;
    scratch_.model = question_.model;
    scratch_.stack = question_.stack;
    scratch_.blocks.clear();
    for (const BlockRow* row : rows) scratch_.blocks.push_back(row->block);
  }
  scratch_.recipe = recipe;
  for (BlockCost& block : scratch_.blocks) block.extents[Axis::batch] = recipe.micro_batch;
  return scratch_;
}

double Tables::all_residue(const StageClass& kind, const Recipe& recipe, const std::vector<const BlockRow*>& rows) {
  const Analysed& a = analysed(recipe, rows);
  double bytes = 0;
  for (const Line& line : lines_at(a, kind.stage, Moment::init)) bytes += line.bytes();
  StageSizes sizes;
  sizes.dense_group = shard_group(recipe.layout, false);
  sizes.expert_group = shard_group(recipe.layout, true);
  const StageForms& f = forms(kind, recipe.layout.zero, sizes.dense_group > 1, sizes.expert_group > 1, rows);
  sizes.dense = parameters_of(f, rows, false);
  sizes.expert = parameters_of(f, rows, true);
  const StageForm& init = f.forms.front();
  return bytes - evaluate(init.states, rows, sizes) - evaluate(init.activations, rows, sizes);
}

double Tables::residue(const StageClass& kind, const Recipe& recipe, const Position& at,
                       const std::vector<const BlockRow*>& rows) {
  constexpr std::array kSeen = {PlanAxis::tp,          PlanAxis::cp, PlanAxis::sp,
                                PlanAxis::micro_batch, PlanAxis::ep, PlanAxis::etp};
  if (residue_by_shards_) {
    std::array<std::int64_t, 10> key = {static_cast<std::int64_t>(kind.family)};
    for (std::size_t i = 0; i < kSeen.size(); ++i) key[i + 1] = static_cast<std::int64_t>(digit(at, kSeen[i]));
    key[7] = recipe.layout.zero;
    key[8] = shard_group(recipe.layout, false);
    key[9] = shard_group(recipe.layout, true);
    const auto [known, fresh] = residues_.try_emplace(key, 0);
    if (fresh) known->second = all_residue(kind, recipe, rows);
    return known->second;
  }
  std::size_t slot = 0, all = 1;
  for (const PlanAxis axis : kSeen) {
    slot = slot * size(axis) + digit(at, axis);
    all *= size(axis);
  }
  if (plain_residues_.size() <= kind.family) plain_residues_.resize(families_.size());
  std::vector<double>& of_family = plain_residues_[kind.family];
  if (of_family.empty()) of_family.assign(all, -1);
  double& bytes = of_family[slot];
  if (bytes >= 0) return bytes;
  bytes = 0;
  for (const Line& line : buffer_lines(analysed(recipe, rows), kind.stage)) bytes += line.bytes();
  return bytes;
}

}  // namespace preflop
