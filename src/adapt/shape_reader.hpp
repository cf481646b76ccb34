// How shape strings and catalogue rows read their keys; shape_string.cpp and shape_experts.cpp share it.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/adapt/hf_config_reader.hpp"
#include "src/adapt/shape_string.hpp"
#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"

namespace preflop {

bool known_shape_key(std::string_view key);

template <class E>
struct Word {
  std::string_view text;
  E value;
};
inline constexpr std::array kFlags = {Word{"true", true}, Word{"false", false}};

// Reads the keys; as in ConfigReader, the first error sticks.
class ShapeReader {
 public:
  ShapeReader(const ShapeKeys& keys, std::string_view where) : keys_(keys), where_(where) {
    for (std::size_t i = 0; i < keys.size(); ++i) check_key(i);
  }

  std::optional<std::string_view> given(std::string_view key) const {
    for (const auto& [k, v] : keys_) {
      if (k == key) return v;
    }
    return std::nullopt;
  }

  Count size(std::string_view key, std::int64_t most = ConfigReader::kMaxSize) {
    const auto text = given(key);
    if (!text) {
      fail(key, "is not given", "valid: " + std::string(key) + "=N, a whole number from 1 to " + std::to_string(most));
      return 1;
    }
    return number(key, *text, 1, most);
  }
  Count size_or(std::string_view key, Count fallback, std::int64_t least = 1) {
    if (const auto text = given(key)) return number(key, *text, least, ConfigReader::kMaxSize);
    defaulted(key, std::to_string(fallback.get()));
    return fallback;
  }
  std::optional<Count> size_if_given(std::string_view key) {
    const auto text = given(key);
    if (!text) return std::nullopt;
    return number(key, *text, 1, ConfigReader::kMaxSize);
  }
  // Above 0 and up to `most`.
  std::optional<double> real_if_given(std::string_view key, double most) {
    const auto text = given(key);
    if (!text) return std::nullopt;
    if (const Result<double> n = parse_real(*text, place(key)); n && *n > 0 && *n <= most) return *n;
    fail(key, "is " + text::quoted(*text), "valid: a number above 0, up to " + shortest(most));
    return std::nullopt;
  }
  double dropout_or(std::string_view key, double fallback) {
    const auto text = given(key);
    if (!text) {
      defaulted(key, text::fixed(fallback, 1));
      return fallback;
    }
    const Result<double> p = parse_fraction(*text, place(key));
    if (p && *p < 1) return *p;
    fail(key, "is " + text::quoted(*text), "valid: a probability, 0 up to but not 1");
    return fallback;
  }
  template <class Words, class E>
  E word_or(std::string_view key, const Words& words, E fallback) {
    const auto text = given(key);
    std::vector<std::string> names;
    for (const auto& word : words) {
      if (text ? word.text == *text : word.value == fallback) {
        if (!text) defaulted(key, word.text);
        return word.value;
      }
      names.emplace_back(word.text);
    }
    fail(key, "is " + text::quoted(*text), "valid: " + text::list(names));
    return fallback;
  }
  bool flag_or(std::string_view key, bool fallback) { return word_or(key, kFlags, fallback); }

  void fail(std::string_view key, std::string what, std::string valid) {
    if (!error_) error_ = Error{place(key), std::move(what), std::move(valid)};
  }
  void defaulted(std::string_view key, std::string_view value) {
    defaulted_.push_back(std::string(key) + "=" + std::string(value));
  }
  const std::optional<Error>& error() const { return error_; }
  std::vector<std::string> take_defaulted() { return std::move(defaulted_); }

 private:
  std::string place(std::string_view key) const {
    return where_.empty() ? std::string(key) : where_ + ": " + std::string(key);
  }

  void check_key(std::size_t i) {
    if (error_) return;  // also keeps a line of a million keys from being compared pairwise
    const std::string_view key = keys_[i].first;
    if (!known_shape_key(key)) {
      error_ = text::unknown_name(where_, "key", key, shape_keys());
      if (error_->valid.empty()) error_->valid = "layers, hidden, heads, ffn, .. of docs/shape-strings.md";
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (keys_[j].first == key) fail(key, "is given twice", "valid: each key once");
    }
  }
  Count number(std::string_view key, std::string_view text, std::int64_t least, std::int64_t most) {
    const Result<Count> n = parse_count(text, place(key));
    if (n && n->get() >= least && n->get() <= most) return *n;
    fail(key, "is " + text::quoted(text),
         "valid: a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return 1;
  }

  const ShapeKeys& keys_;
  std::string where_;
  std::optional<Error> error_;
  std::vector<std::string> defaulted_;
};

// The parts of a shape that have experts, latent attention, an indexer, multi-token prediction.
void read_latent_shape(ShapeReader& r, AttentionSpec& attention);
struct ExpertLayers {
  std::optional<ExpertSpec> experts;
  std::int64_t dense_first = 0;  // layers without experts at the beginning
  std::int64_t every = 1;        // after them every N-th layer has experts
  bool at(std::int64_t layer) const { return experts && layer >= dense_first && (layer + 1) % every == 0; }
};
ExpertLayers read_expert_shape(ShapeReader& r, const MlpSpec& mlp);
// Keys of a state space, where it has them.
std::optional<StateSpace> read_state_shape(ShapeReader& r);
void read_mtp_shape(ShapeReader& r, Architecture& a);

}  // namespace preflop
