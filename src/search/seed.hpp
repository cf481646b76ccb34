// A bound for the search, found before it: a few good plans of the space. What cannot be faster than the slowest of
// `top` known plans is no use, so the search need not price it.
#pragma once

#include "src/search/search.hpp"

namespace preflop {

// Seconds of a step that `top` plans of the space, within the limits, are known to reach: first the best of a space
// thinned to a few values per axis, then one axis at a time around the best. Infinite: not known, or seconds are not
// what is minimised. It depends on the arguments alone, so every part of a search has the same.
double seconds_reached(const Question& question, const Space& space, Objective objective, const Limits& limits,
                       std::size_t top);

}  // namespace preflop
