// The forecast of a whole run: see include/preflop/forecast.hpp for what it is and what is assumed, and
// src/run/interruptions for the model of failures.
#pragma once

#include <vector>

#include "preflop/estimate.hpp"
#include "src/run/interruptions.hpp"
#include "src/step/memory.hpp"

namespace preflop {

struct SharedDraws;

// `e` has a step; the recipe has tokens. Not finite where the run never ends (check_run refuses that). With `shared`
// several forecasts take less time (src/run/simulate).
template <class N>
RunEstimate<N> forecast(const Analysed& a, const Cluster& cluster, const EstimateOf<N>& e,
                        SharedDraws* shared = nullptr);

// Errors: saves that take longer than the interval between them, a run that never ends for failures, a batch
// ramp whose smallest batch is not legal.
Status check_run(const Analysed& a, const Cluster& cluster);

// Median elapsed over ideal time of a long run on this cluster, whatever its step: what limits of a search are held
// against before a step is known. Startup, batch ramps and evaluations by the step are left out.
double usual_stretch(const RunSettings& settings, const Cluster& cluster, double checkpoint_bytes);

// Time lost to saves and to repeated work, as shares of useful time, over a range of intervals around the best.
struct CurvePoint {
  double interval = 0;  // seconds of training between saves
  double saving = 0;    // share of training time that saves stop
  double stretch = 0;   // elapsed over training, failures and saves
};
struct IntervalCurve {
  double save = 0, pending = 0;
  Hazard hazard{0, {}};
  double young = 0, daly = 0, best = 0, chosen = 0;
  std::vector<CurvePoint> points;  // ascending interval
};
// Empty points where nothing fails or nothing is saved.
IntervalCurve interval_curve(const Analysed& a, const Cluster& cluster, const Estimate& e);

}  // namespace preflop
