// Comma-separated values by RFC 4180: quotes, doubled quotes, LF or CRLF, newlines inside quotes, an
// optional byte order mark. The first record is the header; empty lines are skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/result.hpp"

namespace preflop {

class Csv {
 public:
  static constexpr std::size_t kMaxRecord = std::size_t{1} << 20;  // bytes of one record

  // Errors name file:line:column: a quote that is not closed or stands inside a bare field, text after
  // a closing quote, a record with more or fewer fields than the header, a NUL byte, a record above
  // kMaxRecord, an empty or repeated header name, no header at all.
  static Result<Csv> parse(std::string_view text, std::string_view file);

  std::size_t rows() const { return columns() == 0 ? 0 : fields_.size() / columns(); }
  std::size_t columns() const { return header_.size(); }
  const std::vector<std::string_view>& header() const { return header_; }

  // The field, unquoted. Views live as long as this Csv or a copy of it.
  std::string_view at(std::size_t row, std::size_t column) const { return fields_[row * columns() + column].text; }
  // The field under a header name; empty when there is no such column.
  std::string_view at(std::size_t row, std::string_view column) const;

  std::optional<std::size_t> find(std::string_view column) const;  // by exact name
  Result<std::size_t> need(std::string_view column) const;         // error: no such column, did you mean

  std::string where(std::size_t row, std::size_t column) const;  // "file:line:column" of the field
  std::string where(std::size_t row) const;                      // "file:line"
  const std::string& file() const { return file_; }

 private:
  friend class CsvReader;
  struct Field {
    std::string_view text;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
  };
  std::string file_;
  std::shared_ptr<const std::string> text_;  // what the views point into
  std::vector<std::string_view> header_;
  std::vector<Field> fields_;
};

}  // namespace preflop
