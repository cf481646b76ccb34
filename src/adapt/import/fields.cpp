#include "src/adapt/import/fields.hpp"

#include <algorithm>

#include "src/adapt/import/options.hpp"
#include "src/base/csv.hpp"
#include "src/base/decimal.hpp"
#include "src/base/embedded.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 53;

// Does the value say nothing: absent in YAML, JSON and Python?
bool nothing(const std::string& value) { return value.empty() || value == "null" || value == "None" || value == "~"; }

// "true" and "false" as YAML 1.1, JSON and Python write them.
bool same_switch(std::string_view word, const std::string& value) {
  const std::string lower = lowered(value);
  return word == "true" ? lower == "true" || lower == "yes" || lower == "on"
                        : word == "false" && (lower == "false" || lower == "no" || lower == "off");
}

bool same_number(std::string_view word, const std::string& value) {
  const auto a = parse_decimal(word), b = parse_decimal(value);
  return a && b && *a == *b;
}

bool fits(std::string_view word, const std::string& value) {
  if (word == "N" || word == "N0") return whole_number(value) >= (word == "N" ? 1 : 0);
  if (word == "X") return parse_decimal(value).ok();
  if (word.ends_with('*')) return value.starts_with(word.substr(0, word.size() - 1));
  if (word.starts_with('*')) return value.ends_with(word.substr(1));
  return word == value || same_switch(word, value) || same_number(word, value);
}

// "a=b|c": a and b, then c and c.
std::vector<std::pair<std::string_view, std::string_view>> alternatives(std::string_view values) {
  std::vector<std::pair<std::string_view, std::string_view>> out;
  while (!values.empty()) {
    const std::size_t end = std::min(values.find('|'), values.size());
    const std::string_view one = values.substr(0, end);
    values.remove_prefix(std::min(end + 1, values.size()));
    const std::size_t equals = one.find('=');
    out.emplace_back(one.substr(0, equals), equals == std::string_view::npos ? one : one.substr(equals + 1));
  }
  return out;
}

}  // namespace

const Readable* readable(std::string_view format, const std::string& option) {
  static const std::map<std::string, Readable> kTable = [] {
    std::map<std::string, Readable> out;
    const auto csv = Csv::parse(embedded("launch_read.csv"), "data/launch_read.csv");
    for (std::size_t i = 0; csv && i < csv->rows(); ++i) {
      const auto cell = [&](const char* column) { return std::string(csv->at(i, std::string_view(column))); };
      out[cell("format") + " " + cell("option")] = {cell("key"), cell("values")};
    }
    return out;
  }();
  const auto at = kTable.find(std::string(format) + " " + option);
  return at == kTable.end() ? nullptr : &at->second;
}

std::int64_t product(std::initializer_list<std::int64_t> sizes) {
  std::int64_t out = 1;
  for (const std::int64_t size : sizes) {
    if (size <= 0 || out > kMost / size) return 0;
    out *= size;
  }
  return out;
}

std::string lowered(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::int64_t whole_number(std::string_view text) {
  std::int64_t product = 1, part = -1;
  const auto times = [&] {
    if (part < 0 || (part > 0 && product > kMost / part)) return false;
    product *= part;
    part = -1;
    return true;
  };
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      part = std::max<std::int64_t>(part, 0) * 10 + (c - '0');
      if (part > kMost) return -1;
    } else if (c == '*' ? !times() : c != ' ' && c != '_') {
      return -1;
    }
  }
  return times() ? product : -1;
}

std::optional<std::string> word_of(std::string_view values, const std::string& value) {
  for (const auto& [word, here] : alternatives(values)) {
    if (!fits(word, value)) continue;
    if (here == "N" || here == "N0") return std::to_string(whole_number(value));
    return here != word || same_switch(word, value) ? std::string(here) : value;
  }
  return std::nullopt;
}

std::string valid_values(std::string_view values) {
  std::vector<std::string> out;
  for (const auto& [word, here] : alternatives(values)) {
    out.emplace_back(word == "N"    ? "a whole number above 0"
                     : word == "N0" ? "a whole number"
                     : word == "X"  ? "a number"
                                    : word);
  }
  return text::list(out);
}

void Fields::erase_section(const std::string& prefix) {
  std::erase_if(all_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

bool Fields::any(std::string_view prefix) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

Status Fields::read(Request& out) {
  for (auto& [path, field] : all_) {
    const Readable* row = readable(format_, path);
    if (row == nullptr) continue;
    std::optional<std::string> word = word_of(row->values, field.value);
    const bool unsaid = field.value == "auto";  // left to the training script
    if (!word && !unsaid && !nothing(field.value))
      return refused(path, "is " + text::quoted(field.value), valid_values(row->values));
    if (word ? *word == "?" : unsaid) leave(path);  // with the value that the file has
    field.value = word && *word != "?" ? *word : "";
    if (!row->key.empty() && !field.value.empty()) put(out, row->key.c_str(), path, field.value);
    if (!row->key.empty() || field.value.empty()) asked_.insert(path);
  }
  return Nothing{};
}

std::string Fields::value(const std::string& path) const {
  asked_.insert(path);
  const auto at = all_.find(path);
  return at == all_.end() ? "" : at->second.value;
}

std::string Fields::shown(const std::string& path) const {
  const auto at = all_.find(path);
  return at == all_.end() ? "" : at->second.value;
}

std::int64_t Fields::number(const std::string& path) const {
  return std::max<std::int64_t>(0, whole_number(value(path)));
}

void Fields::put(Request& out, const char* key, const std::string& path, std::string value) const {
  out.keys[key] = std::move(value);
  out.places[key] = place(path);
}

void Fields::put_number(Request& out, const char* key, const std::string& path, std::int64_t value) const {
  if (value > 0) put(out, key, path, std::to_string(value));
}

void Fields::leave(const std::string& path) const {
  const std::string value = shown(path);
  asked_.insert(path);
  if (has(path)) left_.insert(path + (value.empty() ? "" : " " + value));
}

std::string Fields::line(const std::string& path) const {
  const auto at = all_.find(path);
  return at == all_.end() || at->second.line == 0 ? file_ : file_ + ":" + std::to_string(at->second.line);
}

std::vector<std::string> Fields::unknown() const {
  std::vector<std::string> out;
  for (const auto& [path, field] : all_) {
    if (!asked_.contains(path) && !nothing(field.value) && !ignored_option(format_, path)) out.push_back(path);
  }
  return out;
}

std::vector<std::string> Fields::not_read() const {
  std::vector<std::string> out(left_.begin(), left_.end());
  for (std::string& path : unknown()) out.push_back(std::move(path));
  return out;
}

}  // namespace preflop
