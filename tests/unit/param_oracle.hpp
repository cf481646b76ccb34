// A closed-form parameter count, for tests only: written from the rules by which published totals are
// reproduced (one line per rule), and sharing nothing with the operators that src/model counts.
#pragma once

#include <cstdint>

#include "preflop/architecture.hpp"

namespace preflop::oracle {

inline std::int64_t norm_weights(NormKind kind, std::int64_t width) {
  switch (kind) {
    case NormKind::rms:
      return width;
    case NormKind::layer:
      return 2 * width;
    case NormKind::layer_no_bias:
      return width;
    case NormKind::layer_no_weight:
      return 0;
  }
  return 0;
}

inline std::int64_t norms_per_layer(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::sandwich:
      return 4;
    case NormPlacement::shared_pre:
      return 1;
    default:
      return 2;
  }
}

inline std::int64_t layer_parameters(const LayerKind& k, std::int64_t h) {
  const std::int64_t nh = k.attention.heads.get(), nkv = k.attention.kv_heads.get(), hd = k.attention.head_dim.get();
  const std::int64_t f = k.mlp.width.get();
  std::int64_t n = h * nh * hd + 2 * h * nkv * hd + nh * hd * h;
  if (k.attention.query_bias) n += nh * hd;
  if (k.attention.key_bias) n += nkv * hd;
  if (k.attention.value_bias) n += nkv * hd;
  if (k.attention.out_bias) n += h;
  if (k.attention.qk_norm == QkNorm::head) n += 2 * hd;
  if (k.attention.qk_norm == QkNorm::full || k.attention.qk_norm == QkNorm::per_head) n += nh * hd + nkv * hd;
  n += (k.mlp.gated ? 3 : 2) * h * f;
  if (k.mlp.bias) n += (k.mlp.gated ? 2 : 1) * f + h;
  return n + norms_per_layer(k.placement) * norm_weights(k.norm, h);
}

inline std::int64_t parameters(const Architecture& a) {
  const std::int64_t h = a.hidden.get();
  std::int64_t n = a.vocab.get() * h * (a.tied ? 1 : 2);
  if (a.head_bias) n += a.vocab.get();
  if (a.positions == Positions::learned) n += a.position_rows.get() * h;
  if (a.embedding_norm) n += 2 * h;
  if (a.has_final_norm) n += norm_weights(a.final_norm, h);
  for (const LayerRun& run : a.layers) n += run.count * layer_parameters(run.kind, h);
  return n;
}

}  // namespace preflop::oracle
