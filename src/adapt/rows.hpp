// Tables of measured runs (docs/rows-format.md): the project's own, a user's, and tables in which
// people wrote names and remarks as they pleased. One reader for all of them: names go through
// data/vocabulary.csv, what is in no table takes the documented default and is listed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/result.hpp"
#include "src/base/csv.hpp"

namespace preflop {

// One run. Cells are trimmed and never empty: an absent key means "not stated".
struct Row {
  std::string id;
  std::string where;  // "file:line"
  std::map<std::string, std::string, std::less<>> cells;
  std::vector<std::string> flags;    // of docs/rows-format.md
  std::vector<std::string> assumed;  // keys whose value the source does not state
  std::vector<std::string> refused;  // reasons: names that preflop has no word for
  std::vector<std::string> unknown;  // strings that are in no table: "column=string (...)"

  const std::string* cell(std::string_view key) const;  // null: not stated
  bool has(std::string_view key) const { return cell(key) != nullptr; }
  bool flag(std::string_view name) const;
  bool is_assumed(std::string_view key) const;
  bool set(std::string_view key, std::string_view value);  // false: the key stands already
  void replace(std::string_view key, std::string_view value);
  void assume(std::string_view key);  // once
};

// Columns of the schema.
struct RowColumn {
  enum class Kind : std::uint8_t {
    text,      // a word of the schema, taken as it is
    word,      // goes through the vocabulary
    count,     // a whole number from 1 to 1e15
    size,      // a whole number from 0 to 1e15
    real,      // a number >= 0
    measured,  // a number > 0 that the run yielded
    yes_no,
    list,   // blank between: flags and assumed
    remark  // not read
  };
  const char* name;
  Kind kind;
};
const std::vector<RowColumn>& row_columns();

// data/vocabulary.csv: names as people write them -> cells.
class RowWords {
 public:
  static Result<RowWords> load();
  // Sets what the strings of the word columns say, keeping the cells that stand.
  void apply(Row& row) const;
  // The stacks that any name stands for, built or not.
  const std::vector<std::string>& stacks() const { return stacks_; }

 private:
  struct Entry {
    std::vector<std::pair<std::string, std::string>> keys;
    std::vector<std::string> assumed;
    std::string refused;  // the reason; empty: mapped
    bool bare = false;    // the string says nothing in parentheses
  };
  using Index = std::map<std::pair<std::string, std::string>, Entry>;

  Status add(const Csv& table, std::size_t row);
  const Entry* find(std::string_view column, const std::string& string) const;
  bool is_value(std::string_view column, const std::string& string) const;

  Index exact_;
  Index loose_;  // by loose_name(); no refusals, nothing ambiguous
  std::vector<std::string> stacks_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;  // column -> what its strings become
};

// Lower case, without what stands in parentheses, blanks collapsed: "H100 (SXM)" -> "h100".
std::string loose_name(std::string_view text);

// A column value that the vocabulary does not have, read by its grammar: "zero2 (FSDP1)" -> zero=2.
// Empty: it says nothing. The keys are to be taken as assumed.
std::vector<std::pair<std::string, std::string>> guess_word(std::string_view column, std::string_view text);

class RowTable {
 public:
  // Errors name file:line:column: what Csv refuses, a needed column that is missing, a unit of a measured
  // column that is not the schema's, a bad number. A table with remarks of people (a column `framework`,
  // `source` or `notes`) may hold text in the numbers of a recipe: that is listed as not stated.
  static Result<RowTable> parse(std::string_view text, std::string_view file, const RowWords& words);

  std::size_t size() const { return csv_.rows(); }
  Row row(std::size_t i) const;
  const std::string& stem() const { return stem_; }  // file name without folder and ".csv"
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  Status read_header();
  Status check_row(std::size_t row) const;
  Status check_cell(std::size_t row, std::size_t column) const;

  Csv csv_;
  const RowWords* words_ = nullptr;
  std::string stem_;
  bool remarks_ = false;                 // strings of people instead of the schema's words
  std::vector<const RowColumn*> kinds_;  // by column of the table; null: not read
  std::vector<std::string> warnings_;
};

// What the project knows about a table of its own: data/measured_sources.csv.
struct SourceRules {
  std::string title;
  std::string time;        // the column that counts: "step_s"
  std::string convention;  // of its TFLOP/s and MFU where a row names none
  std::string memory;      // the kind of its memory where rows do not state it
  std::vector<std::pair<std::string, std::string>> defaults;
  bool largest_micro_batch = false;  // its runs use the largest micro-batch that fits
};
Result<std::map<std::string, SourceRules, std::less<>>> source_rules();

}  // namespace preflop
