// docs/fit.md.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "src/validate/summary.hpp"
#include "tools/fit/left_out.hpp"

namespace preflop::fit {

namespace {

// Errors of every row left out in one way, and the band that the others make.
struct Column {
  std::vector<double> errors;
  std::vector<Ends> bands;
};

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 100 * share);
  return text;
}

double mean_size(const std::vector<double>& errors, const std::vector<std::size_t>& rows) {
  double sum = 0;
  for (const std::size_t i : rows) sum += std::fabs(errors[i]);
  return sum / static_cast<double>(rows.size());
}

// Model FLOPs of the step over what the peak does in the measured time.
double measured_mfu(const Run& run) {
  const Recipe& r = run.problem.analysed.recipe;
  const double tokens = static_cast<double>(r.global_batch) * static_cast<double>(r.seq);
  const double peak = run.problem.cluster.datum(peak_field(r.precision)).value.value_or(0);
  return run.compute.model.number() * tokens / (static_cast<double>(run.problem.cluster.gpus) * peak * run.measured);
}

std::string cells_of(const Column& column, const std::vector<std::size_t>& rows) {
  double inside = 0;
  std::vector<double> widths;
  for (const std::size_t i : rows) {
    inside += column.bands[i].holds(column.errors[i]) ? 1 : 0;
    widths.push_back(column.bands[i].half_width());
  }
  std::sort(widths.begin(), widths.end());
  return percent(mean_size(column.errors, rows)) + " | " + percent(inside / static_cast<double>(rows.size())) + " | " +
         percent(widths[widths.size() / 2]);
}

using Groups = std::map<std::string, std::vector<std::size_t>>;

std::string table(const Groups& by, const std::vector<Run>& runs, const std::vector<double>& fitted,
                  const std::vector<Column>& columns) {
  std::string out =
      "| source | rows | in the fit | bias | naive | its model left out | in band % | width % | its source left out | "
      "in "
      "band % | width % | its GPU left out | in band % | width % |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const auto& [name, rows] : by) {
    double bias = 0;
    std::vector<double> mfus;
    for (const std::size_t i : rows) {
      bias += fitted[i] / static_cast<double>(rows.size());
      mfus.push_back(measured_mfu(runs[i]));
    }
    const std::optional<double> naive = name[0] == '~' ? std::nullopt : naive_error(mfus);
    char text[160];
    std::snprintf(text, sizeof text, "| %s | %zu | %.1f | %+.1f | ", name[0] == '~' ? name.c_str() + 1 : name.c_str(),
                  rows.size(), 100 * mean_size(fitted, rows), 100 * bias);
    out += text + (naive ? percent(*naive) : std::string("-"));
    for (const Column& column : columns) out += " | " + cells_of(column, rows);
    out += " |\n";
  }
  return out;
}

// The naive baseline against rows whose model no fit has seen, of every file of ten rows or more.
std::string verdict(const Groups& by, const std::vector<Run>& runs, const Column& models) {
  std::string lost;
  int files = 0;
  for (const auto& [name, rows] : by) {
    if (name[0] == '~') continue;
    std::vector<double> mfus;
    for (const std::size_t i : rows) mfus.push_back(measured_mfu(runs[i]));
    const std::optional<double> naive = naive_error(mfus);
    if (!naive) continue;
    ++files;
    if (mean_size(models.errors, rows) >= *naive) lost += (lost.empty() ? "" : ", ") + name;
  }
  const std::string all = std::to_string(files) + " sources of ten rows or more";
  return lost.empty() ? "The naive baseline is beaten on all " + all + ", both left out.\n"
                      : "Of " + all + " the naive baseline, left out too, is not beaten on " + lost + ".\n";
}

std::vector<Column> columns_of(const TimeParameters& p, const std::vector<Run>& runs) {
  std::vector<Column> columns;
  for (const char* which : {"model", "source", "gpu"}) {
    const Folds folds = folds_by(runs, which);
    Column one{left_out(p, runs, folds), {}};
    one.bands = bands_of_others(p, runs, folds, one.errors);
    columns.push_back(std::move(one));
  }
  return columns;
}

