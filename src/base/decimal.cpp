#include "src/base/decimal.hpp"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <cmath>
#include <system_error>

namespace preflop {
namespace {

// fast_float also reads "nan", "infinity" and stops at the first character that it does not know, so
// the alphabet is checked first.
bool in_alphabet(std::string_view text) {
  for (const char c : text) {
    const bool known = (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
    if (!known) return false;
  }
  return true;
}

}  // namespace

Result<double> parse_decimal(std::string_view text) {
  const char* const valid = "write a decimal number such as 12, 0.5 or 1.4e12";
  if (text.empty()) return Error{"", "no number is given", valid};
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto read = in_alphabet(text)
                        ? fast_float::from_chars(text.data(), end, value, fast_float::chars_format::general)
                        : fast_float::from_chars_result{text.data(), std::errc::invalid_argument};
  if (std::isinf(value)) return Error{"", "the number is beyond the range of a double", "at most 1.79e308"};
  if (read.ec != std::errc() || read.ptr != end) return Error{"", "this is not a decimal number", valid};
  return value;
}

std::string shortest(double value) { return fmt::format("{}", value); }

}  // namespace preflop
