// Checked counts: parameters, elements, tokens, GPUs.
//
// A Count is a whole number that is exact in a double (at most 2^53). Arithmetic that leaves that
// range, or a division with a remainder, yields an invalid Count, and stays invalid whatever is
// done with it: a sum of thousands of terms is checked once, at its end.
#pragma once

#include <compare>
#include <cstdint>

namespace preflop {

class Count {
 public:
  static constexpr std::int64_t kMax = std::int64_t{1} << 53;

  constexpr Count() = default;
  constexpr Count(std::int64_t v) : v_(v >= 0 && v <= kMax ? v : kInvalid) {}  // NOLINT(google-explicit-constructor)

  constexpr bool valid() const { return v_ >= 0; }
  constexpr std::int64_t get() const { return v_; }                  // -1 when invalid
  constexpr double real() const { return static_cast<double>(v_); }  // exact

  friend constexpr Count operator+(Count a, Count b) { return a.valid() && b.valid() ? Count(a.v_ + b.v_) : invalid(); }
  friend constexpr Count operator-(Count a, Count b) { return a.valid() && b.valid() ? Count(a.v_ - b.v_) : invalid(); }
  friend constexpr Count operator*(Count a, Count b) {
    if (!a.valid() || !b.valid()) return invalid();
    std::int64_t out = 0;
    return __builtin_mul_overflow(a.v_, b.v_, &out) ? invalid() : Count(out);
  }
  // Exact division: a remainder is an error, not a rounding.
  friend constexpr Count operator/(Count a, Count b) {
    return a.valid() && b.valid() && b.v_ != 0 && a.v_ % b.v_ == 0 ? Count(a.v_ / b.v_) : invalid();
  }
  Count& operator+=(Count b) { return *this = *this + b; }
  Count& operator*=(Count b) { return *this = *this * b; }
  friend constexpr bool operator==(Count, Count) = default;
  friend constexpr auto operator<=>(Count a, Count b) { return a.v_ <=> b.v_; }

 private:
  static constexpr std::int64_t kInvalid = -1;
  static constexpr Count invalid() {
    Count c;
    c.v_ = kInvalid;
    return c;
  }
  std::int64_t v_ = 0;
};

// The smallest count n with n * divisor >= a.
constexpr Count ceil_div(Count a, Count divisor) {
  if (!a.valid() || !divisor.valid() || divisor.get() == 0) return Count(-1);
  return Count(a.get() / divisor.get() + (a.get() % divisor.get() != 0 ? 1 : 0));
}
constexpr Count round_up(Count a, Count multiple) { return ceil_div(a, multiple) * multiple; }

}  // namespace preflop
