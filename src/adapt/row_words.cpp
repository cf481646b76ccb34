// Names as people write them -> cells of a row: the table first, then grammar, then the default.
#include <algorithm>
#include <array>
#include <set>

#include "src/adapt/rows.hpp"
#include "src/base/embedded.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

// In the order in which they are applied: the first to set a cell wins.
constexpr std::array<std::string_view, 13> kWords = {"framework",    "model",     "gpu",        "precision", "sharding",
                                                     "recompute",    "optimizer", "lora",       "offload",   "mem_kind",
                                                     "seq_parallel", "internode", "tflops_kind"};

// Their string is the cell itself; the others (framework, sharding, ...) only set further cells.
bool names_its_own_cell(std::string_view column) {
  return column != "framework" && column != "sharding" && column != "internode" && column != "tflops_kind";
}

// "a=1 b=x,c=2" -> pairs. A value holds no blanks.
Settings pairs_of(std::string_view text) {
  Settings out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view token = text.substr(begin, end - begin);
    const std::size_t equals = token.find('=');
    if (equals != std::string_view::npos) out.emplace_back(token.substr(0, equals), token.substr(equals + 1));
    begin = end + 1;
  }
  return out;
}

void set_keys(Row& row, std::string_view column, const Settings& keys) {
  for (const auto& [key, value] : keys) {
    if (key == "flag") {
      if (!row.flag(value)) row.flags.push_back(value);
    } else if (key == column) {
      row.replace(key, value);
    } else {
      row.set(key, value);
    }
  }
}

// Cuts words from the end, "torchtitan v0.2.0" -> "torchtitan".
std::string shorter(const std::string& name) {
  const std::size_t blank = name.find_last_of(' ');
  return blank == std::string::npos ? std::string() : name.substr(0, blank);
}

}  // namespace

std::string loose_name(std::string_view text) {
  std::string out;
  int depth = 0;
  bool blank = false;
  for (char c : text) {
    if (c == '(')
      ++depth;
    else if (c == ')')
      depth = std::max(0, depth - 1);
    else if (c == ' ' || c == '\t')
      blank = true;
    else if (depth == 0) {
      if (blank && !out.empty()) out += ' ';
      blank = false;
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  while (!out.empty() && (out.back() == ',' || out.back() == ';')) out.pop_back();
  return out;
}

Result<RowWords> RowWords::load() {
  const auto table = Csv::parse(embedded("vocabulary.csv"), "vocabulary.csv");
  if (!table) return table.error();
  for (const char* column : {"column", "string", "keys", "assumed", "verdict", "reason"}) {
    if (const auto found = table->need(column); !found) return found.error();
  }
  RowWords out;
  for (std::size_t i = 0; i < table->rows(); ++i) {
    if (Status s = out.add(*table, i); !s) return s.error();
  }
  std::set<std::string> stacks;
  for (const auto& [name, entry] : out.exact_) {
    for (const auto& [key, value] : entry.keys) {
      if (key == "stack") stacks.insert(value.substr(0, value.find('@')));
      if (key == name.first) out.values_[key].push_back(value);
    }
  }
  out.stacks_.assign(stacks.begin(), stacks.end());
  return out;
}

Status RowWords::add(const Csv& table, std::size_t row) {
  const std::string column(table.at(row, "column"));
  const std::string string(table.at(row, "string"));
  Entry entry;
  entry.keys = pairs_of(table.at(row, "keys"));
  const std::string assumed(table.at(row, "assumed"));
  for (std::size_t begin = 0; begin < assumed.size();) {
    const std::size_t end = std::min(assumed.find(' ', begin), assumed.size());
    entry.assumed.push_back(assumed.substr(begin, end - begin));
    begin = end + 1;
  }
  if (table.at(row, "verdict") == "refused")
    entry.refused = table.at(row, "reason");
  else if (table.at(row, "verdict") != "mapped")
    return Error{table.where(row), "verdict is " + text::quoted(table.at(row, "verdict")), "valid: mapped or refused"};
  const std::string loose = loose_name(string);
  if (entry.refused.empty() && !loose.empty()) {
    entry.bare = string.find('(') == std::string::npos;
    const auto [it, fresh] = loose_.emplace(std::pair(column, loose), entry);
    Entry& known = it->second;
    if (!fresh && entry.bare && !known.bare)
      known = entry;  // "torchtitan" before "torchtitan (6fc499f)"
    else if (!fresh && entry.bare == known.bare && known.keys != entry.keys)
      known.keys.clear();  // ambiguous: says nothing
  }
  exact_[{column, string}] = std::move(entry);
  return Nothing{};
}

bool RowWords::is_value(std::string_view column, const std::string& string) const {
  const auto it = values_.find(column);
  return it != values_.end() && std::find(it->second.begin(), it->second.end(), string) != it->second.end();
}

const RowWords::Entry* RowWords::find(std::string_view column, const std::string& string) const {
  const std::string name(column);
  if (const auto it = exact_.find({name, string}); it != exact_.end()) return &it->second;
  const bool by_part = column == "framework";
  for (std::string loose = loose_name(string); !loose.empty(); loose = by_part ? shorter(loose) : std::string()) {
    const auto it = loose_.find({name, loose});
    if (it != loose_.end() && !it->second.keys.empty()) return &it->second;
  }
  return nullptr;
}

void RowWords::apply(Row& row) const {
  for (std::string_view column : kWords) {
    const std::string* cell = row.cell(column);
    if (cell == nullptr) continue;
    const std::string string = *cell;
    if (const Entry* entry = find(column, string)) {
      if (!entry->refused.empty()) row.refused.push_back(entry->refused);
      set_keys(row, column, entry->keys);
      for (const std::string& key : entry->assumed) row.assume(key);
      continue;
    }
    if (column == "model" || column == "gpu" || is_value(column, string)) continue;  // catalogues know more names
    const Settings guessed = guess_word(column, string);
    const bool as_it_is = guessed.size() == 1 && guessed[0].first == column && guessed[0].second == string;
    if (as_it_is) continue;  // the schema's own word
    row.unknown.push_back(std::string(column) + "=" + string +
                          (guessed.empty() ? " (not known: the default)" : " (not known: read by its parts)"));
    if (guessed.empty() && names_its_own_cell(column)) row.replace(column, "");
    set_keys(row, column, guessed);
    for (const auto& [key, value] : guessed) row.assume(key);
  }
  for (const char* column : {"framework", "sharding", "internode", "tflops_kind"}) row.cells.erase(column);
}

}  // namespace preflop
