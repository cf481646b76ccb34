#include "src/run/interruptions.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/math.hpp"

namespace preflop {

namespace {

// P(a restart is not interrupted).
double gets_through(const Hazard& h) {
  const double usual = math::exp(-h.restart.seconds / h.mtbf);
  return h.restart.share == 0
             ? usual
             : usual * ((1 - h.restart.share) + h.restart.share * math::exp(-h.restart.waiting / h.mtbf));
}

// Mean running time of one segment that begins with its predecessor safe.
double fresh(double length, double mtbf) { return mtbf * math::expm1(length / mtbf); }

// The same where the predecessor's save is still pending: an interruption in the first `pending` seconds
// repeats the predecessor, too.
double following(double length, double pending, double mtbf) {
  const double once = fresh(length, mtbf);
  if (pending == 0) return once;
  const double fails = -math::expm1(-length / mtbf);
  const double falls_back = -math::expm1(-pending / mtbf);
  return (mtbf * fails + fails * once) / (1 - falls_back);
}

}  // namespace

double mean_recovery(const Hazard& h) {
  const Restart& r = h.restart;
  if (std::isinf(h.mtbf)) return r.seconds + r.share * r.waiting;
  const double through = gets_through(h);
  return h.mtbf * (1 - through) / through;
}

double mean_running(const Segments& s, double mtbf) {
  if (std::isinf(mtbf)) return s.count * s.length();
  return fresh(s.length(), mtbf) + (s.count - 1) * following(s.length(), s.pending, mtbf);
}

double mean_elapsed(const Segments& s, const Hazard& h) {
  const double running = mean_running(s, h.mtbf);
  return std::isinf(h.mtbf) ? running : running + running / h.mtbf * mean_recovery(h);
}

double young_interval(double save, double mtbf) { return std::sqrt(2 * save * mtbf); }
double daly_first_order(double save, double mtbf) { return young_interval(save, mtbf) - save; }
double daly_interval(double save, double mtbf) {
  if (save >= 2 * mtbf) return mtbf;
  const double x = save / (2 * mtbf);
  return young_interval(save, mtbf) * (1 + std::sqrt(x) / 3 + x / 9) - save;
}

double stretch(double interval, double save, double pending, const Hazard& h) {
  const double length = interval + save;
  if (std::isinf(h.mtbf)) return length / interval;
  return following(length, pending, h.mtbf) / interval * (1 + mean_recovery(h) / h.mtbf);
}

double best_interval(double save, double pending, const Hazard& h, double least, double most) {
  if (!(least < most)) return most;
  if (std::isinf(h.mtbf)) return most;
  // Golden section on the logarithm: the stretch falls, then rises.
  constexpr double kGolden = 0.6180339887498949;
  constexpr int kHalvings = 80;
  double low = math::log(least), high = math::log(most);
  const auto at = [&](double x) { return stretch(math::exp(x), save, pending, h); };
  double left = high - kGolden * (high - low), right = low + kGolden * (high - low);
  double at_left = at(left), at_right = at(right);
  for (int i = 0; i < kHalvings; ++i) {
    if (at_left <= at_right) {
      high = right;
      right = left;
      at_right = at_left;
      left = high - kGolden * (high - low);
      at_left = at(left);
    } else {
      low = left;
      left = right;
      at_left = at_right;
      right = low + kGolden * (high - low);
      at_right = at(right);
    }
  }
  return std::clamp(math::exp((low + high) / 2), least, most);
}

}  // namespace preflop
