#include <gtest/gtest.h>

#include <limits>

#include "src/run/napkin.hpp"
#include "src/view/explain_text.hpp"
#include "src/view/json.hpp"
#include "src/view/trace_tree.hpp"

namespace preflop {
namespace {

TEST(JsonText, NumbersAreShortest) {
  EXPECT_EQ(json_text(json_number(0.1)), "0.1");
  EXPECT_EQ(json_text(json_number(5.88e23)), "5.88e+23");
  EXPECT_EQ(json_text(json_number(112e9)), "112000000000");
  EXPECT_EQ(json_text(json_number(0x1p53)), "9007199254740992");
  EXPECT_EQ(json_text(json_number(-2.5)), "-2.5");
  EXPECT_EQ(json_text(json_number(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(json_text(json_number(std::numeric_limits<double>::quiet_NaN())), "null");
}

TEST(JsonText, SortedIndentedAndEscaped) {
  const nlohmann::json value = {{"b", nlohmann::json::array({1, 2})},
                                {"a", nlohmann::json::array({"x\n", "\xff"})},
                                {"c", nlohmann::json::object()},
                                {"d", nlohmann::json::array()}};
  EXPECT_EQ(json_text(value),
            "{\n  \"a\": [\n    \"x\\n\",\n    \"\xef\xbf\xbd\"\n  ],\n  \"b\": [1, 2],\n  \"c\": {},\n  \"d\": []\n}");
}

TEST(JsonText, Paths) {
  nlohmann::json root;
  json_put(root, "memory.stages[1].moments.init", 7);
  json_put(root, "memory.stages[0].weights", 1);
  json_put(root, "a", nullptr);
  EXPECT_EQ(root.dump(), R"({"a":null,"memory":{"stages":[{"weights":1},{"moments":{"init":7}}]}})");
}

TEST(NapkinPage, IsThePage) {
  NapkinInput in;
  in.params = 70e9;
  in.tokens = 1.4e12;
  in.gpus = 2048;
  in.peak = 989e12;
  in.mfu = 0.4;
  const Napkin n = napkin<double>(in);
  EXPECT_EQ(n.state.number(), 1.12e12);
  EXPECT_EQ(n.flops->number(), 5.88e23);
  EXPECT_EQ(n.ideal->number(), 5.88e23 / (989e12 * 2048 * 0.4));
  EXPECT_EQ(n.ideal->number(), napkin<Traced>(in).ideal->number().value());
  in.master_dtype = Dtype::none;  // 4 bytes a parameter less
  EXPECT_EQ(napkin<double>(in).state.number(), 70e9 * 12);
  in.tokens.reset();
  EXPECT_FALSE(napkin<double>(in).ideal.has_value());
}

Traced bytes(double n, const char* label) {
  return leaf<Traced>(n, [&] { return Origin{label, "B", {}, {}}; });
}

TEST(TraceTree, FormulasKeepTheirBrackets) {
  const Traced a = bytes(8, "a"), b = bytes(4, "b"), c = bytes(2, "c");
  Signatures signatures;
  EXPECT_EQ(formula(*named((a - (b - c)) / (a + b), "x", "").node(), signatures).names, "(a - (b - c)) / (a + b)");
  EXPECT_EQ(formula(*named(a / (b / c), "x", "").node(), signatures).numbers, "8 B / (4 B / 2 B)");
  EXPECT_EQ(formula(*named(larger(a, b) - c, "x", "").node(), signatures).names, "max(a, b) - c");
}

TEST(TraceTree, UnitsMultiplyOut) {
  const Traced rate = leaf<Traced>(2, [] { return Origin{"rate", "B/s", {}, {}}; });
  const Traced per_token = leaf<Traced>(6, [] { return Origin{"per token", "FLOP/token", {}, {}}; });
  const Traced tokens = leaf<Traced>(3, [] { return Origin{"tokens", "tokens", {}, {}}; });
  EXPECT_EQ(unit_of(*(bytes(8, "a") / rate).node()), "s");
  EXPECT_EQ(unit_of(*(per_token * tokens).node()), "FLOP");
  EXPECT_EQ(unit_of(*(bytes(8, "a") / bytes(4, "b")).node()), "");
}

TEST(TraceTree, EqualTermsAreCounted) {
  const Traced sum = total(std::vector<Traced>{bytes(1, "a"), bytes(5, "b"), bytes(1, "a")});
  Signatures signatures;
  const std::vector<TermGroup> groups = grouped_inputs(*sum.node(), signatures);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].node->name, "b");
  EXPECT_EQ(groups[1].count, 2U);
}

}  // namespace
}  // namespace preflop
