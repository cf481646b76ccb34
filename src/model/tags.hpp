// The closed vocabulary of operator tags. Stack data, recomputation, conventions and explanations
// name operators by tag ("attn.q") or by group ("attn"); a name that is not in this table is an error
// in the data, found when the data is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace preflop {

enum class Tag : std::uint8_t {
  embed_tokens,
  embed_positions,
  embed_add,
  embed_norm,
  embed_dropout,
  attn_norm,
  attn_q,
  attn_k,
  attn_v,
  attn_q_norm,
  attn_k_norm,
  attn_q_rope,
  attn_k_rope,
  core_copy,
  core_qk,
  core_softmax,
  core_dropout,
  core_pv,
  core_attention,
  attn_out,
  attn_post_norm,
  attn_dropout,
  attn_add,
  mlp_norm,
  mlp_gate,
  mlp_up,
  mlp_act,
  mlp_mul,
  mlp_down,
  mlp_post_norm,
  mlp_dropout,
  mlp_add,
  block_add,
  mla_q_down,
  mla_q_norm,
  mla_q_up,
  mla_kv_down,
  mla_k_rope,
  mla_kv_norm,
  mla_k_up,
  mla_v_up,
  index_q,
  index_k,
  index_norm,
  index_weights,
  index_scores,
  index_choice,
  moe_router,
  moe_route,
  moe_latent_in,
  moe_permute,
  moe_dispatch,
  moe_gather,
  moe_sort,
  exp_gate,
  exp_up,
  exp_act,
  exp_mul,
  exp_down,
  moe_unsort,
  moe_scatter,
  moe_combine,
  moe_unpermute,
  moe_latent_out,
  shared_gate,
  shared_up,
  shared_act,
  shared_mul,
  shared_down,
  shared_scale_logit,
  shared_scale,
  moe_add,
  mtp_embed,
  mtp_embed_norm,
  mtp_norm,
  mtp_join_hidden,
  mtp_join_embed,
  mtp_add,
  head_norm,
  head_out,
  head_loss
};
inline constexpr int kTags = 81;

std::string_view name(Tag tag);                         // "attn.q"
std::string_view group(Tag tag);                        // "attn"
std::optional<Tag> tag_of(std::string_view name);       // "attn.q" -> Tag
bool matches(Tag tag, std::string_view name_or_group);  // "attn.q", "attn" or "*"
bool known_pattern(std::string_view name_or_group);     // does any tag match it?

}  // namespace preflop
