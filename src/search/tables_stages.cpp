// Stages by the tables: pipelines as classes of equal stages, their forms, and what the forms leave out.
#include <algorithm>
#include <cmath>

#include "src/search/tables.hpp"

namespace preflop {

namespace {

bool same_stage(const Stage& a, const Stage& b) {
  const auto equal = [](const BlockRun& x, const BlockRun& y) { return x.block == y.block && x.count == y.count; };
  return a.embedding == b.embedding && a.head == b.head &&
         std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(), equal);
}

StageClass make_class(const Model& model, const Stage& stage) {
  StageClass out;
  out.stage = stage;
  out.together = together(stage);
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

}  // namespace

double evaluate(const Linear& form, const std::vector<const BlockRow*>& rows, const StageSizes& sizes) {
  double out = form.constant;
  for (const FormTerm& t : form.terms) out += rows[t.block]->items[t.item] * (t.fixed + t.per_flight * sizes.flights);
  if (form.largest_whole != 0) out += form.largest_whole * std::max(sizes.largest[0], sizes.largest[1]);
  if (form.largest_shard != 0)
    out += form.largest_shard * std::max(std::ceil(sizes.largest[0] / static_cast<double>(sizes.dense_group)),
                                         std::ceil(sizes.largest[1] / static_cast<double>(sizes.expert_group)));
  if (form.dense_whole != 0) out += form.dense_whole * sizes.dense;
  if (form.expert_whole != 0) out += form.expert_whole * sizes.expert;
  if (form.dense_shard != 0) out += form.dense_shard * std::ceil(sizes.dense / static_cast<double>(sizes.dense_group));
  if (form.expert_shard != 0)
    out += form.expert_shard * std::ceil(sizes.expert / static_cast<double>(sizes.expert_group));
  return out;
}

std::array<double, 2> largest_of(const StageClass& kind, const std::vector<const BlockRow*>& rows) {
  std::array<double, 2> out{};
  for (const int block : kind.blocks) {
    const std::array<double, 2>& own = rows[static_cast<std::size_t>(block)]->weights->largest;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::max(out[i], own[i]);
  }
  return out;
}

double parameters_of(const StageForms& forms, const std::vector<const BlockRow*>& rows, bool expert) {
  double out = 0;
  for (const FormTerm& t : forms.parameters) {
    if ((t.item == static_cast<std::uint8_t>(Item::expert)) == expert) out += rows[t.block]->items[t.item] * t.fixed;
  }
  return out;
}

const Structure& Tables::structure(const Position& at) {
  const std::array<std::size_t, 3> key = {at[index(PlanAxis::pp)], at[index(PlanAxis::vpp)],
                                          at[index(PlanAxis::split)]};
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
    const auto same = std::find(families_.begin(), families_.end(), made.runs);
    made.family = static_cast<std::size_t>(same - families_.begin());
    if (same == families_.end()) families_.push_back(made.runs);
    const auto alike = std::find(block_sets_.begin(), block_sets_.end(), made.blocks);
    made.block_set = static_cast<std::size_t>(alike - block_sets_.begin());
    if (alike == block_sets_.end()) block_sets_.push_back(made.blocks);
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
      const double weights = rows[static_cast<std::size_t>(run.block)]->weights->elements;
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
    for (const BlockRow* row : rows) scratch_.blocks.push_back(row->weights->block);
  }
  scratch_.recipe = recipe;
  for (BlockCost& block : scratch_.blocks) block.extents[Axis::batch] = recipe.micro_batch;
  return scratch_;
}

// What states come to beside what the forms make of them: where only some weights have them, or copies.
double Tables::state_residue(const StageClass& kind, const Recipe& recipe, const Position& at,
                             const std::vector<const BlockRow*>& rows) {
  StageSizes sizes;
  sizes.dense_group = shard_group(recipe.layout, false);
  sizes.expert_group = shard_group(recipe.layout, true);
  // As Tables::weights(): nothing else of a position decides about weights.
  std::array<std::int64_t, 8> key = {static_cast<std::int64_t>(kind.family), at[index(PlanAxis::tp)],
                                     recipe.layout.cp > 1 ? 1 : 0, at[index(PlanAxis::ep)], at[index(PlanAxis::etp)]};
  if (residue_by_shards_) {
    key[5] = recipe.layout.zero;
    key[6] = sizes.dense_group;
    key[7] = sizes.expert_group;
  }
  const auto [known, fresh] = state_residues_.try_emplace(key, 0);
  if (!fresh) return known->second;
  const Analysed& a = analysed(recipe, rows);
  double bytes = 0;
  for (const Line& line : lines_at(a, kind.together, Moment::init, 0, state_lines(a, kind.together)))
    bytes += line.bytes();
  const StageForms& f = forms(kind, recipe.layout.zero, sizes.dense_group > 1, sizes.expert_group > 1, rows);
  sizes.dense = parameters_of(f, rows, false);
  sizes.expert = parameters_of(f, rows, true);
  const StageForm& init = f.forms.front();
  return known->second = bytes - evaluate(init.states, rows, sizes) - evaluate(init.activations, rows, sizes);
}

double Tables::buffer_residue(const StageClass& kind, const Recipe& recipe, const Position& at,
                              const std::vector<const BlockRow*>& rows) {
  std::size_t slot = 0, all = 1;
  for (const PlanAxis axis :
       {PlanAxis::tp, PlanAxis::cp, PlanAxis::sp, PlanAxis::micro_batch, PlanAxis::ep, PlanAxis::etp}) {
    slot = slot * size(axis) + at[index(axis)];
    all *= size(axis);
  }
  if (buffer_residues_.size() <= kind.block_set) buffer_residues_.resize(block_sets_.size());
  std::vector<double>& of_set = buffer_residues_[kind.block_set];
  if (of_set.empty()) of_set.assign(all, -1);
  double& bytes = of_set[slot];
  if (bytes >= 0) return bytes;
  bytes = 0;
  for (const Line& line : buffer_lines(analysed(recipe, rows), kind.together)) bytes += line.bytes();
  return bytes;
}

double Tables::residue(const StageClass& kind, const Recipe& recipe, const Position& at,
                       const std::vector<const BlockRow*>& rows) {
  const double buffers = buffer_residue(kind, recipe, at, rows);
  return states_differ_ ? buffers + state_residue(kind, recipe, at, rows) : buffers;
}

}  // namespace preflop
