// docs/accuracy.md and its pictures.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "src/base/csv.hpp"
#include "src/base/embedded.hpp"
#include "src/base/math.hpp"
#include "src/base/text.hpp"
#include "src/validate/order.hpp"
#include "src/view/validate.hpp"
#include "src/view/validate_memory.hpp"
#include "src/view/validate_words.hpp"

namespace preflop {

namespace {

constexpr std::size_t kWorst = 20;

std::string error_table(const std::vector<Summary>& all, const std::string& metric) {
  std::string out =
      "| source | n | skipped | MAPE % | median | p90 | max | bias | naive "
      "| in band % | width % |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const Summary& s : all) {
    if (s.metric != metric) continue;
    out += fmt::format("| {}{} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", s.source,
                       s.convention.empty() ? "" : " (" + s.convention + ")", s.n, s.skipped, error_percent(s.mape),
                       error_percent(s.median), error_percent(s.p90), error_percent(s.max), error_percent(s.bias),
                       error_percent(s.naive_mape), error_percent(s.coverage), error_percent(s.half_width));
  }
  return out;
}

std::string fit_table(const std::vector<Summary>& all) {
  std::string out =
      "| source | n | skipped | out of memory | false fit | contradicted | false OOM | tight | tight, out of memory "
      "|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const Summary& s : all) {
    if (s.metric != "fit.verdict") continue;
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", s.source, s.n, s.skipped, s.oom.value_or(0),
                       s.false_fit.value_or(0), s.contradicted.value_or(0), s.false_oom.value_or(0),
                       s.tight.value_or(0), s.tight_oom.value_or(0));
  }
  return out;
}

std::string order_section(const std::vector<Entry>& entries) {
  const std::vector<JobOrder> jobs = job_orders(entries);
  if (jobs.empty()) return "";
  const std::vector<JobOrder> all = job_orders(entries, 2);
  std::size_t pairs = 0;
  for (const JobOrder& j : all) pairs += j.pairs;
  std::vector<Entry> unmarked;
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(unmarked), [](const Entry& e) { return !marked(e); });
  const std::vector<JobOrder> clean = job_orders(unmarked);
  std::string rows;
  for (const JobOrder& j : jobs) {
    rows += fmt::format("| {} | {} | {} | {} | {} | {} |\n", j.source, j.job, j.layouts, j.pairs,
                        j.pairs > 0 ? text::fixed(j.right / static_cast<double>(j.pairs), 2) : "-",
                        error_percent(j.regret));
  }
  return fmt::format(
             "\n## Order of layouts\n\nJobs of which at least five layouts were measured. *concordance*: share of the "
             "pairs whose times are more than 3 %\napart that are predicted in their order; *regret*: how much slower "
             "than the fastest the layout is that is predicted\nfastest. All pairs together: {}; largest regret {} "
             "%. Jobs of two layouts or more, {} pairs: {}. Without rows that\ntheir tables mark as outliers or as "
             "slow by where the job was placed: {} and {} %.\n\n| source | job | layouts | pairs | concordance | "
             "regret "
             "% |\n|---|---|---:|---:|---:|---:|\n",
             text::fixed(concordance(jobs), 2), error_percent(largest_regret(jobs)), pairs,
             text::fixed(concordance(all), 2), text::fixed(concordance(clean), 2),
             error_percent(largest_regret(clean))) +
         rows;
}

std::string skip_table(const Mapping& m) {
  std::string out = "| rows | kind | reason |\n|---:|---|---|\n";
  std::vector<std::pair<std::pair<SkipKind, std::string>, std::size_t>> reasons(m.reasons.begin(), m.reasons.end());
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [key, n] : reasons) out += fmt::format("| {} | {} | {} |\n", n, name(key.first), key.second);
  return out;
}

std::string worst_table(const Report& report) {
  std::vector<const Entry*> off;
  for (const Entry& e : report.entries) {
    if (!e.apart.empty()) continue;
    if (!e.skip && e.error && e.measured && e.predicted) off.push_back(&e);
  }
  std::stable_sort(off.begin(), off.end(),
                   [](const Entry* a, const Entry* b) { return std::fabs(*a->error) > std::fabs(*b->error); });
  off.resize(std::min(off.size(), kWorst));
  std::string out = "| row | metric | measured | predicted | error % |\n|---|---|---:|---:|---:|\n";
  for (const Entry* e : off)
    out += fmt::format("| {} | {} | {} | {} | {} |\n", e->id, e->metric, amount(*e, *e->measured),
                       amount(*e, *e->predicted), error_percent(e->error));
  return out;
}

