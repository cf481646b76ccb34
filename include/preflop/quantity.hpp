// Dimension-checked quantities over any number type.
//
// Units are SI base units: byte, second, FLOP, token, US dollar, joule. Adding bytes to seconds, or
// storing bytes per second where seconds are meant, does not compile (tests/compile_fail). The
// number type N is `double` for speed or `Traced` to explain; formulas are written once for both.
#pragma once

namespace preflop {

template <int Byte, int Second, int Flop, int Token, int Usd, int Joule>
struct Dim {};

namespace detail {
template <class A, class B>
struct DimProduct;
template <int... As, int... Bs>
struct DimProduct<Dim<As...>, Dim<Bs...>> {
  using type = Dim<(As + Bs)...>;
};
template <class A, class B>
struct DimRatio;
template <int... As, int... Bs>
struct DimRatio<Dim<As...>, Dim<Bs...>> {
  using type = Dim<(As - Bs)...>;
};
}  // namespace detail

using Dimensionless = Dim<0, 0, 0, 0, 0, 0>;

template <class D, class N = double>
class Quantity {
 public:
  using Number = N;
  using Dimension = D;

  constexpr Quantity() = default;
  constexpr explicit Quantity(N number) : number_(static_cast<N&&>(number)) {}

  constexpr const N& number() const { return number_; }  // in SI base units

  friend constexpr Quantity operator+(const Quantity& a, const Quantity& b) { return Quantity(a.number_ + b.number_); }
  friend constexpr Quantity operator-(const Quantity& a, const Quantity& b) { return Quantity(a.number_ - b.number_); }
  constexpr Quantity& operator+=(const Quantity& b) { return *this = *this + b; }
  friend constexpr Quantity operator*(const Quantity& a, const N& k) { return Quantity(a.number_ * k); }
  friend constexpr Quantity operator*(const N& k, const Quantity& a) { return Quantity(k * a.number_); }
  friend constexpr Quantity operator/(const Quantity& a, const N& k) { return Quantity(a.number_ / k); }
  friend constexpr bool operator<(const Quantity& a, const Quantity& b) { return a.number_ < b.number_; }
  friend constexpr bool operator<=(const Quantity& a, const Quantity& b) { return !(b < a); }
  friend constexpr bool operator>(const Quantity& a, const Quantity& b) { return b < a; }
  friend constexpr bool operator>=(const Quantity& a, const Quantity& b) { return !(a < b); }
  friend constexpr bool operator==(const Quantity& a, const Quantity& b) { return a.number_ == b.number_; }

 private:
  N number_{};
};

template <class A, class B, class N>
constexpr auto operator*(const Quantity<A, N>& a, const Quantity<B, N>& b) {
  return Quantity<typename detail::DimProduct<A, B>::type, N>(a.number() * b.number());
}
template <class A, class B, class N>
constexpr auto operator/(const Quantity<A, N>& a, const Quantity<B, N>& b) {
  return Quantity<typename detail::DimRatio<A, B>::type, N>(a.number() / b.number());
}

template <class N>
using Ratio = Quantity<Dimensionless, N>;
template <class N>
using Bytes = Quantity<Dim<1, 0, 0, 0, 0, 0>, N>;
template <class N>
using Seconds = Quantity<Dim<0, 1, 0, 0, 0, 0>, N>;
template <class N>
using Flops = Quantity<Dim<0, 0, 1, 0, 0, 0>, N>;
template <class N>
using Tokens = Quantity<Dim<0, 0, 0, 1, 0, 0>, N>;
template <class N>
using BytesPerSecond = Quantity<Dim<1, -1, 0, 0, 0, 0>, N>;
template <class N>
using FlopsPerSecond = Quantity<Dim<0, -1, 1, 0, 0, 0>, N>;
template <class N>
using FlopsPerToken = Quantity<Dim<0, 0, 1, -1, 0, 0>, N>;
template <class N>
using TokensPerSecond = Quantity<Dim<0, -1, 0, 1, 0, 0>, N>;
template <class N>
using Usd = Quantity<Dim<0, 0, 0, 0, 1, 0>, N>;
template <class N>
using Joules = Quantity<Dim<0, 0, 0, 0, 0, 1>, N>;

}  // namespace preflop
