// The published identities of a GPT layer. Each expected value is written from s, b, h, a, t, L, V as
// the papers derive it, and must be met exactly.
//
// Bytes saved, Korthikanti et al. 2022 (arXiv:2205.05198), 2 bytes an element, masks 1 byte:
//   attention  2 (input of q, k, v) + 2 + 2 (Q, K) + 2 (V) + 2 (input of the projection) + 1 (mask) = 11 sbh
//   scores     2 (softmax) + 1 (mask) + 2 (dropped-out probabilities)                              =  5 as^2b
//   MLP        2 (input) + 8 (input of GELU) + 8 (input of the second product) + 1 (mask)          = 19 sbh
//   norms      2 + 2                                                                               =  4 sbh
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

struct Size {
  i64 s, b, h, a;
};
const Size kSizes[] = {{4096, 1, 4096, 32}, {2048, 3, 1536, 24}, {128, 2, 256, 8}, {8192, 1, 12288, 96}};

Recipe textbook(const Size& z) {
  Recipe r = recipe_for(stack("textbook"), z.s, z.b);
  r.attention = AttentionKernel::unfused;
  return r;
}

Case layer_run(const Size& z, const Recipe& r) { return run(gpt({.h = z.h, .a = z.a}), stack("textbook"), r); }

TEST(Parameters, LayerIs12h2And13h) {
  // q, k, v 3h^2 + 3h; projection h^2 + h; MLP 8h^2 + 5h; two LayerNorms 4h.
  for (const Size& z : kSizes) {
    const Model model = build_model(gpt({.h = z.h, .a = z.a}));
    EXPECT_EQ(parameters(model.blocks[1]).get(), 12 * z.h * z.h + 13 * z.h);
  }
}

TEST(Parameters, ModelAddsTablesHeadAndFinalNorm) {
  Architecture a = gpt({.h = 768, .a = 12, .layers = 12, .vocab = 50257});
  const i64 h = 768, layers = 12 * (12 * h * h + 13 * h);
  EXPECT_EQ(summarise(build_model(a)).params_total.get(), layers + 2 * 50257 * h + 2 * h);
  a.tied = true;
  EXPECT_EQ(summarise(build_model(a)).params_total.get(), layers + 50257 * h + 2 * h);
  a.positions = Positions::learned;
  a.position_rows = 1024;
  EXPECT_EQ(summarise(build_model(a)).params_total.get(), 124439808);  // GPT-2 small as published by its checkpoint
}

TEST(Parameters, Llama3) {
  const Llama l8{.h = 4096, .heads = 32, .kv = 8, .d = 128, .f = 14336, .layers = 32, .vocab = 128256};
  const Llama l70{.h = 8192, .heads = 64, .kv = 8, .d = 128, .f = 28672, .layers = 80, .vocab = 128256};
  EXPECT_EQ(summarise(build_model(llama(l8))).params_total.get(), 8030261248);
  EXPECT_EQ(summarise(build_model(llama(l70))).params_total.get(), 70553706496);
}

TEST(ForwardFlops, LayerIs24bsh2And4bs2h) {
  for (const Size& z : kSizes) {
    const Case r = layer_run(z, textbook(z));
    EXPECT_EQ(forward_flops(r.layer(), z.s), 24 * z.b * z.s * z.h * z.h + 4 * z.b * z.s * z.s * z.h);
  }
}

TEST(ForwardFlops, FusingAttentionChangesNothing) {
  for (const Size& z : kSizes) {
    Recipe r = textbook(z);
    r.attention = AttentionKernel::fa2;
    EXPECT_EQ(forward_flops(layer_run(z, r).layer(), z.s), forward_flops(layer_run(z, textbook(z)).layer(), z.s));
  }
}

TEST(Saved, NothingRecomputed) {
  for (const Size& z : kSizes) {
    const Case r = layer_run(z, textbook(z));
    EXPECT_EQ(saved(r.layer()), 34 * z.s * z.b * z.h + 5 * z.a * z.s * z.s * z.b);
  }
}

