#include "src/search/forms.hpp"

#include <algorithm>

namespace preflop {

namespace {

constexpr double kDominant = 1e9;  // elements of the transient that makes a block the fullest
constexpr std::int64_t kProbeStages = 8;
constexpr std::int64_t kExpertMark = std::int64_t{1} << 30;  // more than dense marks can sum to

Volume marked(std::int64_t block, Item item) {
  Volume out;
  out.elements = 1;
  out.size = 1;
  out.factors[0] = {Axis::hidden, Count(block * kItems + static_cast<int>(item)), 1};
  return out;
}

WeightItem marked_weight(std::int64_t block, Item item) {
  WeightItem w{Tag::block_add, Role::norm, {}, marked(block, item), item == Item::dense || item == Item::expert, -1};
  w.with_head = item == Item::with_head;
  if (item == Item::expert) {
    w.axes = "E";
    w.volume.elements = kExpertMark;
  }
  return w;
}

BlockCost marked_block(std::int64_t index, const Block& real, bool largest) {
  BlockCost out;
  out.extents = real.extents;
  const bool has_loss =
      std::any_of(real.ops.begin(), real.ops.end(), [](const Op& op) { return op.kind == Kind::loss; });
  for (const Item item : {Item::kept, Item::kept_logits, Item::early, Item::early_logits}) {
    const bool logits = item == Item::kept_logits || item == Item::early_logits;
    if (logits && !has_loss) continue;  // what a loss keeps (src/cost/saved)
    out.saved.push_back({Tag::block_add, Save::What::in, marked(index, item), 1, 0, logits, ""});
    out.walk.alive.push_back(item == Item::kept || item == Item::kept_logits);
  }
  out.walk.transients.push_back({Tag::block_add, "", marked(index, Item::transients), 1});
  out.unit.push_back({Tag::block_add, Save::What::in, marked(index, Item::unit), 1, 0, false, ""});
  out.deferred.push_back({Tag::block_add, Save::What::in, marked(index, Item::deferred), 1, 0, false, ""});
  for (const Item item : {Item::dense, Item::tied, Item::with_head, Item::expert})
    out.weights.push_back(marked_weight(index, item));
  if (largest) {
    for (WeightItem& w : out.weights) w.volume.elements *= 2;  // sizes are not read off the lines
  }
  return out;
}

// A recipe whose shard groups and flights are those asked for.
Recipe probe_recipe(const Recipe& base, const FormKey& key, std::int64_t flights) {
  Recipe r = base;
  Layout& l = r.layout;
  l.tp = l.cp = l.ep = l.etp = l.dp = l.vpp = 1;
  l.hsdp = 0;
  l.pp = key.pipeline ? kProbeStages : 1;
  l.zero = key.zero;
  if (key.dense_sharded) l.dp = 2;
  if (key.dense_sharded && !key.expert_sharded) l.ep = 2;
  if (!key.dense_sharded && key.expert_sharded) l.tp = 2;
  if (l.schedule == "interleaved") l.schedule = "1f1b";
  r.micro_batch = 1;
  r.global_batch = flights * l.dp;
  return r;
}

struct Reading {
  const Line* line;
  std::size_t block;
  Item item;
};

Reading read(const Line& line) {
  const std::int64_t id = line.volume.factors[0].extent.get();
  return {&line, static_cast<std::size_t>(id / kItems), static_cast<Item>(id % kItems)};
}

void add_term(std::vector<FormTerm>& out, std::size_t block, Item item, double fixed, double per_flight) {
  for (FormTerm& t : out) {
    if (t.block != block || t.item != static_cast<std::uint8_t>(item)) continue;
    t.fixed += fixed;
    t.per_flight += per_flight;
    return;
  }
  out.push_back({static_cast<std::uint16_t>(block), static_cast<std::uint8_t>(item), fixed, per_flight});
}

bool is_weight(Item item) { return item >= Item::dense; }

// Adds a line, `sign` times, to the part that is fixed and, `slope` times, to that per flight.
void add_line(Linear& out, const Line& line, double sign, double slope) {
  const double weight = line.width * line.copies;
  if (line.volume.sharded_from.get() > 0) {  // the stage's parameters, not a block's item
    const bool expert = line.volume.sharded_from.get() >= kExpertMark;
    const bool whole = line.volume.sharded_by == 1;
    if (line.what == kOneTensor) {
      (whole ? out.largest_whole : out.largest_shard) += sign * weight;
      return;
    }
    double& at = whole ? (expert ? out.expert_whole : out.dense_whole) : (expert ? out.expert_shard : out.dense_shard);
    at += sign * weight;
  } else if (line.volume.size == 1) {
    const Reading r = read(line);
    add_term(out.terms, r.block, r.item, sign * weight, slope * weight);
  } else {
    out.constant += sign * line.bytes();
  }
}

void add_lines(StageForm& out, const std::vector<Line>& lines, double sign, double slope) {
  for (const Line& line : lines) {
    const bool marked = line.volume.size == 1 || line.volume.sharded_from.get() > 0;
    if (line.term == Term::buffers && !marked) continue;
    const bool item = line.volume.size == 1 && line.volume.sharded_from.get() == 0;
    add_line(item && !is_weight(read(line).item) ? out.activations : out.states, line, sign, slope);
    if (line.term == Term::activations) add_line(out.kept, line, sign, slope);
    if (line.term == Term::logits || line.term == Term::transients) add_line(out.working, line, sign, slope);
  }
}

void drop_zeros(std::vector<FormTerm>& terms) {
  std::erase_if(terms, [](const FormTerm& t) { return t.fixed == 0 && t.per_flight == 0; });
}

bool same(const std::vector<FormTerm>& a, const std::vector<FormTerm>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const FormTerm& x, const FormTerm& y) {
    return x.block == y.block && x.item == y.item && x.fixed == y.fixed && x.per_flight == y.per_flight;
  });
}

}  // namespace

