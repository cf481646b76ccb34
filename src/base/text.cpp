#include "src/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace preflop::text {
namespace {

constexpr const char* kNone = "n/a";

// At most `digits` significant digits, at least the whole part, no trailing zeros: 112, 1.12, 0.4.
std::string trimmed(double n, int digits) {
  int whole = 1;
  for (double rest = std::fabs(n); rest >= 10 && whole < digits; rest /= 10) ++whole;
  std::string out = fixed(n, digits - whole);
  if (out.find('.') == std::string::npos) return out;
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

struct Unit {
  double size;
  const char* name;
};

// The largest unit in which the number, as it will be printed, is at least 1.
template <std::size_t N>
std::string in_units(double n, const std::array<Unit, N>& units, int digits, const char* gap) {
  if (!std::isfinite(n)) return kNone;
  const double rounding = 1 - 0.5 * (digits == 4 ? 1e-4 : 1e-3);
  for (const Unit& unit : units) {
    if (std::fabs(n) >= unit.size * rounding) return trimmed(n / unit.size, digits) + gap + unit.name;
  }
  return trimmed(n / units.back().size, digits) + gap + units.back().name;
}

}  // namespace

std::string fixed(double n, int decimals) {
  if (!std::isfinite(n)) return kNone;
  std::string out = fmt::format("{:.{}f}", n, decimals);
  if (out[0] == '-' && out.find_first_of("123456789") == std::string::npos) out.erase(0, 1);
  return out;
}

std::string gib(double bytes, int decimals) {
  return std::isfinite(bytes) ? fixed(bytes / 1073741824.0, decimals) + " GiB" : kNone;
}

std::string bytes_si(double bytes) {
  static constexpr std::array<Unit, 6> kUnits = {
      {{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}, {1, "B"}}};
  return in_units(bytes, kUnits, 4, " ");
}

std::string bytes_iec(double bytes) {
  static constexpr std::array<Unit, 6> kUnits = {
      {{0x1p50, "PiB"}, {0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}}};
  return in_units(bytes, kUnits, 4, " ");
}

std::string seconds(double s) {
  static constexpr std::array<Unit, 4> kShort = {{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  struct Long {
    double from;
    Unit unit;
  };
  static constexpr Long kLong[] = {{365.25 * 86400, {365.25 * 86400, "years"}},
                                   {2 * 86400.0, {86400, "days"}},
                                   {3600, {3600, "h"}},
                                   {60, {60, "min"}}};
  if (!std::isfinite(s)) return kNone;
  if (s == 0) return "0 s";
  for (const auto& [from, unit] : kLong) {
    if (std::fabs(s) < from * 0.9995) continue;
    const double n = s / unit.size;
    return fixed(n, std::fabs(n) < 99.95 ? 1 : 0) + " " + unit.name;
  }
  return in_units(s, kShort, 3, " ");
}

std::string count(double n) {
  static constexpr std::array<Unit, 5> kUnits = {{{1e15, "e15"}, {1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1, ""}}};
  if (!std::isfinite(n)) return kNone;
  if (std::fabs(n) >= 999.5e15) return scientific(n, 3);
  if (std::fabs(n) < 1e6 && std::floor(n) == n) return grouped(static_cast<long long>(n));
  return in_units(n, kUnits, 3, "");
}

std::string dollars(double usd) {
  constexpr double kCents = 100;
  return "$" + count(usd < kCents ? std::round(usd * kCents) / kCents : std::round(usd));
}

std::string scientific(double n, int significant) {
  if (!std::isfinite(n)) return kNone;
  std::string out = fmt::format("{:.{}e}", n, significant - 1);  // d.ddde[+-]dd
  const std::size_t e = out.find('e');
  std::string mantissa = out.substr(0, e);
  if (mantissa.find('.') != std::string::npos) {
    mantissa.erase(mantissa.find_last_not_of('0') + 1);
    if (mantissa.back() == '.') mantissa.pop_back();
  }
  std::string exponent = out.substr(e + 2);
  exponent.erase(0, std::min(exponent.find_first_not_of('0'), exponent.size() - 1));
  if (exponent == "0") return mantissa;
  return mantissa + (out[e + 1] == '-' ? "e-" : "e") + exponent;
}

std::string flops(double f) { return std::isfinite(f) ? scientific(f) + " FLOP" : kNone; }
std::string flops_per_second(double f) { return std::isfinite(f) ? scientific(f) + " FLOP/s" : kNone; }

std::string percent(double fraction, int decimals) {
  return std::isfinite(fraction) ? fixed(fraction * 100, decimals) + " %" : kNone;
}

std::string grouped(long long n) {
  std::string out = fmt::format("{}", n);
  const std::size_t first = n < 0 ? 1 : 0;
  for (std::size_t i = out.size(); i > first + 3;) out.insert(i -= 3, 1, ',');
  return out;
}

std::string list(const std::vector<std::string>& items, std::string_view joint) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += i + 1 == items.size() ? fmt::format(" {} ", joint) : ", ";
    out += items[i];
  }
  return out;
}

}  // namespace preflop::text
