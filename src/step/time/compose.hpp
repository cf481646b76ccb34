// From pieces to a step. A stage is a sum of pieces; compose() turns the stages of a pipeline, what the
// data-parallel ranks exchange and the optimizer into the step's breakdown.
//
// `estimate` and the search call the same functions. With N = double none of them allocates: adding a piece
// is 2 x 16 multiplications and additions, compose() one pass over the distinct stages.
//
//   const Prices<N> prices = ...;                        once per (machine, stack, numerics, software, zero 3, vpp > 1)
//   const StateTerms<N> states = state_terms(...);        per (tp, cp, ep, etp, dp, zero, dtypes)
//   StageTime<N> stage; add_piece(stage, piece, count, states);    per kind of block on the stage
//   StageRun<N> runs[] = {{first, 1}, {middle, pp - 2}, {last, 1}};
//   const StepParts<N> step = compose(runs, 3, schedule, states, prices);
//
// compose() is monotone in every piece, and its parts sum to the step.
#pragma once

#include <cstddef>

#include "src/step/time/piece.hpp"

namespace preflop {

// What sharding makes data-parallel ranks exchange. Bandwidths are those of the groups (dense weights: dp x cp
// ranks tp apart; experts: edp ranks etp x ep apart).
template <class N>
struct StateTerms {
  int zero = 0;
  double dense_ranks = 1, expert_ranks = 1;  // that share a state
  double data_ranks = 1;                     // dp x cp: gradients are averaged over
  BytesPerSecond<N> dense_bandwidth, expert_bandwidth;
  Seconds<N> dense_latency, expert_latency;
  double reduce_width = 4, gather_width = 2;  // bytes per gradient reduced, per weight gathered
  double replicas = 1;                        // hsdp: shard groups whose gradients are averaged once a step
  BytesPerSecond<N> replica_bandwidth;
  // Once a step, bytes per gradient that a GPU holds (set to zero; averaged) and per parameter that it owns (norm,
  // clipping, the optimizer's states and master weights, the weight).
  double held_bytes = 12, update_bytes = 42;
  // Offloading, bytes per owned parameter: once a step to the host and back, and those that its update reads and
  // writes; with weights on the host, the weight and the gradient that every pass moves.
  double host_down = 0, host_up = 0, host_update = 0, host_weight = 0, host_gradient = 0;
};
template <class N>
StateTerms<N> state_terms(const Recipe& recipe, const Prices<N>& prices);

// One micro-batch on one stage.
template <class N>
struct StageTime {
  Parts<N> parts{};
  Seconds<N> forward, backward;
  Seconds<N> host_forward, host_backward;  // of the host, issuing their kernels
  Seconds<N> weights;                      // of backward: products and additions of the gradients of weights
  double dense = 0, expert = 0;            // parameters on one GPU of the stage
  double tensors = 0;                      // that hold them
};
// `count` equal blocks, one after the other. With sharded weights (zero 3) the gathers and reductions of each
// are laid beside its compute: what does not fit, and the compute that sharing the GPU costs, is dp_comm.
template <class N>
void add_piece(StageTime<N>& stage, const Piece<N>& piece, double count, const StateTerms<N>& states,
               const Prices<N>& prices);

// The same without the parts: a search asks how long, not what for.
template <class N>
void add_passes(StageTime<N>& stage, const PieceSums<N>& piece, double count, const StateTerms<N>& states,
                const Prices<N>& prices);

// What the GPU waits for a host that runs ahead over blocks of all kinds (Prices::host_runs_ahead). Once all pieces are
// in.
template <class N>
void wait_for_host(StageTime<N>& stage);

// What offloading adds to a stage: `kept` bytes of a micro-batch leave during its forward pass and return during its
// backward pass, sharded weights come from the host for every pass. What does not fit beside compute counts.
template <class N>
void add_offload(StageTime<N>& stage, double kept, const StateTerms<N>& states, const Prices<N>& prices);

// What the states of a stage take once a step, by its parameters alone: before compute hides any of it.
template <class N>
struct StateSeconds {
  Seconds<N> replicas, reduce, gather;
  Seconds<N> exchanges, tail;  // reduce and gather; of these the part that nothing can hide
  Seconds<N> update, host;
};
template <class N>
StateSeconds<N> state_seconds(const StageTime<N>& stage, const StateTerms<N>& states, const Prices<N>& prices);

template <class N>
struct StageRun {
  StageTime<N> time;
  double count = 1;  // equal stages
};

template <class N>
struct Schedule {
  double pp = 1, vpp = 1, micro_batches = 1;
  double doublings = 0;          // of one node to all of them
  double slices = 0;             // doublings of one scale-up domain to all of them
  bool all_forward = false;      // gpipe: no backward before the last forward
  const char* played = nullptr;  // zb-*: exchanges are posted ahead and nobody waits for them (src/step/replay)
  Seconds<N> sent;               // activations of one micro-batch, to the next stage: latency and bytes
  Seconds<N> hop;                // the same with the host waiting for it
};
template <class N>
Schedule<N> schedule_of(const Recipe& recipe, const BlockCost& layer, double nodes, const Prices<N>& prices);

template <class N>
struct StepParts {
  Parts<N> parts{};
  Seconds<N> seconds;
};
// Work of the mean stage by kind, times the micro-batches; `imbalance`: what the slowest stage takes longer;
// `bubble`: filling and draining (src/step/time/pipeline).
template <class N>
StepParts<N> compose(const StageRun<N>* stages, std::size_t n, const Schedule<N>& schedule, const StateTerms<N>& states,
                     const Prices<N>& prices);

// compose() in two halves, seconds alone, of stages without parts: what the micro-batches take, however states are
// shared, and what comes once a step. Their sum is the step's, but for the order of its terms.
double pipeline_seconds(const StageRun<double>* stages, std::size_t n, const Schedule<double>& schedule,
                        const Prices<double>& prices);
// What no order of the passes can go below: the work of the slowest stage. Monotone in every piece, also for a schedule
// that is played: there a longer piece may happen to make a shorter step.
double least_pipeline_seconds(const StageRun<double>* stages, std::size_t n, const Schedule<double>& schedule,
                              const Prices<double>& prices);
double once_a_step_seconds(const StageRun<double>* stages, const StateSeconds<double>* own, std::size_t n,
                           const StateTerms<double>& states, const Prices<double>& prices);

}  // namespace preflop
