#include "src/cost/work.hpp"

#include <algorithm>
#include <set>

#include "src/cost/saved.hpp"

namespace preflop {

namespace {

constexpr double kMultiplyAdd = 2.0;  // a product counts a multiplication and an addition

double bytes_of(const Block& block, TensorId id, const Extents& extents, const Setting& setting) {
  const Tensor& t = block.tensors[slot(id)];
  return volume(t.axes, extents, setting.mesh).elements.real() * element_width(t.element, setting);
}

// All axes met by a product; an axis only on the weight is an index and multiplies nothing.
Axes product_axes(const Block& block, const Op& op) {
  Axes met = op.in[0].axes;
  for (Axis axis : op.weights[0].axes) {
    if (!met.has(axis) && result_axes(block, op).has(axis)) met.push(axis);
  }
  return met;
}

// Forward FLOPs per visible key and the number of backward products of a two-tensor product.
void add_product2(WorkItem& item, const Block& block, const Op& op, const Link& link, const Extents& extents,
                  const Mesh& mesh) {
  const Axes met = op.in[0].axes.with(op.in[1].axes).with(result_axes(block, op));
  item.volume = volume(met.without("u"), extents, mesh);
  item.attention = true;
  item.per_key += kMultiplyAdd * item.volume.elements.real();
  for (const Operand& in : op.in) {
    // Operands made inside a fused operator have gradients whenever its inputs do.
    if (link.gradient[slot(in.tensor)]) ++item.backward_passes;
  }
}

double local(const Axes& axes, const Extents& extents, const Mesh& mesh) {
  return volume(axes, extents, mesh).elements.real();
}

ProductShape shape_of(const Block& block, const Op& op, const Extents& extents, const Mesh& mesh, double volume) {
  const Axes& weight = op.weights[0].axes;
  const Axes& out = result_axes(block, op);
  const Axes inner = contracted(block, op);
  const Axes columns = weight.without(inner).without(op.in[0].axes);
  ProductShape s;
  s.merge = op.merge;
  s.k = std::max(1.0, local(inner, extents, mesh));
  s.groups = std::max(1.0, local(columns.without(out), extents, mesh));
  s.n = std::max(1.0, local(columns, extents, mesh) / s.groups);
  s.m = std::max(1.0, volume / (s.n * s.k * s.groups));
  return s;
}

void add_product(WorkItem& item, const Block& block, const Op& op, const Link& link, const Extents& extents,
                 const Mesh& mesh) {
  item.volume = volume(product_axes(block, op), extents, mesh);
  item.forward_flops = kMultiplyAdd * item.volume.elements.real();
  item.shape = shape_of(block, op, extents, mesh, item.volume.elements.real());
  item.shape.inputs = local(block.tensors[slot(op.in[0].tensor)].axes, extents, mesh);
  item.shape.results = local(result_axes(block, op), extents, mesh);
  item.backward_passes = (link.gradient[slot(op.in[0].tensor)] ? 1 : 0) + (op.weights[0].trains ? 1 : 0);
}

// A step of the recurrence: multiply-adds of a state's number with its decay, with what enters it and with what reads
// it (NVIDIA-NeMo/Megatron-Bridge utils/flop_utils.py: 7 for each of Mamba-2's; Megatron-LM training/training.py: four
// products of a head's state, 8, for a gated delta rule's).
double flops_per_state(const Block& block) { return block.scan == ScanKind::gated_delta ? 8 : 7; }

// Kernels of a chunked scan, in bytes of both directions: 10 elements of every channel that the convolution sees where
// it is one of them, 17 of every channel of the heads, 8 of every fp32 number of a chunk's states. A fit of published
// steps multiplies them (data/time.csv, scan_passes).
void add_scan(WorkItem& item, const Block& block, const Op& op, const Extents& extents, const Setting& setting) {
  constexpr double kConvolution = 10, kHeads = 17, kStates = 8, kStateWidth = 4, kForward = 1.0 / 3;
  item.volume = volume("bsmPN", extents, setting.mesh);
  item.forward_flops = flops_per_state(block) * item.volume.elements.real();
  item.backward_passes = 2;
  for (const Operand& in : op.in) item.key_bytes += bytes_of(block, in.tensor, extents, setting);
  item.query_bytes = bytes_of(block, op.out, extents, setting);
  const double heads = local("bsmP", extents, setting.mesh), groups = local("bsgN", extents, setting.mesh);
  const bool convolves =
      std::any_of(op.inner.begin(), op.inner.end(), [](const Op& part) { return part.kind == Kind::conv; });
  const double elements = kHeads * heads + (convolves ? kConvolution * (heads + 2 * groups) : 0);
  const double chunk = std::max(1.0, extents[Axis::chunk].real());
  const double bytes =
      elements * setting.activation_width + kStates * kStateWidth * item.volume.elements.real() / chunk;
  item.forward_bytes = bytes * kForward;
  item.backward_bytes = bytes - item.forward_bytes;
}

// What attention kernels and their exchange over cp depend on besides FLOPs.
void add_attention(WorkItem& item, const Block& block, const Op& op, const Extents& extents, const Setting& setting) {
  if (op.kind != Kind::attention && op.kind != Kind::product2) return;
  const Operand& query = op.in[0];
  item.head_dim = extents[query.axes.has(Axis::head_dim) ? Axis::head_dim : Axis::value_dim].real();
  if (op.kind == Kind::product2) return;
  item.latent = extents[Axis::value_dim].real() < item.head_dim;
  constexpr double kTileRows = 128;
  const Axes rows = query.axes.without("deno");
  item.query_tiles = local(rows, extents, setting.mesh) / kTileRows;
  item.query_bytes = bytes_of(block, query.tensor, extents, setting) + bytes_of(block, op.out, extents, setting);
  for (std::size_t i = 1; i < op.in.size(); ++i) item.key_bytes += bytes_of(block, op.in[i].tensor, extents, setting);
}

void add_bytes(WorkItem& item, const Block& block, const Op& op, const Link& link, const Extents& extents,
               const Setting& setting) {
  double in = 0;
  double in_gradients = 0;
  for (const Operand& operand : op.in) {
    const double b = bytes_of(block, operand.tensor, extents, setting);
    in += b;
    if (link.gradient[slot(operand.tensor)]) in_gradients += b;
  }
  const double out = op.kind == Kind::loss ? 0 : bytes_of(block, op.out, extents, setting);
  double weights = 0;
  for (const Weight& w : op.weights) {
    if (w.role == Role::matrix || w.role == Role::router)
      weights += volume(w.axes, extents, setting.mesh).elements.real() * setting.activation_width;
  }
  // A move is its exchange (a collective), or hands its tensor through.
  if (op.kind == Kind::move) return;
  item.forward_bytes = in + out + weights;
  // Backward reads the result's gradient and what was kept as input, writes the inputs' gradients; a
  // product reads and writes once more for its weight. `add` hands its gradient through; a permutation keeps no input.
  const double kept = op.kind == Kind::permute ? 0 : in;
  item.backward_bytes = op.kind == Kind::add ? 0 : out + kept + in_gradients + 2 * weights;
}

}  // namespace

void collect_work(BlockCost& out, const Block& block, const Link& link, const Setting& setting) {
  out.work.reserve(block.ops.size());
  const std::vector<bool> again = run_again(block, link, out.extents, setting);
  for (const Op& op : block.ops) {
    WorkItem item{};
    item.kind = op.kind;
    item.tag = op.tag;
    item.logits = group(op.tag) == "head";
    item.all_keys = group(op.tag) == "index";
    item.replayed = again[static_cast<std::size_t>(&op - block.ops.data())];
    if (waits_on_host(op, setting))
      out.hosted +=
          volume(result_axes(block, op), out.extents, setting.mesh).elements.real() * setting.activation_width;
    if (op.kind == Kind::product) add_product(item, block, op, link, out.extents, setting.mesh);
    if (op.kind == Kind::product2) add_product2(item, block, op, link, out.extents, setting.mesh);
    if (op.kind == Kind::attention) {
      for (const Op& part : op.inner) {
        if (part.kind == Kind::product2) add_product2(item, block, part, link, out.extents, setting.mesh);
      }
      item.backward_passes = 2;  // of each inner product: one per operand
    }
    add_attention(item, block, op, out.extents, setting);
    if (op.kind == Kind::scan)
      add_scan(item, block, op, out.extents, setting);
    else
      add_bytes(item, block, op, link, out.extents, setting);
    out.work.push_back(std::move(item));
  }
}

namespace {

class Collectives {
 public:
  Collectives(BlockCost& out, const Block& block, const Link& link, const Setting& setting)
      : out_(out), block_(block), setting_(setting), again_(run_again(block, link, out.extents, setting)) {}

