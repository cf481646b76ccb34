// A setting of the run as a leaf of an explanation.
#pragma once

#include "preflop/forecast.hpp"
#include "preflop/traced.hpp"

namespace preflop {

template <class N>
N take(const Sourced& s, const char* label, const char* unit) {
  return leaf<N>(s.value, [&] { return Origin{label, unit, s.source, {}}; });
}

}  // namespace preflop
