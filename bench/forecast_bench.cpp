// How long the simulated runs of a forecast take: 10,000 runs of 60 days on 16,384 GPUs.
#include <benchmark/benchmark.h>

#include "src/run/simulate.hpp"

namespace preflop {
namespace {

void simulate_runs(benchmark::State& state) {
  constexpr double kHour = 3600, kDay = 24 * kHour;
  RunModel m;  // an interruption every three hours
  m.segments = {60 * kDay / 1200, 1200, 60, 0};
  m.training = 60 * kDay;
  m.hazard = {3.09 * kHour, {1500, 0, 0}};
  for (auto _ : state) benchmark::DoNotOptimize(simulate(m, {0.95, 1.05, 0.3}, 0, 10000));
  state.counters["runs"] = 10000;
}
BENCHMARK(simulate_runs)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace preflop
