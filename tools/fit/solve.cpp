#include "tools/fit/solve.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

namespace preflop::fit {

namespace {

std::vector<std::string> owners_of(const Run& run) {
  std::vector<std::string> out = gpu_owners(run.problem.cluster.gpu);
  const std::vector<std::string> stack = stack_owners(*run.problem.stack, run.problem.cluster.gpu);
  out.insert(out.end(), stack.begin(), stack.end());
  return out;
}

double residual(const Run& run, const TimeParameters& p) { return std::log(run.predict(p) / run.measured); }

double robust(double r, double elbow) { return 1 / std::sqrt(1 + (r / elbow) * (r / elbow)); }

// Solves A x = b for a symmetric positive A by Cholesky.
std::vector<double> cholesky(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(std::max(a[j][j], 1e-12));
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

class Solver {
 public:
  Solver(TimeParameters& p, const std::vector<Run>& runs, const std::function<bool(const Run&)>& use, const Options& o)
      : p_(p), options_(o) {
    for (const Run& run : runs) {
      if (run.fitted && use(run)) runs_.push_back(&run);
    }
    const bool apart = !runs.empty() && runs.front().apart;
    for (std::size_t i = 0; i < p_.all().size(); ++i) {
      const Parameter& p = p_.all()[i];
      if (!p.fitted || is_apart(p) != apart || (o.free && !o.free(p))) continue;
      std::vector<std::size_t> rows;
      for (std::size_t k = 0; k < runs_.size(); ++k) {
        if (p_.find(owners_of(*runs_[k]), p_.all()[i].field) == &p_.all()[i]) rows.push_back(k);
      }
      if (rows.empty()) {
        p_.set(i, p_.all()[i].prior);
      } else {
        free_.push_back(i);
        rows_.push_back(std::move(rows));
      }
    }
  }

  void run() {
    double damping = 1e-3;
    double best = cost();
    for (int step = 0; step < options_.steps; ++step) {
      const std::vector<double> before = values();
      const std::vector<double> move = direction(damping);
      apply(before, move);
      const double now = cost();
      if (now < best) {
        const bool done = best - now < 1e-6 * best && damping < 1e-2;  // a step held short says nothing
        best = now;
        damping = std::max(damping / 5, 1e-6);
        if (done) break;
      } else {
        for (std::size_t j = 0; j < free_.size(); ++j) p_.set(free_[j], before[j]);
        damping *= 10;
        if (damping > 1e4) break;
      }
    }
    for (std::size_t i : free_) p_.set(i, std::strtod(short_text(p_.all()[i].value).c_str(), nullptr));
  }

 private:
  static std::string short_text(double v) {  // four digits: more would be noise
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", v);
    return text;
  }
  std::vector<double> values() const {
    std::vector<double> out;
    for (std::size_t i : free_) out.push_back(p_.all()[i].value);
    return out;
  }
  void apply(const std::vector<double>& before, const std::vector<double>& move) {
    for (std::size_t j = 0; j < free_.size(); ++j) {
      const Parameter& q = p_.all()[free_[j]];
      const double step = std::clamp(move[j], -0.7, 0.7);
      p_.set(free_[j], std::clamp(before[j] * std::exp(step), q.low, q.high));
    }
  }
  double cost() const {
    double out = 0;
    for (const Run* run : runs_) {
      const double r = residual(*run, p_) / options_.elbow;
      const double scale = options_.elbow / options_.noise * run->weight;
      out += scale * scale * 2 * (std::sqrt(1 + r * r) - 1);
    }
    for (std::size_t i : free_) {
      const Parameter& q = p_.all()[i];
      const double away = std::log(q.value / q.prior) / q.weight;
      out += away * away;
    }
    return out;
  }
  std::vector<double> direction(double damping) {
    const std::size_t n = free_.size();
    std::vector<double> base(runs_.size());
    for (std::size_t k = 0; k < runs_.size(); ++k) base[k] = residual(*runs_[k], p_);
    std::vector<std::vector<double>> jacobian(runs_.size(), std::vector<double>(n, 0.0));
    constexpr double kStep = 1e-3;
    for (std::size_t j = 0; j < n; ++j) {
      const double value = p_.all()[free_[j]].value;
      p_.set(free_[j], value * std::exp(kStep));
      for (std::size_t k : rows_[j]) jacobian[k][j] = (residual(*runs_[k], p_) - base[k]) / kStep;
      p_.set(free_[j], value);
    }
    std::vector<std::vector<double>> a(n, std::vector<double>(n, 0.0));
    std::vector<double> b(n, 0.0);
    for (std::size_t k = 0; k < runs_.size(); ++k) {
      const double scale = runs_[k]->weight / options_.noise;
      const double w = scale * scale * robust(base[k], options_.elbow);
      for (std::size_t i = 0; i < n; ++i) {
        if (jacobian[k][i] == 0) continue;
        b[i] -= w * jacobian[k][i] * base[k];
        for (std::size_t j = 0; j <= i; ++j) a[i][j] += w * jacobian[k][i] * jacobian[k][j];
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      const Parameter& q = p_.all()[free_[i]];
      const double prior = 1 / (q.weight * q.weight);
      b[i] -= prior * std::log(q.value / q.prior);
      a[i][i] += prior;
      a[i][i] *= 1 + damping;
      for (std::size_t j = 0; j < i; ++j) a[j][i] = a[i][j];
    }
    return cholesky(a, b);
  }

  TimeParameters& p_;
  Options options_;
  std::vector<const Run*> runs_;
  std::vector<std::size_t> free_;
  std::vector<std::vector<std::size_t>> rows_;
};

}  // namespace

void solve(TimeParameters& parameters, const std::vector<Run>& runs, const std::function<bool(const Run&)>& use,
           const Options& options) {
  Solver(parameters, runs, use, options).run();
}

std::vector<std::vector<std::size_t>> users(const TimeParameters& p, const std::vector<Run>& runs) {
  std::vector<std::vector<std::size_t>> out(p.all().size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t k = 0; k < runs.size(); ++k) {
      if (p.find(owners_of(runs[k]), p.all()[i].field) == &p.all()[i]) out[i].push_back(k);
    }
  }
  return out;
}

}  // namespace preflop::fit
