// The useful part of a run: steps, a batch that ramps up, phases of longer sequences, stalls, evaluations.
#pragma once

#include <cstdint>
#include <optional>

#include "preflop/estimate.hpp"
#include "src/step/memory.hpp"

namespace preflop {

template <class N>
struct Work {
  std::int64_t steps = 0;  // optimizer steps, those of the ramp included
  Seconds<N> ideal;        // steps of the full batch x step time, later phases with theirs
  Seconds<N> ramp;         // what smaller batches at the beginning cost beyond that
  Seconds<N> data_stalls, stragglers, evaluation;
  Seconds<N> training;           // the sum of all of these
  std::optional<Error> refused;  // a later phase that no layout can run, which is then in none of them
};

// The recipe has tokens; the ramp, if any, is legal (ramp_recipe).
template <class N>
Work<N> work_of(const Analysed& a, const Cluster& cluster, const StepEstimate<N>& step);

// Steps and sequences of a ramp: ceil(samples of a level / its batch) steps a level, levels sharing the samples
// evenly, as Megatron-LM does.
struct RampSteps {
  std::int64_t levels = 0;
  double steps = 0;
  double sequences = 0;
};
RampSteps ramp_steps(const BatchRamp& ramp, std::int64_t global_batch);

// The recipe with the ramp's first batch. Errors: a batch that the layout cannot train with.
Result<Analysed> ramp_recipe(const Analysed& a);

}  // namespace preflop
