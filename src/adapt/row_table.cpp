// A CSV of runs -> rows. Every fault of a cell is an error at file:line:column.
#include <algorithm>
#include <cmath>

#include "src/adapt/rows.hpp"
#include "src/base/decimal.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

using Cell = RowColumn::Kind;
constexpr double kLargestWhole = 1e15;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

const RowColumn* find_column(std::string_view name) {
  for (const RowColumn& column : row_columns()) {
    if (name == column.name) return &column;
  }
  return nullptr;
}

std::string stem_of(std::string_view file) {
  file = file.substr(file.find_last_of("/\\") + 1);
  if (file.ends_with(".csv")) file.remove_suffix(4);
  return std::string(file);
}

// "peak_mem_gb" of "peak_mem_gib", "step_ms" of "step_s": a measured quantity in another unit.
const RowColumn* other_unit_of(std::string_view name) {
  const std::string_view base = name.substr(0, name.find_last_of('_'));
  for (const RowColumn& column : row_columns()) {
    const std::string_view own = column.name;
    const bool has_unit = column.kind == Cell::measured && own.find('_') != std::string_view::npos;
    if (has_unit && own.substr(0, own.find_last_of('_')) == base && base.size() < name.size()) return &column;
  }
  return nullptr;
}

bool yes(std::string_view text) { return text == "yes" || text == "true" || text == "1"; }
bool no(std::string_view text) { return text == "no" || text == "false" || text == "0"; }

// What is wrong with a number of this kind; empty: nothing.
std::string fault(Cell kind, double value) {
  const bool whole = kind == Cell::count || kind == Cell::size;
  if (value < 0) return "is negative";
  if (whole && value != std::floor(value)) return "is no whole number";
  if (value == 0 && (kind == Cell::count || kind == Cell::measured)) return "is zero";
  if (whole && value > kLargestWhole) return "is too large";
  return {};
}

bool is_number(Cell kind) {
  return kind == Cell::count || kind == Cell::size || kind == Cell::real || kind == Cell::measured;
}

}  // namespace

const std::string* Row::cell(std::string_view key) const {
  const auto it = cells.find(key);
  return it == cells.end() ? nullptr : &it->second;
}
bool Row::flag(std::string_view name) const { return std::find(flags.begin(), flags.end(), name) != flags.end(); }
bool Row::is_assumed(std::string_view key) const {
  return std::find(assumed.begin(), assumed.end(), key) != assumed.end();
}
bool Row::set(std::string_view key, std::string_view value) {
  if (value.empty()) return false;
  return cells.emplace(std::string(key), std::string(value)).second;
}
void Row::replace(std::string_view key, std::string_view value) {
  if (value.empty())
    cells.erase(std::string(key));
  else
    cells[std::string(key)] = std::string(value);
}
void Row::assume(std::string_view key) {
  if (!is_assumed(key)) assumed.emplace_back(key);
}

Result<RowTable> RowTable::parse(std::string_view text, std::string_view file, const RowWords& words) {
  auto csv = Csv::parse(text, file);
  if (!csv) return csv.error();
  RowTable out;
  out.csv_ = std::move(csv).value();
  out.words_ = &words;
  out.stem_ = stem_of(file);
  if (Status s = out.read_header(); !s) return s.error();
  std::map<std::string_view, std::size_t> ids;
  std::size_t repeated = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (Status s = out.check_row(i); !s) return s.error();
    if (!ids.emplace(trimmed(out.csv_.at(i, "id")), i).second && ++repeated == 1) {
      out.warnings_.push_back(out.csv_.where(i) + ": id " + text::quoted(out.csv_.at(i, "id")) + " is there twice");
    }
  }
  if (repeated > 1) out.warnings_.back() += " (and " + std::to_string(repeated - 1) + " more repeated ids)";
  return out;
}

Status RowTable::read_header() {
  const auto has = [&](std::string_view name) { return csv_.find(name).has_value(); };
  const std::string where = csv_.file() + ":1";
  for (std::string_view column : csv_.header()) {
    const RowColumn* known = find_column(column);
    kinds_.push_back(known);
    if (known != nullptr) continue;
    if (const RowColumn* meant = other_unit_of(column)) {
      return Error{where, "column " + text::quoted(column) + " has a unit that is not read",
                   std::string("valid: ") + meant->name};
    }
    warnings_.push_back(where + ": column " + text::quoted(column) + " is not in the schema and is not read");
  }
  for (const char* needed : {"id", "gpu"}) {
    if (const auto found = csv_.need(needed); !found) return found.error();
  }
  if (!has("model") && !(has("layers") && has("hidden"))) {
    return Error{where, "neither a column model nor columns layers and hidden",
                 "valid: model, or the shape of each row"};
  }
  std::vector<std::string> measures;
  bool any = has("oom");
  for (const RowColumn& column : row_columns()) {
    if (column.kind != Cell::measured) continue;
    measures.emplace_back(column.name);
    any = any || has(column.name);
  }
  if (!any) return Error{where, "no column that measures anything", "valid: " + text::list(measures) + ", or oom"};
  remarks_ = has("framework") || has("source") || has("notes");
  return Nothing{};
}

Status RowTable::check_row(std::size_t row) const {
  if (trimmed(csv_.at(row, "id")).empty())
    return Error{csv_.where(row), "id is empty", "valid: a short name of the run"};
  for (std::size_t column = 0; column < csv_.columns(); ++column) {
    if (Status s = check_cell(row, column); !s) return s;
  }
  return Nothing{};
}

Status RowTable::check_cell(std::size_t row, std::size_t column) const {
  const RowColumn* known = kinds_[column];
  const std::string_view text = trimmed(csv_.at(row, column));
  if (known == nullptr || text.empty()) return Nothing{};
  const std::string what = std::string(known->name) + " " + text::quoted(text);
  if (known->kind == Cell::yes_no) {
    if (yes(text) || no(text)) return Nothing{};
    return Error{csv_.where(row, column), what + " is neither yes nor no", "valid: yes, no or nothing"};
  }
  if (!is_number(known->kind)) return Nothing{};
  const auto value = parse_decimal(text);
  if (!value) {
    if (remarks_ && known->kind != Cell::measured) return Nothing{};
    return Error{csv_.where(row, column), what + " is not a number",
                 "valid: a number without unit or separators, or nothing"};
  }
  const std::string why = fault(known->kind, *value);
  if (why.empty()) return Nothing{};
  return Error{csv_.where(row, column), what + " " + why, "valid: a number above it, or nothing for not stated"};
}

Row RowTable::row(std::size_t i) const {
  Row out;
  out.where = csv_.where(i);
  for (std::size_t column = 0; column < csv_.columns(); ++column) {
    const RowColumn* known = kinds_[column];
    const std::string_view text = trimmed(csv_.at(i, column));
    if (known == nullptr || text.empty() || known->kind == Cell::remark) continue;
    const std::string_view name = known->name;
    if (name == "id")
      out.id = text;
    else if (name == "refused")
      out.refused.emplace_back(text);
    else if (known->kind == Cell::list)
      (name == "flags" ? out.flags : out.assumed) = words_of(text);
    else if (known->kind == Cell::yes_no)
      out.set(name, yes(text) ? "yes" : "no");
    else if (is_number(known->kind) && !parse_decimal(text))
      out.unknown.push_back(std::string(name) + "=" + std::string(text) + " (no number)");
    else
      out.set(name, text);
  }
  words_->apply(out);
  return out;
}

}  // namespace preflop
