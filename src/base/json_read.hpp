// A strict JSON reader for text that nobody vouches for: a config.json from the internet.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "preflop/result.hpp"

namespace preflop {

inline constexpr std::size_t kMaxJsonBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxJsonDepth = 64;

// Reads one JSON value, and nothing after it. `file` names the text in errors (file:line:column).
//
// Values: nlohmann::json (objects sorted by key: repeated keys are refused, so order says nothing).
// Integers up to 64 bits stay exact (number_integer / number_unsigned); longer ones, and numbers with
// a point or an exponent, become number_float: 4096.0 and 1e18 are floats, for the caller to judge.
// A leading byte order mark is ignored. Bare NaN, Infinity and -Infinity, which Python's json writes,
// become the strings "NaN", "Infinity" and "-Infinity": never a number, so no reader takes one for a size.
//
// Errors: larger than kMaxJsonBytes, deeper than kMaxJsonDepth, a repeated key (by name), a number
// beyond double, broken UTF-8, the text ending early ("ends inside an object"), other syntax.
Result<nlohmann::json> read_json(std::string_view text, std::string_view file);

}  // namespace preflop
