#include "src/base/toml_read.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cmath>
#include <type_traits>

#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/base/toml_text.hpp"

namespace preflop {

struct TomlTable::Document {
  toml::table root;
  std::string file;
};

namespace {

std::string place(const std::string& file, const toml::source_region& source) {
  if (!source.begin) return file;
  return fmt::format("{}:{}:{}", file, source.begin.line, source.begin.column);
}

const char* kind(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

template <class T>
inline constexpr const char* kWanted = "";
template <>
inline constexpr const char* kWanted<std::string> = "a string";
template <>
inline constexpr const char* kWanted<bool> = "true or false";
template <>
inline constexpr const char* kWanted<std::int64_t> = "an integer";
template <>
inline constexpr const char* kWanted<double> = "a number";

// The scalar in a node, or nothing when it is of another type.
template <class T>
std::optional<T> scalar_of(const toml::node& node) {
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* i = node.as_integer()) return static_cast<double>(i->get());
    const auto* f = node.as_floating_point();
    if (f == nullptr || !std::isfinite(f->get())) return std::nullopt;
    return f->get();
  } else {
    const auto* value = node.as<T>();
    if (value == nullptr) return std::nullopt;
    return value->get();
  }
}

template <class T>
struct ElementOf {
  using type = void;
};
template <class T>
struct ElementOf<std::vector<T>> {
  using type = T;
};

}  // namespace

struct TomlTable::Access {
  static const toml::table& table(const TomlTable& t) { return *static_cast<const toml::table*>(t.table_); }
  static const std::string& file(const TomlTable& t) { return t.document_->file; }
  static TomlTable inner(const TomlTable& t, const toml::table& table) { return {t.document_, &table}; }

  static Error wrong(const TomlTable& t, std::string_view key, const toml::node& node, const std::string& wanted) {
    const auto* f = node.as_floating_point();
    const bool odd = f != nullptr && !std::isfinite(f->get());
    return {place(file(t), node.source()),
            fmt::format("{} is {}", text::quoted(key), odd ? shortest(f->get()) : kind(node)), "write " + wanted};
  }

  template <class T>
  static Result<T> read(const TomlTable& t, std::string_view key, const toml::node& node) {
    using Element = typename ElementOf<T>::type;
    if constexpr (std::is_same_v<T, TomlTable>) {
      if (const toml::table* table = node.as_table()) return inner(t, *table);
      return wrong(t, key, node, "a table");
    } else if constexpr (!std::is_void_v<Element>) {
      const std::string wanted = std::is_same_v<Element, TomlTable>
                                     ? std::string("an array of tables ([[name]])")
                                     : fmt::format("an array, each element {}", kWanted<Element>);
      const toml::array* array = node.as_array();
      if (array == nullptr) return wrong(t, key, node, wanted);
      T out;
      for (const toml::node& element : *array) {
        Result<Element> value = read<Element>(t, key, element);
        if (!value) return value.error();
        out.push_back(std::move(value).value());
      }
      return out;
    } else {
      if (const std::optional<T> value = scalar_of<T>(node)) return *value;
      return wrong(t, key, node, kWanted<T>);
    }
  }
};

Result<TomlTable> TomlTable::parse(std::string_view text, std::string_view file) {
  constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  if (text.size() > kMaxBytes)
    return Error{std::string(file), "the file is larger than 16 MiB", "a TOML file of that size is a mistake"};
  if (Status ascii = only_ascii_outside_strings(text, file); !ascii) return ascii.error();
  toml::parse_result result = toml::parse(text, std::string_view());
  if (!result) {
    const toml::parse_error& e = result.error();
    return Error{place(std::string(file), e.source()), std::string(e.description()), ""};
  }
  auto document = std::make_shared<Document>();
  document->root = std::move(result).table();
  document->file = std::string(file);
  const void* root = &document->root;
  return TomlTable(std::move(document), root);
}

bool TomlTable::has(std::string_view key) const { return Access::table(*this).contains(key); }

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, node] : Access::table(*this)) out.emplace_back(key.str());
  return out;  // toml::table is sorted
}

std::string TomlTable::where(std::string_view key) const {
  const toml::node* node = Access::table(*this).get(key);
  return node == nullptr ? where() : place(Access::file(*this), node->source());
}
std::string TomlTable::where() const { return place(Access::file(*this), Access::table(*this).source()); }

template <class T>
Result<T> TomlTable::get(std::string_view key) const {
  const toml::node* node = Access::table(*this).get(key);
  if (node == nullptr) return Error{where(), "the key " + text::quoted(key) + " is missing", ""};
  return Access::read<T>(*this, key, *node);
}
template Result<std::string> TomlTable::get(std::string_view) const;
template Result<bool> TomlTable::get(std::string_view) const;
template Result<std::int64_t> TomlTable::get(std::string_view) const;
template Result<double> TomlTable::get(std::string_view) const;
template Result<TomlTable> TomlTable::get(std::string_view) const;
template Result<std::vector<std::string>> TomlTable::get(std::string_view) const;
template Result<std::vector<std::int64_t>> TomlTable::get(std::string_view) const;
template Result<std::vector<double>> TomlTable::get(std::string_view) const;
template Result<std::vector<TomlTable>> TomlTable::get(std::string_view) const;

Result<std::string> TomlTable::scalar(std::string_view key) const {
  const toml::node* node = Access::table(*this).get(key);
  if (node == nullptr) return Error{where(), "the key " + text::quoted(key) + " is missing", ""};
  if (const auto s = scalar_of<std::string>(*node)) return *s;
  if (const auto i = scalar_of<std::int64_t>(*node)) return fmt::format("{}", *i);
  if (const auto d = scalar_of<double>(*node)) return shortest(*d);
  if (const auto b = scalar_of<bool>(*node)) return std::string(*b ? "true" : "false");
  return Access::wrong(*this, key, *node, "a string, a number or a boolean");
}

Status TomlTable::only_keys(const std::vector<std::string>& known) const {
  for (const auto& [key, node] : Access::table(*this)) {
    bool found = false;
    for (const std::string& k : known) found = found || k == key.str();
    if (!found) return text::unknown_name(place(Access::file(*this), key.source()), "key", key.str(), known);
  }
  return Nothing{};
}

}  // namespace preflop
