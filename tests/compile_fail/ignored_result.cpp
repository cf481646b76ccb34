// A Result cannot be dropped unseen (where warnings are errors, as in every build of ours).
#include "preflop/result.hpp"

using namespace preflop;  // NOLINT(google-build-using-namespace)

#pragma GCC diagnostic error "-Wunused-result"

Status check();

#ifdef PREFLOP_CONTROL
bool f() { return check().ok(); }
#else
bool f() {
  check();
  return true;
}
#endif
