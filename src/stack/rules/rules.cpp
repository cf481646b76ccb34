#include "src/stack/rules/rules.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace preflop {

namespace {

bool any_match(Tag tag, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return matches(tag, p); });
}

Tensor& tensor(Block& block, TensorId id) { return block.tensors[static_cast<std::size_t>(id)]; }

// A copy of a tensor into a storage of its own, with the axes given.
Op copy_of(Block& block, TensorId from, const Axes& axes) {
  const Tensor original = tensor(block, from);
  block.tensors.push_back({axes, original.element, block.stores++});
  Op copy;
  copy.kind = Kind::copy;
  copy.tag = Tag::core_copy;
  copy.in = {{from, original.axes}};
  copy.out = static_cast<TensorId>(block.tensors.size() - 1);
  return copy;
}

// Operators of the given tags read copies, made just before them, of the operands for which `axes_of` names the
// copy's axes.
template <class AxesOf>
void copy_operands(Block& block, const std::vector<std::string>& tags, const AxesOf& axes_of) {
  std::vector<Op> out;
  for (Op& op : block.ops) {
    if (any_match(op.tag, tags)) {
      for (Operand& in : op.in) {
        const std::optional<Axes> axes = axes_of(in);
        if (!axes) continue;
        out.push_back(copy_of(block, in.tensor, *axes));
        in.tensor = out.back().out;
      }
    }
    out.push_back(std::move(op));
  }
  block.ops = std::move(out);
}

}  // namespace

void merge_products(Block& block, const std::vector<std::string>& tags) {
  std::vector<Op*> found;
  for (Op& op : block.ops) {
    if (op.kind != Kind::product || !any_match(op.tag, tags)) continue;
    if (!found.empty() && found.front()->in[0].tensor != op.in[0].tensor) continue;
    found.push_back(&op);
  }
  if (found.size() < 2) return;
  int next = 0;
  for (const Op& op : block.ops) next = std::max(next, op.merge + 1);
  const StoreId store = tensor(block, found.front()->out).store;
  for (Op* op : found) {
    op->merge = next;
    tensor(block, op->out).store = store;
  }
}

void fuse(Block& block, const std::vector<std::string>& tags, Tag into, Kind kind) {
  Op fused;
  fused.kind = kind;
  fused.tag = into;
  std::set<TensorId> made;
  std::set<TensorId> read;
  std::size_t last = block.ops.size();
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const Op& op = block.ops[i];
    if (!any_match(op.tag, tags)) continue;
    for (const Operand& in : op.in) {
      if (made.count(in.tensor) != 0 || !read.insert(in.tensor).second) continue;
      fused.in.push_back({in.tensor, tensor(block, in.tensor).axes});
    }
    made.insert(op.out);
    fused.weights.insert(fused.weights.end(), op.weights.begin(), op.weights.end());
    fused.reduced = op.reduced;
    fused.out = op.out;
    fused.inner.push_back(op);
    last = i;
  }
  if (last == block.ops.size()) return;
  // A row of the fused attention is one query of one head: its statistic is the log-sum-exp.
  if (kind == Kind::attention) fused.reduced = "e";
  block.ops[last] = std::move(fused);  // the place of its last part: copies made for it stay before it
  std::vector<Op> kept;
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    if (i == last || !any_match(block.ops[i].tag, tags)) kept.push_back(std::move(block.ops[i]));
  }
  block.ops = std::move(kept);
}

void copy_slices(Block& block, const std::vector<std::string>& tags) {
  copy_operands(block, tags, [&](const Operand& in) -> std::optional<Axes> {
    const Tensor& read = tensor(block, in.tensor);
    const auto views = std::count_if(block.tensors.begin(), block.tensors.end(),
                                     [&](const Tensor& t) { return t.store == read.store; });
    return views > 1 ? std::optional<Axes>(read.axes) : std::nullopt;
  });
}

void copy_result(Block& block, const std::vector<std::string>& tags) {
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    if (!any_match(block.ops[i].tag, tags)) continue;
    const TensorId result = block.ops[i].out;
    Op copy = copy_of(block, result, tensor(block, result).axes);
    for (Op& reader : block.ops) {
      for (Operand& in : reader.in) {
        if (in.tensor == result) in.tensor = copy.out;
      }
    }
    if (block.output == result) block.output = copy.out;
    block.ops.insert(block.ops.begin() + static_cast<std::ptrdiff_t>(++i), std::move(copy));
  }
}

void repeat_heads(Block& block, const std::vector<std::string>& tags) {
  if (block.extents[Axis::heads] == block.extents[Axis::kv_heads]) return;
  copy_operands(block, tags, [&](const Operand& in) -> std::optional<Axes> {
    const Axes& own = tensor(block, in.tensor).axes;
    if (!own.has(Axis::kv_heads) || !in.axes.has(Axis::heads)) return std::nullopt;
    Axes repeated;
    for (const Axis axis : own) repeated.push(axis == Axis::kv_heads ? Axis::heads : axis);
    return repeated;
  });
}

Block rewrite(Block block, const Stack& stack, const Recipe& recipe) {
  const bool fused = recipe.attention != AttentionKernel::unfused;
  for (const Rewrite& r : stack.rewrites) {
    if (r.when == Rewrite::When::fused_attention && !fused) continue;
    if (r.when == Rewrite::When::unfused_attention && fused) continue;
    if (r.when == Rewrite::When::context_parallel && recipe.layout.cp == 1) continue;
    if (r.when == Rewrite::When::compiled && !recipe.compile) continue;
    switch (r.rule) {
      case Rewrite::Rule::merge:
        merge_products(block, r.tags);
        break;
      case Rewrite::Rule::fuse:
        fuse(block, r.tags, r.into, r.kind);
        break;
      case Rewrite::Rule::copy_slices:
        copy_slices(block, r.tags);
        break;
      case Rewrite::Rule::copy_result:
        copy_result(block, r.tags);
        break;
      case Rewrite::Rule::repeat_heads:
        repeat_heads(block, r.tags);
        break;
    }
  }
  return block;
}

}  // namespace preflop
