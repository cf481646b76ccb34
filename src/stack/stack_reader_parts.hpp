// Parts of the stack reader that several of its files use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/toml_read.hpp"
#include "src/stack/stack.hpp"

namespace preflop {

// An error at a key's place.
Error bad(const TomlTable& table, std::string_view key, std::string what, std::string valid);
// A list of operator tags or groups, each of which some operator bears.
Result<std::vector<std::string>> tags_of(const TomlTable& table, const char* key = "tags");
// A list of words, each of them one of those `known`; an absent key changes nothing. `what` names one of them in an
// error. With `some` an empty list is an error, too.
Status read_words(const TomlTable& table, const char* key, std::string_view what, const std::vector<std::string>& known,
                  std::vector<std::string>& out, bool some = false);
// The same of words that name values: `known` are those of which `value_of` knows the value.
template <class T>
Status read_named(const TomlTable& table, const char* key, std::string_view what, const std::vector<std::string>& known,
                  std::optional<T> (*value_of)(std::string_view), std::vector<T>& out) {
  std::vector<std::string> words;
  if (Status s = read_words(table, key, what, known, words); !s || !table.has(key)) return s;
  out.clear();
  for (const std::string& word : words) out.push_back(*value_of(word));
  return Nothing{};
}
// A list of names of moments.
Result<std::vector<std::string>> moments_of(const TomlTable& table, const char* key);
// A switch; an absent key changes nothing.
Status read_flag(const TomlTable& table, const char* key, bool& out);

Status read_segment(const TomlTable& table, Stack& stack);           // [[segment]]
Status read_live(const TomlTable& table, Stack& stack);              // [[live]]
Status read_hold(const TomlTable& table, Stack& stack);              // [[hold]]
Status read_scaled_precision(const TomlTable& table, Stack& stack);  // [[precision]]
Status read_scalars(const TomlTable& table, Stack& stack);           // [scalar.NAME]

}  // namespace preflop
