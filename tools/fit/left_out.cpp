#include "tools/fit/left_out.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

namespace preflop::fit {

double Score::mape() const {
  double sum = 0;
  for (double e : errors) sum += std::fabs(e);
  return sum / static_cast<double>(errors.size());
}

double Score::bias() const {
  double sum = 0;
  for (double e : errors) sum += e;
  return sum / static_cast<double>(errors.size());
}

void Score::print(const std::string& name) const {
  if (errors.empty()) return;
  std::vector<double> size;
  for (double e : errors) size.push_back(std::fabs(e));
  std::sort(size.begin(), size.end());
  const double n = static_cast<double>(size.size());
  const auto rank = [&](double q) { return size[std::min(size.size() - 1, static_cast<std::size_t>(q * n))]; };
  std::printf("%-34s n %4zu  mape %5.1f  median %5.1f  p90 %5.1f  max %6.1f  bias %+5.1f\n", name.c_str(), size.size(),
              100 * mape(), 100 * rank(.5), 100 * rank(.9), 100 * size.back(), 100 * bias());
}

namespace {

std::string trait(const Run& run, const std::string& which) {
  if (which == "model") return run.model;
  if (which == "gpu") return run.gpu;
  return run.source;
}

bool of_machine(const Parameter& p) { return p.owner.starts_with("gpu ") || p.owner.starts_with("arch "); }

}  // namespace

Folds folds_by(const std::vector<Run>& runs, const std::string& which) {
  std::set<std::string> values;
  for (const Run& run : runs) values.insert(trait(run, which));
  const std::vector<std::string> all(values.begin(), values.end());
  // Models are many, and go in eight groups: every eighth by name.
  Folds out;
  out.count = which == "model" ? std::min<std::size_t>(all.size(), 8) : all.size();
  for (const Run& run : runs) {
    const auto at = std::lower_bound(all.begin(), all.end(), trait(run, which));
    out.of.push_back(static_cast<std::size_t>(at - all.begin()) % out.count);
  }
  return out;
}

std::vector<double> errors_of(const TimeParameters& p, const std::vector<Run>& runs) {
  std::vector<double> out;
  for (const Run& run : runs) out.push_back(run.predict(p) / run.measured - 1);
  return out;
}

std::vector<double> left_out(const TimeParameters& start, const std::vector<Run>& runs, const Folds& folds) {
  std::vector<double> errors(runs.size());
  const auto fold = [&](const Run& run) { return folds.of[static_cast<std::size_t>(&run - runs.data())]; };
  const auto work = [&](std::size_t begin, std::size_t step) {
    for (std::size_t v = begin; v < folds.count; v += step) {
      TimeParameters p = start;
      solve(p, runs, [&](const Run& run) { return fold(run) != v; }, {.steps = 8});
      for (std::size_t i = 0; i < runs.size(); ++i) {
        if (folds.of[i] == v) errors[i] = runs[i].predict(p) / runs[i].measured - 1;
      }
    }
  };
  std::thread other(work, 1, 2);
  work(0, 2);
  other.join();
  return errors;
}

Ends conformal_ends(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  const double n = static_cast<double>(ratios.size());
  const auto at = [&](double rank) { return ratios[static_cast<std::size_t>(std::clamp(rank, 1.0, n)) - 1]; };
  return {at(std::floor(0.1 * (n + 1))), at(std::ceil(0.9 * (n + 1)))};
}

bool has_full_end(const TimeParameters& p, const std::string& owner, bool moe) {
  return p.find({owner}, moe ? "band_high_full_moe" : "band_high_full_dense") != nullptr;
}

std::vector<Ends> bands_of_others(const TimeParameters& p, const std::vector<Run>& runs, const Folds& folds,
                                  const std::vector<double>& errors) {
  constexpr std::size_t kLeast = 10;
  std::map<std::string, Ends> known;  // rows of one owner, kind and fold have one band
  std::vector<Ends> out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& owner : stack_owners(*runs[i].problem.stack, runs[i].problem.cluster.gpu)) {
      if (p.find({owner}, runs[i].moe ? "band_low_moe" : "band_low_dense") == nullptr) continue;
      const bool apart = has_full_end(p, owner, runs[i].moe);
      const std::string key = owner + (runs[i].moe ? " moe " : " dense ") + (apart && runs[i].full ? "full " : "") +
                              std::to_string(folds.of[i]);
      auto it = known.find(key);
      if (it == known.end()) {
        std::vector<double> ratios, slow;  // `slow`: those that the slow end is of
        for (std::size_t k = 0; k < runs.size(); ++k) {
          const std::vector<std::string> owners = stack_owners(*runs[k].problem.stack, runs[k].problem.cluster.gpu);
          const bool alike = runs[k].moe == runs[i].moe && folds.of[k] != folds.of[i];
          if (!alike || std::find(owners.begin(), owners.end(), owner) == owners.end()) continue;
          ratios.push_back(1 / (1 + errors[k]));
          if (!apart || runs[k].full == runs[i].full) slow.push_back(ratios.back());
        }
        if (slow.size() < kLeast) continue;
        it =
            known.emplace(key, Ends{conformal_ends(std::move(ratios)).low, conformal_ends(std::move(slow)).high}).first;
      }
      out.push_back(it->second);
      break;
    }
    if (out.size() == i) out.emplace_back();
  }
  return out;
}

std::vector<Unseen> unseen_gpus(const TimeParameters& fitted, const std::vector<Run>& runs) {
  constexpr std::size_t kLeast = 10;
  std::map<std::string, std::vector<const Run*>> by;
  for (const Run& run : runs) by[run.gpu].push_back(&run);
  std::vector<Unseen> out;
  for (const auto& [gpu, rows] : by) {
    if (rows.size() < kLeast) continue;
    TimeParameters p = fitted;
    solve(p, runs, [&](const Run& run) { return run.gpu != gpu; }, {.steps = 12, .free = of_machine});
    Unseen one{gpu, rows, {}, {}};
    for (std::size_t k = 0; k < std::size(kKnowledge); ++k) {
      for (const Run* run : rows) {
        const double error = run->predict(p, kKnowledge[k]) / run->measured - 1;
        one.all[k].errors.push_back(error);
        if (run->fitted) one.trusted[k].errors.push_back(error);
      }
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace preflop::fit
