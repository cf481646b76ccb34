// Method. log and pow need more than 53 bits inside, so a number can be a pair (hi, lo) of doubles
// with |lo| <= ulp(hi)/2, after T. J. Dekker (1971). log x = k ln 2 + 2 atanh(s), s = (m - 1)/(m + 1),
// with m in [sqrt(1/2), sqrt(2)): the first two terms of the atanh series in pairs, the rest in
// doubles. exp(hi + lo) = 2^n exp(r), |r| <= ln(2)/2: a Taylor polynomial around the exact head 1 + r.
#include "src/base/math.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace preflop::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Pair {
  double hi = 0;
  double lo = 0;
};

// ln 2 = kLn2Hi + kLn2Mid to 93 bits. kLn2Hi has 36 bits: its product with an exponent is exact.
constexpr double kLn2Hi = 0x1.62e42fefap-1;
constexpr double kLn2Mid = 0x1.cf79abc9e3b3ap-40;
constexpr Pair kInvLn2 = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
constexpr Pair kTwoThirds = {0x1.5555555555555p-1, 0x1.5555555555555p-55};

constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1;

constexpr Pair quick_sum(double a, double b) {  // |a| >= |b|
  const double s = a + b;
  return {s, b - (s - a)};
}
constexpr Pair sum(double a, double b) {
  const double s = a + b;
  const double t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
constexpr Pair product(double a, double b) {  // exact; |a|, |b| < 2^995
  constexpr double kSplit = 134217729.0;      // 2^27 + 1
  const double ta = kSplit * a;
  const double tb = kSplit * b;
  const double ah = ta - (ta - a);
  const double bh = tb - (tb - b);
  const double al = a - ah;
  const double bl = b - bh;
  const double p = a * b;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}
constexpr Pair operator+(Pair a, Pair b) {
  const Pair s = sum(a.hi, b.hi);
  return quick_sum(s.hi, s.lo + (a.lo + b.lo));
}
constexpr Pair operator*(Pair a, Pair b) {
  const Pair p = product(a.hi, b.hi);
  return quick_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}
// (a.hi + a.lo) / (b.hi + b.lo)
constexpr Pair operator/(Pair a, Pair b) {
  const double q = a.hi / b.hi;
  const Pair back = product(q, b.hi);
  const double rest = ((a.hi - back.hi) - back.lo) + a.lo - q * b.lo;
  return quick_sum(q, rest / b.hi);
}

// x = 2^exponent * mantissa, mantissa in [sqrt(1/2), sqrt(2)). x positive and finite.
struct Split {
  int exponent = 0;
  double mantissa = 1;
};
constexpr Split split(double x) {
  int exponent = -1023;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent -= 54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52);
  constexpr std::uint64_t kRoot2 = 0x6a09e667f3bcd;  // without a branch: which side of it is as good as random
  const std::uint64_t fraction = bits & kMantissa, above = fraction >= kRoot2 ? 1 : 0;
  return {exponent + static_cast<int>(above), std::bit_cast<double>(fraction | ((1023 - above) << 52))};
}

// log m for m in [sqrt(1/2), sqrt(2)), relative error below 2^-64.
constexpr Pair log_mantissa(double m) {
  if (m == 1) return {};
  const Pair s = Pair{m - 1, 0} / sum(m, 1);  // m - 1 is exact: m is within a factor 2 of 1
  const Pair z = s * s;
  // 2 atanh(s) = 2s + s z (2/3 + z (2/5 + z (2/7 + ...))), z <= 0.0295
  const double t = z.hi;
  double tail = 2.0 / 25;
  for (const double c :
       {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5}) {
    tail = tail * t + c;
  }
  const Pair series = z * (kTwoThirds + product(t, tail));
  return s * (Pair{2, 0} + series);
}

