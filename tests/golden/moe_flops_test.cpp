// FLOPs per token of models with experts, as their sources count them. Each published run's TFLOP/s over
// tokens/s says the same as the formula: NVIDIA-NeMo/Megatron-Bridge docs/performance-summary.md and -archive.md
// with src/megatron/bridge/training/utils/flop_utils.py of the container's release.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "src/adapt/model_catalogue.hpp"
#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

double gflop_per_token(const std::string& model, i64 mtp, const char* convention, i64 seq, i64 tp) {
  static const Result<ModelCatalogue> models = ModelCatalogue::load();
  Result<Architecture> architecture = models->find(model);
  if (!architecture) {
    ADD_FAILURE() << architecture.error().text();
    return 0;
  }
  architecture->mtp_layers = mtp;
  Recipe r = recipe_for(stack("megatron"), seq);
  r.layout.tp = tp;
  r.layout.sp = tp > 1;
  const Case c = run(*architecture, stack("megatron"), r);
  return flops_per_token<double>(c.a, *find_convention(convention), false).number() / 1e9;
}

struct Published {
  const char* model;
  i64 mtp;
  const char* convention;
  i64 seq, tp;
  double formula;           // GFLOP/token
  double tflops, tokens_s;  // of one GPU, as published; 0: only the formula is
};

const Published kPublished[] = {
    {"deepseek-v3", 1, "bridge", 4096, 1, 260.0, 1648, 6338},      // GB300 MXFP8 26.06
    {"deepseek-v3", 0, "bridge", 4096, 1, 249.8, 961, 3848},       // GB300 BF16 25.11 "w/o MTP"
    {"kimi-k2", 0, "bridge", 4096, 1, 204.5, 1090, 5332},          // GB300 26.04
    {"qwen3-30b-a3b", 0, "bridge", 4096, 1, 23.01, 1041, 45275},   // GB300 26.06
    {"qwen3-235b-a22b", 0, "bridge", 4096, 1, 148.0, 1335, 9015},  // GB300 26.06
    {"gpt-oss-120b", 0, "bridge", 4096, 1, 32.63, 1081, 33166},    // GB300 26.06
    {"gpt-oss-120b", 0, "bridge-v0-4", 4096, 1, 27.16, 524, 19275},
    {"gpt-oss-120b", 0, "bridge-v0-4", 8192, 1, 30.79, 0, 0},
    // Hybrids: their state spaces count as twice the hidden size wide, joins of multi-token prediction do not count.
    {"nemotron-h-56b", 0, "bridge", 8192, 1, 340.242, 0, 0},
    {"nemotron3-nano-30b-a3b", 0, "bridge", 8192, 1, 22.278, 849, 38102},  // GB300 MXFP8 26.04
    {"nemotron3.5-lightning", 2, "bridge", 8192, 1, 28.147, 807, 28672},   // GB200 MXFP8 26.08
    {"nemotron3-super", 2, "bridge", 8192, 1, 84.727, 815, 9623},          // GB300 NVFP4 26.04
    {"nemotron3-ultra", 2, "bridge", 8192, 1, 358.915, 0, 0},
};

TEST(ExpertFlops, EveryRowWithinATenthOfAPercent) {
  for (const Published& p : kPublished) {
    const double got = gflop_per_token(p.model, p.mtp, p.convention, p.seq, p.tp);
    const double error = got / p.formula - 1;
    std::printf("%-16s mtp %lld %-12s seq %5lld: %8.3f GFLOP/token, formula %7.2f, %+.3f %%\n", p.model,
                static_cast<long long>(p.mtp), p.convention, static_cast<long long>(p.seq), got, p.formula,
                100 * error);
    EXPECT_LT(std::abs(error), 0.001) << p.model;
    if (p.tokens_s == 0) continue;
    EXPECT_LT(std::abs(got / (1e3 * p.tflops / p.tokens_s) - 1), 0.003) << p.model;
  }
}

}  // namespace
}  // namespace preflop::test
