// A number that remembers how it was made.
//
// Formulas are templates over the number type. With `double` they run at full speed; with `Traced`
// the very same code builds, beside the value, an immutable tree: leaves carry a name, a unit and a
// source, inner nodes the operation and its operands. Both do the same floating-point operations in
// the same order, so an explanation ends in exactly the number it explains.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "preflop/quantity.hpp"

namespace preflop {

struct TraceNode;
using TracePtr = std::shared_ptr<const TraceNode>;

struct TraceNode {
  enum class Op { leaf, add, subtract, multiply, divide, sum, maximum, minimum, named };
  Op op = Op::leaf;
  double value = 0;
  std::string name;    // what the number is; empty for an intermediate result
  std::string unit;    // "B", "s", "FLOP", ...; empty for a pure number
  std::string detail;  // for a leaf: the product it was read off; for a maximum: which candidate won
  std::string source;  // for a datum: where it comes from
  std::vector<TracePtr> inputs;

  TraceNode() = default;
  TraceNode(const TraceNode&) = default;
  TraceNode& operator=(const TraceNode&) = default;
  ~TraceNode();  // frees deep trees without recursion
};

class Traced {
 public:
  Traced() : Traced(0.0) {}
  Traced(double value) : value_(value) {}  // NOLINT(google-explicit-constructor): a literal of a formula
  Traced(double value, TracePtr node) : value_(value), node_(std::move(node)) {}

  double value() const { return value_; }
  TracePtr node() const;  // a literal gets its leaf here

  friend Traced operator+(const Traced& a, const Traced& b);
  friend Traced operator-(const Traced& a, const Traced& b);
  friend Traced operator*(const Traced& a, const Traced& b);
  friend Traced operator/(const Traced& a, const Traced& b);
  friend bool operator<(const Traced& a, const Traced& b) { return a.value_ < b.value_; }
  friend bool operator>(const Traced& a, const Traced& b) { return b < a; }
  friend bool operator<=(const Traced& a, const Traced& b) { return a.value_ <= b.value_; }
  friend bool operator>=(const Traced& a, const Traced& b) { return a.value_ >= b.value_; }
  friend bool operator==(const Traced& a, const Traced& b) { return a.value_ == b.value_; }
  Traced& operator+=(const Traced& b) { return *this = *this + b; }

 private:
  double value_;
  TracePtr node_;
};

// What a leaf says of itself. Strings are only read when tracing.
struct Origin {
  const char* name = "";
  const char* unit = "";
  std::string source = {};
  std::string detail = {};
};

// The plain value, whatever the number type.
inline double plain(double n) { return n; }
inline double plain(const Traced& n) { return n.value(); }

template <class N>
inline constexpr bool is_traced = false;
template <>
inline constexpr bool is_traced<Traced> = true;

// A leaf. `origin` is a callable that makes the Origin, so that speed costs no strings.
template <class N, class MakeOrigin>
N leaf(double value, MakeOrigin&& origin) {
  if constexpr (is_traced<N>) {
    Origin o = origin();
    auto node = std::make_shared<TraceNode>();
    node->value = value;
    node->name = o.name;
    node->unit = o.unit;
    node->source = std::move(o.source);
    node->detail = std::move(o.detail);
    return N(value, std::move(node));
  } else {
    return N(value);
  }
}

// Gives a result a name and a unit; the operations below it stay visible.
inline double named(double n, const char*, const char*) { return n; }
Traced named(const Traced& n, std::string name, std::string unit);
template <class D, class N>
Quantity<D, N> named(const Quantity<D, N>& q, const char* name, const char* unit) {
  return Quantity<D, N>(named(q.number(), name, unit));
}

// The largest candidate; all candidates stay visible. `largest` of nothing is 0.
double largest(const std::vector<double>& candidates);
Traced largest(const std::vector<Traced>& candidates);
// The sum from left to right, as one node. 0 for nothing.
double total(const std::vector<double>& terms);
Traced total(const std::vector<Traced>& terms);

inline double smaller(double a, double b) { return b < a ? b : a; }
inline double larger(double a, double b) { return a < b ? b : a; }
Traced smaller(const Traced& a, const Traced& b);
Traced larger(const Traced& a, const Traced& b);

}  // namespace preflop