// The same without a division, for most x: x = 2^k m, and a number r of few bits near 1/m makes f = m r - 1 small, so
// log x = k ln 2 - log r + f - f^2/2 + ... comes to 2^-60 of the result. Where that leaves no doubt of how log_pair()
// is rounded, it is that; elsewhere (one x in fifty) the caller has to ask there.
constexpr int kIntervals = 128;  // of mantissas that are 2^-7 wide, the middle ones around their numbers
struct Reciprocal {
  double r = 1;
  Pair log;  // of 1/r
};
constexpr int interval(double m) { return static_cast<int>(m * kIntervals + 0.5); }
constexpr int kFirst = interval(0.7071067811865475), kLast = interval(1.4142135623730952);
constexpr auto kReciprocals = [] {
  std::array<Reciprocal, kLast - kFirst + 1> out;
  for (int i = kFirst; i <= kLast; ++i) {
    constexpr int kGrain = 512;
    const int near = (2 * kGrain * kIntervals + i) / (2 * i);  // kGrain times 1/m, rounded
    Reciprocal& own = out[static_cast<std::size_t>(i - kFirst)];
    own.r = static_cast<double>(near) / kGrain;
    const Pair log = log_mantissa(own.r);
    own.log = {-log.hi, -log.lo};
  }
  return out;
}();
// Not a number where in doubt.
double quick_log(double x) {
  const Split x2 = split(x);
  const double m = x2.mantissa, k = x2.exponent;
  const Reciprocal& near = kReciprocals[static_cast<std::size_t>(interval(m) - kFirst)];
  const Pair mr = product(m, near.r);
  const double f = mr.hi - 1;  // exact; |f| < 2^-7
  const Pair square = product(f, f);
  const double f2 = square.hi;
  // f^3/3 - f^4/4 + ... + f^9/9
  const double tail = f * f2 *
                      ((1.0 / 3 - f * (1.0 / 4)) +
                       f2 * ((1.0 / 5 - f * (1.0 / 6)) + f2 * ((1.0 / 7 - f * (1.0 / 8)) + f2 * (1.0 / 9))));
  const Pair whole = quick_sum(k * kLn2Hi, near.log.hi);
  const Pair part = sum(f, -0.5 * f2);
  const Pair both = sum(whole.hi, part.hi);
  const double rest =
      (k * kLn2Mid + near.log.lo + (mr.lo - f * mr.lo)) + (whole.lo + part.lo) + (tail - 0.5 * square.lo) + both.lo;
  const double high = both.hi + rest, low = (both.hi - high) + rest;
  const double doubt = 0x1p-60 * high;
  const double up = high + (low + doubt), down = high + (low - doubt);
  return up == down ? up : kNan;
}

// k ln 2 + log m
Pair log_pair(double x) {
  const Split x2 = split(x);
  const Pair m = log_mantissa(x2.mantissa);
  if (x2.exponent == 0) return m;
  const double k = x2.exponent;
  return quick_sum(k * kLn2Hi, k * kLn2Mid) + m;
}

// 2^n for any n that keeps value * 2^n meaningful; two steps reach the subnormals.
double scale(double value, int n) {
  const auto power = [](int e) { return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52); };
  if (n > 1023) return value * power(1023) * power(n - 1023);
  if (n < -1022) return value * power(n + 969) * 0x1p-969;
  return value * power(n);
}

// exp(t) - 1 - t for |t| <= ln(2)/2; the first term left out is below 2^-57.
double exp_tail(double t) {
  double p = 1.0 / 87178291200.0;  // 1/14!
  for (const double c : {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
                         1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 1.0 / 2.0}) {
    p = p * t + c;
  }
  return p * t * t;
}