TEST(Saved, CoreRecomputed) {
  for (const Size& z : kSizes) {
    Recipe r = textbook(z);
    r.recompute.kind = RecomputeKind::selective;
    EXPECT_EQ(saved(layer_run(z, r).layer()), 34 * z.s * z.b * z.h);
  }
}

TEST(Saved, FlashKeepsOneLogSumExpPerQueryAndHead) {
  for (const Size& z : kSizes) {
    Recipe r = textbook(z);
    r.attention = AttentionKernel::fa2;
    EXPECT_EQ(saved(layer_run(z, r).layer()), 34 * z.s * z.b * z.h + 4 * z.a * z.b * z.s);
  }
}

TEST(Saved, FullRecomputationKeepsTheInput) {
  for (const Size& z : kSizes) {
    Recipe r = textbook(z);
    r.recompute.kind = RecomputeKind::full;
    EXPECT_EQ(saved(layer_run(z, r).layer()), 2 * z.s * z.b * z.h);
  }
}

TEST(Saved, TensorParallel) {
  // Norm inputs, block inputs and masks (10 sbh) stay whole; what the products' insides hold is cut.
  for (const Size& z : kSizes) {
    for (i64 t : {2, 4, 8}) {
      Recipe r = textbook(z);
      r.layout.tp = t;
      EXPECT_EQ(saved(layer_run(z, r).layer()),
                10 * z.s * z.b * z.h + 24 * z.s * z.b * z.h / t + 5 * z.a * z.s * z.s * z.b / t);
    }
  }
}

TEST(Saved, SequenceParallelCutsEverything) {
  for (const Size& z : kSizes) {
    for (i64 t : {2, 4, 8}) {
      Recipe r = textbook(z);
      r.layout.tp = t;
      r.layout.sp = true;
      EXPECT_EQ(saved(layer_run(z, r).layer()) * t, 34 * z.s * z.b * z.h + 5 * z.a * z.s * z.s * z.b);
      r.recompute.kind = RecomputeKind::selective;
      EXPECT_EQ(saved(layer_run(z, r).layer()) * t, 34 * z.s * z.b * z.h);
      r.recompute.kind = RecomputeKind::full;
      EXPECT_EQ(saved(layer_run(z, r).layer()) * t, 2 * z.s * z.b * z.h);
      r.layout.sp = false;
      EXPECT_EQ(saved(layer_run(z, r).layer()), 2 * z.s * z.b * z.h);
    }
  }
}

TEST(Saved, ThePage) {
  const Size z{4096, 1, 4096, 32};
  Recipe r = textbook(z);
  r.recompute.kind = RecomputeKind::selective;
  const Case selective = run(gpt({.h = z.h, .a = z.a, .layers = 32}), stack("textbook"), r);
  EXPECT_EQ(saved(selective.layer()), 570425344);         // 570.4 MB a layer
  EXPECT_EQ(32 * saved(selective.layer()), 18253611008);  // 18.25 GB for 32
  r.recompute.kind = RecomputeKind::full;
  EXPECT_EQ(saved(layer_run(z, r).layer()), 33554432);  // 34 MB
}

// --- mutations: change one thing of the model and the coefficient moves where the hand derives it ---

TEST(Mutation, Fp32ActivationsMake34Into66And5Into9) {
  // 16 elements of two bytes become four; the two masks stay a byte: 4 * 16 + 2 = 66. Scores 4 + 1 + 4.
  for (const Size& z : kSizes) {
    Recipe r = textbook(z);
    r.precision = "fp32";
    EXPECT_EQ(saved(layer_run(z, r).layer()), 66 * z.s * z.b * z.h + 9 * z.a * z.s * z.s * z.b);
  }
}

