#include "src/validate/summary.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

namespace preflop {

namespace {

double mean(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}

// Nearest rank: the smallest value that at least a share q of the values do not pass. v is sorted.
double quantile(const std::vector<double>& v, double q) {
  const double rank = std::ceil(q * static_cast<double>(v.size()));
  return v[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

// The median of sorted values without the one at `skip`.
double median_without(const std::vector<double>& sorted, std::size_t skip) {
  const std::size_t n = sorted.size() - 1;
  const auto at = [&](std::size_t i) { return sorted[i < skip ? i : i + 1]; };
  return n % 2 == 1 ? at(n / 2) : (at(n / 2 - 1) + at(n / 2)) / 2;
}

struct Pile {
  std::vector<double> errors;
  std::vector<double> mfus;
  std::vector<double> half_widths;  // of bands, relative to the prediction
  std::size_t inside = 0;
  std::size_t skipped = 0;
  Summary verdicts;  // its counts

  void count(const Entry& e) {
    const auto add = [](std::optional<std::size_t>& n, bool one) { n = n.value_or(0) + (one ? 1 : 0); };
    const bool oom = e.measured_verdict == "oom", tight = e.predicted_verdict == "tight";
    const bool wrong = oom && e.predicted_verdict == "fits";
    add(verdicts.false_fit, wrong && !e.contradicted);
    add(verdicts.contradicted, wrong && e.contradicted);
    add(verdicts.false_oom, !oom && e.predicted_verdict == "no");
    add(verdicts.tight, tight);
    add(verdicts.oom, oom);
    add(verdicts.tight_oom, oom && tight);
    add(verdicts.doubled, !e.doubled_verdict.empty());
    add(verdicts.doubled_no, e.doubled_verdict == "no");
  }

  void add(const Entry& e) {
    if (e.skip) {
      ++skipped;
      return;
    }
    if (!e.error) return;
    errors.push_back(*e.error);
    if (e.low && e.high && e.measured && e.predicted && *e.predicted > 0) {
      half_widths.push_back((*e.high - *e.low) / 2 / *e.predicted);
      inside += *e.low <= *e.measured && *e.measured <= *e.high;
    }
    if (e.metric == "fit.verdict") count(e);
    if (e.model_flops_rate > 0 && e.measured) mfus.push_back(e.model_flops_rate / *e.measured);
  }
};

void fill(Summary& out, const Pile& pile) {
  out.n = pile.errors.size();
  out.skipped = pile.skipped;
  if (out.metric == "fit.verdict") {
    const Summary& v = pile.verdicts;
    out.false_fit = v.false_fit.value_or(0);
    out.false_oom = v.false_oom.value_or(0);
    out.tight = v.tight.value_or(0);
    out.contradicted = v.contradicted.value_or(0);
    out.oom = v.oom.value_or(0);
    out.tight_oom = v.tight_oom.value_or(0);
    out.doubled = v.doubled.value_or(0);
    out.doubled_no = v.doubled_no.value_or(0);
    return;
  }
  if (pile.errors.empty()) return;
  std::vector<double> sizes;
  for (double e : pile.errors) sizes.push_back(std::fabs(e));
  std::sort(sizes.begin(), sizes.end());
  out.mape = mean(sizes);
  if (!pile.half_widths.empty()) {
    std::vector<double> widths = pile.half_widths;
    std::sort(widths.begin(), widths.end());
    out.half_width = quantile(widths, 0.5);
    out.coverage = static_cast<double>(pile.inside) / static_cast<double>(widths.size());
  }
  out.median = quantile(sizes, 0.5);
  out.p90 = quantile(sizes, 0.9);
  out.max = sizes.back();
  out.bias = mean(pile.errors);
  if (out.metric == "time.step_seconds") out.naive_mape = naive_error(pile.mfus);
}

}  // namespace

std::optional<double> naive_error(const std::vector<double>& mfus) {
  if (mfus.size() < kLeastNaive) return std::nullopt;
  std::vector<double> sorted = mfus;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    // predicted = rate / MFU of the others, measured = rate / own MFU
    sum += std::fabs(sorted[i] / median_without(sorted, i) - 1);
  }
  return sum / static_cast<double>(sorted.size());
}

std::vector<Summary> summarise(const std::vector<Entry>& entries, const SummaryOptions& options) {
  std::map<std::tuple<std::string, std::string, std::string>, Pile> piles;  // "" sorts before any stem: all sources
  for (const Entry& e : entries) {
    if (options.nothing_assumed && !e.assumed->empty()) continue;
    if (options.apart == e.apart.empty()) continue;
    const std::string kind = e.convention.empty() ? "" : "converted";
    piles[{e.apart.empty() ? e.source : e.source + " on " + e.apart, e.metric, e.convention}].add(e);
    piles[{"", e.metric, kind}].add(e);
    if (e.apart.starts_with("tpu-")) piles[{"all TPUs", e.metric, kind}].add(e);
  }
  std::vector<Summary> out;
  for (const auto& [key, pile] : piles) {
    Summary s;
    s.source = std::get<0>(key).empty() ? "all" : std::get<0>(key);
    s.metric = std::get<1>(key);
    s.convention = std::get<2>(key);
    fill(s, pile);
    out.push_back(std::move(s));
  }
  return out;
}

void Mapping::add(const RowVerdict& v, const std::string& source) {
  ++rows;
  if (v.skip) ++reasons[{v.skip.kind, v.skip.reason}];
  if (!v.states_enough || !v.measures) return;
  ++stated;
  if (v.duplicate)
    ++duplicates;
  else if (!v.skip)
    ++legal;
  else if (v.skip.kind == SkipKind::not_built)
    ++not_built;
  else
    ++other[source + ": " + v.skip.reason];
}

void Mapping::add(const Mapping& m) {
  rows += m.rows;
  stated += m.stated;
  duplicates += m.duplicates;
  legal += m.legal;
  not_built += m.not_built;
  for (const auto& [reason, n] : m.other) other[reason] += n;
  for (const auto& [reason, n] : m.reasons) reasons[reason] += n;
}

void Report::append(Report&& more) {
  if (entries.empty())
    entries = std::move(more.entries);
  else
    std::move(more.entries.begin(), more.entries.end(), std::back_inserter(entries));
  mapping.add(more.mapping);
}

std::optional<double> Mapping::share() const {
  const std::size_t rest = stated - duplicates - not_built;
  if (rest == 0) return std::nullopt;
  return static_cast<double>(legal) / static_cast<double>(rest);
}

}  // namespace preflop