// exp(x.hi + x.lo) = 2^n (value.hi + value.lo)
struct Exponential {
  int n = 0;
  Pair value;
};
Exponential exp_pair(Pair x) {         // |x| < 800
  constexpr double kRound = 0x1.8p52;  // adding and taking it off rounds to a whole number
  const double n = (x.hi * kInvLn2.hi + kRound) - kRound;
  const Pair r = sum(x.hi - n * kLn2Hi, -(n * kLn2Mid));
  const double rl = r.lo + x.lo;
  const double t = r.hi + rl;
  const Pair head = quick_sum(1, r.hi);
  return {static_cast<int>(n), quick_sum(head.hi, head.lo + (rl + exp_tail(t)))};
}

enum class Whole { no, even, odd };
Whole whole(double y) {
  if (y < 0) y = -y;
  if (y >= 0x1p53) return Whole::even;
  const auto n = static_cast<std::int64_t>(y);
  if (static_cast<double>(n) != y) return Whole::no;
  return n % 2 == 0 ? Whole::even : Whole::odd;
}

// |x|^y for x > 0 finite and not 1, y finite.
double pow_positive(double x, double y) {
  const Pair l = log_pair(x);
  if (y > 0x1p65 || y < -0x1p65) return (y > 0) == (l.hi > 0) ? kInf : 0.0;  // |log x| >= 2^-53
  if (y < 0x1p-65 && y > -0x1p-65) return 1.0;                               // |log x| < 746
  const Pair exponent = l * Pair{y, 0};
  if (exponent.hi > 710) return kInf;
  if (exponent.hi < -746) return 0.0;
  const Exponential e = exp_pair(exponent);
  return scale(e.value.hi, e.n);
}

}  // namespace

double exp(double x) {
  if (x != x) return x;
  if (x > 709.782712893384) return kInf;
  if (x < -745.1332191019412) return 0.0;
  const Exponential e = exp_pair({x, 0});
  return scale(e.value.hi, e.n);
}

double expm1(double x) {
  if (x != x || (x < 0x1p-54 && x > -0x1p-54)) return x;
  if (x > 50) return exp(x);
  if (x < -50) return -1.0;
  if (x > -0.3 && x < 0.3) {
    return x + exp_tail(x);
  }
  const Exponential e = exp_pair({x, 0});
  const Pair head = sum(scale(e.value.hi, e.n), -1.0);
  return head.hi + (head.lo + scale(e.value.lo, e.n));
}

double log(double x) {
  if (x != x || x < 0) return kNan;
  if (x == 0) return -kInf;
  if (x == kInf) return x;
  const double quick = quick_log(x);
  return quick == quick ? quick : log_pair(x).hi;
}

double log2(double x) {
  if (x != x || x < 0) return kNan;
  if (x == 0) return -kInf;
  if (x == kInf) return x;
  const Split x2 = split(x);
  const Pair m = log_mantissa(x2.mantissa) * kInvLn2;
  return (Pair{static_cast<double>(x2.exponent), 0} + m).hi;
}

double log1p(double x) {
  if (x != x || x < -1) return kNan;
  if (x == -1) return -kInf;
  if (x == kInf || (x < 0x1p-54 && x > -0x1p-54)) return x;
  const Pair u = sum(1, x);
  const Pair l = log_pair(u.hi);
  return l.hi + (l.lo + u.lo / u.hi);
}

double pow(double x, double y) {
  if (y == 0 || x == 1) return 1.0;
  if (x != x || y != y) return kNan;
  const Whole kind = whole(y);
  const bool negative = std::bit_cast<std::uint64_t>(x) >> 63 != 0;
  const double sign = negative && kind == Whole::odd ? -1.0 : 1.0;
  const double size = negative ? -x : x;
  if (y == kInf || y == -kInf) return size == 1 ? 1.0 : ((size > 1) == (y > 0) ? kInf : 0.0);
  if (size == 0) return y > 0 ? sign * 0.0 : sign * kInf;
  if (size == kInf) return y > 0 ? sign * kInf : sign * 0.0;
  if (negative && kind == Whole::no) return kNan;
  if (size == 1) return sign;
  return sign * pow_positive(size, y);
}

}  // namespace preflop::math
