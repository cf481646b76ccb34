#include "src/base/random.hpp"

#include <array>
#include <cmath>

#include "src/base/math.hpp"

namespace preflop {

namespace {

// c[0] x^(n-1) + ... + c[n-1]
template <std::size_t N>
double polynomial(const std::array<double, N>& c, double x) {
  double out = 0;
  for (double k : c) out = out * x + k;
  return out;
}

double tail(double p) {
  constexpr std::array kUp = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                              -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array kDown = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                                3.754408661907416e+00, 1.0};
  const double q = std::sqrt(-2 * math::log(p));
  return polynomial(kUp, q) / polynomial(kDown, q);
}

}  // namespace

double CounterRandom::uniform() {
  constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53
  return (static_cast<double>(next() >> 11) + 0.5) * kUnit;
}

double CounterRandom::wait(double u) { return -math::log(u); }

double normal_quantile(double p) {
  constexpr std::array kUp = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                              1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr std::array kDown = {-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                                6.680131188771972e+01,  -1.328068155288572e+01, 1.0};
  constexpr double kTail = 0.02425;
  if (p < kTail) return tail(p);
  if (p > 1 - kTail) return -tail(1 - p);
  const double q = p - 0.5;
  const double r = q * q;
  return polynomial(kUp, r) * q / polynomial(kDown, r);
}

}  // namespace preflop