// Decades from the lowest to the highest value, as powers of ten.
struct Span {
  int low = 0, high = 1;
};
double log10_of(double x) { return math::log(x) / math::log(10); }

}  // namespace

std::string accuracy_svg(const Report& report, const std::string& metric) {
  std::vector<std::pair<double, double>> points;
  const double unit = metric == "time.step_seconds" ? 1 : kGiB;
  for (const Entry& e : report.entries) {
    if (e.apart.empty() && e.metric == metric && !e.skip && e.measured && e.predicted && *e.measured > 0 &&
        *e.predicted > 0) {
      points.emplace_back(log10_of(*e.measured / unit), log10_of(*e.predicted / unit));
    }
  }
  if (points.empty()) return "";
  Span span{1000, -1000};
  for (const auto& [m, p] : points) {
    span.low = std::min(span.low, static_cast<int>(std::floor(std::min(m, p))));
    span.high = std::max(span.high, static_cast<int>(std::ceil(std::max(m, p))));
  }
  constexpr double kSize = 480, kLeft = 56, kTop = 16;
  const double decades = std::max(1, span.high - span.low);
  const auto x = [&](double v) { return text::fixed(kLeft + (v - span.low) / decades * kSize, 1); };
  const auto y = [&](double v) { return text::fixed(kTop + kSize - (v - span.low) / decades * kSize, 1); };
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"560\" height=\"544\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n";
  out += "<rect width=\"560\" height=\"544\" fill=\"#fff\"/>\n";
  for (int d = span.low; d <= span.high; ++d) {
    const std::string tick = d >= 0 ? text::grouped(static_cast<long long>(math::exp(d * math::log(10)) + 0.5))
                                    : text::fixed(math::exp(d * math::log(10)), -d);
    out += fmt::format("<path d=\"M{} {}V{}M{} {}H{}\" stroke=\"#ddd\"/>\n", x(d), y(span.low), y(span.high),
                       x(span.low), y(d), x(span.high));
    out += fmt::format(
        "<text x=\"{}\" y=\"512\" text-anchor=\"middle\">{}</text><text x=\"{}\" y=\"{}\" "
        "text-anchor=\"end\">{}</text>\n",
        x(d), tick, text::fixed(kLeft - 6, 0), y(d), tick);
  }
  out +=
      fmt::format("<path d=\"M{} {}L{} {}\" stroke=\"#888\"/>\n", x(span.low), y(span.low), x(span.high), y(span.high));
  for (const auto& [m, p] : points)
    out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"2.5\" fill=\"#1f6feb\" fill-opacity=\"0.5\"/>\n", x(m), y(p));
  const char* what = metric == "time.step_seconds" ? "seconds a step" : "GiB";
  out += fmt::format("<text x=\"296\" y=\"534\" text-anchor=\"middle\">measured, {}</text>\n", what);
  return out +
         fmt::format(
             "<text transform=\"translate(14 256) rotate(-90)\" text-anchor=\"middle\">predicted, {}</text>\n</svg>\n",
             what);
}

