// Random numbers that depend on a seed, a stream and a position and on nothing else: the same on every
// target and for any order of the streams. Each number is a hash of its counter, so no state is shared.
#pragma once

#include <cstdint>

namespace preflop {

class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, std::uint64_t stream) : key_(mix(mix(seed + kStep) ^ (stream * kStep + 1))) {}

  std::uint64_t next() { return mix(key_ + kStep * ++counter_); }
  double uniform();                                 // in (0, 1), both ends left out
  double exponential() { return wait(uniform()); }  // mean 1
  std::uint64_t drawn() const { return counter_; }
  void skip() { ++counter_; }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15;
  // The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection whose every output bit
  // depends on every input bit.
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  static double wait(double u);

  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

// The standard normal quantile: P(Z < normal_quantile(p)) = p, 0 < p < 1; relative error below 1.2e-9
// (P. J. Acklam's rational approximation).
double normal_quantile(double p);

}  // namespace preflop