std::string errors_part(const TimeParameters& p, const std::vector<Run>& runs) {
  const std::vector<Column> columns = columns_of(p, runs);
  Groups by;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    by[runs[i].source + (runs[i].moe ? " (experts)" : "")].push_back(i);
    by[runs[i].moe ? "~all (experts)" : "~all"].push_back(i);
  }
  return "# What step times are fitted to\n\nWritten by `preflop-fit data/time.csv --docs docs/fit.md`. Mean absolute "
         "error in % of the step time, by source: with the\nparameters below, and with parameters fitted without any "
         "row of the same model, source or GPU. A GPU that is left out keeps\nits prior (kernel tables). *naive*: one "
         "constant MFU, the median of the other rows of the source. *in band*: share of\nthe rows left out within the "
         "80 % band that the rows of other models (sources, GPUs), left out too, make for their stack;\n*width*: half "
         "of that band, in % of the prediction.\n\n" +
         table(by, runs, errors_of(p, runs), columns) + "\n" + verdict(by, runs, columns[0]);
}

std::string apart_part(const TimeParameters& p, const std::vector<Run>& runs) {
  if (runs.empty()) return "";
  Groups by;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    by[runs[i].source + " on " + runs[i].gpu].push_back(i);
    if (runs[i].gpu.starts_with("tpu-")) by["~all TPUs"].push_back(i);
  }
  const std::vector<Column> columns = columns_of(p, runs);
  return "\n## TPUs, and JAX on GPUs\n\nFitted after all others, whose parameters they take as they are; in none of "
         "the figures above.\n\n" +
         table(by, runs, errors_of(p, runs), columns) + "\n" + verdict(by, runs, columns[0]);
}

std::string unseen_part(const TimeParameters& p, const std::vector<Run>& runs) {
  std::string out =
      "\n## A GPU that no fit has seen\n\nIts rows, with the parameters of stacks as they are: *tables*, its own "
      "parameters at their priors (kernel tables) and\nthose of its architecture fitted to other GPUs; *sheet*, as a "
      "GPU of which only the data sheet is known, on which no\nproduct was measured, of an architecture that is known; "
      "*new*, the same of an architecture that no GPU known has.\n*unmarked*: rows of which no source says that "
      "something is wrong or unstated that decides (an outlier, a regression, a\npower limit); only these are ever "
      "fitted.\n\n"
      "| GPU | rows | tables | bias | sheet | bias | new | bias | unmarked rows | tables | sheet | new |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const Unseen& one : unseen_gpus(p, runs)) {
    char text[64];
    out += "| " + one.gpu + " | " + std::to_string(one.rows.size());
    for (const Score& score : one.all) {
      std::snprintf(text, sizeof text, " | %.1f | %+.1f", 100 * score.mape(), 100 * score.bias());
      out += text;
    }
    out += " | " + std::to_string(one.trusted[0].errors.size());
    for (const Score& score : one.trusted) out += " | " + percent(score.mape());
    out += " |\n";
  }
  return out;
}

std::string parameters_part(const TimeParameters& p, const std::vector<Run>& usual, const std::vector<Run>& apart) {
  std::string out =
      "\n## Fitted parameters\n\nAll others of `data/time.csv` are given. *rows*: measured steps that the parameter "
      "has a say in.\n\n"
      "| of | parameter | value | prior | bounds | rows | why it is there |\n|---|---|---:|---:|---|---:|---|\n";
  const auto rows = users(p, usual), rows_apart = users(p, apart);
  for (std::size_t i = 0; i < p.all().size(); ++i) {
    const Parameter& q = p.all()[i];
    if (!q.fitted) continue;
    const bool bound = q.value <= q.low * 1.001 || q.value >= q.high * 0.999;
    char text[160];
    std::snprintf(text, sizeof text, " %.4g%s | %.4g | %.3g to %.3g | %zu | ", q.value, bound ? " (on a bound)" : "",
                  q.prior, q.low, q.high, (is_apart(q) ? rows_apart : rows)[i].size());
    out += "| " + q.owner + " | " + q.field + " |" + text + q.source + " |\n";
  }
  return out;
}

}  // namespace

std::string page(const TimeParameters& p, const std::vector<Run>& runs, const std::vector<Run>& apart) {
  return errors_part(p, runs) + unseen_part(p, runs) + apart_part(p, apart) + parameters_part(p, runs, apart);
}

}  // namespace preflop::fit
