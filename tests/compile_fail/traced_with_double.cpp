// A traced quantity and a plain one do not mix: the sum would lose its derivation.
#include "preflop/quantity.hpp"
#include "preflop/traced.hpp"

using namespace preflop;  // NOLINT(google-build-using-namespace)

#ifdef PREFLOP_CONTROL
auto f(Bytes<Traced> a, Bytes<Traced> b) { return a + b; }
#else
auto f(Bytes<Traced> a, Bytes<double> b) { return a + b; }
#endif
