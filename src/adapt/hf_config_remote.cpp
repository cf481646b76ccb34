// Families whose class comes with the model's own code and has its own key names.
#include "src/adapt/hf_config_family.hpp"

namespace preflop {

// Qwen 1: intermediate_size is both branches together. no_bias speaks of the other projections: q, k
// and v always have a bias.
void read_qwen1(ConfigReader& c, Architecture& a) {
  a.hidden = c.size({"hidden_size", "n_embd"});
  const std::int64_t layers = c.layers({"num_hidden_layers", "n_layer"});
  const Count heads = c.size({"num_attention_heads", "n_head"});
  a.vocab = c.size({"vocab_size"});
  LayerKind kind;
  const std::optional<Count> channels = c.size_if_given({"kv_channels"});
  set_heads(c, kind.attention, a.hidden, heads, std::nullopt, channels);
  const Count both = c.size({"intermediate_size"});
  kind.mlp.width = both / Count(2);
  if (!kind.mlp.width.valid())
    c.fail("intermediate_size", "is odd, but Qwen 1 states the two branches together", "valid: an even number");
  kind.mlp.gated = true;
  kind.mlp.activation = Activation::silu;
  set_qkv_bias(kind.attention, true);
  kind.attention.out_bias = kind.mlp.bias = !c.flag_or({"no_bias"}, true);
  kind.attention.dropout = c.dropout_or({"attn_dropout_prob", "attn_pdrop"}, 0);
  a.embedding_dropout = c.dropout_or({"emb_dropout_prob", "embd_pdrop"}, 0);
  a.tied = c.flag_or({"tie_word_embeddings"}, false);
  a.max_seq = read_max_seq(c);
  repeat_layer(a, kind, layers);
}

// ChatGLM 2 and 3, and GLM-4-9B with its own code.
void read_chatglm(ConfigReader& c, Architecture& a) {
  a.hidden = c.size({"hidden_size"});
  const std::int64_t layers = c.layers({"num_layers", "num_hidden_layers"});
  const Count heads = c.size({"num_attention_heads"});
  a.vocab = c.size({"padded_vocab_size", "vocab_size"});
  LayerKind kind;
  std::optional<Count> groups;
  if (c.flag_or({"multi_query_attention"}, false)) groups = c.size({"multi_query_group_num"});
  set_heads(c, kind.attention, a.hidden, heads, groups, c.size_if_given({"kv_channels"}));
  kind.mlp.width = c.size({"ffn_hidden_size"});
  kind.mlp.gated = true;
  kind.mlp.activation = Activation::silu;
  const bool linear_bias = c.flag_or({"add_bias_linear"}, false);
  set_linear_bias(kind, linear_bias);
  set_qkv_bias(kind.attention, c.flag_or({"add_qkv_bias"}, false) || linear_bias);
  kind.norm = a.final_norm = c.flag_or({"rmsnorm"}, true) ? NormKind::rms : NormKind::layer;
  a.has_final_norm = c.flag_or({"post_layer_norm"}, true);
  kind.attention.dropout = c.dropout_or({"attention_dropout"}, 0);
  kind.dropout = c.dropout_or({"hidden_dropout"}, 0);
  a.tied = c.flag_or({"tie_word_embeddings"}, false);
  a.max_seq = c.size_if_given({"seq_length"});
  repeat_layer(a, kind, layers);
}

// The 7B models rotate, the 13B ones use ALiBi: two files of code under one class name, which only
// their width tells apart.
void read_baichuan(ConfigReader& c, Architecture& a) {
  a.hidden = c.size({"hidden_size"});
  const std::int64_t layers = c.layers({"num_hidden_layers"});
  const Count heads = c.size({"num_attention_heads"});
  a.vocab = c.size({"vocab_size"});
  LayerKind kind;
  set_heads(c, kind.attention, a.hidden, heads, std::nullopt, std::nullopt);
  kind.mlp = MlpSpec{c.size({"intermediate_size"}), true, c.activation_or({"hidden_act"}, "silu"), false};
  a.tied = c.flag_or({"tie_word_embeddings"}, false);
  a.max_seq = read_max_seq(c);
  if (a.hidden != Count(4096)) {
    a.positions = Positions::alibi;
    c.note("Baichuan models wider than 4096 are taken to use ALiBi, as the 13B ones do");
  }
  repeat_layer(a, kind, layers);
}

}  // namespace preflop
