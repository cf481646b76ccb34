// Batches in tokens as sequences that many layouts can share out.
#include <gtest/gtest.h>

#include <cstdlib>

#include "src/adapt/question.hpp"

namespace preflop {
namespace {

std::int64_t batch_of(std::int64_t gpus, const char* given) {
  static const Catalogues kCatalogues = std::move(Catalogues::load()).value();
  Request request;
  request.model = "llama3-8b";
  request.on = std::to_string(gpus) + "xh100-sxm";
  if (given != nullptr) request.keys["global_batch"] = given;
  const auto drafted = draft(request, kCatalogues);
  EXPECT_TRUE(drafted.ok()) << gpus;
  const auto question = ask(request, *drafted);
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
    EXPECT_LE(std::abs(assumed - 512) * 8, 512) << gpus;
    // A given one is kept to nearer than that, where a multiple allows it.
    EXPECT_LE(std::abs(given - 512) * 32, std::max<std::int64_t>(512, 16 * odd)) << gpus;
  }
}

TEST(Batch, AssumedForManyGpusIsSharedOutWide) {
  EXPECT_EQ(batch_of(2048, nullptr), 512);
  EXPECT_EQ(batch_of(1536, nullptr), 576);  // 2^6 x 9: dp of up to 192
  EXPECT_EQ(batch_of(640, nullptr), 480);
  EXPECT_EQ(batch_of(1536, "4Mitok"), 528);
  EXPECT_EQ(batch_of(1536, "512"), 512);
}

}  // namespace
}  // namespace preflop
