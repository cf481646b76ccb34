// What one layer keeps under Megatron-Core with Transformer Engine, tensor by tensor, and what each
// recomputation policy changes. T = tokens on the GPU, t = tp; bf16, sequence parallelism on.
//
//   two LayerNormLinear: input and normalised input        2 * 2 * 2Th/t    statistics 4 bytes a row: 2 * 4T/t
//   q, k, v as contiguous copies                           2T(H + 2K)d/t
//   attention result (= input of the projection)           2THd/t           log-sum-exp 4TH/t
//   gate and up, and their product                         4Tf/t + 2Tf/t
//   A = 2T/t (4h + (2H + 2K) d + 3f) + 4TH/t + 8T/t
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

struct Size {
  i64 s, b, h, H, K, d, f;
};
const Size kLlama70{4096, 1, 8192, 64, 8, 128, 28672};
const Size kLlama405{2048, 2, 16384, 128, 16, 128, 53248};
const Size kMqa{1024, 1, 2048, 8, 1, 256, 16384};
const i64 kTp[] = {1, 2, 4, 8};

Architecture llama_of(const Size& z) { return llama({.h = z.h, .heads = z.H, .kv = z.K, .d = z.d, .f = z.f}); }

Recipe megatron(const Size& z, i64 t) {
  Recipe r = recipe_for(stack("megatron"), z.s, z.b);
  r.layout.tp = t;
  r.layout.sp = true;
  return r;
}

i64 kept(const Architecture& a, const Recipe& r) { return saved(run(a, stack("megatron"), r).layer()); }
i64 kept(const Size& z, const Recipe& r) { return kept(llama_of(z), r); }

// kv heads are not cut further than into single heads.
i64 local_kv(const Size& z, i64 t) { return std::max<i64>(1, z.K / t); }

i64 formula(const Size& z, i64 t) {
  const i64 T = z.s * z.b;
  return 8 * T * z.h / t + 2 * T * (2 * z.H / t + 2 * local_kv(z, t)) * z.d + 6 * T * z.f / t + 4 * T * z.H / t +
         8 * T / t;
}

TEST(MegatronSaved, EveryTpSize) {
  for (const Size& z : {kLlama70, kLlama405, kMqa}) {
    for (i64 t : kTp) EXPECT_EQ(kept(z, megatron(z, t)), formula(z, t)) << "tp " << t << " of " << z.h;
  }
}

TEST(MegatronSaved, KvHeadsAreReplicatedBeyondTheirNumber) {
  for (i64 t : {16, 32}) EXPECT_EQ(kept(kLlama70, megatron(kLlama70, t)), formula(kLlama70, t));
  // Two ranks hold the same head: weight and FLOPs of k and v follow.
  const Case r = run(llama_of(kLlama70), stack("megatron"), megatron(kLlama70, 16));
  for (const WeightItem& w : r.layer().weights) {
    if (w.tag == Tag::attn_k || w.tag == Tag::attn_v) {
      EXPECT_EQ(w.volume.elements.get(), 8192 * 128);
    }
    if (w.tag == Tag::attn_q) {
      EXPECT_EQ(w.volume.elements.get(), 8192 * 4 * 128);
    }
  }
  for (const WorkItem& w : r.layer().work) {
    if (w.tag == Tag::attn_k) {
      EXPECT_EQ(whole(w.forward_flops), 2 * i64{4096} * 8192 * 128);
    }
  }
}

TEST(MegatronSaved, WithoutSequenceParallelismTheFourHiddenTermsStayWhole) {
  for (i64 t : kTp) {
    const Size& z = kLlama70;
    Recipe r = megatron(z, t);
    r.layout.sp = false;
    const i64 T = z.s * z.b;
    EXPECT_EQ(kept(z, r),
              8 * T * z.h + 2 * T * (2 * z.H + 2 * z.K) * z.d / t + 6 * T * z.f / t + 4 * T * z.H / t + 8 * T);
  }
}

TEST(MegatronSaved, ContextParallelCutsTokensAndAddsTheResultBeforeTheAllToAll) {
  for (i64 cp : {2, 4, 8}) {
    Size local = kLlama70;
    local.s /= cp;
    Recipe r = megatron(kLlama70, 2);
    r.layout.cp = cp;
    EXPECT_EQ(kept(kLlama70, r), formula(local, 2) + 2 * local.s * kLlama70.H * kLlama70.d / 2);
  }
}

