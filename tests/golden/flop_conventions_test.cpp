// Published FLOPs per token under the source's own convention. The figures are those that the formulas of
// the sources give for the shapes, and each published run's TFLOP/s over tokens/s says the same:
//   bridge       NVIDIA-NeMo/Megatron-Bridge docs/performance-summary-archive.md with
//                src/megatron/bridge/training/utils/flop_utils.py (NeMo containers 25.09 and 26.06)
//   nemo24       NVIDIA/NeMo docs/source/performance/performance_summary.md (container 24.07) with
//                nemo/collections/common/metrics/perf_metrics.py; NVIDIA/Megatron-LM examples/llama/README.md;
//                huggingface/nanotron src/nanotron/models/llama.py get_flops
//   narayanan    arXiv:2104.04473 section 5.1;  korthikanti  arXiv:2205.05198 appendix A
//   palm, palm-no-embedding  pytorch/torchtitan docs/performance.md;  8n  bigscience-workshop/bigscience
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "src/adapt/model_catalogue.hpp"
#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

const ModelCatalogue& models() {
  static const Result<ModelCatalogue> loaded = ModelCatalogue::load();
  if (!loaded) ADD_FAILURE() << loaded.error().text();
  return *loaded;
}

double gflop_per_token(const std::string& model, const char* convention, i64 seq, i64 tp) {
  const Result<Architecture> architecture = models().find(model);
  if (!architecture) {
    ADD_FAILURE() << architecture.error().text();
    return 0;
  }
  Recipe r = recipe_for(stack("megatron"), seq);
  r.layout.tp = tp;
  r.layout.sp = tp > 1;
  const Case c = run(*architecture, stack("megatron"), r);
  return flops_per_token<double>(c.a, *find_convention(convention), false).number() / 1e9;
}

struct Published {
  const char* model;
  const char* convention;
  i64 seq, tp;
  double formula;           // GFLOP/token
  double tflops, tokens_s;  // of one GPU, as published; 0: only the formula is
};

const std::vector<Published> kPublished = {
    {"llama3-8b", "bridge", 8192, 1, 51.47, 725, 14079},
    {"llama3-70b", "bridge", 8192, 4, 449.2, 727, 1619},
    {"llama3.1-405b", "bridge", 8192, 4, 2524, 3575, 1413},
    {"llama3-8b", "nemo24", 8192, 1, 57.91, 711, 12273},
    {"gpt3-175b", "nemo24", 2048, 4, 1076, 771, 716},
    {"llama2-70b", "nemo24", 4096, 4, 444.5, 768, 1728},
    {"nemotron4-340b", "nemo24", 4096, 8, 2105, 686, 326},
    {"llama2-7b", "nemo24", 1048576, 8, 1689, 536, 318},
    {"llama3-8b", "nemo24", 8192, 1, 57.91, 800, 13812},                   // Megatron-LM examples
    {"nanotron-llama-3.57b", "nemo24", 4096, 2, 25.67, 363.66, 14167.25},  // nanotron get_flops: the same formula
    // Further shapes of the same sources, by their formulas.
    {"llama2-7b", "nemo24", 4096, 1, 46.085, 0, 0},
    {"llama2-13b", "nemo24", 4096, 1, 87.176, 0, 0},
    {"llama2-70b", "nemo24", 4096, 1, 444.491, 0, 0},
    {"gpt3-175b", "nemo24", 2048, 1, 1076.443, 0, 0},
    {"gpt3-20b", "nemo24", 2048, 1, 128.119, 0, 0},
    {"gpt3-5b", "nemo24", 2048, 1, 32.665, 0, 0},
    {"nemotron3-8b-gpt", "nemo24", 4096, 1, 51.389, 0, 0},
    {"nemotron3-22b-gpt", "nemo24", 4096, 1, 130.233, 0, 0},
    {"nemotron4-15b", "nemo24", 4096, 1, 93.994, 0, 0},
    {"nemotron4-340b", "nemo24", 4096, 1, 2104.794, 0, 0},
    {"llama3-70b", "bridge", 8192, 1, 449.223, 0, 0},
    {"llama3.1-405b", "bridge", 8192, 1, 2523.956, 0, 0},
};