namespace {

// Rows of JAX: on chips that nobody else runs, or as other software on the same.
std::string apart_section(const std::vector<Entry>& entries) {
  const std::vector<Summary> all = summarise(entries, {.apart = true});
  const std::vector<Summary> stated = summarise(entries, {.nothing_assumed = true, .apart = true});
  const auto predicts = [](const std::vector<Summary>& some) {
    return std::any_of(some.begin(), some.end(), [](const Summary& s) { return s.n > 0; });
  };
  if (!predicts(all)) return "";
  std::string out =
      "\n## TPUs, and JAX on GPUs\n\nIn none of the figures above or below, and fitted apart (docs/fit.md). Settings "
      "are read from scripts of today, the figures\nmay be older.\n\nStep time:\n\n" +
      error_table(all, "time.step_seconds");
  if (predicts(stated)) out += "\nRows with nothing assumed:\n\n" + error_table(stated, "time.step_seconds");
  return out + "\nDoes it fit:\n\n" + fit_table(all);
}

// data/residuals.csv beside the figures of this version.
std::string residual_table(const std::vector<Summary>& all) {
  std::string out = "| source | metric | MAPE % | what is left |\n|---|---|---:|---|\n";
  const auto csv = Csv::parse(embedded("residuals.csv"), "data/residuals.csv");
  for (std::size_t i = 0; csv && i < csv->rows(); ++i) {
    std::string mape;
    for (const Summary& s : all) {
      if (s.source != csv->at(i, "source") || s.metric != csv->at(i, "metric") || s.n == 0) continue;
      mape += (mape.empty() ? "" : ", ") + error_percent(s.mape);
    }
    out += fmt::format("| {} | {} | {} | {} |\n", csv->at(i, "source"), csv->at(i, "metric"), mape,
                       csv->at(i, "residual"));
  }
  return out;
}

}  // namespace

std::string accuracy_page(const Report& report) {
  const std::vector<Summary> all = summarise(report.entries);
  const std::vector<Summary> stated = summarise(report.entries, {true});
  const Mapping& m = report.mapping;
  std::string out =
      "# Accuracy\n\nPredicted against measured, on every row of `data/measured/`, as this version does it; nothing is "
      "left out.\n"
      "`preflop validate` prints the same figures, `preflop validate --explain ID` one row. This page is written by\n"
      "`preflop validate --write-docs docs`.\n\n"
      "error = predicted / measured - 1. *naive* predicts every row of a source with one constant MFU, fitted in\n"
      "hindsight to the other rows of that source (at least 10): a prediction must beat it to be worth anything.\n"
      "Rows whose TFLOP/s or MFU were converted under the source's own FLOP convention stand apart, the convention in\n"
      "parentheses. Parameters of step time are fitted to rows of this page by `preflop-fit` (docs/fit.md lists them,\n"
      "with the errors of rows that no fit has seen); *in band*: share of rows within the prediction band, *width*:\n"
      "half of it, in % of the prediction.\n";
  for (const Metric& metric : kMetrics) {
    const bool any =
        std::any_of(all.begin(), all.end(), [&](const Summary& s) { return s.metric == metric.name && s.n > 0; });
    out += fmt::format("\n## {}\n\n", metric.title) + error_table(all, metric.name);
    if (any) out += fmt::format("\n![{}: predicted against measured]({})\n", metric.title, metric.picture);
    const bool some =
        std::any_of(stated.begin(), stated.end(), [&](const Summary& s) { return s.metric == metric.name && s.n > 0; });
    if (some) out += "\nRows with nothing assumed:\n\n" + error_table(stated, metric.name);
  }
  out += left_out_section(report.entries);
  out += apart_section(report.entries);
  out +=
      "\n## Does it fit\n\nA run with a measured speed or memory ran; a false OOM is a run that was said not to fit, a "
      "false fit one that ran out of\nmemory and was said to fit. Tight, neither of them: what is allocated fits, what "
      "the allocator may reserve beside it does\nnot.\n\n";
  for (const std::string& line : verdict_lines(all)) out += "* " + line + "\n";
  out += "\n" + fit_table(all) + contradiction_section();
  out += order_section(report.entries);
  std::vector<Summary> with_apart = summarise(report.entries, {.apart = true});
  with_apart.insert(with_apart.begin(), all.begin(), all.end());
  out += "\n## What is left\n\nWhere errors stay larger than those of like sources, and what is known of why.\n\n" +
         residual_table(with_apart);
  out += "\n## Farthest off\n\n" + worst_table(report);
  out += fmt::format(
      "\n## Rows that are not predicted\n\n{} of {} rows state model or shape, GPU, count, sequence, micro-batch and "
      "kind of training; {} of them are\n"
      "predicted, {} need what is not built yet, {} repeat another row, {} are skipped for other reasons.\n\n",
      m.stated, m.rows, m.legal, m.not_built, m.duplicates, m.stated - m.legal - m.not_built - m.duplicates);
  return out + skip_table(m);
}

}  // namespace preflop