TEST(MegatronRecompute, CoreAttentionUnderFlashCostsMemory) {
  // The checkpoint keeps q, k, v as passed. v is a slice of the merged product, so all of that lives,
  // 2T(H + 2K)d, beside the rotated q and k; only the log-sum-exp goes.
  for (const Size& z : {kLlama70, kLlama405}) {
    for (i64 t : kTp) {
      Recipe r = megatron(z, t);
      r.recompute.kind = RecomputeKind::selective;
      const i64 T = z.s * z.b;
      EXPECT_EQ(kept(z, r), formula(z, t) + 2 * T * (z.H + z.K) * z.d / t - 4 * T * z.H / t);
    }
  }
}

// With the scores go the keys and values repeated for every query head (2 H); in their stead stay the keys (K)
// and the merged product (H + 2 K), of which the values are a view.
TEST(MegatronRecompute, CoreAttentionUnfusedDropsTheScores) {
  const Size& z = kLlama70;
  const i64 T = z.s * z.b;
  for (i64 t : kTp) {
    Recipe r = megatron(z, t);
    r.attention = AttentionKernel::unfused;
    const i64 none = kept(z, r);
    r.recompute.kind = RecomputeKind::selective;
    EXPECT_EQ(none - kept(z, r), 2 * z.H * z.s * T / t + 2 * T * (z.H / t - 3 * local_kv(z, t)) * z.d);
  }
}

TEST(MegatronRecompute, MlpKeepsItsInput) {
  for (const Size& z : {kLlama70, kLlama405}) {
    for (i64 t : kTp) {
      Recipe r = megatron(z, t);
      r.recompute = {RecomputeKind::modules, 0, {"mlp"}};
      const i64 T = z.s * z.b;
      EXPECT_EQ(kept(z, r), formula(z, t) - 2 * T * z.h / t - 6 * T * z.f / t - 4 * T / t);
    }
  }
}

TEST(MegatronRecompute, FullKeepsTheLayersInput) {
  for (i64 t : kTp) {
    Recipe r = megatron(kLlama70, t);
    r.recompute.kind = RecomputeKind::full;
    EXPECT_EQ(kept(kLlama70, r), 2 * kLlama70.s * kLlama70.b * kLlama70.h / t);
  }
}

TEST(MegatronSaved, GptLayer) {
  // LayerNorm keeps mean and deviation, 8 bytes a row; GELU its input and the next product's: 2 + 2 f.
  const Size z{2048, 2, 4096, 32, 32, 128, 16384};
  const Architecture a = gpt({.h = z.h, .a = z.H, .dropout = 0});
  for (i64 t : kTp) {
    const i64 T = z.s * z.b;
    const i64 expected = 8 * T * z.h / t + 2 * T * 4 * z.h / t + 4 * T * z.f / t + 4 * T * z.H / t + 16 * T / t;
    EXPECT_EQ(kept(a, megatron(z, t)), expected);
  }
}

TEST(MegatronSaved, NormsOfQueriesAndKeysKeepTheMergedProductAlive) {
  // The key's norm keeps its view of the product, 2T(H + 2K)d; the query's a copy, 2THd; 4 bytes a row each.
  for (const Size& z : {kLlama70, kLlama405}) {
    for (i64 t : kTp) {
      Architecture a = llama_of(z);
      a.layers[0].kind.attention.qk_norm = QkNorm::head;
      const i64 T = z.s * z.b;
      const i64 more = 2 * T * (z.H + 2 * z.K) * z.d / t + 2 * T * z.H * z.d / t + 4 * T * (z.H + z.K) / t;
      EXPECT_EQ(kept(a, megatron(z, t)), formula(z, t) + more);
    }
  }
}

TEST(MegatronSaved, DropoutAddsAByteAnElement) {
  const Size z{2048, 2, 4096, 32, 32, 128, 16384};
  const Architecture with = gpt({.h = z.h, .a = z.H, .dropout = 0.1}),
                     without = gpt({.h = z.h, .a = z.H, .dropout = 0});
  for (i64 t : kTp) {
    // Two branches; the probabilities' mask is inside the fused attention, which keeps a seed instead.
    EXPECT_EQ(kept(with, megatron(z, t)) - kept(without, megatron(z, t)), 2 * z.s * z.b * z.h / t);
    Recipe r = megatron(z, t);
    r.attention = AttentionKernel::unfused;
    EXPECT_EQ(kept(with, r) - kept(without, r), 2 * z.s * z.b * z.h / t + 3 * z.H * z.s * z.s * z.b / t);
  }
}

