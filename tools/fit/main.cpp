// preflop-fit: refits every fitted parameter of data/time.csv from data/measured.
//
//   preflop-fit DATA/time.csv                 fit, print errors by source and the parameters
//   preflop-fit DATA/time.csv --write         the same, and rewrite the file
//   preflop-fit DATA/time.csv --score         no fit: the errors of the file as it is
//   preflop-fit DATA/time.csv --bands --write set the ends of the prediction bands from left-out models
//   preflop-fit DATA/time.csv --leave model   errors of rows whose model (source, gpu) no fit has seen
//   preflop-fit DATA/time.csv --unseen        errors of GPUs of which the fit has seen no row
//   preflop-fit DATA/time.csv --docs PAGE     errors in the fit and left out, and the parameters, as a page
//   --apart                                   only rows that stand apart (TPUs, JAX) and their parameters
//   --only WORD                               parameters whose owner contains WORD move, from where they are
//   --rows                                    every row: id, predicted / measured - 1
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>

#include "tools/fit/left_out.hpp"

namespace preflop::fit {
namespace {

void print_row(const Run& run, const std::vector<double>& errors) {
  std::printf("row %s %s %s", run.source.c_str(), run.id.c_str(), run.fitted ? "fit" : "score");
  for (const double e : errors) std::printf(" %+.1f", 100 * e);
  std::printf(" %s\n", run.group.c_str());
}

void report(const std::vector<Run>& runs, const std::vector<double>& errors, bool rows) {
  std::map<std::string, Score> scores;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string kind = (runs[i].apart ? " on " + runs[i].gpu : "") + (runs[i].moe ? " moe" : " dense");
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

// The ends of the 80 % band of every owner that has one: 10 % and 90 % of measured over predicted among the
// left-out rows that it speaks for, the ranks of split-conformal prediction.
void set_bands(TimeParameters& p, const std::vector<Run>& runs, const std::vector<double>& errors) {
  for (std::size_t i = 0; i < p.all().size(); ++i) {
    const Parameter& q = p.all()[i];
    if (!q.field.starts_with("band_") || runs.empty() || is_apart(q) != runs.front().apart) continue;
    const bool low = q.field.starts_with("band_low"), moe = q.field.ends_with("_moe");
    // A slow end of runs that fill their memory leaves the others to the ordinary one.
    const bool full = q.field.starts_with("band_high_full"), apart = !low && has_full_end(p, q.owner, moe);
    std::vector<double> ratios;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const std::vector<std::string> owners = stack_owners(*runs[k].problem.stack, runs[k].problem.cluster.gpu);
      if (apart && runs[k].full != full) continue;
      if (runs[k].moe == moe && std::find(owners.begin(), owners.end(), q.owner) != owners.end())
        ratios.push_back(1 / (1 + errors[k]));
    }
    if (ratios.empty()) continue;
    const Ends ends = conformal_ends(ratios);
    p.set(i, std::round((low ? ends.low : ends.high) * 1000) / 1000);
    std::printf("  %-24s %-16s %.3f  rows %zu\n", q.owner.c_str(), q.field.c_str(), p.all()[i].value, ratios.size());
  }
}

void print_parameters(const TimeParameters& p, const std::vector<Run>& runs) {
  const auto rows = users(p, runs);
  for (std::size_t i = 0; i < p.all().size(); ++i) {
    const Parameter& q = p.all()[i];
    if (!q.fitted || runs.empty() || is_apart(q) != runs.front().apart) continue;
    const bool bound = q.value <= q.low * 1.001 || q.value >= q.high * 0.999;
    std::printf("  %-32s %-22s %10.4g  prior %10.4g  rows %4zu%s\n", q.owner.c_str(), q.field.c_str(), q.value, q.prior,
                rows[i].size(), bound ? "  ON A BOUND" : "");
  }
}

void print_unseen(const TimeParameters& parameters, const std::vector<Run>& runs, bool rows) {
  for (const Unseen& one : unseen_gpus(parameters, runs)) {
    static constexpr const char* kNames[] = {", kernel tables", ", data sheet", ", new architecture"};
    for (std::size_t k = 0; k < std::size(kKnowledge); ++k) {
      one.all[k].print(one.gpu + kNames[k]);
      one.trusted[k].print(one.gpu + kNames[k] + ", unmarked");
    }
    for (std::size_t i = 0; rows && i < one.rows.size(); ++i) {
      std::vector<double> errors;
      for (const Score& score : one.all) errors.push_back(score.errors[i]);
      print_row(*one.rows[i], errors);
    }
  }
}

// What stands after a flag; empty without it.
std::string value_of(const std::vector<std::string>& args, const char* flag) {
  const auto at = std::find(args.begin(), args.end(), flag);
  return at != args.end() && at + 1 != args.end() ? *(at + 1) : "";
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
  const auto usual = load(*catalogues, false), apart = load(*catalogues, true);
  if (!usual || !apart) {
    std::fprintf(stderr, "%s\n", (!usual ? usual.error() : apart.error()).text().c_str());
    return 2;
  }
  if (const std::string docs = value_of(args, "--docs"); !docs.empty()) {
    const std::string text_of_page = page(parameters, *usual, *apart);  // before the old page is gone
    std::ofstream(docs, std::ios::binary) << text_of_page;
    return 0;
  }
  if (has("--unseen")) {
    print_unseen(parameters, *usual, has("--rows"));
    return 0;
  }
  const std::string left = value_of(args, "--leave"), only = value_of(args, "--only");
  const bool fits = left.empty() && !has("--bands") && !has("--score");
  // From the priors, so that the result does not depend on the file's values.
  for (std::size_t i = 0; fits && only.empty() && i < parameters.all().size(); ++i) {
    const Parameter& p = parameters.all()[i];
    if (p.fitted && (!has("--apart") || is_apart(p))) parameters.set(i, p.prior);
  }
  Options options{.steps = 120};
  if (!only.empty()) options.free = [&](const Parameter& p) { return p.owner.find(only) != std::string::npos; };
  // Those that stand apart come after all others, whose parameters they take as they are.
  for (const std::vector<Run>* runs : {&*usual, &*apart}) {
    if (has("--apart") && runs == &*usual) continue;
    if (has("--bands")) {
      set_bands(parameters, *runs, left_out(parameters, *runs, folds_by(*runs, "model")));
      continue;
    }
    if (!left.empty()) {
      report(*runs, left_out(parameters, *runs, folds_by(*runs, left)), has("--rows"));
      continue;
    }
    if (fits) solve(parameters, *runs, [](const Run&) { return true; }, options);
    report(*runs, errors_of(parameters, *runs), has("--rows"));
    print_parameters(parameters, *runs);
  }
  if (has("--write")) std::ofstream(args[0], std::ios::binary) << parameters.csv();
  return 0;
}

}  // namespace
}  // namespace preflop::fit

int main(int argc, char** argv) { return preflop::fit::run({argv + 1, argv + argc}); }
