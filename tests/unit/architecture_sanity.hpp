// What holds for every Architecture that a reader returns, whatever it was given.
#pragma once

#include <cstdint>
#include <string>

#include "preflop/architecture.hpp"

namespace preflop {

// The first thing that is wrong, or "".
inline std::string insane(const Architecture& a) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  const auto size = [](Count c) { return c.valid() && c.get() >= 1 && c.get() <= kMost; };
  const auto probability = [](double p) { return p >= 0 && p < 1; };  // false for NaN
  if (!size(a.hidden)) return "hidden";
  if (!size(a.vocab)) return "vocab";
  if (a.positions == Positions::learned ? !size(a.position_rows - 2) && !size(a.position_rows)
                                        : a.position_rows != Count(0))
    return "position_rows";
  if (a.max_seq && !size(*a.max_seq)) return "max_seq";
  if (!probability(a.embedding_dropout)) return "embedding_dropout";
  if (a.layers.empty() || a.layer_count() < 1 || a.layer_count() > 10000) return "layers";
  if (a.family.empty()) return "family";
  if (a.mtp_layers < 0 || a.mtp_layers > 64) return "mtp";
  for (const LayerRun& run : a.layers) {
    const AttentionSpec& t = run.kind.attention;
    if (run.count < 1) return "an empty run";
    if (!run.kind.mixes && !run.kind.feeds_forward) return "a layer of nothing";
    if (run.kind.state_space) {
      const StateSpace& s = *run.kind.state_space;
      if (!run.kind.mixes) return "a state space that does not mix";
      if (!size(s.heads) || !size(s.dim) || !size(s.groups) || !size(s.state) || !size(s.conv) || !size(s.chunk))
        return "state space";
      if (!(s.heads / s.groups).valid()) return "groups of a state space";
    } else if (run.kind.mixes) {
      if (!size(t.heads) || !size(t.kv_heads) || !size(t.head_dim)) return "heads";
      if (!(t.heads / t.kv_heads).valid()) return "kv_heads";
    }
    if (t.window && !size(*t.window)) return "window";
    if (t.rope && a.positions != Positions::rope) return "rope";
    if (run.kind.experts) {
      const ExpertSpec& e = *run.kind.experts;
      if (!size(e.count) || !size(e.top_k) || !size(e.width) || e.count < e.top_k) return "experts";
      if (!e.shared_width.valid()) return "shared experts";
    } else if (run.kind.feeds_forward && (!run.kind.mlp.width.valid() || run.kind.mlp.width.get() < 1)) {
      return "mlp width";
    }
    if (t.latent) {
      const LatentAttention& l = *t.latent;
      if (!size(l.kv_lora) || !size(l.nope_dim) || !size(l.rope_dim) || !size(l.value_dim)) return "latent attention";
      if (t.head_dim != l.nope_dim + l.rope_dim) return "latent head_dim";
    }
    if (!probability(t.dropout) || !probability(run.kind.dropout)) return "dropout";
  }
  return {};
}

}  // namespace preflop
