#include "preflop/traced.hpp"

#include <algorithm>
#include <cstddef>

namespace preflop {
namespace {

using Op = TraceNode::Op;

std::shared_ptr<TraceNode> make_node(Op op, double value, std::vector<TracePtr> inputs) {
  auto node = std::make_shared<TraceNode>();
  node->op = op;
  node->value = value;
  node->inputs = std::move(inputs);
  return node;
}

Traced binary(Op op, double value, const Traced& a, const Traced& b) {
  return Traced(value, make_node(op, value, {a.node(), b.node()}));
}

std::vector<TracePtr> nodes(const std::vector<Traced>& numbers) {
  std::vector<TracePtr> out;
  out.reserve(numbers.size());
  for (const Traced& n : numbers) out.push_back(n.node());
  return out;
}

// A chosen candidate, with all of them visible. The detail names it, or says which one it was.
Traced chosen(Op op, const std::vector<Traced>& candidates, std::size_t winner) {
  const double value = candidates[winner].value();
  auto node = make_node(op, value, nodes(candidates));
  const std::string& name = node->inputs[winner]->name;
  node->detail = name.empty() ? "candidate " + std::to_string(winner + 1) : name;
  node->unit = node->inputs[winner]->unit;
  return Traced(value, std::move(node));
}

// The first candidate that no other beats, so that ties are settled as in the double version.
template <class N>
std::size_t index_of_largest(const std::vector<N>& candidates) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (candidates[best] < candidates[i]) best = i;
  }
  return best;
}

}  // namespace

// A sum of ten thousand terms may be ten thousand nodes deep: nodes that die with this one are taken
// apart in a loop instead of through their destructors.
TraceNode::~TraceNode() {
  std::vector<TracePtr> dying = std::move(inputs);
  while (!dying.empty()) {
    const TracePtr node = std::move(dying.back());
    dying.pop_back();
    if (node == nullptr || node.use_count() != 1 || node->inputs.empty()) continue;
    // Every node is made as a TraceNode that is not const, and nobody else holds this one.
    auto& last = const_cast<TraceNode&>(*node);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    std::move(last.inputs.begin(), last.inputs.end(), std::back_inserter(dying));
    last.inputs.clear();
  }
}

TracePtr Traced::node() const {
  if (node_ != nullptr) return node_;
  return make_node(Op::leaf, value_, {});
}

// Adding a literal zero, as sums that start from nothing do, leaves no node behind.
Traced operator+(const Traced& a, const Traced& b) {
  const double value = a.value_ + b.value_;
  if (a.node_ == nullptr && b.node_ == nullptr) return Traced(value);
  if (a.node_ == nullptr && a.value_ == 0) return Traced(value, b.node_);
  if (b.node_ == nullptr && b.value_ == 0) return Traced(value, a.node_);
  return binary(Op::add, value, a, b);
}
Traced operator-(const Traced& a, const Traced& b) {
  const double value = a.value_ - b.value_;
  if (b.node_ == nullptr && b.value_ == 0) return Traced(value, a.node_);
  return binary(Op::subtract, value, a, b);
}
Traced operator*(const Traced& a, const Traced& b) {
  const double value = a.value_ * b.value_;
  if (b.node_ == nullptr && b.value_ == 1) return Traced(value, a.node_);
  if (a.node_ == nullptr && a.value_ == 1) return Traced(value, b.node_);
  return binary(Op::multiply, value, a, b);
}
Traced operator/(const Traced& a, const Traced& b) {
  const double value = a.value_ / b.value_;
  if (b.node_ == nullptr && b.value_ == 1) return Traced(value, a.node_);
  return binary(Op::divide, value, a, b);
}

Traced named(const Traced& n, std::string name, std::string unit) {
  auto node = make_node(Op::named, n.value(), {n.node()});
  node->name = std::move(name);
  node->unit = std::move(unit);
  return Traced(n.value(), std::move(node));
}

double largest(const std::vector<double>& candidates) {
  return candidates.empty() ? 0.0 : candidates[index_of_largest(candidates)];
}
Traced largest(const std::vector<Traced>& candidates) {
  if (candidates.empty()) return Traced(0.0);
  return chosen(Op::maximum, candidates, index_of_largest(candidates));
}

double total(const std::vector<double>& terms) {
  double sum = 0;
  for (const double term : terms) sum += term;
  return sum;
}
Traced total(const std::vector<Traced>& terms) {
  if (terms.empty()) return Traced(0.0);
  double sum = 0;
  for (const Traced& term : terms) sum += term.value();
  return Traced(sum, make_node(Op::sum, sum, nodes(terms)));
}

Traced smaller(const Traced& a, const Traced& b) { return chosen(Op::minimum, {a, b}, b < a ? 1 : 0); }
Traced larger(const Traced& a, const Traced& b) { return chosen(Op::maximum, {a, b}, a < b ? 1 : 0); }

}  // namespace preflop
