// Multi-head latent attention, and the indexer of sparse attention that reads its query latent.
#include "src/model/blocks/blocks.hpp"

namespace preflop {

namespace {

// Scores of every earlier token, by a few small heads on products of their own; the best keys are chosen.
// Nothing but the choice enters the attention.
void indexer(BlockBuilder& b, const SparseIndexer& spec, TensorId x, TensorId query_latent) {
  b.extents()[Axis::index_heads] = spec.heads;
  b.extents()[Axis::index_dim] = spec.dim;
  const bool through_latent = query_latent != x;
  const TensorId q = b.product(Tag::index_q, query_latent, through_latent ? "q>ID" : "h>ID");
  const TensorId k = b.norm(Tag::index_norm, b.product(Tag::index_k, x, "h>D"), "D", true, true, 2);
  const TensorId w = b.product(Tag::index_weights, x, "h>I");
  const TensorId scores = b.product2(Tag::index_scores, {q, "bsID"}, {k, "buD"}, "bsIu");
  b.general(Kind::route, Tag::index_choice, {scores, w}, "bs");
}

}  // namespace

TensorId latent_attention(BlockBuilder& b, const AttentionSpec& spec, TensorId x) {
  const LatentAttention& latent = *spec.latent;
  b.extents()[Axis::q_lora] = latent.q_lora.value_or(0);
  b.extents()[Axis::kv_lora] = latent.kv_lora;
  b.extents()[Axis::nope_dim] = latent.nope_dim;
  b.extents()[Axis::rope_dim] = latent.rope_dim;
  b.extents()[Axis::kv_heads] = 0;  // one latent for all heads
  b.extents()[Axis::head_dim] = latent.nope_dim + latent.rope_dim;
  b.extents()[Axis::value_dim] = latent.value_dim;

  TensorId q = 0;
  TensorId query_latent = x;
  if (latent.q_lora) {
    const TensorId down = b.product(Tag::mla_q_down, x, "h>q", spec.query_bias);
    query_latent = b.norm(Tag::mla_q_norm, down, "q", true, false, 1);
    q = b.product(Tag::mla_q_up, query_latent, "q>ad");
  } else {
    q = b.product(Tag::attn_q, x, "h>ad");
  }
  const TensorId compressed = b.product(Tag::mla_kv_down, x, "h>l", spec.key_bias);
  const TensorId rotary = b.product(Tag::mla_k_rope, x, "h>o", spec.key_bias);
  const TensorId normed = b.norm(Tag::mla_kv_norm, compressed, "l", true, false, 1);
  const TensorId content = b.product(Tag::mla_k_up, normed, "l>an");
  const TensorId v = b.product(Tag::mla_v_up, normed, "l>ae");
  if (spec.indexer && !spec.indexer->shared) indexer(b, *spec.indexer, x, query_latent);
  q = b.unary(Kind::rope, Tag::attn_q_rope, q);
  // Content and rotary channels side by side, the rotary ones repeated for every head.
  const TensorId k = b.general(Kind::rope, Tag::attn_k_rope, {content, rotary}, "bsad");
  return attention_core(b, spec, x, q, k, v);
}

}  // namespace preflop
