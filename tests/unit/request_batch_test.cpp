// Batches in tokens as sequences that many layouts can share out.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "src/adapt/question.hpp"
#include "src/search/plan.hpp"

namespace preflop {
namespace {

const Catalogues& catalogues() {
  static const Catalogues kCatalogues = std::move(Catalogues::load()).value();
  return kCatalogues;
}

Request request(const char* model, std::int64_t gpus) {
  Request out;
  out.model = model;
  out.on = std::to_string(gpus) + "xh100-sxm" + (gpus % 8 == 0 ? "" : "/" + std::to_string(gpus));
  return out;
}

std::int64_t batch_of(std::int64_t gpus, const char* given) {
  Request asked = request("llama3-8b", gpus);
  if (given != nullptr) asked.keys["global_batch"] = given;
  const auto drafted = draft(asked, catalogues());
  EXPECT_TRUE(drafted.ok()) << gpus;
  const auto question = ask(asked, *drafted);
  EXPECT_TRUE(question.ok()) << gpus;
  return question->recipe.global_batch;
}

TEST(Batch, OfTokensIsNearAndCanBeSharedOut) {
  for (std::int64_t gpus = 8; gpus <= 1024; gpus += 8) {
    std::int64_t odd = gpus;
    while (odd % 2 == 0) odd /= 2;
    if (odd > 64) continue;  // then its own multiple is the nearest there is
    const std::int64_t assumed = batch_of(gpus, nullptr), given = batch_of(gpus, "4Mitok");
    EXPECT_EQ(assumed % odd, 0) << gpus;
    EXPECT_LT(std::abs(assumed - 512) * 4, 512) << gpus;
    // A given one is kept to nearer than that, where a multiple allows it.
    EXPECT_LE(std::abs(given - 512) * 32, std::max<std::int64_t>(512, 16 * odd)) << gpus;
  }
}

TEST(Batch, AssumedForManyGpusIsSharedOutWide) {
  EXPECT_EQ(batch_of(2048, nullptr), 512);
  EXPECT_EQ(batch_of(1536, nullptr), 576);  // 2^6 x 9: dp of up to 192
  EXPECT_EQ(batch_of(640, nullptr), 480);
  EXPECT_EQ(batch_of(1568, nullptr), 392);  // 2^5 x 49: dp of up to 392 beside two or four stages, not of up to 98
  EXPECT_EQ(batch_of(1568, "4Mitok"), 490);
  EXPECT_EQ(batch_of(1536, "4Mitok"), 528);
  EXPECT_EQ(batch_of(1536, "512"), 512);
}

// Sequences a second of the best plan at a batch.
double rate_at(Question question, std::int64_t batch) {
  question.recipe.global_batch = batch;
  EXPECT_TRUE(prepare(question).ok());
  const SearchResult found = search_all(question, make_space(question), {Objective::time, {}, 1});
  return found.best.empty() ? 0 : static_cast<double>(batch) / found.best.front().priced.seconds;
}

// No batch of more than three quarters of 4 Mi tokens and at most an eighth more than the assumed one lets these GPUs
// work much faster.
TEST(Batch, AssumedLeavesTheGoodLayouts) {
  constexpr double kMuch = 1.05;
  for (const char* model : {"llama3-8b", "llama3-70b"}) {
    for (const std::int64_t gpus : {24, 1000, 1184, 1568, 3000}) {
      const Request asked = request(model, gpus);
      const auto drafted = draft(asked, catalogues());
      ASSERT_TRUE(drafted.ok()) << gpus;
      const auto question = ask(asked, *drafted);
      ASSERT_TRUE(question.ok()) << gpus;
      const std::int64_t assumed = question->recipe.global_batch;
      const double rate = rate_at(*question, assumed);
      for (std::int64_t batch = std::min<std::int64_t>(assumed * 7 / 8, 385); batch <= assumed * 9 / 8; ++batch) {
        if (std::gcd(batch, gpus) < 12 || batch == assumed) continue;  // only tp, cp and unlike stages are left
        EXPECT_LE(rate_at(*question, batch), kMuch * rate) << model << " " << gpus << " " << assumed << " " << batch;
      }
    }
  }
}

// `estimate` of any layout that can share it out takes the batch that `plan` takes.
TEST(Batch, IsTheSameOfPlanAndEstimate) {
  for (const std::int64_t gpus : {24, 96, 1000, 1024, 1536, 1568, 3000}) {
    for (const char* given : {static_cast<const char*>(nullptr), "4Mitok", "2Mtok"}) {
      const std::int64_t planned = batch_of(gpus, given);
      for (const char* tp : {"1", "2", "4", "8"}) {
        for (const char* pp : {"1", "2", "3", "4"}) {
          Request asked = request("llama3-8b", gpus);
          asked.keys["tp"] = tp;
          asked.keys["pp"] = pp;
          if (given != nullptr) asked.keys["global_batch"] = given;
          const auto problem = pose(asked, catalogues());
          if (!problem) continue;
          const Recipe& r = problem->analysed.recipe;
          const std::int64_t taken = r.global_batch;
          EXPECT_EQ(taken % r.layout.dp, 0);
          if (planned % r.layout.dp != 0) continue;
          EXPECT_EQ(taken, planned) << gpus << " tp " << tp << " pp " << pp;
        }
      }
    }
  }
}

}  // namespace
}  // namespace preflop
