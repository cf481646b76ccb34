// docs/user-cases.md: questions that users asked about memory, what they saw, and what preflop says.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/base/csv.hpp"
#include "src/base/embedded.hpp"
#include "src/base/text.hpp"
#include "src/view/validate.hpp"

namespace preflop {

namespace {

std::string observed(const Entry& e) {
  if (e.metric == "fit.verdict") return e.measured_verdict == "oom" ? "out of memory" : "ran";
  return text::gib(e.measured.value_or(0), 2) + " " + e.metric.substr(e.metric.find('.') + 1);
}

std::string said(const Entry& e) {
  if (e.unscored) return said(*e.unscored);
  if (e.skip) return e.skip.reason;
  if (e.metric == "fit.verdict") return e.predicted_verdict;
  return fmt::format("{} ({}{} %)", text::gib(e.predicted.value_or(0), 2), e.error.value_or(0) < 0 ? "" : "+",
                     text::fixed(e.error.value_or(0) * 100, 1));
}

// One line a row: its memory where it states one, else whether it ran.
std::string case_rows(const std::map<std::string, std::vector<const Entry*>>& rows) {
  std::string out;
  for (const auto& [id, entries] : rows) {
    std::string saw;
    std::string says;
    for (const Entry* e : entries) {
      if (e->metric == "time.step_seconds" || (e->metric != "fit.verdict" && !e->measured)) continue;
      if (e->metric == "fit.verdict" && e->measured_verdict.empty()) continue;
      const std::string one = said(*e);
      saw += (saw.empty() ? "" : ", ") + observed(*e);
      if (says.find(one) == std::string::npos) says += (says.empty() ? "" : ", ") + one;
    }
    const bool twice =
        std::any_of(entries.begin(), entries.end(), [](const Entry* e) { return e->unscored != nullptr; });
    if (twice) says += "; scored as a row of another source";
    if (!saw.empty()) out += fmt::format("| {} | {} | {} |\n", id, saw, says);
  }
  return out;
}

}  // namespace

Result<std::string> user_case_page(const Report& report) {
  const Result<Csv> table = Csv::parse(embedded("user_cases.csv"), "user_cases.csv");
  if (!table) return table.error();
  std::string out =
      "# What users asked about memory\n\nQuestions from public issues and forums, what was seen, and what preflop "
      "says "
      "of the same run. A row that is\nnot predicted says why. `preflop validate --explain ID` shows the run as a "
      "command "
      "and what had to be assumed.\nThis page is written by `preflop validate --write-docs docs`; the questions stand "
      "in "
      "`data/user_cases.csv`.\n";
  for (std::size_t i = 0; i < table->rows(); ++i) {
    const std::string key(table->at(i, "case"));
    std::map<std::string, std::vector<const Entry*>> rows;
    for (const Entry& e : report.entries) {
      if (e.source == "user-cases" && e.id.rfind(key, 0) == 0) rows[e.id].push_back(&e);
    }
    const std::string lines = case_rows(rows);
    if (lines.empty()) continue;
    out += fmt::format("\n## {}\n\n| run | seen | preflop |\n|---|---|---|\n", table->at(i, "asked")) + lines;
  }
  return out;
}

}  // namespace preflop
