// YAML as launchers write it.
#include <algorithm>

#include "src/adapt/import/launchers.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

// Without a comment and without the quotes around it.
std::string plain(std::string_view text) {
  std::string out = trimmed(text);
  if (!out.empty() && (out.front() == '"' || out.front() == '\'')) {
    const std::size_t end = out.find(out.front(), 1);
    return end == std::string::npos ? out.substr(1) : out.substr(1, end - 1);
  }
  const std::size_t hash = out.find(" #");
  if (hash != std::string::npos) out = trimmed(out.substr(0, hash));
  return out.starts_with('#') ? "" : out;
}

// "{ a: 1, b: {c: 2} }" under a path.
void flow(std::string_view text, const std::string& path, std::size_t line, Fields& out, int depth) {
  std::size_t from = 1;
  int open = 0;
  constexpr int kDeepest = 16;
  for (std::size_t i = 1; i < text.size() && depth < kDeepest; ++i) {
    if (text[i] == '{' || text[i] == '[') ++open;
    const bool last = open == 0 && text[i] == '}';
    if ((text[i] == '}' || text[i] == ']') && open > 0) --open;
    if (!last && !(open == 0 && text[i] == ',')) continue;
    const std::string_view item = text.substr(from, i - from);
    from = i + 1;
    const std::size_t colon = item.find(':');
    if (colon != std::string_view::npos) {
      const std::string key = path + plain(item.substr(0, colon)), value = trimmed(item.substr(colon + 1));
      if (value.starts_with('{'))
        flow(value, key + ".", line, out, depth + 1);
      else
        out.set(key, plain(value), line);
    }
    if (last) return;
  }
}

}  // namespace

Status read_yaml(std::string_view text, const std::string& file, Fields& out) {
  std::vector<std::pair<std::size_t, std::string>> open;  // indentation and path of the mappings that are open
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos || line[indent] == '#' || line[indent] == '\r' ||
        line.substr(indent).starts_with("---"))
      continue;
    const std::string where = file + ":" + std::to_string(number);
    if (line[indent] == '\t') return Error{where, "a tab indents", "spaces"};
    const bool item = line[indent] == '-';
    if (item) indent = std::min(line.find_first_not_of(' ', indent + 1), line.size());
    const std::string_view body = line.substr(indent);
    const std::size_t colon = body.find(':');
    while (!open.empty() && open.back().first >= indent) open.pop_back();
    const std::string inside = open.empty() ? "" : open.back().second;
    if (item && colon == std::string_view::npos) {  // of a list of words
      const std::string path = inside.substr(0, inside.empty() ? 0 : inside.size() - 1), so_far = out.shown(path);
      if (!path.empty()) out.set(path, so_far + (so_far.empty() ? "" : ",") + plain(body), number);
      continue;
    }
    if (colon == std::string_view::npos) return Error{where, "no key and value", "key: value"};
    const std::string path = inside + plain(body.substr(0, colon)), value = trimmed(body.substr(colon + 1));
    if (value.starts_with('{'))
      flow(value, path + ".", number, out, 0);
    else if (plain(value).empty())
      open.emplace_back(indent, path + ".");
    else
      out.set(path, plain(value), number);
  }
  return Nothing{};
}

Result<Request> import_yaml(std::string_view text, const std::string& file) {
  Fields any("", file);
  if (Status s = read_yaml(text, file, any); !s) return s.error();
  const bool nano = any.any("parallelism.") && any.any("tokens.");
  if (!nano && !any.has("distributed_type"))
    return Error{"--from", text::quoted(file) + " is neither accelerate's nor nanotron's",
                 "a file with distributed_type, or with parallelism and tokens"};
  return nano ? import_nanotron(text, file) : import_accelerate(text, file);
}

}  // namespace preflop
