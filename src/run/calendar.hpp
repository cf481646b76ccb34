// Days of the civil calendar.
#pragma once

#include <string>

#include "preflop/forecast.hpp"

namespace preflop {

// The day, as "2026-03-09", that is `seconds` after the beginning of `start`. "" beyond the year 9999 or for
// seconds that are not finite.
std::string date_text(const Date& start, double seconds);

}  // namespace preflop
