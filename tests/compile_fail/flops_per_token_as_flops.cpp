// FLOP per token are not FLOP: they want tokens.
#include "preflop/quantity.hpp"
#include "preflop/traced.hpp"

using namespace preflop;  // NOLINT(google-build-using-namespace)

#ifdef PREFLOP_CONTROL
Flops<double> f(FlopsPerToken<double> a, Tokens<double> b) { return a * b; }
#else
Flops<double> f(FlopsPerToken<double> a) { return a; }
#endif
