// The page of arithmetic: a run's state, FLOPs and time from a parameter count, with no model file.
#pragma once

#include <cstdint>
#include <optional>

#include "preflop/quantity.hpp"
#include "preflop/recipe.hpp"
#include "preflop/traced.hpp"

namespace preflop {

struct NapkinInput {
  double params = 0;
  std::optional<double> tokens;
  Dtype weight_dtype = Dtype::bf16, grad_dtype = Dtype::bf16, master_dtype = Dtype::fp32, moment_dtype = Dtype::fp32;
  std::optional<std::int64_t> gpus;
  std::optional<double> peak;  // dense FLOP/s of one GPU
  double mfu = 0;              // against 6N
};

// What real runs add for failures, restarts, evaluations and data stalls, as the page states it.
inline constexpr double kLeastAdded = 0.10;
inline constexpr double kMostAdded = 0.30;
inline constexpr double kSecondsPerHour = 3600;

template <class N>
struct Expected {
  Seconds<N> low, high;
};
template <class N>
Expected<N> with_margin(const Seconds<N>& ideal);

// Empty where an input that it needs is not given.
template <class N>
struct NapkinOf {
  Bytes<N> state;  // weights, gradients, master weights and both moments
  std::optional<Flops<N>> flops;
  std::optional<FlopsPerSecond<N>> cluster;  // GPUs x peak x MFU
  std::optional<Seconds<N>> ideal;
  std::optional<Seconds<N>> expected_low, expected_high;
  std::optional<Ratio<N>> gpu_hours;
};
using Napkin = NapkinOf<double>;

template <class N>
NapkinOf<N> napkin(const NapkinInput& input);

}  // namespace preflop
