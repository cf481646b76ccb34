#include "src/view/run_text.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/base/text.hpp"
#include "src/run/calendar.hpp"

namespace preflop {

namespace {

std::string wrapped(const std::string& body) {
  std::string out;
  for (const std::string& line : text::wrapped(body, text::kColumns - 2)) out += "  " + line + "\n";
  return out;
}

bool given(const Estimate& e, const char* key) { return e.recipe.given.contains(key); }
std::string assumed(const Estimate& e, const char* key) { return given(e, key) ? "" : " (assumed)"; }

// One line for each thing that takes time, the longest first, with a bar.
std::string days_text(const RunEstimate<double>& r) {
  constexpr double kBar = 28;
  struct Part {
    std::string what;
    double seconds;
  };
  std::vector<Part> parts = {{"training", r.ideal.number()}};
  for (int i = 0; i < kRunLosses; ++i) {
    if (r.losses[i].number() > 0) parts.push_back({words(static_cast<RunLoss>(i)), r.losses[i].number()});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.seconds > b.seconds; });
  text::Table table(text::kColumns, 4);
  table.column("").column("", text::Table::Align::right).column("", text::Table::Align::right).column("");
  for (const Part& p : parts) {
    const double share = p.seconds / r.expected.number();
    const auto cells = static_cast<std::size_t>(std::lround(share * kBar));
    table.row({p.what, text::seconds(p.seconds), text::percent(share), std::string(cells, '#')});
  }
  return table.str();
}

std::string safety_text(const Estimate& e) {
  const RunEstimate<double>& r = *e.run;
  if (!r.mtbf) return wrapped("nothing ever fails (--mtbf none)");
  const double n = r.interruptions.number();
  std::string out = wrapped(text::count(n < 10 ? std::round(n * 10) / 10 : std::round(n)) + " interruptions, one in " +
                            text::seconds(r.mtbf->number()) + assumed(e, "mtbf") + "; effective training time " +
                            text::percent(r.effective.number()));
  if (!r.interval) return out + wrapped("no checkpoints: every interruption starts all over again");
  if (!e.memory.checkpoint) return out;
  const double saving = r.losses[static_cast<int>(RunLoss::checkpoints)].number();
  return out + wrapped("checkpoints of " + text::bytes_si(e.memory.checkpoint->number()) + " every " +
                       text::seconds(r.interval->number()) + " stop training for " + text::seconds(saving) + " in all");
}

// 8,123,000 as "8,123 t", 812.3 as "812 kg", 8.123 as "8.1 kg".
std::string in_thousands(double n, const char* unit, const char* thousand) {
  constexpr double kThousand = 1000, kFew = 10;
  const std::string name = std::string(" ") + (n < kThousand ? unit : thousand);
  if (n >= kThousand) n /= kThousand;
  return (n < kFew ? text::fixed(n, n < 1 ? 2 : 1) : text::count(std::round(n))) + name;
}

std::string money_text(const Estimate& e) {
  const RunEstimate<double>& r = *e.run;
  const RunSettings& s = e.recipe.run;
  std::string out = text::count(std::round(r.gpu_hours.number())) + " GPU-hours at the median";
  if (r.cost) {
    const double each = r.cost->number() / r.p50.number();
    out += " = " + text::dollars(r.cost->number()) + " (" + text::dollars(each * r.p10.number()) + " to " +
           text::dollars(each * r.p90.number()) + ") at $" + text::fixed(s.price->value, 2) +
           (given(e, "price") && s.price->source == "--price" ? "" : " (assumed: " + s.price->source + ")");
  } else {
    out += "; cost not known: no dated price of " + e.cluster.gpu.id + ", give --price";
  }
  out = wrapped(out);
  if (r.storage && given(e, "keep"))
    out += wrapped(text::count(s.kept) + " checkpoints kept: " + text::dollars(r.storage->number()) + " of storage" +
                   assumed(e, "storage_price"));
  if (!r.energy_kwh) return out;
  constexpr double kMega = 1000;
  return out + wrapped(energy_words(r.energy_kwh->number()) + ", " + in_thousands(r.co2_kg->number(), "kg", "t") +
                       " CO2e: " + text::fixed(s.watts->value, 0) + " W a GPU" + assumed(e, "watts") + ", PUE " +
                       text::fixed(s.pue.value, 2) + assumed(e, "pue") + ", " + text::fixed(s.grid.value * kMega, 0) +
                       " g/kWh" + assumed(e, "grid"));
}

std::string practice_text(const Estimate& e) {
  const Practice& p = e.recipe.run.practice;
  if (p.low == 1 && p.high == 1) return "";
  return "            with the step's own band, and " + text::fixed(p.low, 2) + " to " + text::fixed(p.high, 2) +
         " times in practice" + (given(e, "practice") ? "" : "\n            (assumed: published runs)") + "\n";
}

}  // namespace

std::string energy_words(double kwh) { return in_thousands(kwh, "kWh", "MWh"); }

std::string limits_text(const Estimate& e) {
  if (!e.run) return "";
  const RunEstimate<double>& r = *e.run;
  const RunSettings& s = e.recipe.run;
  std::string out;
  if (s.within)
    out += wrapped(std::string(r.p50.number() <= *s.within ? "within" : "NOT within") + " the limit of " +
                   text::seconds(*s.within) + " half of the time or more");
  if (s.budget && r.cost)
    out += wrapped(std::string(r.cost->number() <= *s.budget ? "within" : "NOT within") + " the budget of " +
                   text::dollars(*s.budget) + " at the median");
  return out;
}

const char* words(RunLoss loss) {
  static constexpr const char* kWords[kRunLosses] = {
      "first start", "batch ramp",          "data stalls",       "stragglers",
      "evaluation",  "checkpoints",         "work done again",   "detection",
      "restarting",  "loading checkpoints", "waiting for nodes", "planned interruptions"};
  return kWords[static_cast<int>(loss)];
}

std::string run_text(const Estimate& e) {
  if (!e.run) return "";
  const RunEstimate<double>& r = *e.run;
  std::string out = "\nRun of " + text::count(r.tokens.number()) + " tokens = " + text::grouped(r.steps) + " steps\n";
  out += "  ideal     " + text::seconds(r.ideal.number()) +
         (e.recipe.mfu ? " at the given MFU" : " at the predicted step") + ", nothing ever failing\n";
  out += "  expected  " + text::seconds(r.expected.number()) + ", " +
         text::percent(r.expected.number() / r.ideal.number() - 1) + " more: the mean at that step, with failures\n";
  out += "  P10-P90   " + text::seconds(r.p10.number()) + " to " + text::seconds(r.p90.number()) + ", median " +
         text::seconds(r.p50.number()) + "\n";
  out += practice_text(e);
  if (const auto& start = e.recipe.run.start)
    out += "  ends      " + date_text(*start, r.p50.number()) + " (" + date_text(*start, r.p10.number()) + " to " +
           date_text(*start, r.p90.number()) + ")\n";
  return out + days_text(r) + safety_text(e) + money_text(e) + limits_text(e);
}

}  // namespace preflop
