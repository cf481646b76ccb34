// One measured row: the recipe it became and the prediction's ledger beside the measurement.
#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/view/memory_text.hpp"
#include "src/view/validate.hpp"

namespace preflop {

namespace {

std::string section(const std::string& title, const std::vector<std::string>& items, const char* none) {
  std::string joined;
  for (const std::string& item : items) joined += (joined.empty() ? "" : "; ") + item;
  std::string out = title + "\n";
  for (const std::string& line : text::wrapped(joined.empty() ? none : joined, text::kColumns - 2))
    out += "  " + line + "\n";
  return out;
}

std::string quoted_if_needed(const std::string& word) {
  return word.find_first_of(" ()") == std::string::npos ? word : "'" + word + "'";
}

// The request as the command line that gives the same recipe, to be copied: words stay whole, lines end in backslashes.
// Values that the machine's data are replaced by (a capped card, a stated network) have no flag and are listed apart.
std::string command_text(const RowRequest& row) {
  const auto or_unknown = [](const std::string& word) { return word.empty() ? std::string("?") : word; };
  std::vector<std::string> words = {"preflop estimate", quoted_if_needed(or_unknown(row.request.model)),
                                    "--on " + quoted_if_needed(or_unknown(row.request.on))};
  if (!row.stack.empty() && !row.request.keys.contains("stack")) words.push_back("--stack " + row.stack);
  for (const auto& [key, value] : row.request.keys) {
    std::string flag = key;
    for (char& c : flag) c = c == '_' ? '-' : c;
    if (value == "true" || value == "false") {  // a switch takes no value
      words.push_back((value == "true" ? "--" : "--no-") + flag);
    } else {
      words.push_back("--" + flag + " " + quoted_if_needed(value));
    }
  }
  std::string out, line;
  for (const std::string& word : words) {
    if (!line.empty() && line.size() + word.size() + 5 > text::kColumns) {
      out += "  " + line + " \\\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + "  " + line + "\n";
}

std::string exact_amount(const Entry& e, const std::optional<double>& v) {
  if (!v) return "-";
  return e.metric == "time.step_seconds" ? text::fixed(*v, 3) + " s" : text::fixed(*v / kGiB, 2) + " GiB";
}

std::string readings_text(const std::vector<Entry>& entries) {
  text::Table table(text::kColumns, 2);
  table.column("")
      .column("measured", text::Table::Align::right)
      .column("predicted", text::Table::Align::right)
      .column("error", text::Table::Align::right)
      .column("");
  for (const Entry& e : entries) {
    const bool verdict = e.metric == "fit.verdict";
    const std::string note = e.skip                 ? "skipped: " + e.skip.reason
                             : e.convention.empty() ? ""
                                                    : "converted: " + e.convention;
    const auto word = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
    table.row({e.metric, verdict ? word(e.measured_verdict) : exact_amount(e, e.measured),
               verdict ? word(e.predicted_verdict) : exact_amount(e, e.predicted),
               e.error && !verdict ? text::percent(*e.error) : "", note});
  }
  return table.str();
}

std::string time_text(const StepEstimate<double>& step) {
  text::Table table(text::kColumns, 2);
  table.column("").column("seconds", text::Table::Align::right).column("share", text::Table::Align::right);
  for (int i = 0; i < kLost; ++i) {
    if (!step.breakdown[i] || step.breakdown[i]->number() == 0) continue;
    const double seconds = step.breakdown[i]->number();
    table.row({name(static_cast<Lost>(i)), text::fixed(seconds, 4), text::percent(seconds / step.seconds.number())});
  }
  table.rule().row({"step", text::fixed(step.seconds.number(), 4), ""});
  return "\nStep time (" + step.method + ")\n" + table.str();
}

}  // namespace

std::string explain_row_text(const Row& row, const Explained& explained) {
  const RowRequest& r = explained.row;
  std::string out = row.id + " (" + row.where + ")";
  if (r.skip) out += ": skipped: " + r.skip.reason;
  out += "\n";
  if (!r.model.empty()) out += "  " + text::truncated(r.model, text::kColumns - 2) + "\n";
  out += "\n" + readings_text(explained.entries);
  if (explained.contradiction)
    out +=
        "\n" + section("Contradicted by " + explained.contradiction->against, {explained.contradiction->reason}, "-");
  out += "\nThe row as a command\n" + command_text(r);
  std::vector<std::string> machine;
  if (r.capacity_bytes) machine.push_back("capacity " + text::gib(*r.capacity_bytes));
  if (r.scaleout) machine.push_back("network " + text::bytes_si(*r.scaleout) + "/s a GPU and direction");
  if (r.slice) machine.push_back("slices of " + std::to_string(*r.slice) + " TPUs");
  if (r.slice) machine.push_back("slices of " + std::to_string(*r.slice) + " TPUs");
  if (r.sustained) machine.push_back("large products sustain " + text::fixed(*r.sustained / 1e12, 0) + " TFLOP/s");
  if (!machine.empty()) out += section("With the machine's values that the row states", machine, "-");
  out += section("Not stated, assumed", r.assumed, "nothing");
  out += section("Stated, but not in the recipe", r.not_modelled, "nothing");
  if (explained.estimate) {
    out += section("Chosen by defaults of the stack", explained.estimate->recipe.assumed, "nothing");
    if (explained.estimate->step) out += time_text(*explained.estimate->step);
    out += "\nMemory by stage, GiB\n" + memory_table(explained.estimate->memory, false);
  }
  return out;
}

}  // namespace preflop
