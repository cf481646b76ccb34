// Where a token's experts lie, against drawing them; which links a group of ranks finds.
#include <gtest/gtest.h>

#include <bitset>
#include <cmath>
#include <numeric>
#include <vector>

#include "src/cost/choice.hpp"
#include "src/cost/price.hpp"
#include "tests/support/draw.hpp"

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

// Rings of a group with one rank a node keep to one rail, those with all ranks of it have every rail; any other
// crosses.
TEST(Routing, GroupsOfSomeRanksOfANodeCrossRails) {
  Prices<double> p{};
  p.has_scaleout = true;
  p.domain = 8;
  p.scaleup = BytesPerSecond<double>(1e12);
  p.scaleout = BytesPerSecond<double>(10e9);
  for (const double share : {1.0, 0.4}) {
    p.crossing_share = share;
    const auto links = [&](double size, double stride) { return p.bandwidth({size, stride}).number() / 10e9; };
    EXPECT_DOUBLE_EQ(links(4, 8), 1);            // tensor-parallel 8: one rank a node
    EXPECT_DOUBLE_EQ(links(8, 4), 2 * share);    // 4: two
    EXPECT_DOUBLE_EQ(links(16, 2), 4 * share);   // 2: four
    EXPECT_DOUBLE_EQ(links(32, 1), 8);           // all of a node
    EXPECT_DOUBLE_EQ(links(8, 1), 1e12 / 10e9);  // within one
  }
}

// NCCL's all-to-all is waited for; a dispatcher that sends a row once a rank has its own share, and each moves its own.
TEST(Routing, EveryDispatcherHasItsOwnExposedShare) {
  const auto exposed = [](const char* dispatcher, const char* doubled) {
    TimeParameters twice = TimeParameters::built_in();
    for (std::size_t i = 0; i < twice.all().size(); ++i)
      if (twice.all()[i].field == doubled) twice.set(i, 2 * twice.all()[i].value);
    Recipe r;
    r.dispatcher = dispatcher;
    return prices<double>(machines().cluster("8xb200").value(), stack("megatron"), r, twice).ep_exposed;
  };
  for (const char* dispatcher : {"alltoall", "deepep", "hybridep"}) {
    const bool plain = std::string_view(dispatcher) == "alltoall";
    const double as_is = exposed(dispatcher, "");
    EXPECT_DOUBLE_EQ(exposed(dispatcher, "ep_exposed_alltoall"), plain ? 2 * as_is : as_is);
    EXPECT_DOUBLE_EQ(exposed(dispatcher, "ep_exposed"), plain ? as_is : 2 * as_is);
  }
}

}  // namespace
}  // namespace preflop::test
