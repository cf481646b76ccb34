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

Tables::Tables(const Question& question, const Space& space) : question_(question), space_(space) {
  const Model& model = *question.model;
  Recipe recipe = question.recipe;
  for (const Recompute& option : space.recompute) {
    recipe.recompute = option;
    auto segments = recompute_segments(*question.stack, recipe);
    segments_.push_back(segments ? std::move(segments).value() : std::vector<Segment>{});
  }
  std::size_t positions = 1;
  for (const PlanAxis axis : {PlanAxis::tp, PlanAxis::cp, PlanAxis::sp, PlanAxis::micro_batch, PlanAxis::ep,
                              PlanAxis::etp, PlanAxis::recompute, PlanAxis::loss})
    positions *= space.size(axis);
  const std::size_t kinds = static_cast<std::size_t>(block_kinds(model, question.recipe.recompute));
  for (std::size_t i = 0; i < kinds; ++i) {
    const Block& kind = model.blocks[static_cast<std::size_t>(model.kind(static_cast<int>(i)))];
    std::array<Block, 2> both;
    for (const std::int64_t cp : {1, 2}) {
      recipe.layout.cp = cp;
      both[static_cast<std::size_t>(cp - 1)] = rewrite(kind, *question.stack, recipe);
    }
    std::vector<std::vector<std::string>> seen;  // per option: which segment makes each operator again
    std::vector<std::uint32_t> canonical;
    for (const std::vector<Segment>& option : segments_) {
      Setting setting;
      std::vector<std::string> what;
      for (const Segment& s : option) {
        if (s.applies_to(kind)) setting.segments.push_back(&s);
      }
      if (model.is_layer(static_cast<int>(i))) {
        for (const Block& block : both) {
          for (const Op& op : block.ops) {
            const int at = segment_of(op, setting);
            what.push_back(at < 0 ? "" : setting.segments[static_cast<std::size_t>(at)]->name);
          }
        }
      }
      const auto known = std::find(seen.begin(), seen.end(), what);
      canonical.push_back(static_cast<std::uint32_t>(known - seen.begin()));
      seen.push_back(std::move(what));
    }
    rewritten_.push_back(std::move(both));
    canonical_.push_back(std::move(canonical));
    index_.emplace_back(positions, -1);
  }
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

BlockRow Tables::make_row(int block, const Position& at) const {
  const std::size_t b = static_cast<std::size_t>(block);
  const Recipe r = digits_at(question_, space_, at);
  BlockRow out;
  const std::vector<Segment>& segments = segments_[digit(at, PlanAxis::recompute)];
  const Setting setting = setting_of(*question_.model, *question_.stack, r, segments, block);
  out.block = analyse(rewritten_[b][r.layout.cp > 1 ? 1 : 0], setting);
  out.legal = out.block.legal;
  out.items = items_of(out.block);
  for (const Item item : {Item::dense, Item::tied, Item::with_head, Item::expert})
    out.weights += out.items[static_cast<std::size_t>(item)];
  for (std::size_t kind = 0; kind < 2 && !prices_.empty(); ++kind) {
    if (!accumulates_[kind]) continue;
    out.pieces[kind] = price_block(out.block, r, question_.model->is_layer(block),
                                   prices(false, kind == 1, digit(at, PlanAxis::loss)));
  }
  BlockCost rest;
  rest.extents = out.block.extents;
  rest.legal = out.block.legal;
  rest.weights = std::move(out.block.weights);
  out.block = std::move(rest);
  return out;
}

const BlockRow& Tables::row(int block, const Position& at) {
  const std::size_t b = static_cast<std::size_t>(block);
  const bool layer = question_.model->is_layer(block);
  const bool experts = rewritten_[b][0].extents[Axis::experts].get() > 0;
  Position seen = at;  // what this block does not see is put to its first value
  const auto put = [&](PlanAxis axis, std::size_t v) {
    seen[static_cast<std::size_t>(axis)] = static_cast<std::uint32_t>(v);
  };
  for (const PlanAxis axis : {PlanAxis::vpp, PlanAxis::split, PlanAxis::zero, PlanAxis::hsdp}) put(axis, 0);
  put(PlanAxis::recompute, layer ? canonical_[b][digit(at, PlanAxis::recompute)] : 0);
  if (layer || block == question_.model->embedding) put(PlanAxis::loss, 0);
  if (!experts) put(PlanAxis::ep, 0), put(PlanAxis::etp, 0);
  std::size_t n = 0;
  for (const PlanAxis axis : {PlanAxis::tp, PlanAxis::cp, PlanAxis::sp, PlanAxis::micro_batch, PlanAxis::ep,
                              PlanAxis::etp, PlanAxis::recompute, PlanAxis::loss})
    n = n * space_.size(axis) + digit(seen, axis);
  std::int32_t& slot = index_[b][n];
  if (slot < 0) {
    slot = static_cast<std::int32_t>(rows_.size());
    rows_.push_back(std::make_unique<BlockRow>(make_row(block, seen)));
  }
  return *rows_[static_cast<std::size_t>(slot)];
}

const Structure& Tables::structure(const Position& at) {
  const std::array<std::uint32_t, 3> key = {at[static_cast<std::size_t>(PlanAxis::pp)],
                                            at[static_cast<std::size_t>(PlanAxis::vpp)],
                                            at[static_cast<std::size_t>(PlanAxis::split)]};
  std::unique_ptr<Structure>& slot = structures_[key];
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
  out.layers_per_stage = *choice;
  for (const Stage& stage : make_stages(model, *split, question_.recipe.recompute)) {
    if (!out.classes.empty() && same_stage(out.classes.back().stage, stage)) {
      ++out.classes.back().count;
      continue;
    }
    out.classes.push_back(make_class(model, stage));
  }
  return out;
}

const StageForms& Tables::forms(const StageClass& kind, bool pipeline, int zero, bool dense_sharded,
                                bool expert_sharded, const std::vector<const BlockRow*>& rows) {
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
  if (kind.forms.size() <= slot) kind.forms.resize(4 * 4 * blocks, nullptr);
  const StageForms*& cached = kind.forms[slot];
  if (cached != nullptr) return *cached;
  const FormKey key{kind.stage.embedding, kind.stage.head, pipeline, zero,
                    dense_sharded,        expert_sharded,  largest,  kind.stage.layers};
  Recipe base = question_.recipe;
  if (!question_.fixed("schedule")) base.layout.schedule = question_.stack->schedules.front();
  forms_.emplace_back(key, std::make_unique<StageForms>(stage_forms(*question_.model, *question_.stack, base, key)));
  cached = forms_.back().second.get();
  return *cached;
}

double Tables::residue(const StageClass& kind, const Recipe& recipe, const Position& at,
                       const std::vector<const BlockRow*>& rows) {
  auto found = std::find_if(residues_.begin(), residues_.end(), [&](const auto& r) { return r.first == kind.blocks; });
  if (found == residues_.end()) found = residues_.insert(residues_.end(), {kind.blocks, {}});
  const std::array<std::uint32_t, 6> key = {at[0],
                                            at[1],
                                            at[2],
                                            at[static_cast<std::size_t>(PlanAxis::micro_batch)],
                                            at[static_cast<std::size_t>(PlanAxis::ep)],
                                            at[static_cast<std::size_t>(PlanAxis::etp)]};
  const auto known = found->second.find(key);
  if (known != found->second.end()) return known->second;
  Analysed a;
  a.model = question_.model;
  a.stack = question_.stack;
  a.recipe = recipe;
  for (const BlockRow* row : rows) a.blocks.push_back(row->block);
  double bytes = 0;
  for (const Line& line : lines_at(a, kind.stage, Moment::init)) bytes += line.bytes();
  StageSizes sizes;
  sizes.dense_group = shard_group(recipe.layout, false);
  sizes.expert_group = shard_group(recipe.layout, true);
  const StageForms& f =
      forms(kind, recipe.layout.pp > 1, recipe.layout.zero, sizes.dense_group > 1, sizes.expert_group > 1, rows);
  sizes.dense = parameters_of(f, rows, false);
  sizes.expert = parameters_of(f, rows, true);
  const StageForm& init = f.forms.front();
  bytes -= evaluate(init.states, rows, sizes) + evaluate(init.activations, rows, sizes);
  found->second[key] = bytes;
  return bytes;
}

}  // namespace preflop
