// The whole run: what is assumed about it, and what comes out. All values SI: seconds, 1/s, bytes/s, watts.
//
// expected = ideal + losses, term by term. `ideal` is steps x step time with nothing ever failing and the
// full batch from the first step. The losses are means over interruptions, at the predicted step time and the
// assumed rates; p10, p50 and p90 are of simulated runs that also draw the step time from its band and the rate
// of interruptions from the spread between published fleets.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "preflop/quantity.hpp"

namespace preflop {

// A value and where it is from: a flag ("--price") or the document of a default.
struct Sourced {
  double value = 0;
  std::string source;
};

enum class Saving : std::uint8_t { none, blocking, background };

// Sequences per step grow from `start` by `increment` to the recipe's global batch over `samples` sequences.
struct BatchRamp {
  std::int64_t start = 0, increment = 0, samples = 0;
};

// The last part of a run, at another sequence length: as many tokens a step, more context parallelism where it must.
struct SequencePhase {
  std::int64_t seq = 0;
  double tokens = 0;
};

// A day of the civil calendar.
struct Date {
  int year = 0, month = 0, day = 0;
};

// How long published runs took over what is forecast of them: 10 % quantile, median and 90 % quantile. It is drawn
// where the step time is predicted; a given --mfu is the run's own.
struct Practice {
  double low = 1, median = 1, high = 1;  // factors of the training time; 0 < low <= median <= high
  std::string source;
};

// As it stands: a run that nothing disturbs.
struct RunSettings {
  // Interruptions. `mtbf` replaces the three rates; infinite: none ever.
  std::optional<Sourced> mtbf;      // seconds between interruptions of the job
  Sourced hardware;                 // per second and 8 GPUs
  Sourced software;                 // per second and 8 GPUs, at most ...
  Sourced software_most;            // ... this per second, however large the job
  std::optional<Sourced> eviction;  // seconds between evictions of a spot cluster
  double spread = 0;                // standard deviation of the logarithm of the rate between fleets
  Sourced planned;                  // planned interruptions for each unplanned one
  std::optional<Sourced> maintenance_every, maintenance_takes;  // instead of `planned`

  // Restarts: detection + restart + loading the checkpoint.
  Sourced detection, restart;
  std::optional<Sourced> spares, repair;  // nodes held ready; seconds until a broken one is back

  // Checkpoints.
  Saving saving = Saving::blocking;
  std::optional<double> interval_seconds;  // seconds of training between saves, or
  std::optional<double> interval_steps;    // steps; neither: the best
  // Bytes/s of one node, and of the store; writing and reading. Not set: saves take no time.
  Sourced node_bandwidth{std::numeric_limits<double>::infinity(), ""}, store_bandwidth = node_bandwidth;
  Sourced stall;  // of a background save

  // Everything else that takes time.
  Sourced evaluation;                                         // share of the training time, or
  std::optional<Sourced> evaluation_takes, evaluation_every;  // seconds, every so many steps
  Sourced data_stalls, stragglers;                            // shares of the training time
  Practice practice;
  std::optional<BatchRamp> ramp;
  std::vector<SequencePhase> then;  // after the recipe's tokens, in this order

  // Fine-tuning: steps follow from samples where they are not packed.
  std::optional<double> sequences;  // of the whole run, each padded to the sequence length

  // Money and energy. Absent = unknown.
  std::optional<Sourced> price;    // USD per GPU-hour
  std::optional<Sourced> storage;  // USD per byte and second, for `kept` checkpoints from the first save on
  double kept = 1;
  std::optional<Sourced> watts;  // per GPU at the wall while training, its share of the host included
  Sourced pue{1, ""};
  Sourced grid;  // kg CO2e per kWh

  std::optional<Date> start;
  std::optional<double> within;  // seconds: a limit that --check holds against p50
  std::optional<double> budget;  // USD: the same for the cost at p50
  std::uint64_t seed = 0;
  int runs = 2000;

  std::map<std::string, std::string, std::less<>> words;  // run keys as their flags take them, given or assumed
};

enum class RunLoss : std::uint8_t {
  startup,      // the first start
  ramp,         // small batches at the beginning
  data_stalls,  // waiting for data
  stragglers,   // waiting for slow nodes
  evaluation,
  checkpoints,  // training stopped by saves
  lost_work,    // training repeated after interruptions
  detection,
  restart,
  loading,  // checkpoints read again
  spares,   // waiting for a node
  planned   // planned interruptions
};
inline constexpr int kRunLosses = 12;
const char* name(RunLoss loss);

template <class N>
struct RunEstimate {
  Tokens<N> tokens;
  std::int64_t steps = 0;
  Seconds<N> ideal;
  Seconds<N> losses[kRunLosses];
  Seconds<N> expected;  // the sum of ideal and losses
  Seconds<N> p10, p50, p90;
  Ratio<N> interruptions;              // expected number, unplanned
  std::optional<Seconds<N>> mtbf;      // of the job; absent where nothing ever fails
  std::optional<Seconds<N>> interval;  // of training between saves; absent without checkpoints
  Ratio<N> effective;                  // ideal / expected
  Ratio<N> gpu_hours;                  // (GPUs + spares) x p50: what a run takes half of the time, and so all below
  std::optional<Usd<N>> cost;          // of the GPU-hours; absent: no price known
  std::optional<Usd<N>> storage;       // of the checkpoints that are kept; absent: none are, or their size is not known
  std::optional<Ratio<N>> energy_kwh;  // absent: no power known
  std::optional<Ratio<N>> co2_kg;
  std::vector<double> finish;  // seconds at 1, 2, ... 99 % of the simulated runs
};

}  // namespace preflop
