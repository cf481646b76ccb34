// One row on its way to a request. Used by row_request.cpp and row_layout.cpp only.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/adapt/row_readings.hpp"
#include "src/adapt/row_request.hpp"
#include "src/base/decimal.hpp"

namespace preflop::rows {

inline std::string num(std::int64_t v) { return std::to_string(v); }

// Turns one row into one request. Each step reads cells and may end the row with a reason.
class Builder {
 public:
  Builder(const Row& row, const SourceRules& rules, const RowWords& words, const Catalogues& catalogues)
      : row_(row), rules_(rules), words_(words), catalogues_(catalogues) {}

  RowRequest build() {
    out_.readings = row_readings(row_, rules_);
    out_.measures = std::any_of(out_.readings.begin(), out_.readings.end(),
                                [](const Reading& r) { return r.from != Reading::From::nothing; });
    for (const std::string& entry : row_.unknown) out_.assumed.push_back(entry);
    source_defaults();
    stack();
    model();
    cluster();
    batch();
    layout();
    pipeline();
    numerics();
    memory_keys();
    rest();
    list_assumed();
    out_.gpus = static_cast<double>(gpus_);
    out_.seq = static_cast<double>(seq_);
    out_.step_tokens = out_.seq * static_cast<double>(gbs_);
    out_.skip = first_reason();
    return std::move(out_);
  }

 private:
  const std::string* cell(std::string_view key) {
    used_.insert(std::string(key));
    if (const std::string* own = row_.cell(key)) return own;
    const auto it = defaults_.find(key);
    return it == defaults_.end() ? nullptr : &it->second;
  }
  std::int64_t whole(std::string_view key) {
    const std::string* text = cell(key);
    std::int64_t out = 0;
    if (text != nullptr) {
      const auto value = parse_decimal(*text);  // "4096.0" and "1e3" are whole, too
      out = value ? static_cast<std::int64_t>(*value) : 0;
    }
    return out;
  }
  void key(std::string_view name, std::string value) { out_.request.keys[std::string(name)] = std::move(value); }
  void assume(std::string_view name, std::string_view value) {
    out_.assumed.push_back(std::string(name) + "=" + std::string(value));
  }
  void later(std::string_view name, std::string_view value, std::string_view why = {}) {
    out_.not_modelled.push_back(std::string(name) + "=" + std::string(value) +
                                (why.empty() ? "" : " (" + std::string(why) + ")"));
  }
  void skip(SkipKind kind, std::string reason) {
    if (kind == SkipKind::not_built)
      not_built_.push_back(std::move(reason));
    else if (kind == SkipKind::source)
      source_.push_back(std::move(reason));
    else
      missing_.push_back({kind, std::move(reason)});
  }

  void source_defaults() {
    for (const auto& [name, value] : rules_.defaults) {
      if (value == "auto" || row_.has(name) || (name == "recompute" && jax())) continue;
      defaults_[name] = value;
      assume(name, value);
    }
  }

  // The defaults of a source are of the software that most of its rows ran.
  bool jax() const {
    const std::string* stack = row_.cell("stack");
    return stack != nullptr && stack->starts_with("maxtext");
  }
  void stack();
  std::string generation_of(std::string_view name, std::string_view date) const;
  std::string generation(std::string_view name, std::string_view wanted);
  void model();
  void cluster();
  std::string find_gpu(const std::string& text);
  void batch();
  void layout();
  bool before(std::string_view year) const;
  void experts();
  void pipeline();
  void default_chunks(std::int64_t pp);
  void numerics();
  void memory_keys();
  void rest();
  void list_assumed();
  Skip first_reason();

  const Row& row_;
  const SourceRules& rules_;
  const RowWords& words_;
  const Catalogues& catalogues_;
  RowRequest out_;
  std::map<std::string, std::string, std::less<>> defaults_;
  std::set<std::string, std::less<>> used_;
  const Stack* stack_ = nullptr;  // built
  std::string generation_;        // as the row has it
  bool capacity_only_ = false;
  bool shape_known_ = false;
  std::int64_t layers_ = 0, gpus_ = 0, tp_ = 1, pp_ = 1, cp_ = 1, dp_ = 0, mbs_ = 0, gbs_ = 0, seq_ = 0;
  std::vector<std::string> not_built_, source_;
  std::vector<Skip> missing_;
};

}  // namespace preflop::rows
