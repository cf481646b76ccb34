// preflop-fit: refits every fitted parameter of data/time.csv from data/measured.
//
//   preflop-fit DATA/time.csv                 fit, print errors by source and the parameters
//   preflop-fit DATA/time.csv --write         the same, and rewrite the file
//   preflop-fit DATA/time.csv --score         no fit: the errors of the file as it is
//   preflop-fit DATA/time.csv --bands --write set the ends of the prediction bands from left-out models
//   preflop-fit DATA/time.csv --leave model   errors of rows whose model (source, gpu) no fit has seen
//   preflop-fit DATA/time.csv --unseen        errors of GPUs of which the fit has seen no row
//   preflop-fit DATA/time.csv --docs PAGE     errors in the fit and left out, and the parameters, as a page
//   --rows                                    every row: id, predicted / measured - 1
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "tools/fit/solve.hpp"

namespace preflop::fit {
namespace {

struct Score {
  std::vector<double> errors;
  double mape() const {
    double sum = 0;
    for (double e : errors) sum += std::fabs(e);
    return sum / static_cast<double>(errors.size());
  }
  double bias() const {
    double sum = 0;
    for (double e : errors) sum += e;
    return sum / static_cast<double>(errors.size());
  }
  void print(const std::string& name) const {
    if (errors.empty()) return;
    std::vector<double> size;
    for (double e : errors) size.push_back(std::fabs(e));
    std::sort(size.begin(), size.end());
    const double n = static_cast<double>(size.size());
    const auto rank = [&](double q) { return size[std::min(size.size() - 1, static_cast<std::size_t>(q * n))]; };
    std::printf("%-34s n %4zu  mape %5.1f  median %5.1f  p90 %5.1f  max %6.1f  bias %+5.1f\n", name.c_str(),
                size.size(), 100 * mape(), 100 * rank(.5), 100 * rank(.9), 100 * size.back(), 100 * bias());
  }
};

std::string trait(const Run& run, const std::string& which) {
  if (which == "model") return run.model;
  if (which == "gpu") return run.gpu;
  return run.source;
}

void print_row(const Run& run, const std::vector<double>& errors) {
  std::printf("row %s %s %s", run.source.c_str(), run.id.c_str(), run.fitted ? "fit" : "score");
  for (const double e : errors) std::printf(" %+.1f", 100 * e);
  std::printf(" %s\n", run.group.c_str());
}

void report(const std::vector<Run>& runs, const std::vector<double>& errors, bool rows) {
  std::map<std::string, Score> scores;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string kind = runs[i].moe ? " moe" : " dense";
    scores[runs[i].source + kind].errors.push_back(errors[i]);
    scores["~ all" + kind].errors.push_back(errors[i]);
    scores["~ gpu " + runs[i].gpu].errors.push_back(errors[i]);
    scores["~ stack " + runs[i].problem.stack->name + "@" + runs[i].problem.stack->generation].errors.push_back(
        errors[i]);
  }
  for (const auto& [name, score] : scores) score.print(name);
  if (!rows) return;
  for (std::size_t i = 0; i < runs.size(); ++i) print_row(runs[i], {errors[i]});
}

std::vector<double> errors_of(const TimeParameters& p, const std::vector<Run>& runs) {
  std::vector<double> out;
  for (const Run& run : runs) out.push_back(run.predict(p) / run.measured - 1);
  return out;
}

std::vector<double> left_out(const TimeParameters& start, const std::vector<Run>& runs, const std::string& which) {
  std::set<std::string> values;
  for (const Run& run : runs) values.insert(trait(run, which));
  const std::vector<std::string> all(values.begin(), values.end());
  std::vector<double> errors(runs.size());
  // Models are many, and go in eight groups: every eighth by name.
  const std::size_t folds = which == "model" ? std::min<std::size_t>(all.size(), 8) : all.size();
  const auto fold = [&](const Run& run) {
    return static_cast<std::size_t>(std::lower_bound(all.begin(), all.end(), trait(run, which)) - all.begin()) % folds;
  };
  const auto work = [&](std::size_t begin, std::size_t step) {
    for (std::size_t v = begin; v < folds; v += step) {
      TimeParameters p = start;
      solve(p, runs, [&](const Run& run) { return fold(run) != v; }, {.steps = 8});
      for (std::size_t i = 0; i < runs.size(); ++i) {
        if (fold(runs[i]) == v) errors[i] = runs[i].predict(p) / runs[i].measured - 1;
      }
    }
  };
  std::thread other(work, 1, 2);
  work(0, 2);
  other.join();
  return errors;
}

bool of_machine(const Parameter& p) { return p.owner.starts_with("gpu ") || p.owner.starts_with("arch "); }

// How far off rows of a GPU are that no fit has seen, stacks as they are: with its kernel tables (its parameters at
// their priors, those that it shares with other GPUs fitted to these), and with nothing but its data sheet.
struct Unseen {
  std::string gpu;
  std::vector<const Run*> rows;
  Score table, sheet;                  // of `rows`, in their order
  Score trusted_table, trusted_sheet;  // of rows that nothing is said to be wrong with
};
std::vector<Unseen> unseen_gpus(const TimeParameters& fitted, const std::vector<Run>& runs) {
  constexpr std::size_t kLeast = 10;
  std::map<std::string, std::vector<const Run*>> by;
  for (const Run& run : runs) by[run.gpu].push_back(&run);
  std::vector<Unseen> out;
  for (const auto& [gpu, rows] : by) {
    if (rows.size() < kLeast) continue;
    TimeParameters p = fitted;
    solve(p, runs, [&](const Run& run) { return run.gpu != gpu; }, {.steps = 12, .free = of_machine});
    Unseen one{gpu, rows, {}, {}, {}, {}};
    for (const Run* run : rows) {
      one.table.errors.push_back(run->predict(p) / run->measured - 1);
      one.sheet.errors.push_back(run->predict_by_sheet(p) / run->measured - 1);
      if (!run->fitted) continue;
      one.trusted_table.errors.push_back(one.table.errors.back());
      one.trusted_sheet.errors.push_back(one.sheet.errors.back());
    }
    out.push_back(std::move(one));
  }
  return out;
}

// The ends of the 80 % band of every owner that has one: 10 % and 90 % of measured over predicted among the
// left-out rows that it speaks for, the ranks of split-conformal prediction.
void set_bands(TimeParameters& p, const std::vector<Run>& runs, const std::vector<double>& errors) {
  for (std::size_t i = 0; i < p.all().size(); ++i) {
    const Parameter& q = p.all()[i];
    if (!q.field.starts_with("band_")) continue;
    const bool low = q.field.starts_with("band_low"), moe = q.field.ends_with("_moe");
    std::vector<double> ratios;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const std::vector<std::string> owners = stack_owners(*runs[k].problem.stack);
      if (runs[k].moe == moe && std::find(owners.begin(), owners.end(), q.owner) != owners.end())
        ratios.push_back(1 / (1 + errors[k]));
    }
    if (ratios.empty()) continue;
    std::sort(ratios.begin(), ratios.end());
    const double n = static_cast<double>(ratios.size());
    const double rank = low ? std::floor(0.1 * (n + 1)) : std::ceil(0.9 * (n + 1));
    const std::size_t at = static_cast<std::size_t>(std::clamp(rank, 1.0, n)) - 1;
    p.set(i, std::round(ratios[at] * 1000) / 1000);
    std::printf("  %-24s %-16s %.3f  rows %zu\n", q.owner.c_str(), q.field.c_str(), p.all()[i].value, ratios.size());
  }
}

