#include "src/validate/whole_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/csv.hpp"
#include "src/base/decimal.hpp"
#include "src/base/embedded.hpp"
#include "src/base/math.hpp"
#include "src/base/text.hpp"
#include "src/run/estimate.hpp"
#include "src/run/interruptions.hpp"

namespace preflop {

namespace {

constexpr const char* kFile = "whole_runs.csv";

Request request_of(const Csv& csv, std::size_t row) {
  Request out;
  out.model = csv.at(row, "model");
  out.on = csv.at(row, "on");
  out.keys["tokens"] = csv.at(row, "tokens");
  out.keys["stack"] = "megatron";
  const std::string_view keys = csv.at(row, "keys");
  for (std::size_t from = 0; from < keys.size();) {
    const std::size_t end = std::min(keys.find(' ', from), keys.size());
    const std::string_view pair = keys.substr(from, end - from);
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos) out.keys[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
    from = end + 1;
  }
  return out;
}

void predict(const Request& request, const Catalogues& catalogues, WholeRun& out) {
  constexpr double kHour = 3600;
  const Result<Problem> problem = pose(request, catalogues);
  if (!problem) {
    out.why_not = problem.error().text();
    return;
  }
  const Estimate e = estimate<double>(problem->analysed, problem->cluster);
  const Layout& l = e.recipe.layout;
  out.layout = fmt::format("tp {} pp {} cp {} ep {} dp {} zero {}", l.tp, l.pp, l.cp, l.ep, l.dp, l.zero);
  if (!e.run) {
    out.why_not = "no step time is known";
    return;
  }
  const double gpus = static_cast<double>(e.cluster.gpus) / kHour;
  out.ideal_hours = e.run->ideal.number() * gpus;
  out.predicted_hours = out.steps_only ? *out.ideal_hours : e.run->expected.number() * gpus;
  out.low_hours = e.run->p10.number() * gpus;
  out.high_hours = e.run->p90.number() * gpus;
  out.error = *out.predicted_hours / out.measured_hours - 1;
}

// Llama 3 405B: 54 days on 2,048 nodes, restarts and saves of the forecast's defaults but for the store's bandwidth.
std::string llama3_row(const char* whose, double per_thousand, double software, const RunData& data) {
  constexpr double kDay = 86400, kDays = 54, kNodes = 2048, kThousand = 1000;
  constexpr double kCheckpoint = 405.85e9 * 14, kStore = 2e12;
  const double mtbf = kDay / (per_thousand * kNodes / kThousand + software);
  const double save = kCheckpoint / kStore;
  const Hazard hazard{mtbf, {data.value("detection").value + data.value("restart").value + save, 0, 0}};
  const double best = best_interval(save, 0, hazard, 1, kDay);
  return fmt::format("| {} | {:.1f} h | {:.0f} | {:.1f} % |\n", whose, mtbf / 3600, kDays * kDay / mtbf,
                     100 / stretch(best, save, 0, hazard));
}

std::string llama3_table(const RunData& data) {
  constexpr double kDay = 86400, kThousandDays = 1000 * kDay;
  double elsewhere = 0;
  int fleets = 0;
  for (const Fleet& f : data.fleets) {
    if (f.name == "llama3-405b") continue;
    elsewhere += math::log(f.rate * kThousandDays);
    ++fleets;
  }
  const double software = data.value("software_failures_most").value * kDay;
  return "\n## Llama 3's 54 days\n\n16,384 H100 (arXiv 2407.21783 section 3.3.4). Rates per node of other clusters "
         "predict, "
         "the run's own rate is a test of consistency\nonly. Restarts take the default 25 minutes and the checkpoint's "
         "loading; the store has the 2 TB/s of its section 3.3.1.\n\n"
         "| rate | between interruptions | interruptions | effective training time |\n|---|---:|---:|---:|\n"
         "| **published** | 3.1 h | 419 unexpected, 466 in all | above 90 % |\n" +
         llama3_row("Meta RSC-1, hardware alone (6.50 per 1,000 node-days)", 6.5, 0, data) +
         llama3_row("Meta RSC-2, hardware alone (2.34)", 2.34, 0, data) +
         llama3_row("the defaults without Llama 3: other fleets, and software", math::exp(elsewhere / fleets), software,
                    data) +
         llama3_row("its own rate (3.79): consistency", 3.79, 0, data);
}

std::string hours(const std::optional<double>& h) {
  return h ? text::grouped(static_cast<long long>(std::llround(*h))) : "-";
}

std::string note_of(const WholeRun& r) {
  std::string text = r.source;
  if (!r.assumed.empty()) text += (text.empty() ? "" : "; ") + r.assumed;
  if (!r.why_not.empty()) text += (text.empty() ? "" : "; ") + ("not predicted: " + r.why_not);
  return text.empty() ? "" : "- " + r.id + ": " + text + "\n";
}

std::string set_table(const std::vector<WholeRun>& runs, std::string_view set) {
  std::string out =
      "| run | cluster | layout | published | ideal | forecast | P10-P90 | error % |\n"
      "|---|---|---|---:|---:|---:|---:|---:|\n";
  std::string notes;
  std::size_t predicted = 0, all = 0, simulated = 0, held = 0;
  for (const WholeRun& r : runs) {
    if (r.set != set) continue;
    ++all;
    predicted += r.error ? 1 : 0;
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", r.id, r.on, r.layout, hours(r.measured_hours),
                       hours(r.ideal_hours), r.steps_only ? "= ideal" : hours(r.predicted_hours),
                       r.steps_only || !r.low_hours ? "-" : hours(r.low_hours) + "-" + hours(r.high_hours),
                       r.error ? fmt::format("{:+.1f}", *r.error * 100) : "-");
    notes += note_of(r);
    if (r.steps_only || !r.low_hours) continue;
    ++simulated;
    held += r.measured_hours >= *r.low_hours && r.measured_hours <= *r.high_hours ? 1 : 0;
  }
  const auto median = median_error(runs, set);
  return out +
         fmt::format(
             "\n{} of {} runs are predicted; the median of the absolute errors is {}. P10 to P90 holds {} of {}.\n",
             predicted, all, median ? fmt::format("{:.1f} %", *median * 100) : "not defined", held, simulated) +
         "\nNotes, row by row:\n\n" + notes;
}

}  // namespace

