#include "src/step/memory.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "src/base/text.hpp"
#include "src/stack/legality.hpp"
#include "src/stack/rules/rules.hpp"

namespace preflop {

namespace {

const BlockCost& cost(const Analysed& a, int block) { return a.blocks[static_cast<std::size_t>(block)]; }

// A stage's blocks with how often each occurs, in forward order.
std::vector<BlockRun> runs(const Analysed& a, const Stage& stage) {
  std::vector<BlockRun> out;
  if (stage.embedding) out.push_back({a.model->embedding, 1});
  out.insert(out.end(), stage.layers.begin(), stage.layers.end());
  if (stage.head) out.push_back({a.model->head, 1});
  return out;
}

// A tied head next to its embedding shares the weight; alone on its stage it holds a copy.
bool holds(const Stage& stage, const WeightItem& weight) { return weight.owned || !stage.embedding; }

// States that follow the parameters: weight, gradient, optimizer. `shard` cuts the stage's parameters
// into equal pieces, the last one padded.
void add_state(std::vector<Line>& out, const Analysed& a, const Stage& stage, Term term, std::string_view what,
               Dtype dtype, std::int64_t shard, std::string_view source) {
  if (width(dtype) == 0) return;
  if (shard == 1) {
    for (const BlockRun& run : runs(a, stage)) {
      for (const WeightItem& w : cost(a, run.block).weights) {
        if (!holds(stage, w)) continue;
        out.push_back({term, what, name(w.tag), w.volume, width(dtype), static_cast<double>(run.count),
                       static_cast<double>(run.count), source});
      }
    }
    return;
  }
  Line line{term, what, "", {}, width(dtype), 1, 1, source};
  line.volume.elements = ceil_div(stage_parameters(a, stage), shard);
  line.volume.sharded_from = stage_parameters(a, stage);
  line.volume.sharded_by = shard;
  out.push_back(line);
}

std::int64_t shard_group(const Layout& l) {
  const std::int64_t whole = l.dp * l.cp;
  return l.hsdp > 0 ? std::min(l.hsdp, whole) : whole;
}

void add_states(std::vector<Line>& out, const Analysed& a, const Stage& stage) {
  const Recipe& r = a.recipe;
  const std::int64_t shard = shard_group(r.layout);
  const int zero = r.layout.zero;
  add_state(out, a, stage, Term::weights, "weight", r.weight_dtype, zero >= 3 ? shard : 1, "recipe weight_dtype");
  add_state(out, a, stage, Term::gradients, "gradient", r.grad_dtype, zero >= 2 ? shard : 1, "recipe grad_dtype");
  const std::int64_t optimizer_shard = zero >= 1 ? shard : 1;
  add_state(out, a, stage, Term::optimizer, "master weight", r.master_dtype, optimizer_shard, "recipe master_dtype");
  add_state(out, a, stage, Term::optimizer, "first moment", r.moment_dtype, optimizer_shard, "recipe moment_dtype");
  add_state(out, a, stage, Term::optimizer, "second moment", r.moment_dtype, optimizer_shard, "recipe moment_dtype");
}

// One cached weight gradient per distinct GEMM of the stage's layers: merged products are one GEMM.
void add_wgrad_dummies(std::vector<Line>& out, const Analysed& a, const Stage& stage) {
  const Scalar& rule = a.stack->wgrad_dummy_width;
  if (rule.value == 0) return;
  std::set<std::tuple<std::int64_t, std::int64_t>> seen;  // (produced, contracted) elements of the whole GEMM
  for (const BlockRun& run : stage.layers) {
    const BlockCost& block = cost(a, run.block);
    for (std::size_t i = 0; i < block.weights.size(); ++i) {
      const WeightItem& w = block.weights[i];
      if (w.role != Role::matrix) continue;
      std::vector<const WeightItem*> gemm;
      bool first = true;
      for (std::size_t j = 0; j < block.weights.size(); ++j) {
        const WeightItem& other = block.weights[j];
        if (other.role != Role::matrix || (j != i && (w.merge < 0 || other.merge != w.merge))) continue;
        first = first && j >= i;
        gemm.push_back(&other);
      }
      if (!first) continue;
      Count elements = 0;
      for (const WeightItem* part : gemm) elements += part->volume.elements;
      const std::int64_t k = w.volume.factors[0].extent.get() / w.volume.factors[0].divisor;
      if (!seen.insert({elements.get() / k, k}).second) continue;
      for (const WeightItem* part : gemm) {
        out.push_back(
            {Term::buffers, "cached weight gradient", name(part->tag), part->volume, rule.value, 1, 1, rule.source});
      }
    }
  }
}

void add_buffers(std::vector<Line>& out, const Analysed& a, const Stage& stage) {
  add_wgrad_dummies(out, a, stage);
  const Mesh mesh = Mesh::of(a.recipe.layout);
  if (stage.head && a.stack->gathered_input_kept.value > 0 && mesh.sp) {
    const BlockCost& head = cost(a, a.model->head);
    out.push_back({Term::buffers, "gathered input of the output layer", "head.out",
                   gathered_volume("bsh", head.extents, mesh), a.recipe.activation_width(), 1, 1,
                   a.stack->gathered_input_kept.source});
  }
  if (a.stack->workspace_bytes.value > 0) {
    Line line{Term::buffers, "workspaces", "", {}, 1, 1, 1, a.stack->workspace_bytes.source};
    line.volume.elements = static_cast<std::int64_t>(a.stack->workspace_bytes.value);
    out.push_back(line);
  }
}

// Micro-batches whose logits wait with the rest. All of them under gpipe; else the backward of the loss
// follows its forward at once, also on an interleaved stage, whose `flights` are those of its layers.
double flights_of(const Analysed& a, int block, double flights) {
  return block == a.model->head && a.recipe.layout.schedule != "gpipe" ? std::min(flights, 1.0) : flights;
}

// Saved tensors of a block, `layers` layers times `flights` micro-batches each.
void add_saved(std::vector<Line>& out, const BlockCost& block, double layers, double flights,
               const std::vector<bool>* alive) {
  if (layers * flights <= 0) return;
  static constexpr std::string_view kWhat[] = {"kept input", "kept output", "private copy", "row statistics"};
  for (std::size_t i = 0; i < block.saved.size(); ++i) {
    if (alive != nullptr && !(*alive)[i]) continue;
    const SavedItem& s = block.saved[i];
    out.push_back({s.is_logits ? Term::logits : Term::activations, kWhat[static_cast<int>(s.what)], name(s.tag),
                   s.volume, s.width, layers * flights, layers, s.source});
  }
}

void add_walk(std::vector<Line>& out, const BlockCost& block) {
  add_saved(out, block, 1, 1, &block.walk.alive);
  for (const TransientItem& t : block.walk.transients) {
    out.push_back({Term::transients, t.what, name(t.tag), t.volume, t.width, 1, 1, "backward walk of the block"});
  }
}

// Activations when one block (the stage's `walking` layer, or its head) runs backward while the
// stage's other layers of `flights` micro-batches wait. Blocks of the current micro-batch that come
// after the walking one have been freed.
void add_activations(std::vector<Line>& out, const Analysed& a, const Stage& stage, double flights,
                     std::size_t walking) {
  const std::vector<BlockRun> all = runs(a, stage);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const BlockCost& block = cost(a, all[i].block);
    const double count = static_cast<double>(all[i].count);
    add_saved(out, block, count, flights_of(a, all[i].block, flights) - 1, nullptr);
    if (i < walking) add_saved(out, block, count, 1, nullptr);
    if (i == walking) add_saved(out, block, count - 1, 1, nullptr);
  }
  add_walk(out, cost(a, all[walking].block));
}

// Weights gathered for the layer at work (zero 3): one layer's at a time.
void add_gathered_weights(std::vector<Line>& out, const Analysed& a, const Stage& stage) {
  if (a.recipe.layout.zero < 3 || shard_group(a.recipe.layout) == 1) return;
  const BlockCost* largest = nullptr;
  double most = 0;
  for (const BlockRun& run : runs(a, stage)) {
    double bytes = 0;
    for (const WeightItem& w : cost(a, run.block).weights) bytes += w.volume.elements.real();
    if (bytes > most) {
      most = bytes;
      largest = &cost(a, run.block);
    }
  }
  if (largest == nullptr) return;
  for (const WeightItem& w : largest->weights) {
    out.push_back({Term::transients, "gathered weight", name(w.tag), w.volume, width(a.recipe.weight_dtype), 1, 1,
                   "ZeRO stage 3: the layer at work is whole"});
  }
}

std::vector<std::int64_t> walking_block(const Analysed& a, const Stage& stage, Moment moment) {
  const std::int64_t blocks = static_cast<std::int64_t>(runs(a, stage).size());
  const std::int64_t first_layer = stage.embedding ? 1 : 0;
  const std::int64_t last_layer = blocks - 1 - (stage.head ? 1 : 0);
  if (moment == Moment::loss && stage.head) return {blocks - 1};
  if (last_layer < first_layer) return {};
  if (moment == Moment::last_layer_backward) return {last_layer};
  if (moment == Moment::first_layer_backward) return {first_layer};
  return {};
}

// The first layer runs last: of its own run only it is left, every later run is freed.
void add_first_layer(std::vector<Line>& out, const Analysed& a, const Stage& stage, double flights,
                     std::size_t walking) {
  const std::vector<BlockRun> all = runs(a, stage);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const BlockCost& block = cost(a, all[i].block);
    add_saved(out, block, static_cast<double>(all[i].count), flights_of(a, all[i].block, flights) - 1, nullptr);
    if (i < walking) add_saved(out, block, static_cast<double>(all[i].count), 1, nullptr);
  }
  add_walk(out, cost(a, all[walking].block));
}