  void add(CollectiveKind kind, const Op& op, const Axes& axes, bool backward) {
    out_.collectives.push_back({kind, op.tag, gathered_volume(axes, out_.extents, setting_.mesh),
                                setting_.activation_width, backward, !backward && again(op)});
  }
  // Of an input and its gradient, while the other gradient of the product is computed.
  void add_beside(CollectiveKind kind, const Op& op, const Axes& axes) {
    add(kind, op, axes, true);
    out_.collectives.back().beside_product = true;
  }
  void add_move(CollectiveKind kind, const Op& op, const Axes& axes, Group group, bool backward) {
    out_.collectives.push_back({kind, op.tag, volume(axes, out_.extents, setting_.mesh), setting_.activation_width,
                                backward, !backward && again(op), group});
  }
  // A partial sum over tp becomes whole: scattered along the sequence under sp, everywhere otherwise.
  void reduce(const Op& op, const Axes& axes) {
    if (cut_by_sp(axes, setting_.mesh)) {
      add(CollectiveKind::reduce_scatter, op, axes, false);
      add(CollectiveKind::all_gather, op, axes, true);
    } else {
      add(CollectiveKind::all_reduce, op, axes, false);
    }
  }

 private:
  bool again(const Op& op) const { return again_[static_cast<std::size_t>(&op - block_.ops.data())]; }

