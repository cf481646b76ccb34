// A closed-form parameter count, for tests only: written from the rules by which published totals are
// reproduced (one line per rule), and sharing nothing with the operators that src/model counts.
#pragma once

#include <algorithm>
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

inline std::int64_t attention_parameters(const AttentionSpec& at, std::int64_t h) {
  const std::int64_t nh = at.heads.get(), nkv = at.kv_heads.get(), hd = at.head_dim.get();
  const std::int64_t vd = at.value_dim ? at.value_dim->get() : hd;
  std::int64_t n = at.sinks ? nh : 0;
  if (at.latent) {
    const std::int64_t kvr = at.latent->kv_lora.get(), nope = at.latent->nope_dim.get();
    const std::int64_t rope = at.latent->rope_dim.get(), v = at.latent->value_dim.get();
    const std::int64_t qr = at.latent->q_lora ? at.latent->q_lora->get() : 0;
    n += qr > 0 ? h * qr + qr + qr * nh * (nope + rope) : h * nh * (nope + rope);
    n += h * (kvr + rope) + kvr + kvr * nh * (nope + v) + nh * v * h;
    if (at.indexer && !at.indexer->shared) {
      const std::int64_t ni = at.indexer->heads.get(), di = at.indexer->dim.get();
      n += qr * ni * di + h * di + 2 * di + h * ni;
    }
    return n;
  }
  if (at.gate) n += h * nh * vd + (at.query_bias ? nh * vd : 0);
  n += h * nh * hd + h * nkv * hd + h * nkv * vd + nh * vd * h;
  if (at.query_bias) n += nh * hd;
  if (at.key_bias) n += nkv * hd;
  if (at.value_bias) n += nkv * vd;
  if (at.out_bias) n += h;
  if (at.qk_norm == QkNorm::head) n += 2 * hd;
  if (at.qk_norm == QkNorm::full || at.qk_norm == QkNorm::per_head) n += nh * hd + nkv * hd;
  return n;
}

// `active`: top-k experts instead of all.
inline std::int64_t expert_parameters(const ExpertSpec& e, std::int64_t h, bool active) {
  const std::int64_t mf = e.width.get(), branches = e.gated ? 2 : 1;
  const std::int64_t in = e.latent ? e.latent->get() : h;  // what an expert reads
  const std::int64_t each = (branches + 1) * in * mf + (e.bias ? branches * mf + in : 0);
  std::int64_t n = (active ? e.top_k.get() : e.count.get()) * each + h * e.count.get() + (e.latent ? 2 * h * in : 0);
  if (e.router_bias) n += e.count.get();
  if (e.correction_bias) n += e.count.get();
  n += (branches + 1) * h * e.shared_width.get();
  return n + (e.shared_gate ? h : 0);
}

// Mamba-2: h (2 di + 2 g N + m) + (di + 2 g N) (k + 1) + 3 m + di + di h; a gated delta rule has one more number a head
// in and out, no bias of the convolution, and normalises by head.
inline std::int64_t state_parameters(const StateSpace& s, std::int64_t h) {
  const std::int64_t m = s.heads.get(), di = m * s.dim.get(), gn = s.groups.get() * s.state.get(), k = s.conv.get();
  const bool delta = s.kind == ScanKind::gated_delta;
  const std::int64_t in = 2 * di + 2 * gn + (delta ? 2 : 1) * m;
  std::int64_t n = h * in + (di + 2 * gn) * (s.conv_bias ? k + 1 : k) + di * h;
  n += delta ? 2 * m + s.dim.get() : 3 * m + di;
  return n + (s.bias ? in + h : 0);
}

inline std::int64_t layer_parameters(const LayerKind& k, std::int64_t h, bool active = false) {
  const std::int64_t f = k.mlp.width.get();
  std::int64_t n = 0;
  if (k.mixes) n += k.state_space ? state_parameters(*k.state_space, h) : attention_parameters(k.attention, h);
  if (!k.feeds_forward) {
  } else if (k.experts) {
    n += expert_parameters(*k.experts, h, active);
  } else {
    n += (k.mlp.gated ? 3 : 2) * h * f;
    if (k.mlp.bias) n += (k.mlp.gated ? 2 : 1) * f + h;
  }
  const std::int64_t sublayers = (k.mixes ? 1 : 0) + (k.feeds_forward ? 1 : 0);
  return n + norms_per_layer(k.placement) * norm_weights(k.norm, h) * sublayers / 2;
}

// The main model, without multi-token prediction.
inline std::int64_t main_parameters(const Architecture& a, bool active = false) {
  const std::int64_t h = a.hidden.get();
  std::int64_t n = a.vocab.get() * h * (a.tied ? 1 : 2);
  if (a.head_bias) n += a.vocab.get();
  if (a.positions == Positions::learned) n += a.position_rows.get() * h;
  if (a.embedding_norm) n += 2 * h;
  if (a.has_final_norm) n += norm_weights(a.final_norm, h);
  for (const LayerRun& run : a.layers) n += run.count * layer_parameters(run.kind, h, active);
  return n;
}

// What the model's name counts: each MTP layer is a layer, a product of 2 hidden to hidden and three norms.
inline std::int64_t parameters(const Architecture& a) {
  const std::int64_t h = a.hidden.get();
  std::int64_t n = main_parameters(a);
  if (a.counted == Counted::main) return n;
  const LayerKind& kind = a.mtp_kind ? *a.mtp_kind : a.layers.back().kind;
  const std::int64_t predictors = a.mtp_shared ? std::min<std::int64_t>(a.mtp_layers, 1) : a.mtp_layers;
  n += predictors * (layer_parameters(kind, h) + 2 * h * h + 3 * norm_weights(a.final_norm, h));
  if (a.counted == Counted::main_mtp_copies) n += a.mtp_layers * 2 * a.vocab.get() * h;
  return n;
}

}  // namespace preflop::oracle
