// Writing JSON: nlohmann's own printing of numbers is not always the shortest.
#include <algorithm>
#include <cmath>

#include "src/base/decimal.hpp"
#include "src/view/json.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

std::string scalar(const Json& value) {
  if (const auto* number = value.get_ptr<const Json::number_float_t*>())
    return std::isfinite(*number) ? shortest(*number) : "null";
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_short_list(const Json& array) {
  std::size_t length = 0;
  for (const Json& item : array) {
    if (item.is_structured() || item.is_string()) return false;
    length += scalar(item).size() + 2;
  }
  return length < 80;
}

void write(std::string& out, const Json& value, std::size_t indent) {
  if (!value.is_structured()) {
    out += scalar(value);
    return;
  }
  const char* const brackets = value.is_object() ? "{}" : "[]";
  out += brackets[0];
  const bool one_line = value.is_array() && is_short_list(value);
  const std::string line = one_line ? "" : "\n" + std::string(indent + 2, ' ');
  bool first = true;
  for (auto it = value.begin(); it != value.end(); ++it, first = false) {
    if (!first) out += one_line ? ", " : ",";
    out += line;
    if (value.is_object()) out += Json(it.key()).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
    write(out, *it, indent + 2);
  }
  if (!first && !one_line) out += "\n" + std::string(indent, ' ');
  out += brackets[1];
}

}  // namespace

std::string json_text(const Json& value) {
  std::string out;
  write(out, value, 0);
  return out;
}

Json json_number(double value) {
  constexpr double kMost = static_cast<double>(Count::kMax);
  if (!std::isfinite(value)) return nullptr;
  if (value == std::trunc(value) && std::fabs(value) <= kMost) return static_cast<std::int64_t>(value);
  return value;
}

void json_put(Json& root, const std::string& path, Json value) {
  Json* at = &root;
  std::size_t from = 0;
  while (from < path.size()) {
    const std::size_t end = std::min(path.find_first_of(".[", from), path.size());
    if (end > from) at = &(*at)[path.substr(from, end - from)];
    from = end + (end < path.size() && path[end] == '.' ? 1 : 0);
    if (end < path.size() && path[end] == '[') {
      std::size_t index = 0;
      for (from = end + 1; path[from] != ']'; ++from) index = index * 10 + static_cast<std::size_t>(path[from] - '0');
      ++from;
      if (from < path.size() && path[from] == '.') ++from;
      at = &(*at)[index];
    }
  }
  *at = std::move(value);
}

}  // namespace preflop
