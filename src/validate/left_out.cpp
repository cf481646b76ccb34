#include "src/validate/left_out.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace preflop {

namespace {

constexpr double kBand = 0.8;

double middle(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

bool counts(const Entry& e) {
  return !e.skip && e.metric.starts_with("memory.") && e.low && e.high && e.measured && e.predicted && e.error;
}

// What the fitted parameter of a row would have to be over what it is, for the row to come out as measured.
double wanted(const Entry& e) { return 1 + (*e.measured - *e.predicted) / e.fitted_part; }

// The prediction with the row's parameter fitted to rows of other models of the source that it was fitted to.
double predicted_unseen(const Entry& row, const std::vector<const Entry*>& all) {
  if (row.fitted.empty() || row.source != row.fitted_to) return *row.predicted;
  std::vector<double> others;
  for (const Entry* e : all) {
    if (e->fitted == row.fitted && e->source == row.fitted_to && e->metric == row.metric && e->model != row.model)
      others.push_back(wanted(*e));
  }
  if (others.empty()) return *row.predicted;
  return *row.predicted + row.fitted_part * (std::max(0.0, middle(others)) - 1);
}

struct Unseen {
  const Entry* entry = nullptr;
  double predicted = 0, miss = 0;    // miss: |measured / predicted - 1|
  std::optional<double> half_width;  // of the band of the other models
};

std::vector<Unseen> unseen(const std::vector<const Entry*>& group, const std::vector<const Entry*>& all) {
  std::vector<Unseen> out;
  for (const Entry* e : group) {
    const double predicted = predicted_unseen(*e, all);
    out.push_back({e, predicted, std::fabs(*e->measured / predicted - 1), std::nullopt});
  }
  for (Unseen& row : out) {
    std::vector<double> others;
    for (const Unseen& o : out) {
      if (o.entry->model != row.entry->model) others.push_back(o.miss);
    }
    row.half_width = conformal_half_width(std::move(others));
  }
  return out;
}

LeftOut figures(const std::string& like, const std::string& metric, const std::vector<Unseen>& rows,
                const std::map<std::string, double>& bands_of_rows) {
  LeftOut out;
  out.like = like;
  out.metric = metric;
  out.rows = rows.size();
  std::set<std::string> models, fitted;
  std::vector<double> bands, own, widths, left;
  double sum = 0, inside = 0, kept = 0;
  for (const Unseen& row : rows) {
    const Entry& e = *row.entry;
    models.insert(e.model);
    if (!e.fitted.empty() && e.source == e.fitted_to) fitted.insert(e.fitted);
    bands.push_back((*e.high - *e.low) / 2 / *e.predicted);
    own.push_back(bands_of_rows.at(e.like));
    sum += std::fabs(*e.error);
    inside += *e.low <= *e.measured && *e.measured <= *e.high ? 1 : 0;
    if (!row.half_width) continue;
    widths.push_back(*row.half_width);
    left.push_back(std::fabs(row.predicted / *e.measured - 1));
    kept += row.miss <= *row.half_width ? 1 : 0;
  }
  for (const std::string& name : fitted) out.fitted += (out.fitted.empty() ? "" : ", ") + name;
  const double n = static_cast<double>(rows.size());
  out.models = models.size();
  out.band = middle(bands);
  out.band_of_rows = middle(own);
  out.mape = sum / n;
  out.coverage = inside / n;
  out.left_out = left.size();
  if (left.empty()) return out;
  const double others = static_cast<double>(left.size());
  double total = 0;
  for (const double miss : left) total += miss;
  out.left_out_mape = total / others;
  out.left_out_coverage = kept / others;
  out.left_out_half_width = middle(widths);
  return out;
}

}  // namespace

std::optional<double> conformal_half_width(std::vector<double> misses) {
  if (misses.empty()) return std::nullopt;
  std::sort(misses.begin(), misses.end());
  const double rank = std::ceil(kBand * static_cast<double>(misses.size() + 1) - 1e-9);
  return misses[std::min(misses.size(), static_cast<std::size_t>(rank)) - 1];
}

std::vector<LeftOut> left_out(const std::vector<Entry>& entries) {
  std::map<std::string, std::map<std::string, std::vector<const Entry*>>> groups;  // by metric and likeness
  std::vector<const Entry*> all;
  for (const Entry& e : entries) {
    if (!counts(e)) continue;
    groups[e.metric][e.like].push_back(&e);
    all.push_back(&e);
  }
  std::vector<LeftOut> out;
  for (const auto& [metric, likes] : groups) {
    std::vector<Unseen> together;
    std::map<std::string, double> bands_of_rows;
    std::vector<std::pair<std::string, std::vector<Unseen>>> apart;
    for (const auto& [like, rows] : likes) {
      apart.emplace_back(like, unseen(rows, all));
      together.insert(together.end(), apart.back().second.begin(), apart.back().second.end());
      std::vector<double> misses;
      for (const Entry* e : rows) misses.push_back(std::fabs(*e->measured / *e->predicted - 1));
      bands_of_rows[like] = conformal_half_width(std::move(misses)).value_or(0);
    }
    out.push_back(figures("all", metric, together, bands_of_rows));
    for (const auto& [like, rows] : apart) out.push_back(figures(like, metric, rows, bands_of_rows));
  }
  return out;
}

}  // namespace preflop
