// A line of the memory ledger: one storage (or equal ones) with what it is, how large and why.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "preflop/estimate.hpp"
#include "src/cost/block_cost.hpp"

namespace preflop {

struct Line {
  Term term = Term::weights;
  std::string_view what;  // "kept input", "weight", "gathered input"
  std::string_view tag;   // "attn.q"; empty for process-wide storages
  Volume volume;          // of one
  double width = 0;       // bytes per element
  double copies = 1;      // layers x micro-batches in flight
  double layers = 1;      // the part of `copies` that is layers
  std::string_view source;

  double bytes() const { return volume.elements.real() * width * copies; }
};

// The number of a line, read off its axes.
template <class N>
Bytes<N> price(const Line& line);

// Sums per term, and over the terms.
template <class N>
struct Ledger {
  Bytes<N> terms[kTerms];
  Bytes<N> allocated;
};
template <class N>
Ledger<N> add_up(const std::vector<Line>& lines, const char* name);

}  // namespace preflop
