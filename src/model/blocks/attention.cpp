#include "src/model/blocks/blocks.hpp"

namespace preflop {

namespace {

// Queries or keys normalised before the rotary embedding.
TensorId qk_norm(BlockBuilder& b, Tag tag, TensorId x, QkNorm kind, const char* heads) {
  switch (kind) {
    case QkNorm::none:
      return x;
    case QkNorm::head:
      return b.norm(tag, x, "d", true, false, 1);
    case QkNorm::per_head:
      return b.norm(tag, x, "d", true, false, 1, (std::string(heads) + "d").c_str());
    case QkNorm::full:
      return b.norm(tag, x, (std::string(heads) + "d").c_str(), true, false, 1);
  }
  return x;
}

}  // namespace

TensorId attention_core(BlockBuilder& b, const AttentionSpec& spec, TensorId x, TensorId q, TensorId k, TensorId v) {
  const TensorId gate = spec.gate ? b.product(Tag::attn_gate, x, "h>ae", spec.query_bias) : TensorId{-1};
  // Keys and values are read along the key axis and broadcast to the query heads.
  TensorId p = b.product2(Tag::core_qk, {q, "bsad"}, {k, "buad"}, "basu");
  p = b.softmax(Tag::core_softmax, p, "u");
  if (spec.sinks) b.weight("a", Role::bias);
  if (spec.dropout > 0) p = b.unary(Kind::dropout, Tag::core_dropout, p);
  TensorId o = b.product2(Tag::core_pv, {p, "basu"}, {v, "buae"}, "bsae");
  if (gate >= 0)
    o = b.binary(Kind::multiply, Tag::attn_gate_mul, o, b.unary(Kind::activation, Tag::attn_gate_act, gate));
  return b.product(Tag::attn_out, o, "ae>h", spec.out_bias);
}

TensorId attention(BlockBuilder& b, const AttentionSpec& spec, TensorId x) {
  b.extents()[Axis::heads] = spec.heads;
  b.extents()[Axis::kv_heads] = spec.kv_heads;
  b.extents()[Axis::head_dim] = spec.head_dim;
  b.extents()[Axis::value_dim] = spec.value_dim.value_or(spec.head_dim);
  if (spec.window) b.set_window(*spec.window, spec.chunked);
  if (spec.indexer) b.set_window(spec.indexer->top_k);  // a query sees that many keys, once there are so many
  if (spec.latent) return latent_attention(b, spec, x);

  TensorId q = b.product(Tag::attn_q, x, "h>ad", spec.query_bias);
  TensorId k = b.product(Tag::attn_k, x, "h>kd", spec.key_bias);
  const TensorId v = b.product(Tag::attn_v, x, "h>ke", spec.value_bias);
  q = qk_norm(b, Tag::attn_q_norm, q, spec.qk_norm, "a");
  k = qk_norm(b, Tag::attn_k_norm, k, spec.qk_norm, "k");
  if (spec.rope) {
    q = b.unary(Kind::rope, Tag::attn_q_rope, q);
    k = b.unary(Kind::rope, Tag::attn_k_rope, k);
  }
  return attention_core(b, spec, x, q, k, v);
}

}  // namespace preflop