TEST(Mutation, WeightsInFp32AloneMoveNoActivation) {
  const Size z = kSizes[0];
  Recipe r = textbook(z);
  r.weight_dtype = Dtype::fp32;
  EXPECT_EQ(saved(layer_run(z, r).layer()), saved(layer_run(z, textbook(z)).layer()));
}

TEST(Mutation, WithoutDropoutNoMasksAndNoSecondCopyOfTheScores) {
  for (const Size& z : kSizes) {
    const Case r = run(gpt({.h = z.h, .a = z.a, .dropout = 0}), stack("textbook"), textbook(z));
    EXPECT_EQ(saved(r.layer()), 32 * z.s * z.b * z.h + 2 * z.a * z.s * z.s * z.b);
  }
}

TEST(Mutation, AGatedMlpKeepsEightPerChannelInsteadOfFour) {
  // Gate (input of the activation), its result, the other branch, their product: 2 bytes each.
  for (const Size& z : kSizes) {
    Architecture a = gpt({.h = z.h, .a = z.a});
    const i64 f = 5 * z.h / 2;
    a.layers[0].kind.mlp.gated = true;
    a.layers[0].kind.mlp.width = f;
    const Case r = run(a, stack("textbook"), textbook(z));
    EXPECT_EQ(saved(r.layer()), (34 - 16) * z.s * z.b * z.h + 8 * z.s * z.b * f + 5 * z.a * z.s * z.s * z.b);
    EXPECT_EQ(parameters(build_model(a).blocks[1]).get(), 4 * z.h * z.h + 8 * z.h + 3 * z.h * f + 2 * f + z.h);
    EXPECT_EQ(forward_flops(r.layer(), z.s), 2 * z.b * z.s * (4 * z.h * z.h + 3 * z.h * f) + 4 * z.b * z.s * z.s * z.h);
  }
}

TEST(Mutation, FfnRatio) {
  for (const Size& z : kSizes) {
    for (i64 ratio : {1, 2, 6}) {
      Architecture a = gpt({.h = z.h, .a = z.a});
      a.layers[0].kind.mlp.width = ratio * z.h;
      const Case r = run(a, stack("textbook"), textbook(z));
      EXPECT_EQ(saved(r.layer()), (18 + 4 * ratio) * z.s * z.b * z.h + 5 * z.a * z.s * z.s * z.b);
      EXPECT_EQ(parameters(build_model(a).blocks[1]).get(), (4 + 2 * ratio) * z.h * z.h + (9 + ratio) * z.h);
      EXPECT_EQ(forward_flops(r.layer(), z.s), (8 + 4 * ratio) * z.b * z.s * z.h * z.h + 4 * z.b * z.s * z.s * z.h);
    }
  }
}

TEST(Mutation, HeadCountMovesOnlyTheScores) {
  const Size z = kSizes[1];
  for (i64 a : {6, 12, 48}) {
    const Case r = layer_run({z.s, z.b, z.h, a}, textbook(z));
    EXPECT_EQ(saved(r.layer()), 34 * z.s * z.b * z.h + 5 * a * z.s * z.s * z.b);
    EXPECT_EQ(forward_flops(r.layer(), z.s), 24 * z.b * z.s * z.h * z.h + 4 * z.b * z.s * z.s * z.h);
  }
}

TEST(Mutation, KvHeadsAndHeadDim) {
  // With q = heads * d and kv = kv heads * d: Q and the projection's input 2q each, K and V 2kv each.
  for (const Size& z : kSizes) {
    for (i64 kv_heads : {i64{1}, i64{2}, z.a}) {
      const i64 d = 2 * z.h / z.a, q = z.a * d, kv = kv_heads * d, h = z.h;
      Architecture a = gpt({.h = h, .a = z.a});
      a.layers[0].kind.attention.kv_heads = kv_heads;
      a.layers[0].kind.attention.head_dim = d;
      const Case r = run(a, stack("textbook"), textbook(z));
      EXPECT_EQ(saved(r.layer()), z.s * z.b * (26 * h + 4 * q + 4 * kv) + 5 * z.a * z.s * z.s * z.b);
      EXPECT_EQ(parameters(build_model(a).blocks[1]).get(),
                2 * h * q + 2 * h * kv + q + 2 * kv + h + 8 * h * h + 5 * h + 4 * h);
      EXPECT_EQ(forward_flops(r.layer(), z.s),
                2 * z.b * z.s * (2 * h * q + 2 * h * kv + 8 * h * h) + 4 * z.b * z.s * z.s * q);
    }
  }
}

