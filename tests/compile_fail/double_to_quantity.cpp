// A bare number becomes a quantity only where that is written.
#include "preflop/quantity.hpp"
#include "preflop/traced.hpp"

using namespace preflop;  // NOLINT(google-build-using-namespace)

#ifdef PREFLOP_CONTROL
Bytes<double> f() { return Bytes<double>(16.0); }
#else
Bytes<double> f() { return 16.0; }
#endif
