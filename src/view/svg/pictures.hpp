// The pictures of an estimate, each of which says one thing. Empty where the estimate lacks what it shows.
#pragma once

#include <vector>

#include "preflop/estimate.hpp"
#include "src/run/forecast.hpp"
#include "src/view/svg/svg.hpp"

namespace preflop {

inline constexpr double kPictureWidth = 760;

svg::Picture memory_picture(const Estimate& estimate);      // memory of each stage against the capacity
svg::Picture mfu_picture(const Estimate& estimate);         // from the dense peak down to the MFU, loss by loss
svg::Picture schedule_picture(const Estimate& estimate);    // pipeline: stage x time
svg::Picture days_picture(const Estimate& estimate);        // where the days go
svg::Picture finish_picture(const Estimate& estimate);      // when the simulated runs end
svg::Picture interval_picture(const IntervalCurve& curve);  // what saving more or less often costs

// All of them, in this order.
std::vector<svg::Picture> estimate_pictures(const Estimate& estimate, const IntervalCurve& curve);

}  // namespace preflop
