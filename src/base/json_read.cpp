#include "src/base/json_read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "src/base/text.hpp"

namespace preflop {
namespace {

using nlohmann::json;

// The text with Python's bare NaN and Infinity in quotes, and where each pair of quotes went in.
struct Prepared {
  std::string text;
  std::vector<std::size_t> quoted;  // offsets in `text` of the opening quotes added

  // An offset of `text`, in the text as it was given.
  std::size_t original(std::size_t at) const {
    std::size_t shift = 0;
    for (const std::size_t q : quoted) {
      if (q < at) ++shift;
      if (q + (text[q + 1] == 'N' ? 4 : text[q + 1] == '-' ? 10 : 9) < at) ++shift;
    }
    return at - std::min(shift, at);
  }
};

bool is_key(std::string_view rest) {  // a colon comes next
  const std::size_t next = rest.find_first_not_of(" \t\r\n");
  return next != std::string_view::npos && rest[next] == ':';
}

Prepared prepare(std::string_view text) {
  constexpr std::string_view kSpecial[] = {"NaN", "-Infinity", "Infinity"};
  Prepared out;
  out.text.reserve(text.size());
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (in_string && c == '\\' && at + 1 < text.size()) {
      out.text.append(text.substr(at, 2));
      at += 2;
      continue;
    }
    if (c == '"') in_string = !in_string;
    const bool may = !in_string && (c == 'N' || c == 'I' || c == '-');
    const auto* special = std::find_if(std::begin(kSpecial), std::end(kSpecial), [&](std::string_view s) {
      return may && text.substr(at, s.size()) == s && !is_key(text.substr(at + s.size()));
    });
    if (special == std::end(kSpecial)) {
      out.text += c;
      ++at;
      continue;
    }
    out.quoted.push_back(out.text.size());
    out.text.append("\"").append(*special).append("\"");
    at += special->size();
  }
  return out;
}

std::string place(std::string_view text, std::string_view file, std::size_t at) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return fmt::format("{}:{}:{}", file, line, before.size() - start + 1);
}

// Walks the text and shows how far the parser has come (it reads one byte ahead at most).
class Cursor {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

// Builds the value from the parser's events, so that depth and repeated keys are seen as they come.
class Builder {
 public:
  explicit Builder(const std::string& text) : text_(text), furthest_(text.data()) {}

  json root;
  std::string what;  // what is wrong; empty while nothing is
  std::string valid;
  std::size_t at = 0;  // and where, an offset

  Cursor begin() { return {text_.data(), &furthest_}; }
  Cursor end() { return {text_.data() + text_.size(), &furthest_}; }

  bool null() { return add(nullptr); }
  bool boolean(bool v) { return add(v); }
  bool number_integer(json::number_integer_t v) { return add(v); }
  bool number_unsigned(json::number_unsigned_t v) { return add(v); }
  bool number_float(json::number_float_t v, const std::string&) { return add(v); }
  bool string(std::string& v) { return add(std::move(v)); }
  bool binary(json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    if (open_.back()->contains(name)) {
      const std::size_t behind = read();
      const std::size_t quote = behind < 2 ? 0 : text_.rfind('"', behind - 2);
      return refuse("the key " + text::quoted(name) + " stands twice in one object", "keep one of them", quote);
    }
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token, const json::exception& e) {
    if (e.id == 406) {
      return refuse("the number " + text::quoted(token) + " is beyond the range of a double", "at most 1.79e308",
                    position - std::min(position, token.size()));
    }
    return position > text_.size() ? refuse_end(e.what()) : refuse_syntax(e.what(), position);
  }

 private:
  json* place_value(json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[std::move(key_)] = std::move(value));
  }
  bool add(json value) {
    place_value(std::move(value));
    return true;
  }
  bool open(json value) {
    if (open_.size() == kMaxJsonDepth) {
      return refuse(fmt::format("the text is nested deeper than {} levels", kMaxJsonDepth), "", read() - 1);
    }
    open_.push_back(place_value(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::size_t read() const { return static_cast<std::size_t>(furthest_ - text_.data()); }
  bool refuse(std::string problem, std::string hint, std::size_t offset) {
    what = std::move(problem);
    valid = std::move(hint);
    at = offset;
    return false;
  }
  bool refuse_end(std::string_view message) {
    if (text_.find_first_not_of(" \t\r\n\xEF\xBB\xBF") == std::string::npos)
      return refuse("the text is empty", "it should hold a JSON value", 0);
    const bool in_string = message.find("missing closing quote") != std::string_view::npos;
    const char* place = in_string                   ? "inside a string"
                        : open_.empty()             ? "inside its value"
                        : open_.back()->is_object() ? "inside an object"
                                                    : "inside an array";
    return refuse(fmt::format("the text ends {}", place), "it seems to be cut off", text_.size());
  }
  // The library says "[..] parse error at ..: syntax error while parsing X - WHAT; expected Y".
  bool refuse_syntax(std::string_view message, std::size_t position) {
    if (const auto dash = message.find(" - "); dash != std::string_view::npos) message.remove_prefix(dash + 3);
    const std::size_t expected = message.find("; expected ");
    const std::size_t read_last = message.find("; last read: ");
    std::string hint;
    if (expected != std::string_view::npos) hint = std::string(message.substr(expected + 2));
    return refuse(fmt::format("this is not JSON: {}", message.substr(0, std::min(expected, read_last))),
                  std::move(hint), position - std::min<std::size_t>(position, 1));
  }

  const std::string& text_;
  const char* furthest_;
  std::vector<json*> open_;
  std::string key_;
};

}  // namespace

Result<json> read_json(std::string_view text, std::string_view file) {
  if (text.size() > kMaxJsonBytes) {
    return Error{std::string(file), "the file is larger than 16 MiB", "a config.json has a few KB"};
  }
  // The library takes a zero byte for the end of the text, and would not see what follows it.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return Error{place(text, file, zero), "the text holds a zero byte", "JSON is UTF-8 text"};
  }
  const Prepared prepared = prepare(text);
  Builder builder(prepared.text);
  if (json::sax_parse(builder.begin(), builder.end(), &builder)) return std::move(builder.root);
  return Error{place(text, file, prepared.original(builder.at)), builder.what, builder.valid};
}

}  // namespace preflop
