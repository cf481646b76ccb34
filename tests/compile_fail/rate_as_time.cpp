// A rate is not a time: bytes over bandwidth is.
#include "preflop/quantity.hpp"
#include "preflop/traced.hpp"

using namespace preflop;  // NOLINT(google-build-using-namespace)

#ifdef PREFLOP_CONTROL
Seconds<double> f(Bytes<double> a, BytesPerSecond<double> b) { return a / b; }
#else
Seconds<double> f(Bytes<double> a, BytesPerSecond<double> b) { return a * b; }
#endif
