#include "src/cost/link.hpp"

#include <algorithm>

namespace preflop {

namespace {

// Is the result of this op a partial sum over tp, given which inputs are?
bool is_partial(const Block& block, const Op& op, const Link& l, const Mesh& mesh) {
  if (mesh.tp == 1) return false;
  if (op.kind == Kind::product) return cut_by_tp(contracted(block, op), mesh);
  if (op.kind == Kind::lookup) return cut_by_tp(op.weights[0].axes, mesh);
  if (op.kind == Kind::add) {
    return std::all_of(op.in.begin(), op.in.end(), [&](const Operand& in) { return l.partial[slot(in.tensor)]; });
  }
  return false;
}

}  // namespace

const Axes& result_axes(const Block& block, const Op& op) { return block.tensors[slot(op.out)].axes; }

Axes contracted(const Block& block, const Op& op) {
  Axes out;
  if (op.kind != Kind::product) return out;
  for (Axis axis : op.weights[0].axes) {
    if (op.in[0].axes.has(axis) && !result_axes(block, op).has(axis)) out.push(axis);
  }
  return out;
}

Movement movement(const Block& block, const Op& op, const Mesh& mesh) {
  if (op.kind != Kind::move) return Movement::none;
  const bool from_all = op.in[0].axes.has(Axis::gathered);
  const bool to_all = result_axes(block, op).has(Axis::gathered);
  if (from_all == to_all) return mesh.ep > 1 ? Movement::exchange : Movement::none;
  if (mesh.etp == 1) return Movement::none;
  return to_all ? Movement::gather : Movement::scatter;
}

bool gathers_input(const Block& block, const Op& op, const Mesh& mesh) {
  if (op.kind != Kind::product) return false;
  return cut_by_sp(op.in[0].axes, mesh) && !cut_by_sp(result_axes(block, op), mesh);
}

Link link(const Block& block, const Mesh& mesh) {
  Link l;
  const std::size_t n = block.tensors.size();
  l.producer.assign(n, -1);
  l.readers.assign(n, {});
  l.gradient.assign(n, false);
  l.partial.assign(n, false);
  l.reduced.assign(n, false);
  l.gradient[slot(block.input)] = block.tensors[slot(block.input)].element == Element::activation;
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const Op& op = block.ops[i];
    l.producer[slot(op.out)] = static_cast<int>(i);
    bool needs = std::any_of(op.weights.begin(), op.weights.end(), [](const Weight& w) { return w.trains; });
    for (const Operand& in : op.in) {
      l.readers[slot(in.tensor)].push_back(static_cast<int>(i));
      needs = needs || l.gradient[slot(in.tensor)];
    }
    l.gradient[slot(op.out)] = needs;
    l.partial[slot(op.out)] = is_partial(block, op, l, mesh);
  }
  // A partial sum stays one through additions of partial sums; any other reader reduces it first.
  for (std::size_t t = 0; t < n; ++t) {
    if (!l.partial[t]) continue;
    const bool only_partial_adds =
        !l.readers[t].empty() && std::all_of(l.readers[t].begin(), l.readers[t].end(), [&](int r) {
          const Op& op = block.ops[static_cast<std::size_t>(r)];
          return op.kind == Kind::add && l.partial[slot(op.out)];
        });
    l.reduced[t] = !only_partial_adds;
  }
  return l;
}

}  // namespace preflop
