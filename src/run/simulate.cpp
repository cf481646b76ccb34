#include "src/run/simulate.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/math.hpp"
#include "src/base/random.hpp"

namespace preflop {

namespace {

constexpr double kNormal90 = 1.2815515655446004;  // the standard normal's 90 % quantile

// One stream of draws, of which the waiting times may be known.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream, std::vector<double>* waits = nullptr)
      : random_(seed, stream), waits_(waits) {}
  double uniform() { return random_.uniform(); }
  double exponential() {
    if (waits_ == nullptr) return random_.exponential();
    const std::uint64_t at = random_.drawn();
    if (at >= waits_->size()) waits_->resize(at + 1);
    double& wait = (*waits_)[at];
    if (wait > 0)
      random_.skip();
    else
      wait = random_.exponential();
    return wait;
  }

 private:
  CounterRandom random_;
  std::vector<double>* waits_;
};

// Restarts until one gets through. Most do at once, so that is asked first, with the chance that is the same
// every time; the time of an interruption follows only for the others.
class Recovery {
 public:
  explicit Recovery(const Hazard& h)
      : h_(h),
        usual_(math::exp(-h.restart.seconds / h.mtbf)),
        waiting_(math::exp(-(h.restart.seconds + h.restart.waiting) / h.mtbf)) {}

  double operator()(Draws& random) const {
    double down = 0;
    for (;;) {
      const bool waits = h_.restart.share > 0 && random.uniform() < h_.restart.share;
      const double through = waits ? waiting_ : usual_;
      const double u = random.uniform();  // exp(-time / mtbf) until the next interruption
      if (u <= through) return down + h_.restart.seconds + (waits ? h_.restart.waiting : 0);
      down += -h_.mtbf * math::log(u);
    }
  }

 private:
  Hazard h_;
  double usual_, waiting_;
};

// Planned interruptions of a run: Poisson with this mean.
double planned_count(double mean, Draws& random) {
  double n = 0;
  for (double at = random.exponential(); at < mean; at += random.exponential()) ++n;
  return n;
}

RunTrace one(const RunModel& m, Draws& random) {
  RunTrace out;
  const double length = m.segments.length();
  const Recovery recover(m.hazard);
  double done = 0;  // safe segments
  for (;;) {
    const double left = (m.segments.count - done) * length;
    const double next = std::isinf(m.hazard.mtbf) ? left : m.hazard.mtbf * random.exponential();
    if (next >= left) {
      out.running += left;
      break;
    }
    out.running += next;
    ++out.interruptions;
    const double full = std::floor(next / length);
    const bool pending = full >= 1 && next - full * length < m.segments.pending;
    done += pending ? full - 1 : full;
    out.recovering += recover(random);
  }
  if (m.planned_rate > 0) out.planned = planned_count(m.planned_rate * out.running, random) * m.planned_seconds;
  out.seconds = m.startup + out.running + out.recovering + out.planned;
  return out;
}

// A run that hardly ever gets anywhere is not simulated: its mean stands for it.
bool finishes(const RunModel& m) {
  constexpr double kHopeless = 50;
  return mean_elapsed(m.segments, m.hazard) < kHopeless * m.segments.count * m.segments.length();
}

// A place in (0, 1) for run i of n: every n-th part is met once, in an order that looks random.
double stratum(int i, int n, Draws& random, std::uint64_t step) {
  const auto place = static_cast<std::uint64_t>(i) * step % static_cast<std::uint64_t>(n);
  return (static_cast<double>(place) + random.uniform()) / static_cast<double>(n);
}

// The factor at a place p in (0, 1) of a distribution with median 1: log-normal on each side, through its 10 % and
// 90 % quantiles.
double factor(double low, double high, double p) {
  const double z = normal_quantile(p) / kNormal90;
  return math::exp(z < 0 ? -z * math::log(low) : z * math::log(high));
}

double practice_factor(const Uncertainty& u, double p) {
  return u.practice_median * factor(u.practice_low / u.practice_median, u.practice_high / u.practice_median, p);
}

}  // namespace

RunTrace simulate_one(const RunModel& model, std::uint64_t seed, std::uint64_t stream) {
  Draws random(seed, stream);
  return one(model, random);
}

std::vector<double> simulate(const RunModel& model, const Uncertainty& u, std::uint64_t seed, int runs,
                             SharedDraws* shared) {
  constexpr std::uint64_t kPrime = 7919, kOther = 104729;  // no divisors of any number of runs in use: permutations
  std::vector<double> out(static_cast<std::size_t>(runs));
  if (shared != nullptr) {
    if (shared->seed != seed) *shared = SharedDraws{seed, {}};
    if (shared->waits.size() < out.size()) shared->waits.resize(out.size());
  }
  for (int i = 0; i < runs; ++i) {
    Draws random(seed, static_cast<std::uint64_t>(i),
                 shared != nullptr ? &shared->waits[static_cast<std::size_t>(i)] : nullptr);
    RunModel m = model;
    const double slower = factor(u.step_low, u.step_high, stratum(i, runs, random, 1)) *
                          practice_factor(u, stratum(i, runs, random, kOther));
    m.training *= slower;
    m.segments.work *= slower;
    const double likelier = math::exp(u.rate_spread * normal_quantile(stratum(i, runs, random, kPrime)));
    m.hazard.mtbf /= likelier;
    m.planned_rate *= likelier;
    out[static_cast<std::size_t>(i)] =
        finishes(m) ? one(m, random).seconds : m.startup + mean_elapsed(m.segments, m.hazard);
  }
  std::sort(out.begin(), out.end());
  return out;
}

double quantile(const std::vector<double>& ascending, double q) {
  const double at = q * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  if (below + 1 >= ascending.size()) return ascending.back();
  return ascending[below] + (at - static_cast<double>(below)) * (ascending[below + 1] - ascending[below]);
}

}  // namespace preflop