TEST(FlopConventions, PublishedTable) {
  int within = 0;
  for (const Published& p : kPublished) {
    SCOPED_TRACE(std::string(p.model) + " " + p.convention);
    const double ours = gflop_per_token(p.model, p.convention, p.seq, p.tp);
    EXPECT_NEAR(ours / p.formula, 1, 0.001);
    if (std::fabs(ours / p.formula - 1) <= 0.001) ++within;
    if (p.tokens_s > 0) {
      EXPECT_NEAR(p.tflops * 1e3 / p.tokens_s / ours, 1, 0.003);
    }
  }
  printf("FLOP conventions: %d of %zu published figures within 0.1 %%\n", within, kPublished.size());
}

// The same figures to the last digit that double arithmetic on the shape gives: what pads and what does not.
TEST(FlopConventions, PaddingFollowsTheSource) {
  // Bridge pads the vocabulary to 128 x tp: 128,256 is 1,002 x 128, and 128,512 at tp 4.
  const double one = gflop_per_token("llama3-70b", "bridge", 8192, 1);
  EXPECT_NEAR(gflop_per_token("llama3-70b", "bridge", 8192, 4) - one, 6.0 * 8192 * (128512 - 128256) / 1e9, 1e-9);
  // NeMo 24 takes the vocabulary from a table: no padding.
  EXPECT_EQ(gflop_per_token("llama2-70b", "nemo24", 4096, 8), gflop_per_token("llama2-70b", "nemo24", 4096, 1));
  // At a million tokens half of the attention is half of nearly everything.
  EXPECT_NEAR(gflop_per_token("llama2-7b", "bridge", 1048576, 1), 864.276, 0.001);
}

// 96 B s L h^2 (1 + s/6h + V/16Lh) and 72 B s L h^2 (1 + s/6h + V/12Lh), a token's share, of the paper's own shape.
TEST(FlopConventions, PaperFormulasOnTheirGpt3) {
  const double h = 12288, layers = 96, s = 2048, v = 51200;
  EXPECT_NEAR(gflop_per_token("gpt3-175b", "narayanan", 2048, 8),
              96 * layers * h * h * (1 + s / (6 * h) + v / (16 * layers * h)) / 1e9, 1e-6);
  EXPECT_NEAR(gflop_per_token("gpt3-175b", "korthikanti", 2048, 8),
              72 * layers * h * h * (1 + s / (6 * h) + v / (12 * layers * h)) / 1e9, 1e-6);
}

// torchtitan's Llama 3.1 405B on 512 H100: 109 tokens/s and GPU at sequence 8192, printed as 29 % of 989.
TEST(FlopConventions, TorchtitansOwnMfu) {
  const double mfu = gflop_per_token("llama3.1-405b", "palm-no-embedding", 8192, 1) * 1e9 * 109 / 989e12;
  EXPECT_NEAR(mfu, 0.289, 0.0005);
}

TEST(FlopConventions, EightNIsSixNAndAnotherForward) {
  EXPECT_DOUBLE_EQ(gflop_per_token("llama3-8b", "8n", 4096, 1) * 1e9, 8 * 8030261248.0);
  EXPECT_DOUBLE_EQ(gflop_per_token("llama3-8b", "6n", 4096, 1) * 1e9, 6 * 8030261248.0);
  EXPECT_DOUBLE_EQ(gflop_per_token("llama3-8b", "6n-no-embedding", 4096, 1) * 1e9,
                   6 * (8030261248.0 - 128256.0 * 4096));
  EXPECT_DOUBLE_EQ(gflop_per_token("llama3-8b", "palm", 8192, 1) * 1e9, 6 * 8030261248.0 + 12.0 * 32 * 4096 * 8192);
}

TEST(FlopConventions, EveryOneHasASourceAndAName) {
  const std::vector<std::string> wanted = {
      "palm",    "palm-no-embedding", "6n",          "6n-no-embedding", "8n", "bridge", "bridge-v0-4", "nemo24",
      "maxtext", "maxtext-causal",    "korthikanti", "narayanan",       "hfu"};
  EXPECT_EQ(convention_names(), wanted);
  for (const Convention& c : conventions()) {
    EXPECT_NE(std::string(c.source), "");
    EXPECT_NE(std::string(c.says), "");
  }
  EXPECT_EQ(find_convention("megatron"), nullptr);
}

}  // namespace
}  // namespace preflop::test
