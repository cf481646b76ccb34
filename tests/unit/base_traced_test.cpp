#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cstdint>

#include "preflop/quantity.hpp"
#include "preflop/traced.hpp"

namespace preflop {
namespace {

using Op = TraceNode::Op;

Traced datum(double value, const char* name, const char* unit = "") {
  return leaf<Traced>(value, [&] { return Origin{name, unit, "a document"}; });
}

// A formula, written once.
template <class N>
Seconds<N> roofline(Flops<N> work, FlopsPerSecond<N> peak, Bytes<N> moved, BytesPerSecond<N> bandwidth) {
  const Seconds<N> compute = work / peak;
  const Seconds<N> memory = moved / bandwidth;
  return Seconds<N>(larger(named(compute, "compute", "s").number(), named(memory, "memory", "s").number()));
}

RC_GTEST_PROP(TracedNumbers, compute_the_same_bits, (double a, double b, double c, double d)) {
  RC_PRE(b != 0 && d != 0);
  const double plain_value =
      roofline<double>(Flops<double>(a), FlopsPerSecond<double>(b), Bytes<double>(c), BytesPerSecond<double>(d))
          .number();
  const Traced traced =
      roofline<Traced>(Flops<Traced>(datum(a, "work")), FlopsPerSecond<Traced>(datum(b, "peak")),
                       Bytes<Traced>(datum(c, "moved")), BytesPerSecond<Traced>(datum(d, "bandwidth")))
          .number();
  RC_ASSERT(std::bit_cast<std::uint64_t>(traced.value()) == std::bit_cast<std::uint64_t>(plain_value));
  RC_ASSERT(traced.node()->value == traced.value());
}

RC_GTEST_PROP(TracedNumbers, sums_and_maxima_agree, (const std::vector<double>& values)) {
  std::vector<Traced> traced(values.begin(), values.end());
  const auto bits = [](double v) { return std::bit_cast<std::uint64_t>(v); };
  RC_ASSERT(bits(total(traced).value()) == bits(total(values)));
  RC_ASSERT(bits(largest(traced).value()) == bits(largest(values)));
}

TEST(TracedNumbers, keep_their_derivation) {
  const Traced peak = datum(989e12, "peak", "FLOP/s");
  const Traced rate = named(peak * Traced(0.4), "rate", "FLOP/s");
  const TracePtr node = rate.node();
  EXPECT_EQ(node->op, Op::named);
  EXPECT_EQ(node->name, "rate");
  ASSERT_EQ(node->inputs.size(), 1u);
  const TracePtr product = node->inputs[0];
  EXPECT_EQ(product->op, Op::multiply);
  EXPECT_EQ(product->inputs[0]->source, "a document");
  EXPECT_EQ(product->inputs[1]->op, Op::leaf);
  EXPECT_EQ(product->inputs[1]->value, 0.4);
  EXPECT_EQ(product->value, 989e12 * 0.4);
}

TEST(TracedNumbers, a_maximum_shows_all_candidates_and_names_the_winner) {
  const TracePtr node =
      largest(std::vector<Traced>{datum(1, "init", "B"), datum(3, "loss", "B"), datum(2, "reduction", "B")}).node();
  EXPECT_EQ(node->op, Op::maximum);
  EXPECT_EQ(node->inputs.size(), 3u);
  EXPECT_EQ(node->detail, "loss");
  EXPECT_EQ(node->unit, "B");
  EXPECT_EQ(node->value, 3);
  EXPECT_EQ(smaller(datum(2, "a"), datum(1, "b")).node()->detail, "b");
  EXPECT_EQ(smaller(datum(1, "a"), datum(1, "b")).node()->detail, "a");
  EXPECT_EQ(larger(Traced(1), Traced(2)).node()->detail, "candidate 2");
  EXPECT_EQ(largest(std::vector<Traced>{}).value(), 0);
}

TEST(TracedNumbers, literals_that_change_nothing_leave_no_trace) {
  const Traced x = datum(5, "x");
  EXPECT_EQ((Traced() + x).node(), x.node());
  EXPECT_EQ((x * Traced(1)).node(), x.node());
  EXPECT_EQ((x / Traced(1)).node(), x.node());
  EXPECT_EQ((x - Traced(0)).node(), x.node());
  EXPECT_NE((datum(0, "a stated zero") + x).node(), x.node());
  EXPECT_EQ(Traced(2).node()->op, Op::leaf);
  EXPECT_EQ(total(std::vector<Traced>{x, x}).node()->op, Op::sum);
}

TEST(TracedNumbers, a_deep_tree_is_freed_without_recursion) {
  Traced sum = datum(1, "x");
  const Traced one = datum(1, "one");
  for (int i = 0; i < 1'000'000; ++i) sum = sum + one;
  EXPECT_EQ(sum.value(), 1'000'001);
  const TracePtr kept = sum.node()->inputs[0];
  sum = Traced();
  EXPECT_EQ(kept->value, 1'000'000);
}

TEST(TracedNumbers, quantities_take_names) {
  const Bytes<Traced> b = named(Bytes<Traced>(datum(2, "n")) * Traced(8), "state", "B");
  EXPECT_EQ(b.number().node()->name, "state");
  const Bytes<double> plain_bytes = named(Bytes<double>(16), "state", "B");
  EXPECT_EQ(plain_bytes.number(), 16);
  EXPECT_EQ((Bytes<Traced>(Traced(4)) * 2.0).number().value(), 8);
}

}  // namespace
}  // namespace preflop
