// The pictures of an estimate, each of which says one thing. Empty where the estimate lacks what it shows.
#pragma once

#include <vector>

#include "preflop/estimate.hpp"
#include "preflop/plan.hpp"
#include "src/base/units.hpp"
#include "src/run/forecast.hpp"
#include "src/view/svg/svg.hpp"

namespace preflop {

inline constexpr double kPictureWidth = 760, kNarrowest = 280;

// How pictures are drawn: their width in px, from kNarrowest to kPictureWidth, and memory in GiB or in GB of 1e9 B.
struct Drawing {
  double width = kPictureWidth;
  bool gb = false;

  bool narrow() const { return width < 600; }
  double unit() const { return gb ? 1e9 : kGiB; }
  std::string memory(double bytes, int decimals = 1) const;  // "12.3 GiB"
};

svg::Picture memory_picture(const Estimate& estimate, const Drawing& how = {});      // each stage against the capacity
svg::Picture moments_picture(const Estimate& estimate, const Drawing& how = {});     // the fullest stage through a step
svg::Picture mfu_picture(const Estimate& estimate, const Drawing& how = {});         // from peak to MFU, loss by loss
svg::Picture schedule_picture(const Estimate& estimate, const Drawing& how = {});    // pipeline: stage x time
svg::Picture days_picture(const Estimate& estimate, const Drawing& how = {});        // where the days go
svg::Picture finish_picture(const Estimate& estimate, const Drawing& how = {});      // when the simulated runs end
svg::Picture interval_picture(const IntervalCurve& curve, const Drawing& how = {});  // saving more or less often

// Plans of one cluster by memory and step time; of several clusters, the best of each by GPUs and time.
svg::Picture plans_picture(const Plan& plan, const Drawing& how = {});

// All of an estimate, in this order.
std::vector<svg::Picture> estimate_pictures(const Estimate& estimate, const IntervalCurve& curve,
                                            const Drawing& how = {});

}  // namespace preflop
