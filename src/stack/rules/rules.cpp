#include "src/stack/rules/rules.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace preflop {

namespace {

bool any_match(Tag tag, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return matches(tag, p); });
}

Tensor& tensor(Block& block, TensorId id) { return block.tensors[static_cast<std::size_t>(id)]; }

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
  const auto is_slice = [&](TensorId id) {
    const StoreId store = tensor(block, id).store;
    return std::count_if(block.tensors.begin(), block.tensors.end(),
                         [&](const Tensor& t) { return t.store == store; }) > 1;
  };
  std::vector<Op> out;
  for (Op& op : block.ops) {
    if (any_match(op.tag, tags)) {
      for (Operand& in : op.in) {
        if (!is_slice(in.tensor)) continue;
        const Tensor original = tensor(block, in.tensor);
        block.tensors.push_back({original.axes, original.element, block.stores++});
        Op copy;
        copy.kind = Kind::copy;
        copy.tag = Tag::core_copy;
        copy.in = {{in.tensor, original.axes}};
        copy.out = static_cast<TensorId>(block.tensors.size() - 1);
        in.tensor = copy.out;
        out.push_back(std::move(copy));
      }
    }
    out.push_back(std::move(op));
  }
  block.ops = std::move(out);
}

void copy_result(Block& block, const std::vector<std::string>& tags) {
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    if (!any_match(block.ops[i].tag, tags)) continue;
    const TensorId result = block.ops[i].out;
    const Tensor original = tensor(block, result);
    block.tensors.push_back({original.axes, original.element, block.stores++});
    Op copy;
    copy.kind = Kind::copy;
    copy.tag = Tag::core_copy;
    copy.in = {{result, original.axes}};
    copy.out = static_cast<TensorId>(block.tensors.size() - 1);
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
  std::vector<Op> out;
  for (Op& op : block.ops) {
    if (any_match(op.tag, tags)) {
      for (Operand& in : op.in) {
        const Tensor original = tensor(block, in.tensor);
        if (!original.axes.has(Axis::kv_heads) || !in.axes.has(Axis::heads)) continue;
        Axes repeated;
        for (const Axis axis : original.axes) repeated.push(axis == Axis::kv_heads ? Axis::heads : axis);
        block.tensors.push_back({repeated, original.element, block.stores++});
        Op copy;
        copy.kind = Kind::copy;
        copy.tag = Tag::core_copy;
        copy.in = {{in.tensor, original.axes}};
        copy.out = static_cast<TensorId>(block.tensors.size() - 1);
        in.tensor = copy.out;
        out.push_back(std::move(copy));
      }
    }
    out.push_back(std::move(op));
  }
  block.ops = std::move(out);
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
