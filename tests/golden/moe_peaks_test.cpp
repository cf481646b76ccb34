// Measured peaks of models with experts and latent attention: max_memory_allocated, 8 x B200, Megatron-LM
// 23e00ed with Transformer Engine 2.11, DeepSeek-V2 and V3 cut to four layers (one of them dense), alltoall
// dispatcher, grouped GEMMs, capacity factor 1 padded, sequence 4096, micro-batch 1, fp32 main gradients.
// Source: MooreThreads/SimuMax@4dcaae5 docs/b200/b200_release_v1.2_summary.json. The router's scratch, the
// gradients that are freed late and the grouped workspaces were settled on these rows: they are in-sample.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "src/adapt/model_catalogue.hpp"
#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

struct Peak {
  const char* id;
  const char* model;
  i64 ep, pp, micro_batches;
  double gib[2];  // by stage; 0: no such stage
};
const Peak kPeaks[] = {{"dsv2-l4 ep8", "deepseek-v2", 8, 1, 4, {45.635, 0}},
                       {"dsv3-l4 ep8", "deepseek-v3", 8, 1, 4, {104.301, 0}},
                       {"dsv2-l4 ep4 pp2", "deepseek-v2", 4, 2, 8, {31.585, 44.703}},
                       {"dsv3-l4 ep4 pp2", "deepseek-v3", 4, 2, 4, {71.239, 114.002}},
                       {"dsv3-l4 ep4 pp2 mbc32", "deepseek-v3", 4, 2, 32, {71.239, 114.002}}};

Architecture cut(const char* model) {
  static const Result<ModelCatalogue> models = ModelCatalogue::load();
  Architecture a = *models->find(model);
  a.layers[0].count = 1;
  a.layers[1].count = 3;
  a.mtp_layers = 0;
  return a;
}

TEST(ExpertPeaks, WithinOnePercent) {
  double sum = 0;
  int stages = 0;
  for (const Peak& p : kPeaks) {
    Recipe r = recipe_for(stack("megatron@core-0.14"), 4096);
    r.layout.pp = p.pp;
    r.layout.dp = 8 / p.pp;
    r.layout.ep = p.ep;
    r.layout.zero = 1;
    r.capacity_factor = 1;
    r.global_batch = p.micro_batches * r.layout.dp;
    r.loss = LossKind::fused;
    const Case out = run(cut(p.model), stack("megatron@core-0.14"), r);
    const MemoryEstimate<double> memory = memory_estimate<double>(out.a, Cluster{});
    for (i64 stage = 0; stage < p.pp; ++stage) {
      const StageMemory<double>& s = memory.stages[static_cast<std::size_t>(stage)];
      const double gib = s.allocated.number() / (1024.0 * 1024.0 * 1024.0), error = gib / p.gib[stage] - 1;
      std::printf("%-24s stage %lld: %8.3f GiB predicted at %s, %8.3f measured, %+.3f %%\n", p.id,
                  static_cast<long long>(stage), gib, name(s.moment), p.gib[stage], 100 * error);
      EXPECT_LT(std::abs(error), 0.01) << p.id;
      sum += std::abs(error);
      ++stages;
    }
  }
  EXPECT_LT(sum / stages, 0.006) << "mean error over the stages";
}

}  // namespace
}  // namespace preflop::test