// --- collectives of tensor parallelism (arXiv:1909.08053, arXiv:2205.05198) ---

TEST(Collectives, NoneWithoutTensorParallelism) {
  const Size z = kSizes[0];
  Recipe r = textbook(z);
  r.layout.sp = true;
  EXPECT_TRUE(layer_run(z, r).layer().collectives.empty());
  EXPECT_TRUE(layer_run(z, r).head().collectives.empty());
  EXPECT_TRUE(layer_run(z, r).embedding().collectives.empty());
}

TEST(Collectives, TensorParallelIsTwoAllReducesEachWay) {
  const Size z = kSizes[0];
  for (i64 t : {2, 4, 8}) {
    Recipe r = textbook(z);
    r.layout.tp = t;
    const Case out = layer_run(z, r);
    EXPECT_EQ(collectives(out.layer(), CollectiveKind::all_reduce, false), 2);
    EXPECT_EQ(collectives(out.layer(), CollectiveKind::all_reduce, true), 2);
    EXPECT_EQ(out.layer().collectives.size(), 4U);
    for (const CollectiveItem& c : out.layer().collectives)
      EXPECT_EQ(whole(c.bytes()), 2 * z.s * z.b * z.h) << name(c.tag);
  }
}

TEST(Collectives, SequenceParallelIsTwoGathersAndTwoScattersForward) {
  // Backward mirrors them and gathers each column-parallel input once more, for the weight's gradient.
  const Size z = kSizes[0];
  for (i64 t : {2, 4, 8}) {
    Recipe r = textbook(z);
    r.layout.tp = t;
    r.layout.sp = true;
    const Case out = layer_run(z, r);
    EXPECT_EQ(collectives(out.layer(), CollectiveKind::all_gather, false), 2);
    EXPECT_EQ(collectives(out.layer(), CollectiveKind::reduce_scatter, false), 2);
    EXPECT_EQ(collectives(out.layer(), CollectiveKind::all_gather, true), 2 + 2);
    EXPECT_EQ(collectives(out.layer(), CollectiveKind::reduce_scatter, true), 2);
    EXPECT_EQ(out.layer().collectives.size(), 10U);
    for (const CollectiveItem& c : out.layer().collectives)
      EXPECT_EQ(whole(c.bytes()), 2 * z.s * z.b * z.h) << name(c.tag);
  }
}

TEST(Collectives, AParallelBlockReducesOnce) {
  const Size z = kSizes[0];
  Architecture a = gpt({.h = z.h, .a = z.a, .dropout = 0});
  a.layers[0].kind.placement = NormPlacement::shared_pre;
  Recipe r = textbook(z);
  r.layout.tp = 4;
  const Case one_norm = run(a, stack("textbook"), r);
  EXPECT_EQ(collectives(one_norm.layer(), CollectiveKind::all_reduce, false), 1);
  EXPECT_EQ(collectives(one_norm.layer(), CollectiveKind::all_reduce, true), 1);
  a.layers[0].kind.placement = NormPlacement::split_pre;
  const Case two_norms = run(a, stack("textbook"), r);
  EXPECT_EQ(collectives(two_norms.layer(), CollectiveKind::all_reduce, false), 1);
  EXPECT_EQ(collectives(two_norms.layer(), CollectiveKind::all_reduce, true), 2);
  a.layers[0].kind.dropout = 0.1;  // each branch is dropped out before the sum: no partial sums to add
  EXPECT_EQ(collectives(run(a, stack("textbook"), r).layer(), CollectiveKind::all_reduce, false), 2);
}

