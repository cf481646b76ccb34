// What follows a stage's parameters: states, buffers, what is gathered and reduced while the step runs.
#include <algorithm>
#include <set>
#include <tuple>

#include "src/step/moment_parts.hpp"

namespace preflop {

namespace moments {

// A stage's blocks with how often each occurs, in forward order.
std::vector<BlockRun> runs(const Analysed& a, const Stage& stage) {
  std::vector<BlockRun> out;
  if (stage.embedding) out.push_back({a.model->embedding, 1});
  out.insert(out.end(), stage.layers.begin(), stage.layers.end());
  if (!stage.head) return out;
  out.insert(out.end(), a.model->mtp.begin(), a.model->mtp.end());
  out.push_back({a.model->head, 1});
  return out;
}

}  // namespace moments

namespace {

using moments::cost;
using moments::runs;

// A tied head next to its embedding shares the weight; alone on its stage it holds a copy.
bool holds(const Stage& stage, const WeightItem& weight) {
  return weight.owned || (!weight.with_head && !stage.embedding);
}

// `params` in equal pieces, the last one padded.
void add_shard(std::vector<Line>& out, Count params, std::int64_t shard, Line line) {
  if (params.get() == 0) return;
  line.volume.elements = ceil_div(params, shard);
  line.volume.sharded_from = params;
  line.volume.sharded_by = shard;
  out.push_back(line);
}

// The stage's dense or expert parameters in equal pieces.
void add_shard(std::vector<Line>& out, const Analysed& a, const Stage& stage, bool expert, std::int64_t shard,
               const Line& line) {
  add_shard(out, stage_parameters(a, stage, expert ? Which::expert : Which::dense), shard, line);
}

// What an optimizer keeps of one weight: as many elements as it has, or, factored, its rows and columns.
Volume state_volume(const WeightItem& w, const OptimizerSlot& slot) {
  if (slot.over != OptimizerSlot::Over::factored || w.volume.size == 0) return w.volume;
  // A matrix has its hidden width on one side; one without it (between latents) its first axis.
  int side = 0;
  for (int i = 0; i < w.volume.size; ++i) {
    if (w.volume.factors[static_cast<std::size_t>(i)].axis == Axis::hidden) side = i;
  }
  Count matrices = 1, rows = 1, columns = 1;
  for (int i = 0; i < w.volume.size; ++i) {
    const Volume::Factor& f = w.volume.factors[static_cast<std::size_t>(i)];
    Count& extent = f.axis == Axis::experts ? matrices : i == side ? rows : columns;
    extent *= f.extent / Count(f.divisor);
  }
  Volume out;
  out.elements = matrices * (rows + columns);
  return out;
}

// A state that the optimizer keeps of the weights that its slot covers.
void add_slot(std::vector<Line>& out, const Analysed& a, const Stage& stage, const OptimizerSlot& slot) {
  const double bytes = slot.bytes(a.recipe.moment_dtype);
  for (const bool expert : {false, true}) {
    const std::int64_t shard = a.recipe.layout.zero >= 1 ? shard_group(a.recipe.layout, expert) : 1;
    Count elements = 0;
    for (const BlockRun& run : runs(a, stage)) {
      for (const WeightItem& w : cost(a, run.block).weights) {
        if (!holds(stage, w) || w.expert() != expert || !slot.covers(w.tag, w.role)) continue;
        const Volume volume = state_volume(w, slot);
        elements += volume.elements * Count(run.count);
        if (shard > 1) continue;
        out.push_back({Term::optimizer, slot.name, name(w.tag), volume, bytes, static_cast<double>(run.count),
                       static_cast<double>(run.count), slot.source});
      }
    }
    if (shard > 1)
      add_shard(out, elements, shard, {Term::optimizer, slot.name, expert ? "exp" : "", {}, bytes, 1, 1, slot.source});
  }
}

// Copies of a layer's matrices in a scaled precision, kept from one micro-batch to the next.
void add_weight_copies(std::vector<Line>& out, const Analysed& a, const Stage& stage) {
  const ScaledPrecision* scaled = a.stack->precision(a.recipe.precision);
  if (scaled == nullptr || scaled->weight_copies == 0) return;
  for (const BlockRun& run : runs(a, stage)) {
    if (!a.model->is_layer(run.block)) continue;
    for (const WeightItem& w : cost(a, run.block).weights) {
      if (w.role != Role::matrix || !holds(stage, w)) continue;
      out.push_back({Term::weights, "cached low-precision copies", name(w.tag), w.volume, scaled->weight_copies,
                     static_cast<double>(run.count), static_cast<double>(run.count), scaled->source});
    }
  }
}

// A weight that exists in the scaled precision only.
bool in_scaled_precision(const Analysed& a, int block, const WeightItem& w) {
  const ScaledPrecision* scaled = a.stack->precision(a.recipe.precision);
  return scaled != nullptr && scaled->replaces_weights && w.role == Role::matrix && a.model->is_layer(block);
}

// States that follow the parameters: weight, gradient, master weight.
void add_state(std::vector<Line>& out, const Analysed& a, const Stage& stage, Term term, std::string_view what,
               Dtype dtype, bool sharded, std::string_view source) {
  if (width(dtype) == 0) return;
  for (const bool expert : {false, true}) {
    const std::int64_t shard = sharded ? shard_group(a.recipe.layout, expert) : 1;
    if (shard > 1) {
      add_shard(out, a, stage, expert, shard, {term, what, expert ? "exp" : "", {}, width(dtype), 1, 1, source});
      continue;
    }
    for (const BlockRun& run : runs(a, stage)) {
      for (const WeightItem& w : cost(a, run.block).weights) {
        if (!holds(stage, w) || w.expert() != expert) continue;
        if (term == Term::weights && in_scaled_precision(a, run.block, w)) continue;
        out.push_back({term, what, name(w.tag), w.volume, width(dtype), static_cast<double>(run.count),
                       static_cast<double>(run.count), source});
      }
    }
  }
}

// One expert's part of a weight.
Volume one_expert(const WeightItem& weight) {
  if (!weight.expert()) return weight.volume;
  Volume out;
  for (int i = 0; i < weight.volume.size; ++i) {
    const Volume::Factor& f = weight.volume.factors[static_cast<std::size_t>(i)];
    if (f.axis == Axis::experts) continue;
    out.factors[static_cast<std::size_t>(out.size++)] = f;
    out.elements *= f.extent / Count(f.divisor);
  }
  return out;
}

// One cached weight gradient per distinct GEMM of the stage's layers: merged products are one GEMM, a
// grouped product has one of a single expert's shape.
void add_wgrad_dummies(std::vector<Line>& out, const Analysed& a, const Stage& stage) {
  const Scalar& rule = a.stack->wgrad_dummy_width;
  if (rule.value == 0) return;
  std::set<std::tuple<std::int64_t, std::int64_t>> seen;  // (produced, contracted) elements of the whole GEMM
  for (const BlockRun& run : runs(a, stage)) {
    if (!a.model->is_layer(run.block)) continue;
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
      for (const WeightItem* part : gemm) elements += one_expert(*part).elements;
      const Volume::Factor contracted = one_expert(w).factors[0];
      const std::int64_t k = contracted.extent.get() / contracted.divisor;
      if (!seen.insert({elements.get() / k, k}).second) continue;
      for (const WeightItem* part : gemm) {
        out.push_back({Term::buffers, "cached weight gradient", name(part->tag), one_expert(*part), rule.value, 1, 1,
                       rule.source});
      }
    }
  }
}

// The blocks whose parameters make a unit of a stage: its largest layer, an end, or everything.
std::vector<BlockRun> unit_blocks(const Analysed& a, const Stage& stage, LiveRule::Unit unit) {
  if (unit == LiveRule::Unit::embedding)
    return stage.embedding ? std::vector<BlockRun>{{a.model->embedding, 1}} : std::vector<BlockRun>{};
  if (unit == LiveRule::Unit::head)
    return stage.head ? std::vector<BlockRun>{{a.model->head, 1}} : std::vector<BlockRun>{};
  if (unit == LiveRule::Unit::stage) return runs(a, stage);
  std::vector<BlockRun> largest;
  Count most = 0;
  for (const BlockRun& run : stage.layers) {
    Count elements = 0;
    for (const WeightItem& w : cost(a, run.block).weights) elements += w.volume.elements;
    if (!(most < elements)) continue;
    most = elements;
    largest = {{run.block, 1}};
  }
  return largest;
}

bool lists(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<Line> states_of(const Analysed& a, const Stage& stage) {
  std::vector<Line> out;
  const Recipe& r = a.recipe;
  const int zero = r.layout.zero;
  add_state(out, a, stage, Term::weights, "weight", r.weight_dtype, zero >= 3, "recipe weight_dtype");
  add_state(out, a, stage, Term::gradients, "gradient", r.grad_dtype, zero >= 2, "recipe grad_dtype");
  add_state(out, a, stage, Term::optimizer, "master weight", r.master_dtype, zero >= 1, "recipe master_dtype");
  if (const Result<const Optimizer*> optimizer = find_optimizer(r.optimizer); optimizer) {
    for (const OptimizerSlot& slot : (*optimizer)->slots) add_slot(out, a, stage, slot);
  }
  return out;
}

// One tensor at a time: the square root of its second moment and that over its correction, two of its size
// (torch/optim/adamw.py _single_tensor_adamw). `group(expert)`: ranks that share a weight.
template <class Group>
void add_largest_tensor(std::vector<Line>& out, const Analysed& a, const Stage& stage, Line line, const Group& group) {
  Count most = 0;
  for (const BlockRun& run : runs(a, stage)) {
    for (const WeightItem& w : cost(a, run.block).weights) {
      const Count shard = ceil_div(w.volume.elements, group(w.expert()));
      if (!(most < shard)) continue;
      most = shard;
      line.volume.sharded_from = w.volume.elements;
      line.volume.sharded_by = group(w.expert());
      line.tag = name(w.tag);
    }
  }
  line.what = kOneTensor;
  line.copies *= 2;
  line.volume.elements = most;
  out.push_back(line);
}

// The part of a state that is kept on the host.
double host_share(const Offload& offload, Term term) {
  if (term == Term::optimizer) return offload.optimizer;
  return offload.params ? 1 : 0;
}

void put_share(std::vector<Line>& out, Line line, double share) {
  if (share <= 0) return;
  line.copies *= share;
  out.push_back(std::move(line));
}

}  // namespace

namespace moments {

void add_states(std::vector<Line>& out, const Analysed& a, const Stage& stage) {
  for (Line& line : states_of(a, stage)) {
    const double share = 1 - host_share(a.recipe.offload, line.term);
    put_share(out, std::move(line), share);
  }
  add_weight_copies(out, a, stage);
}

void add_host_states(std::vector<Line>& out, const Analysed& a, const Stage& stage) {
  const Offload& offload = a.recipe.offload;
  for (Line& line : states_of(a, stage)) {
    const double share = host_share(offload, line.term);
    put_share(out, std::move(line), share);
  }
  if (offload.params || offload.optimizer <= 0) return;
  std::vector<Line> handed;
  add_state(handed, a, stage, Term::gradients, "gradient for the host's update", a.recipe.grad_dtype,
            a.recipe.layout.zero >= 1, "the host updates what it keeps the states of");
  for (Line& line : handed) put_share(out, std::move(line), offload.optimizer);
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
  const auto fixed = [&out](const Scalar& size, std::string_view what) {
    if (size.value == 0) return;
    Line line{Term::buffers, what, "", {}, 1, 1, 1, size.source};
    line.volume.elements = static_cast<std::int64_t>(size.value);
    out.push_back(line);
  };
  fixed(a.stack->workspace_bytes, "workspaces");
  if (stage_parameters(a, stage, Which::expert).get() > 0)
    fixed(a.stack->grouped_workspace_bytes, "workspaces of grouped products");
}

void add_live(std::vector<Line>& out, const Analysed& a, const Stage& stage, Moment moment) {
  const bool pipeline = a.recipe.layout.pp > 1;
  for (const LiveRule& rule : a.stack->live) {
    const int zero = a.recipe.layout.zero;
    if (zero < rule.min_zero || zero > rule.max_zero) continue;
    if (!rule.precision.empty() && !lists(rule.precision, a.recipe.precision)) continue;
    if (rule.when == LiveRule::When::without_pipeline && pipeline) continue;
    if (rule.when == LiveRule::When::with_pipeline && !pipeline) continue;
    if (!rule.during.empty() && !lists(rule.during, name(moment))) continue;
    const double bytes = rule.width > 0 ? rule.width : a.recipe.activation_width();
    if (rule.sharded) {
      const Line line{rule.term, rule.what, "", {}, bytes, rule.copies, 1, rule.source};
      for (const bool expert : {false, true}) {
        const std::int64_t shard = shard_group(a.recipe.layout, expert);
        if (shard > 1 || rule.alone) add_shard(out, a, stage, expert, shard, line);
      }
      continue;
    }
    for (const BlockRun& run : unit_blocks(a, stage, rule.unit)) {
      const double layers = static_cast<double>(run.count);
      for (const WeightItem& w : cost(a, run.block).weights) {
        if (!holds(stage, w) || (shard_group(a.recipe.layout, w.expert()) == 1 && !rule.alone)) continue;
        out.push_back({rule.term, rule.what, name(w.tag), w.volume, bytes, layers * rule.copies, layers, rule.source});
      }
    }
  }
}

void add_optimizer_temporary(std::vector<Line>& out, const Analysed& a, const Stage& stage) {
  const Scalar& rule = a.stack->optimizer_temporary_width;
  const double here = 1 - a.recipe.offload.optimizer;  // the host updates the rest
  if (a.recipe.optimizer_implementation == "fused" || rule.value == 0 || here <= 0) return;
  const auto group = [&](bool expert) { return a.recipe.layout.zero >= 1 ? shard_group(a.recipe.layout, expert) : 1; };
  const Line line{Term::transients, "optimizer temporary", "", {}, rule.value, here, 1, rule.source};
  if (a.recipe.optimizer_implementation == "for-loop") return add_largest_tensor(out, a, stage, line, group);
  for (const bool expert : {false, true}) add_shard(out, a, stage, expert, group(expert), line);
}

}  // namespace moments

std::vector<Line> state_lines(const Analysed& a, const Stage& stage) {
  std::vector<Line> out;
  moments::add_states(out, a, stage);
  return out;
}

std::vector<Line> buffer_lines(const Analysed& a, const Stage& stage) {
  std::vector<Line> out;
  moments::add_buffers(out, a, stage);
  return out;
}

Count stage_parameters(const Analysed& a, const Stage& stage, Which which) {
  Count n = 0;
  for (const BlockRun& run : runs(a, stage)) {
    Count block = 0;
    for (const WeightItem& w : cost(a, run.block).weights) {
      const bool counts = which == Which::all || w.expert() == (which == Which::expert);
      if (counts && holds(stage, w)) block += w.volume.elements;
    }
    n += block * Count(run.count);
  }
  return n;
}

double state_elements(const Analysed& a, const OptimizerSlot& slot) {
  Stage whole;
  whole.embedding = whole.head = true;
  whole.layers = a.model->layers;
  double out = 0;
  for (const BlockRun& run : runs(a, whole)) {
    const Block& block = a.model->blocks[static_cast<std::size_t>(run.block)];
    for (const Op& op : block.ops) {
      for (const Weight& w : op.weights) {
        if (!w.owned || !slot.covers(op.tag, w.role)) continue;
        const WeightItem item{op.tag, w.role, w.axes, volume(w.axes, block.extents, Mesh{}), true, -1};
        out += state_volume(item, slot).elements.real() * static_cast<double>(run.count);
      }
    }
  }
  return out;
}

}  // namespace preflop
