// The one way in which every family reads its keys.
//
// The first error sticks: after it every read returns a harmless value, and the caller asks once, at
// the end. So a family is a list of reads without branches for errors.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/architecture.hpp"
#include "src/adapt/hf_config.hpp"

namespace preflop {

// Spellings of one quantity. Where a config states two of them, they must agree.
using Keys = std::vector<std::string_view>;

class ConfigReader {
 public:
  static constexpr std::int64_t kMaxSize = (std::int64_t{1} << 31) - 1;
  static constexpr std::int64_t kMaxLayers = 10000;

  // `object` must outlive the reader.
  ConfigReader(const nlohmann::json& object, std::string where, const Assume& assume);

  // A whole number from 1 to kMaxSize that must be there.
  Count size(const Keys& keys);
  // The same, 1 to kMaxLayers.
  std::int64_t layers(const Keys& keys);
  // Absent or null: nothing.
  std::optional<Count> size_if_given(const Keys& keys);
  // Absent or null: the class default, recorded.
  Count size_or(const Keys& keys, Count fallback);
  bool flag(const Keys& keys);  // must be there
  bool flag_or(const Keys& keys, bool fallback);
  // A probability, 0 <= p < 1.
  double dropout_or(const Keys& keys, double fallback);
  // A number above 0 and up to `most`; absent or null: nothing.
  std::optional<double> real_if_given(std::string_view key, double most);
  // A word; absent or null: `fallback`, recorded when it is not empty.
  std::string word_or(const Keys& keys, std::string_view fallback);
  Activation activation_or(const Keys& keys, std::string_view fallback);
  // A list of `count` words or of `count` whole numbers; absent or null: empty.
  std::vector<std::string> words_if_given(std::string_view key, std::int64_t count);
  std::vector<std::int64_t> numbers_if_given(std::string_view key, std::int64_t count);

  static constexpr std::int64_t kMaxMtp = 64;  // multi-token prediction layers
  // A whole number from 0 to `most`; absent or null: nothing.
  std::optional<std::int64_t> whole_if_given(std::string_view key, std::int64_t most = kMaxSize);
  // A list of any length of whole numbers, each from 0 to below `limit`; absent or null: empty.
  std::vector<std::int64_t> list_if_given(std::string_view key, std::int64_t limit);

  // Present and not null, also through --assume.
  bool has(std::string_view key);
  // Present as null and not assumed otherwise.
  bool states_null(std::string_view key);
  // The nested object of a key, or null when it is absent; refuses other types.
  const nlohmann::json* object(std::string_view key);

  void defaulted(std::string_view key, std::string_view value);
  void note(std::string text) { notes_.push_back(std::move(text)); }
  void fail(std::string_view key, std::string what, std::string valid = {});

  // Takes over the records and the error of the reader of a nested object.
  void adopt(ConfigReader& nested);
  // An --assume that no read asked for is a mistake: refuses it. Call it after the last read.
  void refuse_unused(std::string_view model_class);

  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }
  const std::string& where() const { return where_; }
  const Assume& assume() const { return assume_; }

  // Moves what was recorded into the architecture.
  void record(Architecture& a);

 private:
  struct Found {
    std::string key;
    nlohmann::json value;  // null: absent, or stated as null
    bool stated_null = false;
  };
  Found find(const Keys& keys);
  void ask(std::string_view key);
  Count checked_size(const Found& found, std::int64_t most);
  void absent(const Keys& keys, const Found& found, std::string valid);

  const nlohmann::json& object_;
  std::string where_;
  const Assume& assume_;
  std::optional<Error> error_;
  std::vector<std::string> defaulted_, assumed_, notes_;
  std::vector<std::string> asked_;  // keys that were looked for; kept only when something is assumed
};

// A JSON value as it stands in messages: 'text' cut at 40 characters.
std::string shown(const nlohmann::json& value);

}  // namespace preflop