Result<std::vector<WholeRun>> whole_runs(const Catalogues& catalogues) {
  const auto csv = Csv::parse(embedded(kFile), kFile);
  if (!csv) return csv.error();
  std::vector<WholeRun> out;
  for (std::size_t i = 0; i < csv->rows(); ++i) {
    WholeRun run;
    run.set = csv->at(i, "set");
    run.id = csv->at(i, "id");
    run.source = csv->at(i, "source");
    run.model = csv->at(i, "model");
    run.on = csv->at(i, "on");
    run.assumed = csv->at(i, "assumed");
    run.steps_only = csv->at(i, "time") == "steps";
    const auto tokens = parse_decimal(csv->at(i, "tokens")), measured = parse_decimal(csv->at(i, "gpu_hours"));
    if (!tokens || !measured || *measured <= 0) return Error{csv->where(i), "tokens or gpu_hours are no numbers", ""};
    run.tokens = *tokens;
    run.measured_hours = *measured;
    predict(request_of(*csv, i), catalogues, run);
    out.push_back(std::move(run));
  }
  return out;
}

std::optional<double> median_error(const std::vector<WholeRun>& runs, std::string_view set) {
  std::vector<double> all;
  for (const WholeRun& run : runs) {
    if (run.set == set && run.error) all.push_back(std::fabs(*run.error));
  }
  if (all.empty()) return std::nullopt;
  std::sort(all.begin(), all.end());
  const std::size_t middle = all.size() / 2;
  return all.size() % 2 == 1 ? all[middle] : (all[middle - 1] + all[middle]) / 2;
}

std::string whole_runs_page(const std::vector<WholeRun>& runs, const RunData& data) {
  return "# Whole runs: published GPU-hours beside the forecast\n\nRegenerated by `preflop validate --write-docs "
         "docs`. "
         "[forecast.md](forecast.md) has the rules of what is assumed, `data/whole_runs.csv`\neach row with what is "
         "assumed of it. Hours are GPU-hours.\n\n"
         "## Runs written down before they were predicted\n\nNeither their rows nor the rules of what is "
         "expected were changed after their errors were seen; P10 to P90 were widened.\nStep times are those of "
         "today's "
         "fit, in which none of these runs is; when first predicted the median error was 36.4 %.\n\n" +
         set_table(runs, "second") +
         "\n## Runs whose errors were seen before the rules were final\n\nTwo rules were changed because of them "
         "([forecast.md](forecast.md)). `data/measured_refs.csv` has their sources.\n\n" +
         set_table(runs, "first") + llama3_table(data);
}

}  // namespace preflop
