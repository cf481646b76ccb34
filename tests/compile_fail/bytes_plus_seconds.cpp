// Bytes and seconds do not add.
#include "preflop/quantity.hpp"
#include "preflop/traced.hpp"

using namespace preflop;  // NOLINT(google-build-using-namespace)

#ifdef PREFLOP_CONTROL
auto f(Bytes<double> a, Bytes<double> b) { return a + b; }
#else
auto f(Bytes<double> a, Seconds<double> b) { return a + b; }
#endif
