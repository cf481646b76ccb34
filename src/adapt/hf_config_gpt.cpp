// GPT-2 and the families of its time: LayerNorm, plain MLP, biases, dropout.
#include "src/adapt/hf_config_family.hpp"
#include "src/base/text.hpp"

namespace preflop {
namespace {

void gpt_dropout(ConfigReader& c, Architecture& a, LayerKind& kind, double fallback) {
  kind.dropout = c.dropout_or({"resid_pdrop"}, fallback);
  a.embedding_dropout = c.dropout_or({"embd_pdrop"}, fallback);
}

// Learned positions: the table's rows are part of the model, so the key is needed.
void learned_positions(ConfigReader& c, Architecture& a, Count extra_rows) {
  const Count rows = c.size({"n_positions", "max_position_embeddings"});
  a.positions = Positions::learned;
  a.position_rows = rows + extra_rows;
  a.max_seq = rows;
}

Decoder gpt_decoder(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a,
                           {.tied = true,
                            .kv = KvHeads::own,
                            .ffn_is_4h = true,
                            .gated = false,
                            .activation_key = "activation_function",
                            .activation = "gelu_new",
                            .attention_dropout = 0.1});
  set_linear_bias(d.kind, true);
  d.kind.norm = a.final_norm = NormKind::layer;
  gpt_dropout(c, a, d.kind, 0.1);
  learned_positions(c, a, 0);
  return d;
}

}  // namespace

void read_gpt2(ConfigReader& c, Architecture& a) {
  const Decoder d = gpt_decoder(c, a);
  if (c.flag_or({"add_cross_attention"}, false))
    c.fail("add_cross_attention", "is true", "valid: false (encoder-decoder models are not built yet)");
  repeat_layer(a, d.kind, d.layers);
}

void read_gpt_bigcode(ConfigReader& c, Architecture& a) {
  Decoder d = gpt_decoder(c, a);
  if (c.flag_or({"multi_query"}, true)) d.kind.attention.kv_heads = 1;
  repeat_layer(a, d.kind, d.layers);
}

void read_gptj(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a,
                           {.kv = KvHeads::own,
                            .ffn_is_4h = true,
                            .gated = false,
                            .activation_key = "activation_function",
                            .activation = "gelu_new"});
  d.kind.mlp.bias = true;
  d.kind.norm = a.final_norm = NormKind::layer;
  d.kind.placement = NormPlacement::shared_pre;
  gpt_dropout(c, a, d.kind, 0);
  a.head_bias = true;
  repeat_layer(a, d.kind, d.layers);
}

void read_gpt_neox(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::own, .gated = false, .activation = "gelu"});
  const bool bias = c.flag_or({"attention_bias"}, true);
  set_qkv_bias(d.kind.attention, bias);
  d.kind.attention.out_bias = bias;
  d.kind.mlp.bias = true;
  d.kind.norm = a.final_norm = NormKind::layer;
  if (c.flag_or({"use_parallel_residual"}, true)) d.kind.placement = NormPlacement::split_pre;
  d.kind.dropout = a.embedding_dropout = c.dropout_or({"hidden_dropout"}, 0);
  repeat_layer(a, d.kind, d.layers);
}

// Phi-1, 1.5 and 2, also with the older keys (n_embd, n_head, n_inner) of the files shipped with code.
void read_phi(ConfigReader& c, Architecture& a) {
  const bool old_keys = c.has("n_embd");
  Decoder d = read_decoder(c, a,
                           {.ffn_is_4h = old_keys,
                            .gated = false,
                            .activation_key = old_keys ? "activation_function" : "hidden_act",
                            .activation = "gelu_new"});
  if (c.flag_or({"qk_layernorm"}, false))
    c.fail("qk_layernorm", "is true", "valid: false (norms of queries and keys with a bias are not built yet)");
  set_linear_bias(d.kind, true);
  d.kind.norm = a.final_norm = NormKind::layer;
  d.kind.placement = NormPlacement::shared_pre;
  gpt_dropout(c, a, d.kind, 0);
  a.head_bias = true;
  repeat_layer(a, d.kind, d.layers);
}

// The position table has two rows more than positions: the class offsets every index by 2.
void read_opt(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a,
                           {.tied = true,
                            .kv = KvHeads::own,
                            .gated = false,
                            .activation_key = "activation_function",
                            .activation = "relu"});
  const Count embedded = c.size_or({"word_embed_proj_dim"}, a.hidden);
  if (embedded != a.hidden) {
    c.fail("word_embed_proj_dim",
           "is " + std::to_string(embedded.get()) + ", but hidden_size is " + std::to_string(a.hidden.get()),
           "valid: the hidden size (projected embeddings are not built)");
  }
  for (const char* key : {"do_layer_norm_before", "layer_norm_elementwise_affine"}) {
    if (!c.flag_or({key}, true))
      c.fail(key, "is false", "valid: true (norms after the residual sum, or without weights, are not built)");
  }
  set_linear_bias(d.kind, c.flag_or({"enable_bias"}, true));
  d.kind.norm = a.final_norm = NormKind::layer;
  a.has_final_norm = !c.flag_or({"_remove_final_layer_norm"}, false);
  d.kind.dropout = c.dropout_or({"dropout"}, 0.1);
  learned_positions(c, a, 2);
  repeat_layer(a, d.kind, d.layers);
}

void read_bloom(ConfigReader& c, Architecture& a) {
  Decoder d =
      read_decoder(c, a, {.tied = true, .kv = KvHeads::own, .ffn_is_4h = true, .gated = false, .activation = "gelu"});
  set_linear_bias(d.kind, true);
  d.kind.norm = a.final_norm = NormKind::layer;
  d.kind.dropout = c.dropout_or({"hidden_dropout"}, 0);
  a.embedding_norm = true;
  a.positions = Positions::alibi;
  repeat_layer(a, d.kind, d.layers);
}

}  // namespace preflop