// A size beyond 2^53 anywhere makes every number that it enters meaningless.
Status check_countable(const Analysed& a) {
  bool ok = summarise(*a.model).params_total.valid();
  for (const BlockCost& block : a.blocks) ok = ok && block.legal;
  for (const Stage& stage : a.stages) ok = ok && stage_parameters(a, stage).valid();
  if (ok) return Nothing{};
  return Error{"model", "its parameters or the activations of one micro-batch are more than 2^53 elements",
               "a smaller model, --seq or --micro-batch"};
}

}  // namespace

Result<Analysed> analyse_recipe(const Model& model, const Stack& stack, const Recipe& recipe) {
  if (Status s = check_legal(model, stack, recipe); !s) return s.error();
  std::int64_t layers = 0;
  for (const BlockRun& run : model.layers) layers += run.count;
  Result<Split> split = split_layers(layers, recipe.layout, stack);
  if (!split) return split.error();
  Analysed out;
  out.model = &model;
  out.stack = &stack;
  out.recipe = recipe;
  out.stages = make_stages(model, *split, recipe.layout.vpp);
  out.split_how = split->how;
  Result<Segment> segment = recompute_segment(stack, recipe.recompute);
  if (!segment) return segment.error();
  out.segment = std::move(segment).value();
  Setting setting;
  setting.stack = &stack;
  setting.loss = stack.loss(recipe.loss);
  setting.mesh = Mesh::of(recipe.layout);
  setting.micro_batch = recipe.micro_batch;
  setting.seq = recipe.seq;
  setting.activation_width = recipe.activation_width();
  setting.kernel = recipe.attention;
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    const bool is_layer = static_cast<int>(i) != model.embedding && static_cast<int>(i) != model.head;
    setting.segment = is_layer && !out.segment.tags.empty() ? &out.segment : nullptr;
    out.blocks.push_back(analyse(rewrite(model.blocks[i], stack, recipe.attention, recipe.layout.cp), setting));
  }
  if (Status s = check_countable(out); !s) return s.error();
  return out;
}