Items items_of(const BlockCost& block) {
  Items out{};
  const auto at = [&](Item item) -> double& { return out[static_cast<std::size_t>(item)]; };
  for (std::size_t i = 0; i < block.saved.size(); ++i) {
    const SavedItem& s = block.saved[i];
    if (block.walk.alive[i])
      at(s.is_logits ? Item::kept_logits : Item::kept) += s.bytes();
    else
      at(s.is_logits ? Item::early_logits : Item::early) += s.bytes();
  }
  for (const TransientItem& t : block.walk.transients) at(Item::transients) += t.bytes();
  for (const SavedItem& s : block.unit) at(Item::unit) += s.bytes();
  for (const SavedItem& s : block.deferred) at(Item::deferred) += s.bytes();
  for (const WeightItem& w : block.weights) {
    const Item own = w.expert() ? Item::expert : Item::dense;
    const Item item = w.owned ? own : w.with_head ? Item::with_head : Item::tied;
    at(item) += w.volume.elements.real();
  }
  return out;
}

Stage together(const Stage& stage) {
  Stage out = stage;
  out.layers.clear();
  for (const BlockRun& run : stage.layers) {
    const auto same =
        std::find_if(out.layers.begin(), out.layers.end(), [&](const BlockRun& r) { return r.block == run.block; });
    if (same == out.layers.end())
      out.layers.push_back(run);
    else
      same->count += run.count;
  }
  return out;
}

StageForms stage_forms(const Model& model, const Stack& stack, const Recipe& base, const FormKey& key) {
  Analysed a;
  a.model = &model;
  a.stack = &stack;
  for (int i = 0; i < block_kinds(model, base); ++i)
    a.blocks.push_back(marked_block(i, model.blocks[static_cast<std::size_t>(model.kind(i))], i == key.largest));
  Stage stage{0, key.layers, key.embedding, key.head};
  StageForms out;
  std::vector<std::size_t> candidates;  // blocks that may be the fullest
  for (const BlockRun& run : key.layers) candidates.push_back(static_cast<std::size_t>(run.block));
  if (key.head) {
    for (const BlockRun& run : model.mtp) candidates.push_back(static_cast<std::size_t>(run.block));
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  if (candidates.empty()) candidates.push_back(static_cast<std::size_t>(model.head));
  const auto beside_rest = [&](Moment moment, std::int64_t micro_batches) {
    a.recipe = probe_recipe(base, key, micro_batches);
    return lines_at(a, stage, moment, in_flight(a.recipe.layout, stage.index, a.recipe.micro_batches()), {});
  };
  StageForm resting;
  a.recipe = probe_recipe(base, key, 1);
  add_lines(resting, resting_lines(a, together(stage)), 1, 0);
  for (int m = 0; m < kMoments; ++m) {
    const Moment moment = static_cast<Moment>(m);
    const std::size_t first = out.forms.size();
    if (!has_moment(a, stage, moment)) continue;
    for (const std::size_t fullest : candidates) {
      a.blocks[fullest].walk.transients[0].volume.elements = static_cast<std::int64_t>(kDominant);
      const std::vector<Line> one = beside_rest(moment, 1), two = beside_rest(moment, 2);
      a.blocks[fullest].walk.transients[0].volume.elements = 1;
      StageForm form = resting;
      form.moment = moment;
      add_lines(form, one, 2, -1);  // at(f) = 2 at(1) - at(2) + f (at(2) - at(1))
      add_lines(form, two, -1, 1);
      for (Linear* part : {&form.activations, &form.states, &form.kept, &form.working}) drop_zeros(part->terms);
      const bool known =
          std::any_of(out.forms.begin() + static_cast<std::ptrdiff_t>(first), out.forms.end(), [&](const StageForm& f) {
            return same(f.activations.terms, form.activations.terms) && same(f.states.terms, form.states.terms);
          });
      if (!known) out.forms.push_back(std::move(form));
    }
  }
  a.recipe = probe_recipe(base, key, 1);
  const std::vector<Line> host_one = host_lines(a, stage);
  a.recipe = probe_recipe(base, key, 2);
  for (const Line& line : host_one) add_line(out.host, line, 2, -1);
  for (const Line& line : host_lines(a, stage)) add_line(out.host, line, -1, 1);
  drop_zeros(out.host.terms);
  FormKey whole = key;  // parameters: the weights of a stage that shards nothing
  whole.zero = 0;
  a.recipe = probe_recipe(base, whole, 1);
  a.recipe.offload = {};
  for (const Line& line : lines_at(a, stage, Moment::init)) {
    if (line.term != Term::weights) continue;
    const Reading r = read(line);
    add_term(out.parameters, r.block, r.item, line.copies, 0);
  }
  return out;
}

}  // namespace preflop
