// Decimal text to double and back, the same bits on every target.
#pragma once

#include <string>
#include <string_view>

#include "preflop/result.hpp"

namespace preflop {

// Reads the whole of `text` as one decimal number, correctly rounded: digits with an optional point,
// an optional leading '-', an optional exponent ("12", "-0.5", ".5", "1.4e12").
// Errors (`where` is empty, the caller adds it): empty, anything left over, spaces, a leading '+',
// nan, inf, hexadecimal, and magnitudes beyond the largest double. Too small a magnitude rounds to 0.
Result<double> parse_decimal(std::string_view text);

// The shortest text that parse_decimal reads back as the same double: "0.1", "1e+23", "-0".
// Not finite: "nan", "inf", "-inf" (for messages; parse_decimal refuses them).
std::string shortest(double value);

}  // namespace preflop