Result<Segment> recompute_segment(const Stack& stack, const Recompute& recompute) {
  Segment out;
  std::vector<std::string> modules = recompute.modules;
  if (recompute.kind == RecomputeKind::none) return out;
  if (recompute.kind == RecomputeKind::selective) modules = {stack.selective};
  if (recompute.kind == RecomputeKind::full) modules = {"full"};
  if (recompute.layers > 0) {
    return Error{"--recompute", "full:N is not built yet", "none, selective, full or modules of the stack"};
  }
  for (const std::string& module : modules) {
    const Segment* found = stack.segment(module);
    if (found == nullptr) {
      std::vector<std::string> known;
      for (const Segment& s : stack.segments) known.push_back(s.name);
      return text::unknown_name("--recompute", "module of stack " + stack.name, module, known);
    }
    out.name += (out.name.empty() ? "" : ",") + found->name;
    out.tags.insert(out.tags.end(), found->tags.begin(), found->tags.end());
    out.source = found->source;
  }
  return out;
}

Count stage_parameters(const Analysed& a, const Stage& stage) {
  Count n = 0;
  for (const BlockRun& run : runs(a, stage)) {
    Count block = 0;
    for (const WeightItem& w : cost(a, run.block).weights) {
      if (holds(stage, w)) block += w.volume.elements;
    }
    n += block * Count(run.count);
  }
  return n;
}

int communicators(const Layout& l) {
  return (l.tp > 1 ? 1 : 0) + (l.cp > 1 ? 1 : 0) + (l.dp * l.cp > 1 ? 1 : 0) + (l.pp > 1 ? 1 : 0);
}