  BlockCost& out_;
  const Block& block_;
  const Setting& setting_;
  std::vector<bool> again_;
};

// A column-parallel product: reads a tensor that tp does not cut, makes one that it does.
bool column_parallel(const Block& block, const Op& op, const Mesh& mesh) {
  return op.kind == Kind::product && !cut_by_tp(op.in[0].axes, mesh) && cut_by_tp(result_axes(block, op), mesh);
}

// Rows of experts on their way, and their gradients on the way back.
void add_moves(Collectives& c, const Block& block, const Op& op, bool gradient, const Mesh& mesh) {
  const Axes& out = result_axes(block, op);
  switch (movement(block, op, mesh)) {
    case Movement::none:
      return;
    case Movement::exchange:
      c.add_move(CollectiveKind::all_to_all, op, out, Group::ep, false);
      if (gradient) c.add_move(CollectiveKind::all_to_all, op, out, Group::ep, true);
      return;
    case Movement::gather:
      c.add_move(CollectiveKind::all_gather, op, out, Group::etp, false);
      if (gradient) c.add_move(CollectiveKind::reduce_scatter, op, out, Group::etp, true);
      return;
    case Movement::scatter:
      c.add_move(CollectiveKind::reduce_scatter, op, op.in[0].axes, Group::etp, false);
      if (gradient) c.add_move(CollectiveKind::all_gather, op, op.in[0].axes, Group::etp, true);
      return;
  }
}

}  // namespace

void collect_collectives(BlockCost& out, const Block& block, const Link& link, const Setting& setting) {
  Collectives c(out, block, link, setting);
  for (const Op& op : block.ops) {
    if (op.kind == Kind::move) add_moves(c, block, op, link.gradient[slot(op.in[0].tensor)], setting.mesh);
  }
  if (setting.mesh.tp == 1) return;
  std::set<TensorId> gathered;  // once per input, however many products read it
  for (const Op& op : block.ops) {
    if (column_parallel(block, op, setting.mesh) && gathered.insert(op.in[0].tensor).second) {
      const Axes& in = op.in[0].axes;
      if (gathers_input(block, op, setting.mesh)) {
        c.add(CollectiveKind::all_gather, op, in, false);
        if (op.weights[0].trains) c.add_beside(CollectiveKind::all_gather, op, in);  // never saved: gathered again
        if (link.gradient[slot(op.in[0].tensor)]) c.add_beside(CollectiveKind::reduce_scatter, op, in);
      } else if (link.gradient[slot(op.in[0].tensor)]) {
        c.add_beside(CollectiveKind::all_reduce, op, in);
      }
    }
    if (link.reduced[slot(op.out)]) c.reduce(op, result_axes(block, op));
  }
}

}  // namespace preflop