void print_parameters(const TimeParameters& p, const std::vector<Run>& runs) {
  const auto rows = users(p, runs);
  for (std::size_t i = 0; i < p.all().size(); ++i) {
    const Parameter& q = p.all()[i];
    if (!q.fitted) continue;
    const bool bound = q.value <= q.low * 1.001 || q.value >= q.high * 0.999;
    std::printf("  %-32s %-22s %10.4g  prior %10.4g  rows %4zu%s\n", q.owner.c_str(), q.field.c_str(), q.value, q.prior,
                rows[i].size(), bound ? "  ON A BOUND" : "");
  }
}

std::string table(const std::vector<Run>& runs, const std::vector<std::vector<double>>& errors) {
  std::map<std::string, std::vector<std::vector<double>>> by;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& name :
         {runs[i].source + (runs[i].moe ? " (experts)" : ""), std::string(runs[i].moe ? "~all (experts)" : "~all")}) {
      auto& columns = by[name];
      columns.resize(errors.size());
      for (std::size_t c = 0; c < errors.size(); ++c) columns[c].push_back(errors[c][i]);
    }
  }
  std::string out =
      "| source | rows | in the fit | bias | its model left out | its source left out | its GPU left out "
      "|\n|---|---:|---:|---:|---:|---:|---:|\n";
  for (const auto& [name, columns] : by) {
    double bias = 0;
    for (double e : columns[0]) bias += e / static_cast<double>(columns[0].size());
    char text[160];
    std::snprintf(text, sizeof text, "| %s | %zu | ", name[0] == '~' ? name.c_str() + 1 : name.c_str(),
                  columns[0].size());
    out += text;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      double sum = 0;
      for (double e : columns[c]) sum += std::fabs(e);
      std::snprintf(text, sizeof text, "%.1f | ", 100 * sum / static_cast<double>(columns[c].size()));
      out += text;
      if (c == 0) {
        std::snprintf(text, sizeof text, "%+.1f | ", 100 * bias);
        out += text;
      }
    }
    out.back() = '\n';
  }
  return out;
}

