#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "src/base/decimal.hpp"

namespace preflop {
namespace {

double read(const char* text) {
  const Result<double> r = parse_decimal(text);
  EXPECT_TRUE(r.ok()) << text;
  return r.ok() ? *r : std::nan("");
}

TEST(Decimal, reads_what_is_documented) {
  EXPECT_EQ(read("12"), 12.0);
  EXPECT_EQ(read("-0.5"), -0.5);
  EXPECT_EQ(read(".5"), 0.5);
  EXPECT_EQ(read("5."), 5.0);
  EXPECT_EQ(read("1.4e12"), 1.4e12);
  EXPECT_EQ(read("1E+3"), 1000.0);
  EXPECT_EQ(read("1e-400"), 0.0);
  EXPECT_TRUE(std::signbit(read("-0")));
}

TEST(Decimal, rounds_correctly) {
  EXPECT_EQ(read("9007199254740993"), 9007199254740992.0);  // a tie goes to even
  EXPECT_EQ(read("9007199254740993.0000000000000000000001"), 9007199254740994.0);
  EXPECT_EQ(read("2.2250738585072011e-308"), 2.2250738585072011e-308);
  EXPECT_EQ(read("4.9406564584124654e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(read("1.7976931348623157e308"), std::numeric_limits<double>::max());
  EXPECT_EQ(read("8.5e22"), 8.5e22);
}

TEST(Decimal, refuses_everything_else) {
  for (const char* text :
       {"",   " ", "1 ", " 1",    "+1",  "nan",   "NaN",  "inf", "-inf",  "infinity", "0x10", "0x1p3", "1e",
        "e5", ".", "-",  "1.2.3", "1,5", "1_000", "1e5x", "--1", "1e400", "-1e400",   "1f",   "１"}) {
    const Result<double> r = parse_decimal(text);
    ASSERT_FALSE(r.ok()) << "'" << text << "'";
    EXPECT_FALSE(r.error().text().empty());
  }
}

TEST(Decimal, shortest_is_short) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(1e23), "1e+23");
  EXPECT_EQ(shortest(4096), "4096");
  EXPECT_EQ(shortest(-0.0), "-0");
  EXPECT_EQ(shortest(5e-324), "5e-324");
}

RC_GTEST_PROP(Decimal, round_trips_every_bit, (std::uint64_t bits)) {
  const double value = std::bit_cast<double>(bits);
  RC_PRE(std::isfinite(value));
  const Result<double> back = parse_decimal(shortest(value));
  RC_ASSERT(back.ok());
  RC_ASSERT(std::bit_cast<std::uint64_t>(*back) == bits);
}

}  // namespace
}  // namespace preflop
