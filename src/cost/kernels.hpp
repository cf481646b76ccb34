// How much longer a kernel takes on its shape than FLOPs over the asymptotic rate: pure functions of the
// shape and of constants of an architecture (data/time.csv). Laws of matrix products and fused attention
// as fitted on published kernel tables (ai-dynamo/aiconfigurator, FlashAttention, SimuMax).
#pragma once

namespace preflop {

// Matrix product, per architecture and operand width.
struct GemmLaw {
  double prologue = 140;    // k elements that the inner loop costs besides its own
  double wave = 0.3;        // 1: a last wave of tiles costs a whole one; 0: nothing
  double small_tile = 0.2;  // what a tile of half the size costs more, through the second-level cache
  double corner = 3;        // exponent of the smooth corner between arithmetic and memory
  double sms = 132;
};
// One launch computes `groups` products (m, k) x (k, n). 1 for endless products, never less.
struct GemmShape {
  double m = 1, n = 1, k = 1, groups = 1;
};
double gemm_factor(const GemmLaw& law, const GemmShape& shape);
// (a^p + b^p)^(1/p) / max(a, b) for times a and b: 1 far from the corner, 2^(1/p) at it.
double corner_factor(double a, double b, double p);

// Fused causal attention.
struct AttentionLaw {
  double diagonal = 900;  // extra keys that every query tile pays: diagonal, prologue
  double tail = 0.7;      // the last, longest tile on idle neighbours
  double sms = 132;
};
// `seq`: tokens of a sequence on this GPU, or the window where that is less; `tiles`: batch x heads x query
// tiles of 128 rows on this GPU.
double attention_factor(const AttentionLaw& law, double seq, double tiles);

}  // namespace preflop
