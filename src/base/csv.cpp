#include "src/base/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "src/base/text.hpp"

namespace preflop {

// One pass over the text. Quoted fields are unquoted in place, as they only get shorter.
class CsvReader {
 public:
  CsvReader(std::string& text, std::string_view file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = line_start_ = 3;
  }

  Result<Csv> read() {
    while (at_ < text_.size()) {
      if (skip_empty_line()) continue;
      if (const Status record = read_record(); !record) return record.error();
    }
    if (csv_.header_.empty()) return error("the file has no header line", "the first line names the columns");
    return std::move(csv_);
  }

 private:
  Error error_at(std::uint32_t line, std::size_t column, std::string what, std::string valid) const {
    return {fmt::format("{}:{}:{}", file_, line, column), std::move(what), std::move(valid)};
  }
  Error error(std::string what, std::string valid) const {
    return error_at(line_, at_ - line_start_ + 1, std::move(what), std::move(valid));
  }

  void next_line() {
    ++line_;
    line_start_ = at_;
  }
  // Takes a line break, CRLF or LF.
  bool take_break() {
    std::size_t n = 0;
    if (text_[at_] == '\n') n = 1;
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') n = 2;
    if (n == 0) return false;
    at_ += n;
    next_line();
    return true;
  }
  bool skip_empty_line() { return take_break(); }

  Status read_record() {
    const std::uint32_t line = line_;
    const std::size_t start = at_;
    fields_.clear();
    while (true) {
      Csv::Field field;
      field.line = line_;
      field.column = static_cast<std::uint32_t>(at_ - line_start_ + 1);
      const bool quoted = at_ < text_.size() && text_[at_] == '"';
      if (const Status s = quoted ? read_quoted(field) : read_bare(field); !s) return s;
      fields_.push_back(field);
      if (at_ - start > Csv::kMaxRecord) {
        return error_at(line, 1, "the record is longer than 1 MiB", "check the quotes of this line");
      }
      if (at_ == text_.size() || take_break()) break;
      if (text_[at_] != ',') return error("text follows the closing quote of a field", "put a comma after the quote");
      ++at_;
    }
    return csv_.header_.empty() ? take_header() : take_row(line);
  }

  Status read_bare(Csv::Field& field) {
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    const char* p = begin;  // local, as the compiler cannot know that nothing else points at at_
    for (; p != end; ++p) {
      const char c = *p;
      if (c > '"' && c != ',') continue;
      if (c == ',' || c == '\n' || (c == '\r' && p + 1 != end && p[1] == '\n')) break;
      if (c != '"' && c != '\0') continue;
      at_ = static_cast<std::size_t>(p - text_.data());
      if (c == '\0') return error("the text holds a zero byte", "save it as UTF-8 text");
      return error("a quote stands inside a field that does not begin with one",
                   "quote the whole field, and double the quotes in it");
    }
    at_ = static_cast<std::size_t>(p - text_.data());
    field.text = std::string_view(begin, static_cast<std::size_t>(p - begin));
    return Nothing{};
  }

  Status read_quoted(Csv::Field& field) {
    const std::size_t begin = ++at_;
    std::size_t out = begin;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\0') return error("the text holds a zero byte", "save it as UTF-8 text");
      if (c == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') {
          ++at_;
          field.text = std::string_view(text_).substr(begin, out - begin);
          return Nothing{};
        }
        ++at_;
      }
      text_[out++] = c;
      if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      }
    }
    return error_at(field.line, field.column, "the quote that opens here is not closed", "close it with a quote");
  }

  Status take_header() {
    for (const Csv::Field& field : fields_) {
      if (field.text.empty())
        return error_at(field.line, field.column, "a column has no name", "name every column once");
      const auto& names = csv_.header_;
      if (std::find(names.begin(), names.end(), field.text) != names.end()) {
        return error_at(field.line, field.column, "the column " + text::quoted(field.text) + " stands twice",
                        "name every column once");
      }
      csv_.header_.push_back(field.text);
    }
    csv_.fields_.reserve(text_.size() / 8);  // a field of data takes about as much
    return Nothing{};
  }

  Status take_row(std::uint32_t line) {
    if (fields_.size() != csv_.columns()) {
      return error_at(line, 1, fmt::format("the line has {} fields", fields_.size()),
                      fmt::format("the header has {}", csv_.columns()));
    }
    csv_.fields_.insert(csv_.fields_.end(), fields_.begin(), fields_.end());
    return Nothing{};
  }

  std::string& text_;
  std::string_view file_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
  std::vector<Csv::Field> fields_;  // of the record being read
  Csv csv_;
};

Result<Csv> Csv::parse(std::string_view text, std::string_view file) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
    return Error{std::string(file), "the file is larger than 4 GiB", "split it"};
  }
  auto owned = std::make_shared<std::string>(text);
  Result<Csv> csv = CsvReader(*owned, file).read();
  if (!csv) return csv;
  csv->file_ = std::string(file);
  csv->text_ = std::move(owned);
  return csv;
}

std::optional<std::size_t> Csv::find(std::string_view column) const {
  const auto found = std::find(header_.begin(), header_.end(), column);
  if (found == header_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header_.begin());
}

Result<std::size_t> Csv::need(std::string_view column) const {
  if (const auto found = find(column)) return *found;
  const std::vector<std::string> names(header_.begin(), header_.end());
  const std::string near = text::suggestion(column, names);
  return Error{file_, "there is no column " + text::quoted(column),
               near.empty() ? "the columns are " + text::list(names, "and") : near};
}

std::string_view Csv::at(std::size_t row, std::string_view column) const {
  const auto found = find(column);
  return found ? at(row, *found) : std::string_view();
}

std::string Csv::where(std::size_t row, std::size_t column) const {
  const Field& field = fields_[row * columns() + column];
  return fmt::format("{}:{}:{}", file_, field.line, field.column);
}
std::string Csv::where(std::size_t row) const { return fmt::format("{}:{}", file_, fields_[row * columns()].line); }

}  // namespace preflop
