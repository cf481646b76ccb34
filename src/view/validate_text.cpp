// Tables of `preflop validate` for a terminal.
#include <algorithm>
#include <array>
#include <cmath>

#include "src/base/text.hpp"
#include "src/validate/order.hpp"
#include "src/view/validate.hpp"
#include "src/view/validate_memory.hpp"
#include "src/view/validate_words.hpp"

namespace preflop {

namespace {

using text::Table;
constexpr std::size_t kFewReasons = 12;

std::string num(std::size_t v) { return std::to_string(v); }

std::string label(const Summary& s) { return s.source + (s.convention.empty() ? "" : " (" + s.convention + ")"); }

void add_row(Table& table, const std::string& name, const Summary& s) {
  table.row({name, num(s.n), num(s.skipped), error_percent(s.mape), error_percent(s.median), error_percent(s.p90),
             error_percent(s.max), error_percent(s.bias), error_percent(s.naive_mape)});
}

const Summary* find(const std::vector<Summary>& all, const Summary& like) {
  for (const Summary& s : all) {
    if (s.source == like.source && s.metric == like.metric && s.convention == like.convention) return &s;
  }
  return nullptr;
}

// Sources of which no row is predicted share a line, unless everything is asked for.
struct Hidden {
  std::size_t sources = 0, skipped = 0;
  bool hide(const Summary& s, bool everything) {
    if (everything || s.n > 0 || s.source == "all") return false;
    ++sources;
    skipped += s.skipped;
    return true;
  }
  std::string text() const { return num(sources) + (sources == 1 ? " other source" : " other sources"); }
};

std::string error_table(const Metric& metric, const std::vector<Summary>& all, const std::vector<Summary>& stated,
                        bool verbose, std::string_view title) {
  Table table(text::kColumns, 2);
  table.column("").column("n", Table::Align::right).column("skip", Table::Align::right);
  for (const char* title : {"MAPE", "median", "p90", "max", "bias", "naive"}) table.column(title, Table::Align::right);
  std::size_t rows = 0;
  Hidden hidden;
  for (const bool everything : {false, true}) {
    for (const Summary& s : all) {
      if (s.metric != metric.name || (s.source == "all") != everything || hidden.hide(s, verbose)) continue;
      if (everything && s.convention.empty()) {
        if (hidden.sources > 0) table.row({hidden.text(), "0", num(hidden.skipped)});
        if (rows + hidden.sources > 0) table.rule();
      }
      add_row(table, label(s), s);
      ++rows;
      const Summary* own = everything ? find(stated, s) : nullptr;
      if (own != nullptr && own->n > 0)
        add_row(table, s.convention.empty() ? "nothing assumed" : "nothing assumed (converted)", *own);
    }
  }
  return rows == 0 ? "" : "\n" + std::string(title) + ": predicted / measured - 1, in %\n" + table.str();
}

std::string fit_table(const std::vector<Summary>& all, bool verbose) {
  Table table(text::kColumns, 2);
  table.column("");
  for (const char* title : {"n", "skip", "false fit", "false OOM", "tight"}) table.column(title, Table::Align::right);
  bool any = false;
  Hidden hidden;
  for (const bool everything : {false, true}) {
    for (const Summary& s : all) {
      if (s.metric != "fit.verdict" || (s.source == "all") != everything || hidden.hide(s, verbose)) continue;
      if (everything && hidden.sources > 0) table.row({hidden.text(), "0", num(hidden.skipped), "", "", ""});
      if (everything) table.rule();
      table.row({label(s), num(s.n), num(s.skipped), num(s.false_fit.value_or(0)), num(s.false_oom.value_or(0)),
                 num(s.tight.value_or(0))});
      any = true;
    }
  }
  return any ? "\nDoes it fit: rows that ran or ran out of memory\n" + table.str() : "";
}

std::string lines(const std::string& line) {
  std::string out;
  for (const std::string& part : text::wrapped(line, text::kColumns)) out += part + "\n";
  return out;
}

std::string mapping_text(const Mapping& m, bool everything) {
  std::string out =
      "\n" + lines(num(m.rows) + " rows. " + num(m.stated) +
                   " state model or shape, GPU, count, sequence, micro-batch and kind of training: " + num(m.legal) +
                   " are predicted, " + num(m.not_built) + " need what is not built yet, " + num(m.duplicates) +
                   " repeat another row, " + num(m.stated - m.legal - m.not_built - m.duplicates) +
                   " are skipped for another reason" +
                   (m.share() ? ": " + text::percent(*m.share()) + " of those that could be predicted are." : "."));
  std::vector<std::pair<std::size_t, std::string>> reasons;
  for (const auto& [key, n] : m.reasons) reasons.emplace_back(n, key.second);
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (reasons.empty()) return out;
  out += "\nRows that are not predicted, by reason\n";
  Table table(text::kColumns, 2);
  table.column("", Table::Align::right).column("");
  for (std::size_t i = 0; i < reasons.size() && (everything || i < kFewReasons); ++i)
    table.row({num(reasons[i].first), reasons[i].second});
  out += table.str();
  if (!everything && reasons.size() > kFewReasons)
    out += "  and " + num(reasons.size() - kFewReasons) + " more reasons (-v)\n";
  return out;
}

// "time", "allocated", "reserved", "device"
std::string short_name(const std::string& metric) {
  return metric.starts_with("time") ? "time" : metric.substr(metric.find('.') + 1);
}

std::string worst_text(const Report& report, std::size_t n) {
  std::vector<const Entry*> off;
  for (const Entry& e : report.entries) {
    if (!e.apart.empty()) continue;
    if (!e.skip && e.error && *e.error != 0) off.push_back(&e);
  }
  std::stable_sort(off.begin(), off.end(),
                   [](const Entry* a, const Entry* b) { return std::fabs(*a->error) > std::fabs(*b->error); });
  if (off.empty() || n == 0) return "";
  Table table(text::kColumns, 2);
  table.column("")
      .column("")
      .column("measured", Table::Align::right)
      .column("predicted", Table::Align::right)
      .column("error %", Table::Align::right);
  for (std::size_t i = 0, shown = 0; i < off.size() && shown < n; ++i) {
    const Entry& e = *off[i];
    if (e.metric == "fit.verdict") continue;
    table.row({short_name(e.metric), e.id, amount(e, e.measured), amount(e, e.predicted), error_percent(e.error)});
    ++shown;
  }
  std::string out = table.empty() ? "" : "\nFarthest off\n" + table.str();
  std::size_t wrong = 0;
  Table verdicts(text::kColumns, 2);
  verdicts.column("").column("measured").column("predicted");
  for (const Entry* e : off) {
    if (e->metric == "fit.verdict" && wrong++ < n) verdicts.row({e->id, e->measured_verdict, e->predicted_verdict});
  }
  if (wrong > 0) out += "\nWrong verdicts (" + num(wrong) + ")\n" + verdicts.str();
  return out;
}

std::string first_line(const Report& report, const std::vector<Summary>& all) {
  std::string out = num(report.mapping.rows) + " rows, " +
                    num(report.mapping.rows -
                        [&] {
                          std::size_t n = 0;
                          for (const auto& [key, count] : report.mapping.reasons) n += count;
                          return n;
                        }()) +
                    " predicted";
  for (const Metric& metric : kMetrics) {
    for (const Summary& s : all) {
      if (s.source == "all" && s.metric == metric.name && s.convention.empty() && s.mape) {
        std::string title = metric.title;
        title[0] = static_cast<char>(title[0] - 'A' + 'a');
        out += "; " + title + " off by " + error_percent(s.mape) + " % (mean of " + num(s.n) + ")";
      }
    }
  }
  return lines(out + ".");
}

std::string order_text(const std::vector<JobOrder>& jobs) {
  if (jobs.empty()) return "";
  return "\n" + lines(num(jobs.size()) + " jobs with five layouts or more: " + text::percent(concordance(jobs)) +
                      " of the pairs more than 3 % apart are predicted in their order; the layout predicted fastest is "
                      "at most " +
                      text::percent(largest_regret(jobs)) + " slower than the fastest.");
}

}  // namespace

std::string validate_text(const Report& report, const ValidateTextOptions& options) {
  const std::vector<Summary> all = summarise(report.entries);
  std::string out = first_line(report, all);
  if (options.brief) return out;
  const std::vector<Summary> stated = summarise(report.entries, {true});
  for (const Metric& metric : kMetrics) out += error_table(metric, all, stated, options.everything, metric.title);
  const std::vector<Summary> apart = summarise(report.entries, {.apart = true});
  if (std::any_of(apart.begin(), apart.end(), [](const Summary& s) { return s.n > 0; }))
    out += error_table(kMetrics[0], apart, {}, options.everything, "TPUs, and JAX on GPUs, step time");
  out += left_out_text(report.entries);
  out += fit_table(all, options.everything);
  for (const std::string& line : verdict_lines(all)) out += "\n" + lines(line);
  out += order_text(job_orders(report.entries));
  bool naive = std::any_of(all.begin(), all.end(), [](const Summary& s) { return s.naive_mape.has_value(); });
  if (naive) {
    out += "\n" + lines(
                      "naive: one constant MFU for the source, fitted in hindsight to its other rows; a prediction "
                      "must beat it to be worth anything.");
  }
  out += mapping_text(report.mapping, options.everything);
  return out + worst_text(report, options.worst);
}

}  // namespace preflop