TEST(MegatronSaved, HeadKeepsNormAndLogits) {
  const Size& z = kLlama70;
  Architecture a = llama_of(z);
  a.vocab = 128256;  // a multiple of 128 * 2 only
  for (i64 t : kTp) {
    Recipe r = megatron(z, t);
    const i64 T = z.s * z.b, step = 128 * t, V = (128256 + step - 1) / step * step;
    r.loss = LossKind::fused;
    EXPECT_EQ(saved(run(a, stack("megatron"), r).head()), 4 * T * z.h / t + 4 * T / t + 2 * T * V / t);
    r.loss = LossKind::plain;
    EXPECT_EQ(saved(run(a, stack("megatron"), r).head()), 4 * T * z.h / t + 4 * T / t + 4 * T * V / t);
  }
}

TEST(MegatronSaved, EmbeddingKeepsItsIds) {
  for (i64 t : kTp) {
    const Case r = run(llama_of(kLlama405), stack("megatron"), megatron(kLlama405, t));
    EXPECT_EQ(saved(r.embedding()), 8 * kLlama405.s * kLlama405.b);
  }
}

TEST(MegatronStates, SixBytesAndTwelveOverTheDataParallelGroup) {
  // bf16 weights and fp32 main gradients whole, fp32 master and moments sharded over dp * cp.
  const Llama l{.h = 1024, .heads = 16, .kv = 4, .d = 64, .f = 2048, .layers = 4, .vocab = 32000};
  const i64 layer = 1024 * (16 + 2 * 4) * 64 + 16 * 64 * 1024 + 3 * 1024 * 2048 + 2 * 1024;
  for (i64 dp : {1, 2, 8}) {
    for (i64 cp : {1, 2}) {
      Recipe r = recipe_for(stack("megatron"), 512);
      r.layout.dp = dp;
      r.layout.cp = cp;
      r.layout.zero = 1;
      r.global_batch = dp;
      const Case out = run(llama(l), stack("megatron"), r);
      const i64 n = 4 * layer + 2 * 32000 * 1024 + 1024;  // 32000 = 250 * 128: no padding at tp 1
      EXPECT_EQ(state_bytes(out.a, out.a.stages[0]), 6 * n + 12 * (n / (dp * cp)));
    }
  }
}

TEST(MegatronStates, TensorParallelCutsMatricesNotNorms) {
  // GPT: 12h^2/t + column biases 7h/t; row biases 2h and norms 4h whole.
  const i64 h = 1024;
  for (i64 t : kTp) {
    Recipe r = recipe_for(stack("megatron"), 512);
    r.layout.tp = t;
    const Case out = run(gpt({.h = h, .a = 16, .vocab = 1024}), stack("megatron"), r);
    i64 n = 0;
    for (const WeightItem& w : out.layer().weights) n += w.volume.elements.get();
    EXPECT_EQ(n, 12 * h * h / t + 7 * h / t + 6 * h);
  }
}

TEST(MegatronBuffers, OneWeightGradientPerDistinctProduct) {
  // 2 (h (H + 2K) d + Hd h + 2f h + f h) / t, whatever the number of layers; equal shapes share one.
  const Size& z = kLlama70;
  for (i64 t : kTp) {
    Architecture a = llama_of(z);
    a.layers[0].count = 3;
    a.vocab = 1024 * t;
    const Case out = run(a, stack("megatron"), megatron(z, t));
    const i64 dummies = 2 * (z.h * (z.H + 2 * z.K) * z.d + z.H * z.d * z.h + 3 * z.f * z.h) / t;
    const i64 gathered = t > 1 ? 2 * z.s * z.b * z.h : 0;  // input of the output layer, kept by the process
    EXPECT_EQ(term_bytes(out.a, out.a.stages[0], Moment::init, Term::buffers), dummies + gathered + 64 * 1024 * 1024);
  }
}

TEST(MegatronTransients, AnMlpHolds4TfAnd2Th) {
  // Backward of the second product: its gradient of the gated pair beside the gradient of its result.
  Architecture a = llama_of(kLlama70);
  a.layers[0].count = 2;
  Recipe r = megatron(kLlama70, 1);
  r.layout.pp = 2;
  const Case out = run(a, stack("megatron"), r);
  const i64 T = 4096;
  EXPECT_EQ(term_bytes(out.a, out.a.stages[0], Moment::last_layer_backward, Term::transients),
            6 * T * 28672 + 2 * T * 8192);
}

}  // namespace
}  // namespace preflop::test
