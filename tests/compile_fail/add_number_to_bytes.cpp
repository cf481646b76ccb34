// A bare number does not add to bytes.
#include "preflop/quantity.hpp"
#include "preflop/traced.hpp"

using namespace preflop;  // NOLINT(google-build-using-namespace)

#ifdef PREFLOP_CONTROL
auto f(Bytes<double> a) { return a + Bytes<double>(1.0); }
#else
auto f(Bytes<double> a) { return a + 1.0; }
#endif
