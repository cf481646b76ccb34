#include "src/model/builder.hpp"

#include <cassert>
#include <cstring>

namespace preflop {

const char* name(Kind kind) {
  static constexpr const char* kNames[kKinds] = {
      "product", "product2", "norm",      "activation", "multiply", "softmax", "dropout", "add",  "rope",
      "copy",    "lookup",   "attention", "loss",       "route",    "permute", "conv",    "scan", "move"};
  return kNames[static_cast<int>(kind)];
}

TensorId BlockBuilder::fresh(Axes axes, Element element) {
  block_.tensors.push_back({axes, element, block_.stores});
  ++block_.stores;
  return static_cast<TensorId>(block_.tensors.size() - 1);
}

Op& BlockBuilder::append(Kind kind, Tag tag) {
  Op op;
  op.kind = kind;
  op.tag = tag;
  block_.ops.push_back(std::move(op));
  return block_.ops.back();
}

TensorId BlockBuilder::input(Axes axes, Element element) {
  block_.input = fresh(axes, element);
  return block_.input;
}

TensorId BlockBuilder::product(Tag tag, TensorId x, const char* weight, bool bias, bool owned) {
  Axes contracted;
  Axes produced;
  Axes index;
  Axes* side = &contracted;
  for (const char* c = weight; *c != '\0'; ++c) {
    if (*c == ':') {
      index = contracted;
      contracted = {};
    } else if (*c == '>') {
      side = &produced;
    } else {
      side->push(axis_of(*c));
    }
  }
  for (Axis axis : produced) assert(!contracted.has(axis) && "name the other side of a square weight differently");
  const Axes read = tensor(x).axes;
  const TensorId y = fresh(read.without(contracted).with(produced));
  Op& op = append(Kind::product, tag);
  op.in = {{x, read}};
  op.out = y;
  op.weights.push_back({index.with(contracted).with(produced), Role::matrix, owned, true});
  if (bias) op.weights.push_back({index.with(produced), Role::bias, true, true});
  return y;
}

TensorId BlockBuilder::product2(Tag tag, Operand x, Operand y, Axes result) {
  const TensorId z = fresh(result);
  Op& op = append(Kind::product2, tag);
  op.in = {x, y};
  op.out = z;
  return z;
}

TensorId BlockBuilder::norm(Tag tag, TensorId x, Axes over, bool scale, bool bias, int statistics, Axes weight_axes) {
  const TensorId y = fresh(tensor(x).axes);
  Op& op = append(Kind::norm, tag);
  op.in = {{x, tensor(x).axes}};
  op.out = y;
  op.reduced = over;
  op.statistics = statistics;
  const Axes axes = weight_axes.size() > 0 ? weight_axes : over;
  if (scale) op.weights.push_back({axes, Role::norm, true, true});
  if (bias) op.weights.push_back({axes, Role::norm, true, true});
  return y;
}

TensorId BlockBuilder::unary(Kind kind, Tag tag, TensorId x) {
  const TensorId y = fresh(tensor(x).axes);
  Op& op = append(kind, tag);
  op.in = {{x, tensor(x).axes}};
  op.out = y;
  return y;
}

TensorId BlockBuilder::softmax(Tag tag, TensorId x, Axes over) {
  const TensorId y = unary(Kind::softmax, tag, x);
  block_.ops.back().reduced = over;
  return y;
}

TensorId BlockBuilder::binary(Kind kind, Tag tag, TensorId x, TensorId y) {
  const TensorId z = fresh(tensor(x).axes);
  Op& op = append(kind, tag);
  op.in = {{x, tensor(x).axes}, {y, tensor(y).axes}};
  op.out = z;
  return z;
}

TensorId BlockBuilder::lookup(Tag tag, TensorId ids, const char* weight, bool owned) {
  const Axes table(weight);  // index axis first: "Vh"
  Axes row;
  for (int i = 1; i < table.size(); ++i) row.push(table[i]);
  const TensorId y = fresh(tensor(ids).axes.with(row));
  Op& op = append(Kind::lookup, tag);
  op.in = {{ids, tensor(ids).axes}};
  op.out = y;
  op.weights.push_back({table, Role::table, owned, true});
  return y;
}

TensorId BlockBuilder::general(Kind kind, Tag tag, std::initializer_list<TensorId> inputs, Axes result) {
  const TensorId y = fresh(result);
  Op& op = append(kind, tag);
  for (TensorId x : inputs) op.in.push_back({x, tensor(x).axes});
  op.out = y;
  return y;
}

void BlockBuilder::weight(Axes axes, Role role, bool trains) {
  block_.ops.back().weights.push_back({axes, role, true, trains});
}

void BlockBuilder::shared_with_head() {
  block_.ops.back().weights[0].owned = false;
  block_.ops.back().weights[0].with_head = true;
}

void BlockBuilder::is_router() { block_.ops.back().weights[0].role = Role::router; }

void BlockBuilder::loss(Tag tag, TensorId logits) {
  const TensorId y = fresh("bs");
  Op& op = append(Kind::loss, tag);
  op.in = {{logits, tensor(logits).axes}};
  op.out = y;
  op.reduced = "V";
}

Block BlockBuilder::finish(TensorId output) {
  block_.output = output;
  return std::move(block_);
}

}  // namespace preflop
