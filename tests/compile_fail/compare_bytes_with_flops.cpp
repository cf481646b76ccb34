// Bytes and FLOP do not compare.
#include "preflop/quantity.hpp"
#include "preflop/traced.hpp"

using namespace preflop;  // NOLINT(google-build-using-namespace)

#ifdef PREFLOP_CONTROL
bool f(Bytes<double> a, Bytes<double> b) { return a < b; }
#else
bool f(Bytes<double> a, Flops<double> b) { return a < b; }
#endif
