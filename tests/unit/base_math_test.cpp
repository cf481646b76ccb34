// base/math against the platform's libm, which is correct to well under 1 ulp.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>

#include "src/base/math.hpp"

namespace preflop {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// Doubles between two values of equal sign; 0 for equal or both nan.
std::int64_t ulps(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (std::isnan(a) || std::isnan(b) || std::signbit(a) != std::signbit(b)) return INT64_MAX;
  return std::abs(std::bit_cast<std::int64_t>(a) - std::bit_cast<std::int64_t>(b));
}

constexpr int kPoints = 1'000'000;

class Points {
 public:
  explicit Points(std::uint64_t seed) : random_(seed) {}
  double between(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  double positive() {  // any exponent, subnormals too
    return std::bit_cast<double>(random_() % 0x7FF0000000000000u);
  }

 private:
  std::mt19937_64 random_;
};

template <class Ours, class Theirs, class Draw>
void expect_close(Ours ours, Theirs theirs, Draw draw, int points = kPoints) {
  std::int64_t worst = 0;
  double at = 0;
  for (int i = 0; i < points; ++i) {
    const double x = draw();
    const std::int64_t d = ulps(ours(x), theirs(x));
    if (d > worst) {
      worst = d;
      at = x;
    }
  }
  EXPECT_LE(worst, 1) << "at " << std::hexfloat << at;
}

TEST(Math, exp) {
  Points p(1);
  expect_close(math::exp, [](double x) { return std::exp(x); }, [&] { return p.between(-746, 710); });
  expect_close(math::exp, [](double x) { return std::exp(x); }, [&] { return p.between(-1, 1); });
  EXPECT_EQ(math::exp(0), 1);
  EXPECT_EQ(math::exp(-0.0), 1);
  EXPECT_EQ(math::exp(kInf), kInf);
  EXPECT_EQ(math::exp(-kInf), 0);
  EXPECT_EQ(math::exp(710), kInf);
  EXPECT_EQ(math::exp(-746), 0);
  EXPECT_LE(ulps(math::exp(709.782712893384), std::exp(709.782712893384)), 1);
  EXPECT_LE(ulps(math::exp(-745.1332191019411), std::exp(-745.1332191019411)), 1);
  EXPECT_TRUE(std::isnan(math::exp(kNan)));
}

TEST(Math, expm1) {
  Points p(2);
  expect_close(math::expm1, [](double x) { return std::expm1(x); }, [&] { return p.between(-60, 710); });
  expect_close(math::expm1, [](double x) { return std::expm1(x); }, [&] { return p.between(-2, 2); });
  expect_close(
      math::expm1, [](double x) { return std::expm1(x); },
      [&] { return std::ldexp(p.between(-1, 1), -static_cast<int>(p.between(0, 80))); });
  EXPECT_TRUE(std::signbit(math::expm1(-0.0)));
  EXPECT_EQ(math::expm1(-kInf), -1);
  EXPECT_EQ(math::expm1(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::expm1(kNan)));
}

TEST(Math, log) {
  Points p(3);
  expect_close(math::log, [](double x) { return std::log(x); }, [&] { return p.positive(); });
  expect_close(math::log, [](double x) { return std::log(x); }, [&] { return p.between(0.5, 2); });
  expect_close(math::log, [](double x) { return std::log(x); }, [&] { return 1 + p.between(-1e-8, 1e-8); });
  EXPECT_EQ(math::log(1), 0);
  EXPECT_EQ(math::log(0), -kInf);
  EXPECT_EQ(math::log(-0.0), -kInf);
  EXPECT_EQ(math::log(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::log(-1)));
  EXPECT_TRUE(std::isnan(math::log(-kInf)));
  EXPECT_TRUE(std::isnan(math::log(kNan)));
}

// Away from the middle between two doubles log is the nearer one, by whichever of its ways it comes to it.
TEST(Math, logIsTheNearestDouble) {
  if (std::numeric_limits<long double>::digits != 64) GTEST_SKIP() << "needs eleven more bits";
  Points p(4);
  int off = 0, decided = 0;
  const auto look = [&](double x) {
    const long double exact = std::log(static_cast<long double>(x));
    const double nearest = static_cast<double>(exact);
    const long double ulp = std::fabs(static_cast<long double>(std::nextafter(nearest, kInf)) - nearest);
    const long double middle = std::fabs(std::fabs(exact - nearest) - ulp / 2);
    if (middle < ulp / 256) return;
    ++decided;
    off += math::log(x) == nearest ? 0 : 1;
  };
  for (int i = 0; i < kPoints; ++i) {
    look(p.positive());
    look(p.between(0, 1));
    look(p.between(0.99, 1.01));
    look(std::nextafter((2 * (i % 256) + 161) / 256.0, i % 2 == 0 ? 0 : 2));  // where reciprocals change
  }
  EXPECT_EQ(off, 0);
  EXPECT_GT(decided, kPoints * 3);
}

TEST(Math, log2) {
  Points p(4);
  expect_close(math::log2, [](double x) { return std::log2(x); }, [&] { return p.positive(); });
  expect_close(math::log2, [](double x) { return std::log2(x); }, [&] { return p.between(0.5, 2); });
  for (int k = -1074; k <= 1023; ++k) EXPECT_EQ(math::log2(std::ldexp(1.0, k)), k);
  EXPECT_EQ(math::log2(0), -kInf);
  EXPECT_TRUE(std::isnan(math::log2(-1)));
}

TEST(Math, log1p) {
  Points p(5);
  expect_close(math::log1p, [](double x) { return std::log1p(x); }, [&] { return p.between(-1, 1); });
  expect_close(math::log1p, [](double x) { return std::log1p(x); }, [&] { return p.positive(); });
  expect_close(
      math::log1p, [](double x) { return std::log1p(x); },
      [&] { return std::ldexp(p.between(-1, 1), -static_cast<int>(p.between(0, 80))); });
  EXPECT_TRUE(std::signbit(math::log1p(-0.0)));
  EXPECT_EQ(math::log1p(-1), -kInf);
  EXPECT_EQ(math::log1p(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::log1p(-1.5)));
}

TEST(Math, pow) {
  Points p(6);
  std::int64_t worst = 0;
  for (int i = 0; i < kPoints; ++i) {
    const bool wild = i % 2 == 0;
    const double x = wild ? p.positive() : p.between(0, 10);
    const double y = wild ? p.between(-3, 3) : p.between(-300, 300);
    const std::int64_t d = ulps(math::pow(x, y), std::pow(x, y));
    worst = std::max(worst, d);
    ASSERT_LE(d, 1) << std::hexfloat << x << " ^ " << y;
  }
  for (int n = 0; n <= 30; ++n) EXPECT_EQ(math::pow(3, n), std::pow(3, n));
  EXPECT_EQ(math::pow(4, 0.5), 2);
  EXPECT_EQ(math::pow(10, 22), 1e22);
}

TEST(Math, pow_has_the_special_values_of_c) {
  const double values[] = {0.0,
                           -0.0,
                           1,
                           -1,
                           0.5,
                           -0.5,
                           2,
                           -2,
                           3,
                           -3,
                           2.5,
                           -2.5,
                           kInf,
                           -kInf,
                           kNan,
                           1e300,
                           -1e300,
                           1e-300,
                           -1e-300,
                           9007199254740991.0,
                           9007199254740992.0,
                           5e-324,
                           1 + 0x1p-52,
                           1 - 0x1p-53};
  for (const double x : values) {
    for (const double y : values) {
      const double ours = math::pow(x, y);
      const double theirs = std::pow(x, y);
      EXPECT_LE(ulps(ours, theirs), 1) << x << " ^ " << y << " gives " << ours << ", not " << theirs;
      EXPECT_TRUE(theirs != 0 || std::signbit(ours) == std::signbit(theirs)) << x << " ^ " << y;
    }
  }
}

// The same bits on every target: a digest over a fixed set of arguments.
TEST(Math, bits_are_pinned) {
  std::uint64_t digest = 0xcbf29ce484222325u;
  const auto add = [&](double v) { digest = (digest ^ std::bit_cast<std::uint64_t>(v)) * 0x100000001b3u; };
  double x = 1.0 / 3;
  for (int i = 0; i < 10000; ++i) {
    x = x * 1.0137 + 1e-3;
    if (x > 600) x = 1e-3 + x * 1e-5;
    add(math::exp(x));
    add(math::exp(-x));
    add(math::log(x));
    add(math::log2(x));
    add(math::pow(x, 1.37));
    add(math::expm1(x / 100));
    add(math::log1p(x));
  }
  EXPECT_EQ(digest, 427555186926901356u);
}

}  // namespace
}  // namespace preflop
