// What `validate` says of memory beside its errors: bands, rows whose model nothing has seen, verdicts.
#include "src/view/validate_memory.hpp"

#include <fmt/format.h>

#include "src/base/text.hpp"
#include "src/validate/contradictions.hpp"
#include "src/validate/left_out.hpp"
#include "src/view/validate_words.hpp"

namespace preflop {

namespace {

std::string share(std::size_t part, std::size_t of) {
  return of == 0 ? "-" : text::fixed(100 * static_cast<double>(part) / static_cast<double>(of), 1) + " %";
}

const Summary* verdicts_of(const std::vector<Summary>& all) {
  for (const Summary& s : all) {
    if (s.metric == "fit.verdict" && s.source == "all") return &s;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> verdict_lines(const std::vector<Summary>& all) {
  std::vector<std::string> out;
  const Summary* s = verdicts_of(all);
  if (s == nullptr || s->n == 0) return out;
  const std::size_t oom = s->oom.value_or(0), ran = s->n - oom;
  const std::size_t tight_oom = s->tight_oom.value_or(0), tight_ran = s->tight.value_or(0) - tight_oom;
  out.push_back(fmt::format("{} rows ran: {} of them said not to fit ({}), {} tight ({}).", ran,
                            s->false_oom.value_or(0), share(s->false_oom.value_or(0), ran), tight_ran,
                            share(tight_ran, ran)));
  if (oom > 0) {
    out.push_back(fmt::format(
        "{} rows ran out of memory: {} of them said to fit (beside {} that other measured rows contradict), {} tight "
        "({}).",
        oom, s->false_fit.value_or(0), s->contradicted.value_or(0), tight_oom, share(tight_oom, oom)));
  }
  const std::size_t doubled = s->doubled.value_or(0), no = s->doubled_no.value_or(0);
  if (doubled > 0) {
    out.push_back(
        fmt::format("{} rows ran with the largest micro-batch that fits: twice of it is said not to fit in {} ({}).",
                    doubled, no, share(no, doubled)));
  }
  return out;
}

std::string left_out_text(const std::vector<Entry>& entries) {
  const std::vector<LeftOut> groups = left_out(entries);
  if (groups.empty()) return "";
  text::Table table(text::kColumns, 2);
  table.column("");
  for (const char* title : {"n", "MAPE", "in band", "width", "MAPE-1", "band-1", "width-1"})
    table.column(title, text::Table::Align::right);
  for (const LeftOut& g : groups) {
    if (g.like == "all" && &g != &groups.front()) table.rule();
    table.row({g.like == "all" ? g.metric : g.like, std::to_string(g.rows), error_percent(g.mape),
               error_percent(g.coverage), error_percent(g.band), error_percent(g.left_out_mape),
               error_percent(g.left_out_coverage), error_percent(g.left_out_half_width)});
  }
  return "\nBands of memory, in %; -1: with the row's model left out of fit and band\n" + table.str();
}

std::string left_out_section(const std::vector<Entry>& entries) {
  const std::vector<LeftOut> groups = left_out(entries);
  if (groups.empty()) return "";
  std::string out =
      "\n## Memory of models that no parameter has seen\n\nRows of one stack and quantity make one 80 % band: "
      "split-conformal, of |measured / predicted - 1| the ceil(0.8 (n + 1))-th\nsmallest. *width* is its half-width in "
      "`data/stacks` and *of rows* the one that these rows make now. *left out*: each row\npredicted with its fitted "
      "parameter, where there is one, fitted to the rows of other models, in the band that the rows of\nother models "
      "make. All other terms of memory are counted, not fitted: there the error of a row left out is the error.\n\n"
      "| rows | n | models | fitted | MAPE % | in band % | width % | of rows % | left out: n | MAPE % | in band % | "
      "width % "
      "|\n|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const LeftOut& g : groups) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                       g.like == "all" ? "**" + g.metric + "**" : g.like, g.rows, g.models,
                       g.fitted.empty() ? "none" : g.fitted, error_percent(g.mape), error_percent(g.coverage),
                       error_percent(g.band), error_percent(g.band_of_rows), g.left_out, error_percent(g.left_out_mape),
                       error_percent(g.left_out_coverage), error_percent(g.left_out_half_width));
  }
  return out;
}

std::string contradiction_section() {
  const auto known = contradictions();
  if (!known || known->empty()) return "";
  std::string out =
      "\nRows that ran out of memory against what other rows measured:\n\n| row | against | why |\n|---|---|---|\n";
  for (const auto& [row, c] : *known) out += fmt::format("| {} | {} | {} |\n", row, c.against, c.reason);
  return out;
}

}  // namespace preflop
