#include "src/adapt/gpu_defaults.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace preflop {
namespace {

const Catalogues& catalogues() {
  static const Catalogues loaded = Catalogues::load().value();
  return loaded;
}

Result<Problem> posed(const char* on, const char* stack, std::map<std::string, std::string, std::less<>> keys = {}) {
  Request r;
  r.model = "gpt2";
  r.on = on;
  r.keys = std::move(keys);
  r.keys["stack"] = stack;
  return pose(r, catalogues());
}

bool assumes(const Recipe& r, const std::string& line) {
  return std::find(r.assumed.begin(), r.assumed.end(), line) != r.assumed.end();
}

TEST(GpuDefaults, VoltaAndTuringHaveNeitherBf16NorFlashAttention) {
  for (const char* gpu : {"v100-32", "t4"}) {
    const auto p = posed((std::string("1x") + gpu).c_str(), "megatron");
    ASSERT_TRUE(p.ok()) << p.error().text();
    const Recipe& r = p->analysed.recipe;
    EXPECT_EQ(r.precision, "fp16");
    EXPECT_EQ(r.weight_dtype, Dtype::fp16);
    EXPECT_EQ(r.attention, AttentionKernel::unfused);
    EXPECT_TRUE(assumes(r, std::string("precision=fp16 (") + gpu + " has no bf16)"));
    EXPECT_TRUE(assumes(r, std::string("attention=unfused (cudnn does not run on ") + gpu + ")"));
    EXPECT_EQ(r.given.count("precision") + r.given.count("attention"), 0U);
  }
}

TEST(GpuDefaults, OthersKeepTheStacksKernels) {
  for (const char* gpu : {"1xa100-80", "1xh100-sxm", "1xrtx4090", "1xb200"}) {
    const auto p = posed(gpu, "megatron");
    ASSERT_TRUE(p.ok()) << p.error().text();
    EXPECT_EQ(p->analysed.recipe.precision, "bf16");
    EXPECT_EQ(p->analysed.recipe.attention, AttentionKernel::cudnn);
  }
  const auto amd = posed("1xmi300x", "megatron");
  ASSERT_TRUE(amd.ok()) << amd.error().text();
  EXPECT_EQ(amd->analysed.recipe.attention, AttentionKernel::fa2);
}

TEST(GpuDefaults, AKernelThatTheChipLacksIsRefused) {
  const auto v100 = posed("1xv100-32", "megatron", {{"attention", "fa2"}});
  ASSERT_FALSE(v100.ok());
  EXPECT_EQ(v100.error().text(), "--attention: fa2 does not run on v100-32 (sm70); unfused");
  EXPECT_FALSE(posed("1xb200", "megatron", {{"attention", "fa3"}}).ok());
  EXPECT_FALSE(posed("1xmi300x", "megatron", {{"attention", "cudnn"}}).ok());
  EXPECT_TRUE(posed("1xh100-sxm", "megatron", {{"attention", "fa3"}}).ok());
}

}  // namespace
}  // namespace preflop