// docs/fit.md: what is fitted, to how many rows, from which prior; and how far rows are off that no fit saw.
std::string page(const TimeParameters& p, const std::vector<Run>& runs) {
  std::string out =
      "# What step times are fitted to\n\nWritten by `preflop-fit data/time.csv --docs docs/fit.md`. Mean absolute "
      "error in % of the step time, "
      "by source: with the\nparameters below, and with parameters fitted without any row of the same model, source or "
      "GPU. A GPU that is left out "
      "keeps\nits prior (kernel tables).\n\n";
  std::vector<std::vector<double>> errors = {errors_of(p, runs)};
  for (const char* which : {"model", "source", "gpu"}) errors.push_back(left_out(p, runs, which));
  out += table(runs, errors);
  out +=
      "\n## A GPU that no fit has seen\n\nIts rows, with the parameters of stacks as they are: *tables*, its own "
      "parameters at their priors (kernel tables) and\nthose of its architecture fitted to other GPUs; *sheet*, as a "
      "GPU of which only the data sheet is known. *unmarked*: rows of which no source says "
      "that something is\nwrong or unstated that decides (an outlier, a regression, a power limit); only these are "
      "ever "
      "fitted.\n\n| GPU | rows | tables | bias | sheet | bias | unmarked rows | tables | sheet |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const Unseen& one : unseen_gpus(p, runs)) {
    char text[160];
    std::snprintf(text, sizeof text, "| %s | %zu | %.1f | %+.1f | %.1f | %+.1f | %zu | %.1f | %.1f |\n",
                  one.gpu.c_str(), one.table.errors.size(), 100 * one.table.mape(), 100 * one.table.bias(),
                  100 * one.sheet.mape(), 100 * one.sheet.bias(), one.trusted_table.errors.size(),
                  100 * one.trusted_table.mape(), 100 * one.trusted_sheet.mape());
    out += text;
  }
  out +=
      "\n## Fitted parameters\n\nAll others of `data/time.csv` are given. *rows*: measured steps that the parameter "
      "has a say in.\n\n"
      "| of | parameter | value | prior | bounds | rows | why it is there |\n|---|---|---:|---:|---|---:|---|\n";
  const auto rows = users(p, runs);
  for (std::size_t i = 0; i < p.all().size(); ++i) {
    const Parameter& q = p.all()[i];
    if (!q.fitted) continue;
    const bool bound = q.value <= q.low * 1.001 || q.value >= q.high * 0.999;
    char text[160];
    std::snprintf(text, sizeof text, " %.4g%s | %.4g | %.3g to %.3g | %zu | ", q.value, bound ? " (on a bound)" : "",
                  q.prior, q.low, q.high, rows[i].size());
    out += "| " + q.owner + " | " + q.field + " |" + text + q.source + " |\n";
  }
  return out;
}

