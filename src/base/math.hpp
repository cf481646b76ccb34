// exp, log and pow with the same bits on every target.
//
// Platform libraries differ in the last bit, which would make the same estimate print differently
// on a laptop and in a browser. These use only + - * /, and operations on the bits of a double, are
// compiled without contraction, and stay within 1 ulp of the true value (tests compare with libm).
#pragma once

namespace preflop::math {

double exp(double x);    // nan -> nan, -inf -> 0, above 709.78 -> inf, below -745.13 -> 0
double expm1(double x);  // exp(x) - 1 without cancellation; -inf -> -1
double log(double x);    // nan or x < 0 -> nan, +-0 -> -inf, inf -> inf
double log2(double x);   // the same; exact at powers of two
double log1p(double x);  // log(1 + x) without cancellation; x < -1 -> nan, -1 -> -inf

// x to the power of y, with the special values of C's pow: pow(x, 0) = pow(1, y) = 1 even for nan, a
// negative x needs a whole y (else nan), odd whole y keep the sign of x.
double pow(double x, double y);

}  // namespace preflop::math
