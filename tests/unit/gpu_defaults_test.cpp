#include "src/adapt/gpu_defaults.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/adapt/recipe_keys.hpp"

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

// A precision runs where the chip has products in it: of every chip of the catalogue.
TEST(GpuDefaults, APrecisionThatTheChipLacksIsRefused) {
  std::map<std::string, int> refused;
  for (const Gpu& gpu : catalogues().machines.gpus()) {
    const std::string stack = gpu.arch == "tpu" ? "maxtext" : "megatron";
    const std::vector<std::string> all = catalogues().stacks.find(stack).value()->precision_names();
    const bool fp8 = gpu.datum("fp8_flops").value.has_value(), fp4 = gpu.datum("fp4_flops").value.has_value();
    for (const std::string& precision : all) {
      const auto p = posed(("1x" + gpu.id).c_str(), stack.c_str(), {{"precision", precision}});
      const std::string where = gpu.id + " " + precision;
      const bool block = precision == "mxfp8" || precision == "nvfp4";
      if (!p) {
        ++refused[precision];
        EXPECT_EQ(p.error().where, "--precision") << where << ": " << p.error().text();
        EXPECT_NE(p.error().what.find("does not run on " + gpu.id), std::string::npos) << p.error().text();
        EXPECT_EQ((", " + p.error().valid).find(", " + precision + ","), std::string::npos) << p.error().text();
        EXPECT_FALSE(p.error().valid.empty()) << where;
        EXPECT_FALSE(block ? fp8 && fp4 && precision == "mxfp8" : precision.starts_with("fp8") && fp8) << where;
      } else if (precision == "bf16") {
        EXPECT_TRUE(gpu.arch != "sm70" && gpu.arch != "sm75") << where;
      } else if (block) {
        EXPECT_TRUE(fp4) << where;
      } else if (precision.starts_with("fp8")) {
        EXPECT_TRUE(fp8 || gpu.arch == "sm90") << where;  // an H100 whose sheet has no fp8 rate
      }
    }
  }
  EXPECT_EQ(refused["fp32"] + refused["fp16"], 0);
  EXPECT_EQ(refused["bf16"], 3);  // V100, twice, and T4
  EXPECT_GT(refused["fp8-delayed"], 10);
  EXPECT_GT(refused["nvfp4"], refused["mxfp8"]);  // MI355X has blocks of fp8, and no NVFP4
}

// Whoever refuses a precision, the chip or the stack, offers only what both run.
TEST(GpuDefaults, APrecisionThatIsOfferedRuns) {
  int by_stack = 0;
  for (const char* on : {"1xv100-32", "1xa100-80", "1xh100-sxm", "1xb200", "1xmi300x", "1xmi355x", "1xrtx4090"}) {
    for (const Stack& stack : catalogues().stacks.all()) {
      if (!stack.generation.empty()) continue;
      const auto runs = [&](const std::string& precision) {
        return posed(on, stack.name.c_str(), {{"precision", precision}});
      };
      for (const char* precision : {"bf16", "fp16", "fp8-delayed", "fp8-rowwise", "mxfp8", "nvfp4"}) {
        const auto p = runs(precision);
        if (p || p.error().where != "--precision") continue;
        by_stack += p.error().what.starts_with("stack ") ? 1 : 0;
        std::string offered = p.error().valid;
        for (const std::string word : {" or ", ", "}) {
          for (std::size_t at = 0; (at = offered.find(word, at)) != std::string::npos;)
            offered.replace(at, word.size(), ",");
        }
        for (const std::string& one : parts_of(offered)) {
          const auto other = runs(one);
          EXPECT_TRUE(other.ok() || other.error().where != "--precision") << on << ": " << p.error().text();
        }
      }
    }
  }
  EXPECT_GT(by_stack, 5);
}

TEST(GpuDefaults, TheRefusalSaysWhatRunsThere) {
  const auto hopper = posed("1xh100-sxm", "megatron", {{"precision", "mxfp8"}});
  ASSERT_FALSE(hopper.ok());
  EXPECT_EQ(hopper.error().text(),
            "--precision: mxfp8 does not run on h100-sxm (sm90); bf16, fp16, fp32, fp8-delayed, fp8-tensorwise "
            "or fp8-blockwise");
  const auto unknown = posed("1x80GB", "megatron", {{"precision", "mxfp8"}});  // a capacity, and no chip
  EXPECT_TRUE(unknown.ok()) << unknown.error().text();
}

}  // namespace
}  // namespace preflop
