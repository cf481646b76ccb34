// Puts the parts together: one recipe on one cluster.
#pragma once

#include "src/step/compute.hpp"
#include "src/step/memory.hpp"
#include "src/step/time.hpp"

namespace preflop {

// Needs more than four fifths of the memory: of such runs some are slower than others like them, for their allocator
// frees blocks and asks again. Stacks whose rows say so have a slow end of the band of their own for them.
template <class N>
bool fills_memory(const MemoryEstimate<N>& memory) {
  constexpr double kLeft = 0.2;
  return memory.margin && memory.capacity && plain(memory.margin->number()) < kLeft * plain(memory.capacity->number());
}

struct SharedDraws;

// `shared`: what forecasts of several runs have in common (src/run/simulate).
template <class N>
EstimateOf<N> estimate(const Analysed& a, const Cluster& cluster, SharedDraws* shared = nullptr);

// Memory, compute and step of it alone, to set beside another: no run, no ways out, no words.
template <class N>
EstimateOf<N> bare_estimate(const Analysed& a, const Cluster& cluster);

}  // namespace preflop
