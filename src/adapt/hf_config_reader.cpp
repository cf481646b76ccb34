#include "src/adapt/hf_config_reader.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/decimal.hpp"
#include "src/base/text.hpp"

namespace preflop {
namespace {

using Json = nlohmann::json;

// The value of an --assume: a JSON scalar, else a word.
Json assumed_value(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() || value.is_structured() ? Json(text) : value;
}

// A whole number of any JSON spelling (4096, 4096.0); nothing when it is not whole or beyond 2^53.
std::optional<std::int64_t> whole(const Json& value) {
  constexpr double kMost = static_cast<double>(Count::kMax);
  if (const auto* u = value.get_ptr<const Json::number_unsigned_t*>()) {
    if (*u > static_cast<Json::number_unsigned_t>(Count::kMax)) return std::nullopt;
    return static_cast<std::int64_t>(*u);
  }
  if (const auto* i = value.get_ptr<const Json::number_integer_t*>()) return *i;
  if (const auto* d = value.get_ptr<const Json::number_float_t*>()) {
    if (!(*d >= -kMost && *d <= kMost) || *d != std::trunc(*d)) return std::nullopt;
    return static_cast<std::int64_t>(*d);
  }
  return std::nullopt;
}

std::optional<double> real(const Json& value) {
  if (const auto* d = value.get_ptr<const Json::number_float_t*>()) return *d;
  const std::optional<std::int64_t> n = whole(value);
  return n ? std::optional(static_cast<double>(*n)) : std::nullopt;
}

std::string spellings(const Keys& keys) {
  std::vector<std::string> names(keys.begin(), keys.end());
  return text::list(names);
}

std::string size_range(std::int64_t most) { return "valid: a whole number from 1 to " + std::to_string(most); }

}  // namespace

std::string shown(const Json& value) {
  if (const auto* s = value.get_ptr<const Json::string_t*>()) return text::quoted(*s);
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return text::truncated(value.dump(-1, ' ', false, Json::error_handler_t::replace), 40);
}

ConfigReader::ConfigReader(const Json& object, std::string where, const Assume& assume)
    : object_(object), where_(std::move(where)), assume_(assume) {}

void ConfigReader::fail(std::string_view key, std::string what, std::string valid) {
  if (error_) return;
  std::string place = where_;
  if (!key.empty()) place += ": " + std::string(key);
  error_ = Error{std::move(place), std::move(what), std::move(valid)};
}

void ConfigReader::defaulted(std::string_view key, std::string_view value) {
  defaulted_.push_back(std::string(key) + "=" + std::string(value));
}

void ConfigReader::ask(std::string_view key) {
  if (assume_.empty()) return;
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.emplace_back(key);
}

void ConfigReader::adopt(ConfigReader& nested) {
  const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(defaulted_, nested.defaulted_);
  append(assumed_, nested.assumed_);
  append(notes_, nested.notes_);
  append(asked_, nested.asked_);
  if (!error_) error_ = nested.error_;
}

void ConfigReader::refuse_unused(std::string_view model_class) {
  for (const auto& [key, value] : assume_) {
    if (error_ || key == "architectures" || key == "model_type") continue;
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    std::string near = text::suggestion(key, asked_);
    error_ = Error{"--assume", "key " + text::quoted(key) + " is not read from this " + std::string(model_class),
                   near.empty() ? "valid: a key of its config.json" : std::move(near)};
  }
}

ConfigReader::Found ConfigReader::find(const Keys& keys) {
  Found found;
  for (std::string_view key : keys) ask(key);
  if (keys.empty()) return found;
  found.key = keys.front();
  for (std::string_view key : keys) {
    const auto given = assume_.find(key);
    if (given == assume_.end()) continue;
    std::string line = given->first + "=" + given->second;
    if (std::find(assumed_.begin(), assumed_.end(), line) == assumed_.end()) assumed_.push_back(std::move(line));
    return Found{given->first, assumed_value(given->second), false};
  }
  for (std::string_view key : keys) {
    const auto it = object_.find(key);
    if (it == object_.end()) continue;
    if (it->is_null()) {
      if (found.value.is_null()) found.key = key;
      found.stated_null = true;
    } else if (found.value.is_null()) {
      found = Found{std::string(key), *it, false};
    } else if (found.value != *it) {
      fail(key, "is " + shown(*it) + ", but " + found.key + " is " + shown(found.value),
           "both name the same thing: keep one, or pass --assume " + found.key + "=VALUE");
    }
  }
  return found;
}

bool ConfigReader::has(std::string_view key) {
  ask(key);
  if (assume_.find(key) != assume_.end()) return true;
  const auto it = object_.find(key);
  return it != object_.end() && !it->is_null();
}

bool ConfigReader::states_null(std::string_view key) {
  const auto it = object_.find(key);
  return it != object_.end() && it->is_null() && !has(key);
}

const Json* ConfigReader::object(std::string_view key) {
  const auto it = object_.find(key);
  if (it == object_.end() || it->is_null()) return nullptr;
  if (!it->is_object()) {
    fail(key, "is " + shown(*it), "valid: an object");
    return nullptr;
  }
  return &*it;
}

void ConfigReader::absent(const Keys& keys, const Found& found, std::string valid) {
  fail(found.key, found.stated_null ? "is null" : "is absent",
       valid + (keys.size() > 1 ? " (also written " + spellings(Keys(keys.begin() + 1, keys.end())) + ")" : "") +
           "; supply it with --assume " + std::string(keys.front()) + "=VALUE");
}

Count ConfigReader::checked_size(const Found& found, std::int64_t most) {
  const std::optional<std::int64_t> n = whole(found.value);
  if (n && *n >= 1 && *n <= most) return Count(*n);
  fail(found.key, "is " + shown(found.value), size_range(most));
  return Count(1);
}

Count ConfigReader::size(const Keys& keys) {
  const Found found = find(keys);
  if (!found.value.is_null()) return checked_size(found, kMaxSize);
  absent(keys, found, size_range(kMaxSize));
  return Count(1);
}

std::int64_t ConfigReader::layers(const Keys& keys) {
  const Found found = find(keys);
  if (!found.value.is_null()) return checked_size(found, kMaxLayers).get();
  absent(keys, found, size_range(kMaxLayers));
  return 1;
}

std::optional<Count> ConfigReader::size_if_given(const Keys& keys) {
  const Found found = find(keys);
  if (found.value.is_null()) return std::nullopt;
  return checked_size(found, kMaxSize);
}

Count ConfigReader::size_or(const Keys& keys, Count fallback) {
  if (const auto given = size_if_given(keys)) return *given;
  defaulted(keys.front(), std::to_string(fallback.get()));
  return fallback;
}

bool ConfigReader::flag(const Keys& keys) {
  const Found found = find(keys);
  if (const auto* b = found.value.get_ptr<const bool*>()) return *b;
  if (found.value.is_null()) {
    absent(keys, found, "valid: true or false");
  } else {
    fail(found.key, "is " + shown(found.value), "valid: true or false");
  }
  return false;
}

bool ConfigReader::flag_or(const Keys& keys, bool fallback) {
  const Found found = find(keys);
  if (!found.value.is_null()) {
    if (const auto* b = found.value.get_ptr<const bool*>()) return *b;
    fail(found.key, "is " + shown(found.value), "valid: true or false");
    return fallback;
  }
  defaulted(keys.front(), fallback ? "true" : "false");
  return fallback;
}

std::optional<double> ConfigReader::real_if_given(std::string_view key, double most) {
  const Found found = find({key});
  if (found.value.is_null()) return std::nullopt;
  if (const std::optional<double> n = real(found.value); n && *n > 0 && *n <= most) return n;
  fail(found.key, "is " + shown(found.value), "valid: a number above 0, up to " + shortest(most));
  return std::nullopt;
}

double ConfigReader::dropout_or(const Keys& keys, double fallback) {
  const Found found = find(keys);
  if (found.value.is_null()) {
    defaulted(keys.front(), text::fixed(fallback, 1));
    return fallback;
  }
  if (const std::optional<double> p = real(found.value); p && *p >= 0 && *p < 1) return *p;
  fail(found.key, "is " + shown(found.value), "valid: a probability, 0 up to but not 1");
  return fallback;
}

std::string ConfigReader::word_or(const Keys& keys, std::string_view fallback) {
  const Found found = find(keys);
  if (found.value.is_null()) {
    if (!fallback.empty()) defaulted(keys.front(), fallback);
    return std::string(fallback);
  }
  if (const auto* s = found.value.get_ptr<const Json::string_t*>()) return *s;
  fail(found.key, "is " + shown(found.value), "valid: a word in quotes");
  return std::string(fallback);
}

Activation ConfigReader::activation_or(const Keys& keys, std::string_view fallback) {
  const std::string word = word_or(keys, fallback);
  // The approximations of GELU differ in the last digits of a value, not in what is computed or kept.
  for (std::string_view gelu : {"gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python", "gelu_accurate"}) {
    if (word == gelu) return Activation::gelu;
  }
  if (word == "silu" || word == "swish") return Activation::silu;
  if (word == "relu") return Activation::relu;
  if (word == "relu2" || word == "squared_relu") return Activation::relu2;
  fail(keys.front(), "is " + text::quoted(word), "valid: gelu (and its approximations), silu, relu, relu2");
  return Activation::gelu;
}

std::vector<std::string> ConfigReader::words_if_given(std::string_view key, std::int64_t count) {
  std::vector<std::string> out;
  const auto it = object_.find(key);
  if (it == object_.end() || it->is_null()) return out;
  const std::string valid = "valid: a list of " + std::to_string(count) + " words, one per layer";
  if (!it->is_array() || static_cast<std::int64_t>(it->size()) != count) {
    fail(key, it->is_array() ? "has " + std::to_string(it->size()) + " entries" : "is " + shown(*it), valid);
    return out;
  }
  for (const Json& entry : *it) {
    const auto* s = entry.get_ptr<const Json::string_t*>();
    if (s == nullptr) {
      fail(key, "holds " + shown(entry), valid);
      return {};
    }
    out.push_back(*s);
  }
  return out;
}

std::vector<std::int64_t> ConfigReader::numbers_if_given(std::string_view key, std::int64_t count) {
  std::vector<std::int64_t> out;
  const auto it = object_.find(key);
  if (it == object_.end() || it->is_null()) return out;
  const std::string valid = "valid: a list of " + std::to_string(count) + " whole numbers, one per layer";
  if (!it->is_array() || static_cast<std::int64_t>(it->size()) != count) {
    fail(key, it->is_array() ? "has " + std::to_string(it->size()) + " entries" : "is " + shown(*it), valid);
    return out;
  }
  for (const Json& entry : *it) {
    const auto n = whole(entry);
    if (!n) {
      fail(key, "holds " + shown(entry), valid);
      return {};
    }
    out.push_back(*n);
  }
  return out;
}

std::optional<std::int64_t> ConfigReader::whole_if_given(std::string_view key, std::int64_t most) {
  const Found found = find({key});
  if (found.value.is_null()) return std::nullopt;
  const auto n = whole(found.value);
  if (n && *n >= 0 && *n <= most) return n;
  fail(key, "is " + shown(found.value), "valid: a whole number from 0 to " + std::to_string(most));
  return std::nullopt;
}

std::vector<std::int64_t> ConfigReader::list_if_given(std::string_view key, std::int64_t limit) {
  std::vector<std::int64_t> out;
  const auto it = object_.find(key);
  if (it == object_.end() || it->is_null()) return out;
  const std::string valid = "valid: a list of whole numbers from 0 to below " + std::to_string(limit);
  if (!it->is_array()) fail(key, "is " + shown(*it), valid);
  for (const Json& entry : *it) {
    const auto n = whole(entry);
    if (!n || *n < 0 || *n >= limit) {
      fail(key, "holds " + shown(entry), valid);
      return {};
    }
    out.push_back(*n);
  }
  return out;
}

void ConfigReader::record(Architecture& a) {
  const auto append = [](std::vector<std::string>& to, std::vector<std::string>& from) {
    for (std::string& line : from) to.push_back(std::move(line));
    from.clear();
  };
  append(a.defaulted, defaulted_);
  append(a.assumed, assumed_);
  append(a.notes, notes_);
}

}  // namespace preflop
