// The JSON contract: preflop.estimate/1 and preflop.napkin/1, and the catalogues.
//
// SI base units, ratios as fractions, unknown = null, keys sorted, no wall-clock: the same bytes from
// every build.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "preflop/estimate.hpp"
#include "src/run/napkin.hpp"

namespace preflop {

// Indented by two, sorted keys, short lists of scalars on one line; numbers in the shortest form that
// reads back the same. No line end at the end.
std::string json_text(const nlohmann::json& value);

// A number of the contract: whole ones below 2^53 as integers, not finite ones as null.
nlohmann::json json_number(double value);
// What is not known is null.
inline nlohmann::json or_null(const std::optional<double>& value) {
  return value ? json_number(*value) : nlohmann::json(nullptr);
}
inline nlohmann::json or_null(const std::string& value) {
  return value.empty() ? nlohmann::json(nullptr) : nlohmann::json(value);
}

// Puts a value at a path such as "memory.stages[0].weights", making what is missing on the way.
void json_put(nlohmann::json& root, const std::string& path, nlohmann::json value);

nlohmann::json estimate_json_value(const Estimate& estimate);
nlohmann::json napkin_json_value(const Napkin& napkin);

}  // namespace preflop
