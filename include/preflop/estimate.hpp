// The estimate of one recipe: memory, compute, step time, run. Shape and names follow the JSON
// contract preflop.estimate/1; every number is SI (bytes, seconds, FLOP), ratios are fractions.
//
// Number is double, or Traced to explain: `for_each_number` (src/explain/paths) walks the same members
// for both, so every number of the JSON has a derivation that ends in the same bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "preflop/forecast.hpp"
#include "preflop/machine.hpp"
#include "preflop/quantity.hpp"
#include "preflop/recipe.hpp"
#include "preflop/traced.hpp"

namespace preflop {

// The terms of a stage's memory. They sum to `allocated` exactly.
enum class Term : std::uint8_t { weights, gradients, optimizer, activations, logits, buffers, transients };
inline constexpr int kTerms = 7;
const char* name(Term term);

// The named instants of a step; a stage's peak is the largest of them, never a sum of maxima.
enum class Moment : std::uint8_t {
  init,
  loss,
  last_layer_backward,
  first_layer_backward,
  end_of_backward,
  reduction,
  optimizer_step
};
inline constexpr int kMoments = 7;
const char* name(Moment moment);

// Of a GPU's capacity beside what lives outside the allocator, at the upper ends of the bands: `no` where tensors need
// more than it (or the host has too little memory), `tight` where the allocator may reserve more. Of a stack no run of
// which tells what is reserved, that counts without a band.
enum class Verdict : std::uint8_t { fits, tight, no, unknown };
const char* name(Verdict verdict);

template <class N>
struct StageMemory {
  std::int64_t stage = 0;
  std::int64_t layers = 0;
  Moment moment = Moment::init;               // where the peak is
  std::optional<Bytes<N>> moments[kMoments];  // allocated at each moment this stage has
  Bytes<N> terms[kTerms];                     // alive at the peak moment, by term
  Bytes<N> allocated;                         // sum of terms
  Bytes<N> reserved;                          // by the caching allocator
  Bytes<N> context;                           // outside the allocator: CUDA context, communicators
  Bytes<N> device;                            // reserved + context
};

// Changes of the recipe that together make it fit.
template <class N>
struct WayOut {
  std::string change;                      // flags: "--recompute full --micro-batch 1"
  Bytes<N> freed;                          // of allocated memory on the fullest stage
  std::optional<Ratio<N>> seconds_factor;  // step time over that of the recipe as it is
};

template <class N>
struct MemoryEstimate {
  Verdict verdict = Verdict::unknown;
  std::optional<Bytes<N>> capacity;
  // Capacity - (upper end of allocated + context) of the fullest stage: what the verdict goes by. Negative when short.
  std::optional<Bytes<N>> margin;
  std::vector<StageMemory<N>> stages;
  std::size_t peak_stage = 0;
  std::optional<Bytes<N>> host;           // of the fullest node, where anything is offloaded
  std::optional<Bytes<N>> host_capacity;  // of a node, where it is known
  std::optional<Bytes<N>> checkpoint;
  // 80 % bands of the fullest stage's memory, and their half-widths as fractions (0: none is known).
  std::optional<Bytes<N>> low_allocated, high_allocated, low_reserved, high_reserved, low_device, high_device;
  double allocated_band = 0, reserved_band = 0, device_band = 0;
  double tight_band = 0;  // reserved_band, where the stack's own runs tell it: its upper end makes a plan tight
  std::vector<WayOut<N>> way_out;  // when it does not fit: what would make it fit, cheapest first
};

template <class N>
struct ComputeEstimate {
  FlopsPerToken<N> model;     // under `convention`
  FlopsPerToken<N> hardware;  // executed: recomputation included
  FlopsPerToken<N> six_n;
  FlopsPerToken<N> attention;  // part of `model` that is attention
  std::string convention;
  std::vector<std::pair<std::string, FlopsPerToken<N>>> conventions;
};

enum class Lost : std::uint8_t {
  gemm,
  attention,
  memory_bound,
  logits,
  recompute,
  launch,
  tp_comm,
  cp_comm,
  ep_comm,
  pp_comm,
  dp_comm,
  offload,
  imbalance,
  bubble,
  optimizer,
  other
};
inline constexpr int kLost = 16;
const char* name(Lost lost);

template <class N>
struct StepEstimate {
  Seconds<N> seconds;
  std::optional<Seconds<N>> low, high;  // 80 % of runs that no parameter has seen; empty with a given MFU
  TokensPerSecond<N> tokens_per_second;
  TokensPerSecond<N> tokens_per_second_per_gpu;
  Ratio<N> mfu;
  Ratio<N> hfu;
  FlopsPerSecond<N> peak;  // dense, one GPU
  std::string mfu_convention;
  std::optional<Seconds<N>> breakdown[kLost];  // exposed seconds; they sum to `seconds`; empty = not known apart
  std::string method;                          // "given mfu" | "kernels and links"
};

struct ModelSummary {
  std::string name;
  Count params_total;
  Count params_active;
  Count params_embedding;
  std::optional<Count> params_vision;  // of an image encoder beside the model, in none of the others
};

template <class N>
struct EstimateOf {
  ModelSummary model;
  Cluster cluster;
  Recipe recipe;
  MemoryEstimate<N> memory;
  ComputeEstimate<N> compute;
  std::optional<StepEstimate<N>> step;  // absent when the machine's rates are unknown
  std::optional<RunEstimate<N>> run;    // with --tokens
  std::vector<std::string> sources;     // sorted, unique
  std::vector<std::string> warnings;
};
using Estimate = EstimateOf<double>;

}  // namespace preflop