std::vector<Line> lines_at(const Analysed& a, const Stage& stage, Moment moment) {
  std::vector<Line> out;
  const bool at_rest = moment == Moment::init || moment == Moment::end_of_backward || moment == Moment::optimizer_step;
  if (!at_rest && (moment == Moment::reduction || walking_block(a, stage, moment).empty())) return out;
  add_states(out, a, stage);
  add_buffers(out, a, stage);
  if (at_rest) return out;
  const double flights = in_flight(a.recipe.layout, stage.index, a.recipe.micro_batches());
  const std::size_t walking = static_cast<std::size_t>(walking_block(a, stage, moment).front());
  if (moment == Moment::first_layer_backward)
    add_first_layer(out, a, stage, flights, walking);
  else
    add_activations(out, a, stage, flights, walking);
  add_gathered_weights(out, a, stage);
  return out;
}

namespace {

template <class N>
StageMemory<N> stage_memory(const Analysed& a, const Stage& stage) {
  StageMemory<N> out;
  out.stage = stage.index;
  out.layers = stage.layer_count();
  std::vector<N> candidates;
  double most = -1;
  for (int m = 0; m < kMoments; ++m) {
    const Moment moment = static_cast<Moment>(m);
    const std::vector<Line> lines = lines_at(a, stage, moment);
    if (lines.empty()) continue;
    Ledger<N> ledger = add_up<N>(lines, name(moment));
    out.moments[m] = ledger.allocated;
    candidates.push_back(ledger.allocated.number());
    const double bytes = plain(ledger.allocated.number());
    if (bytes <= most) continue;
    most = bytes;
    out.moment = moment;
    for (int t = 0; t < kTerms; ++t) out.terms[t] = ledger.terms[t];
  }
  out.allocated = Bytes<N>(named(largest(candidates), "allocated", "B"));
  const Scalar& factor = a.stack->reserved_factor;
  const N reserved_factor =
      leaf<N>(factor.value, [&] { return Origin{"reserved / allocated", "", factor.source, {}}; });
  out.reserved = named(out.allocated * reserved_factor, "reserved", "B");
  const Scalar& context = a.stack->context_bytes;
  const Scalar& communicator = a.stack->communicator_bytes;
  const Bytes<N> own(leaf<N>(context.value, [&] { return Origin{"CUDA context", "B", context.source, {}}; }));
  const Bytes<N> each(
      leaf<N>(communicator.value, [&] { return Origin{"one communicator", "B", communicator.source, {}}; }));
  const N count =
      leaf<N>(communicators(a.recipe.layout), [] { return Origin{"communicators", "", "parallel sizes above 1", {}}; });
  out.context = named(own + each * count, "outside the allocator", "B");
  out.device = named(out.reserved + out.context, "device", "B");
  return out;
}

template <class N>
std::optional<Bytes<N>> checkpoint_bytes(const Analysed& a) {
  const Count params = summarise(*a.model).params_total;
  const Recipe& r = a.recipe;
  const N n = leaf<N>(params.real(), [] { return Origin{"parameters", "", "", {}}; });
  const double per = width(r.weight_dtype) + width(r.master_dtype) + 2 * width(r.moment_dtype);
  const N each = leaf<N>(per, [] { return Origin{"weight, master and moments", "B", "recipe dtypes", {}}; });
  return Bytes<N>(named(n * each, "checkpoint", "B"));
}

}  // namespace

template <class N>
MemoryEstimate<N> memory_estimate(const Analysed& a, const Cluster& cluster) {
  MemoryEstimate<N> out;
  for (const Stage& stage : a.stages) out.stages.push_back(stage_memory<N>(a, stage));
  for (std::size_t i = 1; i < out.stages.size(); ++i) {
    if (out.stages[out.peak_stage].allocated < out.stages[i].allocated) out.peak_stage = i;
  }
  out.checkpoint = checkpoint_bytes<N>(a);
  const Datum& capacity = cluster.datum("capacity_bytes");
  if (!capacity.value) return out;
  const StageMemory<N>& peak = out.stages[out.peak_stage];
  out.capacity = Bytes<N>(leaf<N>(*capacity.value, [&] { return Origin{"capacity", "B", capacity.source, {}}; }));
  out.margin = named(*out.capacity - (peak.allocated + peak.context), "margin", "B");
  const bool fits = !(*out.capacity < peak.allocated + peak.context);
  out.verdict = !fits ? Verdict::no : *out.capacity < peak.device ? Verdict::tight : Verdict::fits;
  return out;
}
template MemoryEstimate<double> memory_estimate<double>(const Analysed&, const Cluster&);
template MemoryEstimate<Traced> memory_estimate<Traced>(const Analysed&, const Cluster&);

}  // namespace preflop
