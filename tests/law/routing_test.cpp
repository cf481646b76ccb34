// Where a token's experts lie, against drawing them.
#include <gtest/gtest.h>

#include <bitset>
#include <cmath>
#include <numeric>
#include <vector>

#include "src/cost/choice.hpp"
#include "src/cost/price.hpp"

namespace preflop::test {
namespace {

// Mean number of places over many draws of a token's experts.
double drawn(const ExpertChoice& c, int places) {
  std::uint64_t seed = 7;
  const auto random = [&](std::size_t below) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>((seed >> 33) % below);
  };
  // The first `count` become the chosen ones: of any order as likely as of another, so it is left for the next draw.
  const auto choose = [&](std::vector<int>& from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) std::swap(from[i], from[i + random(from.size() - i)]);
  };
  const int experts = static_cast<int>(c.experts), groups = c.groups > 0 ? static_cast<int>(c.groups) : 1;
  const int size = experts / groups;
  const auto open = static_cast<std::size_t>(c.groups > 0 ? c.top_groups : 1);
  const auto top_k = static_cast<std::size_t>(c.top_k);
  std::vector<int> of_groups(static_cast<std::size_t>(groups)), of_open(open * static_cast<std::size_t>(size));
  std::iota(of_groups.begin(), of_groups.end(), 0);
  std::iota(of_open.begin(), of_open.end(), 0);
  constexpr int kDraws = 40000;
  double sum = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    choose(of_groups, open);
    choose(of_open, top_k);
    std::bitset<32> reached;
    for (std::size_t i = 0; i < top_k; ++i) {
      const int expert = of_groups[static_cast<std::size_t>(of_open[i] / size)] * size + of_open[i] % size;
      reached.set(static_cast<std::size_t>(expert / (experts / places)));
    }
    sum += static_cast<double>(reached.count());
  }
  return sum / kDraws;
}

TEST(Routing, PlacesReachedAreThoseOfDrawnTokens) {
  const ExpertChoice choices[] = {{256, 8, 0, 0}, {256, 8, 8, 4}, {160, 6, 8, 3}, {64, 2, 0, 0}, {128, 8, 4, 1}};
  for (const ExpertChoice& c : choices) {
    for (int places : {1, 2, 4, 8, 16, 32}) {
      const double expected = places_reached(c, places);
      EXPECT_NEAR(expected, drawn(c, places), 0.01 * expected + 0.01) << c.experts << " " << c.groups << " " << places;
      EXPECT_LE(expected, c.top_k * (1 + 1e-12));
    }
  }
  // DeepSeek-V3: 8 nodes, at most 4 of them.
  EXPECT_LE(places_reached({256, 8, 8, 4}, 8), 4);
  EXPECT_GT(places_reached({256, 8, 0, 0}, 8), 5);
}

// What a dispatcher that knows the nodes saves, and that a limit of groups saves more.
TEST(Routing, OneCopyPerNodeIsNeverSlower) {
  Prices<double> p{};
  p.scaleup = BytesPerSecond<double>(9);
  p.scaleout = BytesPerSecond<double>(1);
  p.domain = 8;
  p.has_scaleout = true;
  Prices<double> plain = p;
  p.deduplicated = true;
  for (double ep : {2.0, 8.0, 16.0, 64.0}) {
    for (double top_k : {1.0, 2.0, 8.0}) {
      const auto seconds = [&](const Prices<double>& prices, const ExpertChoice& c) {
        return prices.exchange_rows(1e6, c, {ep, 1}).number();
      };
      const double any = seconds(p, {256, top_k, 0, 0}), limited = seconds(p, {256, top_k, 8, 4});
      EXPECT_LE(any, seconds(plain, {256, top_k, 0, 0}) * (1 + 1e-12)) << ep << " " << top_k;
      EXPECT_LE(limited, any * (1 + 1e-9)) << ep << " " << top_k;
    }
  }
}

}  // namespace
}  // namespace preflop::test
