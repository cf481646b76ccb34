// Many runs of the model of src/run/interruptions, event by event, for the spread of the finish.
#pragma once

#include <cstdint>
#include <vector>

#include "src/run/interruptions.hpp"

namespace preflop {

// What is simulated. Seconds.
struct RunModel {
  double startup = 0;
  double training = 0;  // of all segments together, saves excluded; what the step time's band scales
  Segments segments;    // work = training / count
  Hazard hazard{0, {}};
  double planned_rate = 0;  // planned interruptions per second of running; they lose no work
  double planned_seconds = 0;
};

// How uncertain the inputs are, as 80 % bands around the central values: factors of the step time at 10
// and 90 % (1 = certain), the standard deviation of the logarithm of the rate of interruptions, and what practice makes
// of the training time, with its median. Each is drawn once a run, since a wrong prediction is wrong for all of it.
struct Uncertainty {
  double step_low = 1;
  double step_high = 1;
  double rate_spread = 0;
  double practice_low = 1;
  double practice_median = 1;
  double practice_high = 1;
};

// What simulations of one seed draw alike, whatever their models: waiting times, each a logarithm, and those are most
// of the work. Whoever simulates several hands the same to all of them.
struct SharedDraws {
  std::uint64_t seed = 0;
  std::vector<std::vector<double>> waits;  // by stream and position; 0: not drawn yet
};

// Wall-clock seconds of `runs` runs, ascending. Depends on the seed and on nothing else, `shared` only makes it faster;
// run i uses stream i.
std::vector<double> simulate(const RunModel& model, const Uncertainty& uncertainty, std::uint64_t seed, int runs,
                             SharedDraws* shared = nullptr);

// One run, for tests: its wall-clock, and how it came about.
struct RunTrace {
  double seconds = 0;
  double running = 0;     // training and saving, repeated work included
  double recovering = 0;  // restarts
  double planned = 0;
  std::int64_t interruptions = 0;  // of training
};
RunTrace simulate_one(const RunModel& model, std::uint64_t seed, std::uint64_t stream);

// The value below which a share q of ascending values lies, between neighbours by line. 0 <= q <= 1.
double quantile(const std::vector<double>& ascending, double q);

}  // namespace preflop
