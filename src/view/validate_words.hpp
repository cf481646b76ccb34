// What the pages of `validate` call things.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/validate/validate.hpp"

namespace preflop {

struct Metric {
  const char* name;
  const char* title;
  const char* picture;  // under docs/
};
inline constexpr std::array kMetrics = {Metric{"time.step_seconds", "Step time", "accuracy-time.svg"},
                                        Metric{"memory.allocated", "Memory allocated", "accuracy-allocated.svg"},
                                        Metric{"memory.reserved", "Memory reserved", "accuracy-reserved.svg"},
                                        Metric{"memory.device", "Memory of the device", "accuracy-device.svg"}};

inline std::string error_percent(const std::optional<double>& v) { return v ? text::fixed(*v * 100, 1) : "-"; }

// "12.4 s", "71.4 GiB"
inline std::string amount(const Entry& e, const std::optional<double>& v) {
  if (!v) return "-";
  return e.metric == "time.step_seconds" ? text::seconds(*v) : text::fixed(*v / kGiB, 1) + " GiB";
}

}  // namespace preflop
