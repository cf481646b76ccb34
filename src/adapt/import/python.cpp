#include "src/adapt/import/python.hpp"

#include <algorithm>

namespace preflop {

namespace {

std::string stripped(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  text = text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
  const bool quoted = text.size() > 1 && text.front() == text.back() && (text.front() == '"' || text.front() == '\'');
  return std::string(quoted ? text.substr(1, text.size() - 2) : text);
}

// What ends at the first of `ends` that stands outside quotes and brackets.
std::string_view until(std::string_view text, std::string_view ends) {
  char quote = 0;
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      quote = c == quote ? '\0' : quote;
    } else if (open == 0 && ends.find(c) != std::string_view::npos) {
      return text.substr(0, i);
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {  // a comment within brackets
      return text.substr(0, i);
    } else {
      open += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    }
  }
  return text;
}

void read_arguments(const std::string& path, std::string_view value, std::size_t line, Fields& out) {
  const std::size_t call = value.find('(');
  if (call == std::string_view::npos || call == 0 || !value.ends_with(")") || value.front() == '"') return;
  std::string_view inside = value.substr(call + 1, value.size() - call - 2);
  while (!inside.empty()) {
    const std::string_view one = until(inside, ",");
    inside.remove_prefix(std::min(one.size() + 1, inside.size()));
    const std::size_t equals = one.find('=');
    if (equals != std::string_view::npos)
      out.set(path + "." + stripped(one.substr(0, equals)), stripped(one.substr(equals + 1)), line);
  }
}

}  // namespace

void read_assignments(std::string_view text, Fields& out) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t begin = line.find_first_not_of(" \t");
    const std::size_t equals = line.find('=');
    if (begin == std::string_view::npos || equals == std::string_view::npos) continue;
    const std::string_view target = line.substr(begin, equals - begin);
    const std::size_t dot = target.find('.');
    const bool ours = target.starts_with("config.") || target.starts_with("cfg.");
    if (!ours || target.find_first_of("(#+-") != std::string_view::npos || line.substr(equals).starts_with("=="))
      continue;
    const std::string path = stripped(target.substr(dot + 1));
    const std::string_view value = until(line.substr(equals + 1), "#");
    out.set(path, stripped(value), number);
    read_arguments(path, stripped(value), number, out);
  }
}

Result<Request> import_python(std::string_view text, const std::string& file) {
  Fields any("", file);
  read_assignments(text, any);
  return any.has("model.tensor_model_parallel_size") ? import_bridge(text, file) : import_torchtitan_python(text, file);
}

}  // namespace preflop
