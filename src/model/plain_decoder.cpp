#include "src/model/plain_decoder.hpp"

namespace preflop {

namespace {

bool plain_layer(const LayerKind& k, Count hidden) {
  const AttentionSpec& t = k.attention;
  const bool attends = k.mixes && k.feeds_forward && !k.state_space && !k.experts && !t.latent && !t.indexer &&
                       !t.sinks && !t.gate && !t.window && !t.value_dim && t.qk_norm == QkNorm::none && !t.out_bias;
  return attends && k.norm == NormKind::rms && k.placement == NormPlacement::pre && k.mlp.gated &&
         k.mlp.activation == Activation::silu && !k.mlp.bias && k.dropout == 0 && t.dropout == 0 &&
         t.heads * t.head_dim == hidden;
}

}  // namespace

std::optional<PlainDecoder> plain_decoder(const Architecture& a) {
  if (a.layers.empty() || a.positions != Positions::rope || a.embedding_norm) return std::nullopt;
  LayerKind first = a.layers.front().kind;
  if (!plain_layer(first, a.hidden) || !first.attention.rope) return std::nullopt;
  PlainDecoder out;
  std::int64_t at = 0;
  for (const LayerRun& run : a.layers) {
    LayerKind kind = run.kind;
    const bool rope = kind.attention.rope;
    kind.attention.rope = true;
    if (!(kind == first)) return std::nullopt;
    for (std::int64_t i = 0; i < run.count; ++i) {
      ++at;
      if (!rope && out.no_rope_every == 0) out.no_rope_every = at;
      const bool without = out.no_rope_every > 0 && at % out.no_rope_every == 0;
      if (without == rope) return std::nullopt;
    }
  }
  return out;
}

}  // namespace preflop
