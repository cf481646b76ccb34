// A quantity becomes a bare number only where that is written.
#include "preflop/quantity.hpp"
#include "preflop/traced.hpp"

using namespace preflop;  // NOLINT(google-build-using-namespace)

#ifdef PREFLOP_CONTROL
double f(Bytes<double> a) { return a.number(); }
#else
double f(Bytes<double> a) { return a; }
#endif
