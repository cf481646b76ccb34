// TOML text to checked values. Errors name file:line:column.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/result.hpp"

namespace preflop {

// A table of a parsed document. Cheap to copy; a copy keeps the document alive.
class TomlTable {
 public:
  // Errors: syntax (with its place), text above 16 MiB. Floats too small for a normal double (below
  // 2.2e-308) are read on some targets and refused on others.
  static Result<TomlTable> parse(std::string_view text, std::string_view file);

  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;          // sorted
  std::string where(std::string_view key) const;  // "file:line:column" of the key's value, of the table if absent
  std::string where() const;                      // of the table itself

  // The value of a key. Errors: absent, another type, a number that is not finite. T is one of
  // std::string, bool, std::int64_t, double (an integer is read as its double), std::vector of these
  // (but bool), TomlTable, std::vector<TomlTable> (an array of tables).
  template <class T>
  Result<T> get(std::string_view key) const;

  // As get, but an absent key is an empty optional, not an error.
  template <class T>
  Result<std::optional<T>> find(std::string_view key) const {
    if (!has(key)) return std::optional<T>();
    Result<T> value = get<T>(key);
    if (!value) return value.error();
    return std::optional<T>(std::move(value).value());
  }

  // A string, integer, float or boolean as the text a flag would have: "8", "0.4", "true", "4Mtok".
  Result<std::string> scalar(std::string_view key) const;

  // Error naming the first key that is not in `known`, with "did you mean".
  Status only_keys(const std::vector<std::string>& known) const;

 private:
  struct Document;
  struct Access;
  TomlTable(std::shared_ptr<const Document> document, const void* table)
      : document_(std::move(document)), table_(table) {}
  std::shared_ptr<const Document> document_;
  const void* table_;  // a toml::table inside document_, so that users need not include toml++
};

}  // namespace preflop
