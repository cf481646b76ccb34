// Builds blocks of operators. A weight is written "h>ad": contracted axes before the '>', produced
// ones after it, index axes before a ':' ("E:h>x"). Contracted and produced axes must differ: a
// square weight "h>h" would lose an axis, so its other side is named j.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "src/model/operators.hpp"

namespace preflop {

class BlockBuilder {
 public:
  explicit BlockBuilder(std::string name) { block_.name = std::move(name); }

  Extents& extents() { return block_.extents; }
  void set_window(Count tokens, bool chunked = false) {
    block_.window = tokens;
    block_.chunked = chunked;
  }
  void set_routing(const Routing& routing) { block_.routing = routing; }
  void set_scan(ScanKind kind) { block_.scan = kind; }
  void set_activation(Activation activation) { block_.activation = activation; }

  TensorId input(Axes axes, Element element = Element::activation);
  // Another input, without a gradient: the ids beside a hidden state.
  TensorId constant(Axes axes, Element element) { return fresh(axes, element); }
  // y = x W [+ bias]. The result's axes are x's without the contracted ones, plus the produced ones.
  TensorId product(Tag tag, TensorId x, const char* weight, bool bias = false, bool owned = true);
  // Reads x and y along the given axes and sums over those that the result does not have.
  TensorId product2(Tag tag, Operand x, Operand y, Axes result);
  TensorId norm(Tag tag, TensorId x, Axes over, bool scale, bool bias, int statistics, Axes weight_axes = {});
  TensorId unary(Kind kind, Tag tag, TensorId x);
  TensorId softmax(Tag tag, TensorId x, Axes over);
  TensorId binary(Kind kind, Tag tag, TensorId x, TensorId y);
  TensorId lookup(Tag tag, TensorId ids, const char* weight, bool owned = true);
  // Any number of inputs, each read along its own axes, one result.
  TensorId general(Kind kind, Tag tag, std::initializer_list<TensorId> inputs, Axes result);
  // One more weight of the last operator.
  void weight(Axes axes, Role role, bool trains = true);
  // The weight of the last operator belongs to the head of the same stage.
  void shared_with_head();
  // The last operator's matrix is a router's.
  void is_router();
  void loss(Tag tag, TensorId logits);

  const Tensor& tensor(TensorId id) const { return block_.tensors[static_cast<std::size_t>(id)]; }
  Block finish(TensorId output);

 private:
  TensorId fresh(Axes axes, Element element = Element::activation);
  Op& append(Kind kind, Tag tag);
  Block block_;
};

}  // namespace preflop
