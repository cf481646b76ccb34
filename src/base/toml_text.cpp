#include "src/base/toml_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace preflop {

namespace {

bool beyond_ascii(char c) { return (static_cast<unsigned char>(c) & 0x80) != 0; }
bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  // The position of the first character beyond ASCII that is out of place, or npos.
  std::size_t odd() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (beyond_ascii(c)) return at_;
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '"' || c == '\'') {
        const bool multi_line = text_.compare(at_, 3, std::string(3, c)) == 0;
        if (const std::size_t bad = skip_string(c, multi_line); bad != std::string_view::npos) return bad;
      } else {
        ++at_;
      }
    }
    return std::string_view::npos;
  }

 private:
  // Moves behind the string that begins here. An unclosed one ends with its line or the text: what
  // toml++ refuses there it refuses before it reads on.
  std::size_t skip_string(char quote, bool multi_line) {
    const std::string closing(multi_line ? 3 : 1, quote);
    at_ += closing.size();
    while (at_ < text_.size() && text_.compare(at_, closing.size(), closing) != 0) {
      if (text_[at_] == '\n' && !multi_line) break;
      if (text_[at_] != '\\' || quote == '\'') {
        ++at_;
        continue;
      }
      ++at_;  // the backslash; a blank after it begins a line ending that toml++ trims
      if (multi_line && at_ < text_.size() && blank(text_[at_])) {
        while (at_ < text_.size() && blank(text_[at_])) ++at_;
        if (at_ < text_.size() && beyond_ascii(text_[at_])) return at_;
      } else if (at_ < text_.size()) {
        if (beyond_ascii(text_[at_])) return at_;
        ++at_;
      }
    }
    if (at_ < text_.size() && text_[at_] == quote) at_ += closing.size();
    return std::string_view::npos;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Status only_ascii_outside_strings(std::string_view text, std::string_view file) {
  if (std::none_of(text.begin(), text.end(), beyond_ascii)) return Nothing{};
  std::size_t start = text.rfind("\xEF\xBB\xBF", 0) == 0 ? 3 : 0;  // a byte order mark may begin the text
  const std::size_t bad = Scan(text.substr(start)).odd();
  if (bad == std::string_view::npos) return Nothing{};
  const std::string_view before = text.substr(start, bad);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::string_view in_line = before.substr(before.rfind('\n') + 1);
  const auto column = 1 + std::count_if(in_line.begin(), in_line.end(), [](char c) { return (c & 0xC0) != 0x80; });
  return Error{fmt::format("{}:{}:{}", file, line, column),
               "a character that is not ASCII stands outside a string or a comment",
               "write it in quotes, without a backslash before it"};
}

}  // namespace preflop
