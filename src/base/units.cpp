#include "src/base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/decimal.hpp"
#include "src/base/text.hpp"

namespace preflop {
namespace {

// A factor 10^ten * 2^two * by.
struct Scale {
  std::string_view suffix;
  int ten = 0;
  int two = 0;
  int by = 1;
};

constexpr std::array kCounts = {Scale{""},          Scale{"K", 3},     Scale{"M", 6},      Scale{"B", 9},
                                Scale{"G", 9},      Scale{"T", 12},    Scale{"Ki", 0, 10}, Scale{"Mi", 0, 20},
                                Scale{"Gi", 0, 30}, Scale{"Ti", 0, 40}};
constexpr std::array kBytes = {Scale{"B"},          Scale{"KB", 3},      Scale{"MB", 6},      Scale{"GB", 9},
                               Scale{"TB", 12},     Scale{"PB", 15},     Scale{"KiB", 0, 10}, Scale{"MiB", 0, 20},
                               Scale{"GiB", 0, 30}, Scale{"TiB", 0, 40}, Scale{"PiB", 0, 50}};
constexpr std::array kTimes = {Scale{"s"}, Scale{"m", 0, 0, 60}, Scale{"h", 0, 0, 3600}, Scale{"d", 0, 0, 86400},
                               Scale{"w", 0, 0, 604800}};

constexpr const char* kCountSuffixes = "K, M, B, T, Ki, Mi, Gi or Ti";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool equals_lower(std::string_view written, std::string_view suffix) {  // `written` is suffix in lower case
  if (written.size() != suffix.size()) return false;
  for (std::size_t i = 0; i < suffix.size(); ++i) {
    const char c = suffix[i];
    if (written[i] != (c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c)) return false;
  }
  return true;
}
bool matches(std::string_view written, std::string_view suffix) {
  return written == suffix || equals_lower(written, suffix);
}

template <std::size_t N>
const Scale* find(const std::array<Scale, N>& table, std::string_view written) {
  for (const Scale& s : table) {
    if (matches(written, s.suffix)) return &s;
  }
  return nullptr;
}

// Takes `suffix` (or its lower case) off the end.
bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (text.size() < suffix.size() || !matches(text.substr(text.size() - suffix.size()), suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// Text cut into a number and what follows it.
struct Parts {
  std::string_view digits;  // digits with an optional point
  int exponent = 0;
  std::string_view suffix;
};

std::size_t end_of_digits(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size() && is_digit(text[i])) ++i;
  if (i < text.size() && text[i] == '.' && !(i + 1 < text.size() && text[i + 1] == '.')) ++i;
  while (i < text.size() && is_digit(text[i])) ++i;
  return i;
}

// Reads "e[+-]digits" at the front of `rest`; nothing when it is not an exponent. Far beyond a double,
// the exact size no longer matters.
int take_exponent(std::string_view& rest) {
  if (rest.empty() || (rest[0] != 'e' && rest[0] != 'E')) return 0;
  std::size_t i = 1;
  const bool negative = i < rest.size() && rest[i] == '-';
  if (i < rest.size() && (rest[i] == '-' || rest[i] == '+')) ++i;
  if (i >= rest.size() || !is_digit(rest[i])) return 0;
  int e = 0;
  for (; i < rest.size() && is_digit(rest[i]); ++i) e = e < 100000 ? e * 10 + (rest[i] - '0') : e;
  rest.remove_prefix(i);
  return negative ? -e : e;
}

std::string without(std::string_view text, std::string_view drop) {
  std::string out;
  for (const char c : text) {
    if (drop.find(c) == std::string_view::npos) out += c;
  }
  return out;
}

// The error of a number that cannot be read, with the hint that fits.
Error bad_number(std::string_view text, std::string_view where, const std::string& valid) {
  const std::string q = text::quoted(text);
  if (text.empty()) return {std::string(where), "the value is empty", valid};
  if (text[0] == '-') return {std::string(where), q + " is negative", valid};
  return {std::string(where), q + " is not a number", valid};
}

Result<Parts> cut(std::string_view text, std::string_view where, const std::string& valid) {
  Parts parts;
  const std::size_t end = end_of_digits(text);
  parts.digits = text.substr(0, end);
  if (parts.digits.empty() || parts.digits == ".") return bad_number(text, where, valid);
  std::string_view rest = text.substr(end);
  if (rest.size() > 1 && (rest[0] == ',' || rest[0] == '_') && is_digit(rest[1])) {
    return Error{std::string(where), text::quoted(text) + " has separators between its digits",
                 "write " + text::quoted(without(text, ",_"))};
  }
  parts.exponent = take_exponent(rest);
  if (rest.size() > 1 && rest[0] == ' ') rest.remove_prefix(1);
  parts.suffix = rest;
  return parts;
}

Error bad_suffix(std::string_view text, std::string_view where, std::string_view suffix, const std::string& valid) {
  return {std::string(where), text::quoted(text) + " ends in " + text::quoted(suffix) + ", which is no suffix here",
          valid};
}

// The value as a double. The decimal scale goes into the exponent, so it is rounded once.
Result<double> real(const Parts& parts, const Scale& scale, std::string_view text, std::string_view where) {
  const Result<double> read = parse_decimal(fmt::format("{}e{}", parts.digits, parts.exponent + scale.ten));
  const double value = read ? std::ldexp(*read * scale.by, scale.two) : INFINITY;
  if (!std::isfinite(value)) {
    return Error{std::string(where), text::quoted(text) + " is too large", "at most 1.79e308"};
  }
  return value;
}

// The digits as a whole number times 10^ten; nothing when they do not fit 64 bits.
struct Significand {
  std::uint64_t value = 0;
  int ten = 0;
};
std::optional<Significand> significand(const Parts& parts) {
  Significand out;
  bool fraction = false;
  int zeros = 0;  // seen, and only counted once a further digit follows
  out.ten = parts.exponent;
  for (const char c : parts.digits) {
    if (c == '.') {
      fraction = true;
      continue;
    }
    if (fraction) --out.ten;
    ++zeros;
    if (c == '0') continue;
    for (; zeros > 0; --zeros) {
      if (__builtin_mul_overflow(out.value, std::uint64_t{10}, &out.value)) return std::nullopt;
    }
    if (__builtin_add_overflow(out.value, static_cast<std::uint64_t>(c - '0'), &out.value)) return std::nullopt;
  }
  out.ten += zeros;
  return out;
}

// value * 10^ten * 2^two when that is whole and at most 2^53.
enum class Fit { exact, fractional, large };
Fit whole(Significand n, int two, std::int64_t& out) {
  if (n.value == 0) {
    out = 0;
    return Fit::exact;
  }
  for (; n.ten < 0; ++n.ten) {  // divide by ten: by five, and by two out of the scale or the number
    if (n.value % 5 != 0) return Fit::fractional;
    n.value /= 5;
    --two;
  }
  for (; two < 0; ++two) {
    if (n.value % 2 != 0) return Fit::fractional;
    n.value /= 2;
  }
  for (; n.ten > 0; --n.ten) {
    if (__builtin_mul_overflow(n.value, std::uint64_t{10}, &n.value)) return Fit::large;
  }
  for (; two > 0; --two) {
    if (__builtin_mul_overflow(n.value, std::uint64_t{2}, &n.value)) return Fit::large;
  }
  if (n.value > static_cast<std::uint64_t>(Count::kMax)) return Fit::large;
  out = static_cast<std::int64_t>(n.value);
  return Fit::exact;
}

Result<Count> count_of(const Parts& parts, const Scale& scale, std::string_view text, std::string_view where,
                       const std::string& valid) {
  std::optional<Significand> n = significand(parts);
  if (!n) {
    const Result<double> size = real(parts, scale, text, where);
    const bool large = !size || *size > Count(Count::kMax).real();
    return Error{std::string(where), text::quoted(text) + (large ? " is too large" : " has too many digits"),
                 large ? "at most 2^53 = 9.007e15" : valid};
  }
  n->ten += scale.ten;
  std::int64_t value = 0;
  switch (whole(*n, scale.two, value)) {
    case Fit::exact:
      return Count(value);
    case Fit::fractional:
      return Error{std::string(where), text::quoted(text) + " is not a whole number", valid};
    case Fit::large:
      break;
  }
  return Error{std::string(where), text::quoted(text) + " is too large", "at most 2^53 = 9.007e15"};
}

// A count whose suffix may end in one of `units` ("tok"), which is told apart by `unit`.
Result<Count> scaled_count(std::string_view text, std::string_view where, const std::string& valid,
                           std::string_view unit, bool* has_unit) {
  Result<Parts> parts = cut(text, where, valid);
  if (!parts) return parts.error();
  const std::string_view written = parts->suffix;
  if (!unit.empty()) *has_unit = take_suffix(parts->suffix, unit);
  const Scale* scale = find(kCounts, parts->suffix);
  if (scale == nullptr) return bad_suffix(text, where, written, valid);
  return count_of(*parts, *scale, text, where, valid);
}

}  // namespace

Result<Count> parse_count(std::string_view text, std::string_view where) {
  return scaled_count(text, where, fmt::format("write a whole number, with a suffix if you like: {}", kCountSuffixes),
                      "", nullptr);
}

Result<double> parse_real(std::string_view text, std::string_view where) {
  const std::string valid = fmt::format("write a number >= 0, with a suffix if you like: {}", kCountSuffixes);
  const Result<Parts> parts = cut(text, where, valid);
  if (!parts) return parts.error();
  const Scale* scale = find(kCounts, parts->suffix);
  if (scale == nullptr) return bad_suffix(text, where, parts->suffix, valid);
  return real(*parts, *scale, text, where);
}

Result<double> parse_fraction(std::string_view text, std::string_view where) {
  const std::string valid = "write 40% or 0.4";
  const Result<Parts> parts = cut(text, where, valid);
  if (!parts) return parts.error();
  const bool percent = parts->suffix == "%";
  if (!percent && !parts->suffix.empty()) return bad_suffix(text, where, parts->suffix, valid);
  const Result<double> value = real(*parts, Scale{"%", percent ? -2 : 0}, text, where);
  if (!value) return value.error();
  if (*value <= 1) return *value;
  const std::string q = text::quoted(text);
  if (percent || *value > 100) return Error{std::string(where), q + " is more than the whole", valid};
  return Error{std::string(where), q + " is more than the whole", fmt::format("did you mean {}%?", text)};
}

Result<Bytes<double>> parse_bytes(std::string_view text, std::string_view where) {
  const std::string valid =
      "write a size with B, KB, MB, GB, TB or PB (powers of 1000), KiB, MiB, GiB, TiB or PiB (powers of 1024)";
  const Result<Parts> parts = cut(text, where, valid);
  if (!parts) return parts.error();
  const Scale* scale = find(kBytes, parts->suffix);
  if (scale != nullptr) {
    const Result<double> value = real(*parts, *scale, text, where);
    if (!value) return value.error();
    return Bytes<double>(*value);
  }
  const std::string q = text::quoted(text);
  const std::string_view number = text.substr(0, text.size() - parts->suffix.size());
  if (parts->suffix.empty()) {
    return Error{std::string(where), q + " has no unit",
                 fmt::format("write {0}GiB, {0}GB, or another unit of bytes", number)};
  }
  if (find(kCounts, parts->suffix) != nullptr) {
    return Error{std::string(where), q + " does not say which unit of bytes it means", valid};
  }
  return bad_suffix(text, where, parts->suffix, valid);
}

Result<BatchSize> parse_batch(std::string_view text, std::string_view where) {
  bool in_tokens = false;
  const std::string valid = fmt::format(
      "write sequences as 512, tokens as 4Mtok or 4Mitok; the suffixes are {}, and tok for tokens", kCountSuffixes);
  const Result<Count> amount = scaled_count(text, where, valid, "tok", &in_tokens);
  if (!amount) return amount.error();
  return BatchSize{*amount, in_tokens};
}

Result<Count> parse_tokens(std::string_view text, std::string_view where) {
  bool has_unit = false;
  return scaled_count(
      text, where,
      fmt::format("write a whole number of tokens, with a suffix if you like: {}, with or without tok", kCountSuffixes),
      "tok", &has_unit);
}

Result<Seconds<double>> parse_duration(std::string_view text, std::string_view where) {
  const std::string valid = "write a duration with s, m, h, d or w (seconds, minutes, hours, days, weeks), such as 20d";
  const Result<Parts> parts = cut(text, where, valid);
  if (!parts) return parts.error();
  if (parts->suffix.empty()) return Error{std::string(where), text::quoted(text) + " has no unit", valid};
  const Scale* scale = find(kTimes, parts->suffix);
  if (scale == nullptr) return bad_suffix(text, where, parts->suffix, valid);
  const Result<double> value = real(*parts, *scale, text, where);
  if (!value) return value.error();
  return Seconds<double>(*value);
}

Result<Usd<double>> parse_money(std::string_view text, std::string_view where) {
  const std::string valid =
      fmt::format("write US dollars as $2M, 2M$, 2M or 1.99; the suffixes are {}", kCountSuffixes);
  std::string_view number = text;
  if (!number.empty() && number[0] == '$') {
    number.remove_prefix(1);
  } else if (take_suffix(number, "$") || take_suffix(number, "USD")) {
    if (!number.empty() && number.back() == ' ') number.remove_suffix(1);
  }
  Result<Parts> parts = cut(number, where, valid);
  if (!parts)
    return number.size() == text.size()
               ? parts.error()
               : Error{std::string(where), text::quoted(text) + " is not an amount of money", valid};
  const Scale* scale = find(kCounts, parts->suffix);
  if (scale == nullptr) return bad_suffix(text, where, parts->suffix, valid);
  const Result<double> value = real(*parts, *scale, text, where);
  if (!value) return value.error();
  return Usd<double>(*value);
}

Result<CountRange> parse_range(std::string_view text, std::string_view where) {
  const std::size_t dots = text.find("..");
  const Result<Count> low = parse_count(text.substr(0, dots), where);
  if (!low) return low.error();
  if (dots == std::string_view::npos) return CountRange{*low, *low};
  const Result<Count> high = parse_count(text.substr(dots + 2), where);
  if (!high) return high.error();
  if (*high < *low) {
    return Error{std::string(where), text::quoted(text) + " runs downwards",
                 fmt::format("write {}..{}", text.substr(dots + 2), text.substr(0, dots))};
  }
  return CountRange{*low, *high};
}

}  // namespace preflop
