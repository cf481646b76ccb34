#include "src/run/calendar.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace preflop {

namespace {

// Days since 1970-01-01 and back, for the proleptic Gregorian calendar (H. Hinnant, chrono-compatible low-level
// date algorithms): years begin in March, so that leap days come last.
std::int64_t days_of(const Date& d) {
  const std::int64_t y = d.month <= 2 ? d.year - 1 : d.year;
  const std::int64_t era = y / 400;
  const std::int64_t of_era = y - era * 400;
  const std::int64_t of_year = (153 * (d.month + (d.month > 2 ? -3 : 9)) + 2) / 5 + d.day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

Date date_of(std::int64_t days) {
  days += 719468;
  const std::int64_t era = days / 146097;
  const std::int64_t of_era = days - era * 146097;
  const std::int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const std::int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  const std::int64_t month = (5 * of_year + 2) / 153;
  const int m = static_cast<int>(month < 10 ? month + 3 : month - 9);
  return {static_cast<int>(year + era * 400 + (m <= 2 ? 1 : 0)), m,
          static_cast<int>(of_year - (153 * month + 2) / 5 + 1)};
}

}  // namespace

std::string date_text(const Date& start, double seconds) {
  constexpr double kDay = 86400;
  constexpr double kMostDays = 2.9e6;  // the year 9999
  const double days = static_cast<double>(days_of(start)) + std::floor(seconds / kDay);
  if (!(days < kMostDays)) return "";
  const Date d = date_of(static_cast<std::int64_t>(days));
  return fmt::format("{:04}-{:02}-{:02}", d.year, d.month, d.day);
}

}  // namespace preflop