TEST(Collectives, TheEndsReduceTheEmbeddingAndTheHeadsInputGradient) {
  const Size z = kSizes[0];
  Recipe r = textbook(z);
  r.layout.tp = 4;
  const Case tp = layer_run(z, r);
  EXPECT_EQ(collectives(tp.embedding(), CollectiveKind::all_reduce, false), 1);
  EXPECT_EQ(collectives(tp.embedding(), CollectiveKind::all_reduce, true), 0);
  EXPECT_EQ(collectives(tp.head(), CollectiveKind::all_reduce, false), 0);
  EXPECT_EQ(collectives(tp.head(), CollectiveKind::all_reduce, true), 1);
}

// --- states: 2 + 2 + 4 + 8 bytes a parameter, sharded by ZeRO (arXiv:1910.02054 section 3) ---

TEST(States, SixteenBytesAParameter) {
  const Case r =
      run(gpt({.h = 256, .a = 8, .layers = 3, .vocab = 1000}), stack("textbook"), recipe_for(stack("textbook"), 128));
  const i64 n = 3 * (12 * 256 * 256 + 13 * 256) + 2 * 1000 * 256 + 2 * 256;
  EXPECT_EQ(state_bytes(r.a, r.a.stages[0]), 16 * n);
}

TEST(States, SevenBillionParametersAre112GB) {
  // 4000 * (vocab + 4 * 4000 + 2 * 16000) = 7e9: tied, without norms and biases.
  Architecture a = gpt({.h = 4000, .a = 40, .layers = 1, .vocab = 1702000});
  LayerKind& k = a.layers[0].kind;
  k.attention.query_bias = k.attention.key_bias = k.attention.value_bias = k.attention.out_bias = k.mlp.bias = false;
  k.norm = NormKind::layer_no_weight;
  a.has_final_norm = false;
  a.tied = true;
  const Case r = run(a, stack("textbook"), recipe_for(stack("textbook"), 128));
  ASSERT_EQ(summarise(*r.model).params_total.get(), 7000000000);
  EXPECT_EQ(state_bytes(r.a, r.a.stages[0]), 112000000000);
}

TEST(States, ZeroStages) {
  const i64 n = 3 * (12 * 256 * 256 + 13 * 256) + 2 * 1000 * 256 + 2 * 256;
  for (i64 dp : {1, 2, 3, 64}) {
    for (i64 cp : {1, 2}) {
      const i64 share = (n + dp * cp - 1) / (dp * cp);  // the last rank's piece is padded
      const i64 expected[4] = {16 * n, 4 * n + 12 * share, 2 * n + 14 * share, 16 * share};
      for (int zero = 0; zero < 4; ++zero) {
        Recipe r = recipe_for(stack("textbook"), 128);
        r.layout.dp = dp;
        r.layout.cp = cp;
        r.layout.zero = zero;
        r.global_batch = dp;
        const Case out = run(gpt({.h = 256, .a = 8, .layers = 3, .vocab = 1000}), stack("textbook"), r);
        EXPECT_EQ(state_bytes(out.a, out.a.stages[0]), expected[zero])
            << "zero " << zero << " dp " << dp << " cp " << cp;
      }
    }
  }
}

TEST(States, ShardingWithinAGroupOfReplicas) {
  const i64 n = 12 * 256 * 256 + 13 * 256 + 2 * 1000 * 256 + 2 * 256;
  Recipe r = recipe_for(stack("textbook"), 128);
  r.layout.dp = 32;
  r.layout.hsdp = 8;
  r.layout.zero = 3;
  r.global_batch = 32;
  const Case out = run(gpt({.h = 256, .a = 8, .layers = 1, .vocab = 1000}), stack("textbook"), r);
  EXPECT_EQ(state_bytes(out.a, out.a.stages[0]), 16 * ((n + 7) / 8));
}

}  // namespace
}  // namespace preflop::test
