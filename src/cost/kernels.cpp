#include "src/cost/kernels.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/math.hpp"

namespace preflop {

namespace {

struct Tile {
  double m, n;
};
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};
constexpr double kSplits[] = {1, 2, 4, 8};  // of the inner loop, where tiles are fewer than processors
constexpr double kLargest = 128.0 * 256 / 384;

}  // namespace

double gemm_factor(const GemmLaw& law, const GemmShape& s) {
  double best = 0;
  for (const Tile& tile : kTiles) {
    const double tiles = s.groups * std::ceil(s.m / tile.m) * std::ceil(s.n / tile.n);
    const double penalty = 1 + law.small_tile * ((1 / tile.m + 1 / tile.n) * kLargest - 1);
    const double padded = tiles * tile.m * tile.n / (s.groups * s.m * s.n);
    for (const double split : kSplits) {
      const double waves = tiles * split / law.sms;
      if (split > 1 && waves > 2) break;
      const double rounded = law.wave * std::ceil(waves) + (1 - law.wave) * std::max(waves, 1.0);
      const double time = padded * rounded / waves * (1 + law.prologue * split / s.k) * penalty;
      if (best == 0 || time < best) best = time;
    }
  }
  return std::max(best, 1.0);
}

double corner_factor(double a, double b, double p) {
  const double large = std::max(a, b), small = std::min(a, b);
  if (large <= 0 || small <= 0) return 1;
  return math::pow(1 + math::pow(small / large, p), 1 / p);
}

double attention_factor(const AttentionLaw& law, double seq, double tiles) {
  return (1 + law.diagonal / seq) + 2 * law.tail * law.sms * (1 + law.diagonal / (2 * seq)) / std::max(tiles, 1.0);
}

}  // namespace preflop