int run(const std::vector<std::string>& args) {
  const auto has = [&](const char* flag) { return std::find(args.begin(), args.end(), flag) != args.end(); };
  if (args.empty() || args[0].starts_with("--")) {
    std::fputs(
        "preflop-fit: which time.csv? usage: preflop-fit data/time.csv [--write|--score|--leave model|source|gpu] "
        "[--rows]\n",
        stderr);
    return 2;
  }
  std::ifstream in(args[0], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto parsed = TimeParameters::parse(text, args[0]);
  const auto catalogues = Catalogues::load();
  if (!parsed || !catalogues) {
    std::fprintf(stderr, "%s\n", (!parsed ? parsed.error() : catalogues.error()).text().c_str());
    return 2;
  }
  TimeParameters parameters = std::move(parsed).value();
  const auto runs = load(*catalogues);
  if (!runs) {
    std::fprintf(stderr, "%s\n", runs.error().text().c_str());
    return 2;
  }
  if (has("--bands")) {
    set_bands(parameters, *runs, left_out(parameters, *runs, "model"));
    if (has("--write")) std::ofstream(args[0], std::ios::binary) << parameters.csv();
    return 0;
  }
  const auto docs = std::find(args.begin(), args.end(), "--docs");
  if (docs != args.end() && docs + 1 != args.end()) {
    const std::string text_of_page = page(parameters, *runs);  // before the old page is gone
    std::ofstream(*(docs + 1), std::ios::binary) << text_of_page;
    return 0;
  }
  if (has("--unseen")) {
    for (const Unseen& one : unseen_gpus(parameters, *runs)) {
      one.table.print(one.gpu + ", kernel tables");
      one.sheet.print(one.gpu + ", data sheet");
      one.trusted_table.print(one.gpu + ", kernel tables, unmarked");
      one.trusted_sheet.print(one.gpu + ", data sheet, unmarked");
      for (std::size_t i = 0; has("--rows") && i < one.rows.size(); ++i)
        print_row(*one.rows[i], {one.table.errors[i], one.sheet.errors[i]});
    }
    return 0;
  }
  const auto leave = std::find(args.begin(), args.end(), "--leave");
  if (leave != args.end() && leave + 1 != args.end()) {
    report(*runs, left_out(parameters, *runs, *(leave + 1)), has("--rows"));
    return 0;
  }
  if (!has("--score")) {
    // From the priors, so that the result does not depend on the file's values.
    for (std::size_t i = 0; i < parameters.all().size(); ++i) {
      if (parameters.all()[i].fitted) parameters.set(i, parameters.all()[i].prior);
    }
    solve(parameters, *runs, [](const Run&) { return true; }, {.steps = 120});
  }
  report(*runs, errors_of(parameters, *runs), has("--rows"));
  print_parameters(parameters, *runs);
  if (has("--write")) std::ofstream(args[0], std::ios::binary) << parameters.csv();
  return 0;
}

}  // namespace
}  // namespace preflop::fit

int main(int argc, char** argv) { return preflop::fit::run({argv + 1, argv + argc}); }
