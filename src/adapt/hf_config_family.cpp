#include "src/adapt/hf_config_family.hpp"

#include "src/base/text.hpp"

namespace preflop {

void set_heads(ConfigReader& c, AttentionSpec& attention, Count hidden, Count heads, std::optional<Count> kv_heads,
               std::optional<Count> head_dim) {
  attention.heads = heads;
  attention.kv_heads = kv_heads.value_or(heads);
  attention.head_dim = head_dim ? *head_dim : hidden / heads;
  if (!c.ok()) return;
  if (!attention.head_dim.valid()) {
    c.fail("num_attention_heads",
           "is " + std::to_string(heads.get()) + ", which does not divide hidden_size " + std::to_string(hidden.get()),
           "valid: a divisor of hidden_size, or a head_dim of its own (--assume head_dim=N)");
  } else if (!(heads / attention.kv_heads).valid()) {
    c.fail("num_key_value_heads",
           "is " + std::to_string(attention.kv_heads.get()) + ", which does not divide num_attention_heads " +
               std::to_string(heads.get()),
           "valid: a divisor of num_attention_heads");
  }
}

void set_qkv_bias(AttentionSpec& attention, bool bias) {
  attention.query_bias = attention.key_bias = attention.value_bias = bias;
}

void set_linear_bias(LayerKind& kind, bool bias) {
  set_qkv_bias(kind.attention, bias);
  kind.attention.out_bias = kind.mlp.bias = bias;
}

std::optional<Count> read_max_seq(ConfigReader& c) {
  for (std::string_view key :
       {"max_position_embeddings", "n_positions", "seq_length", "max_seq_len", "n_ctx", "model_max_length"}) {
    if (c.has(key)) return c.size_if_given({key});
  }
  return std::nullopt;
}

const Keys kKvHeads = {"num_key_value_heads", "n_head_kv", "num_kv_heads"};

Decoder read_decoder(ConfigReader& c, Architecture& a, const DecoderDefaults& defaults) {
  Decoder d;
  a.hidden = c.size({"hidden_size", "n_embd", "n_embed"});
  d.layers = c.layers({"num_hidden_layers", "n_layer", "num_layers"});
  const Count heads = c.size({"num_attention_heads", "n_head"});
  Count kv_heads = heads;
  if (defaults.kv == KvHeads::as_heads) kv_heads = c.size_or(kKvHeads, heads);
  if (defaults.kv == KvHeads::needed) kv_heads = c.size(kKvHeads);
  std::optional<Count> head_dim = c.size_if_given({"head_dim"});
  if (!head_dim && defaults.head_dim != 0) head_dim = c.size_or({"head_dim"}, defaults.head_dim);
  set_heads(c, d.kind.attention, a.hidden, heads, kv_heads, head_dim);
  const Keys ffn_keys = {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"};
  d.kind.mlp.width = defaults.ffn_is_4h ? c.size_or(ffn_keys, a.hidden * 4) : c.size(ffn_keys);
  d.kind.mlp.gated = defaults.gated;
  d.kind.mlp.activation = c.activation_or({defaults.activation_key}, defaults.activation);
  d.kind.attention.dropout = c.dropout_or({"attention_dropout", "attn_pdrop"}, defaults.attention_dropout);
  a.vocab = c.size({"vocab_size", "padded_vocab_size"});
  a.tied = c.flag_or({"tie_word_embeddings"}, defaults.tied);
  a.max_seq = read_max_seq(c);
  return d;
}

void append_layer(Architecture& a, const LayerKind& kind) { repeat_layer(a, kind, 1); }

void repeat_layer(Architecture& a, const LayerKind& kind, std::int64_t count) {
  if (!a.layers.empty() && a.layers.back().kind == kind) {
    a.layers.back().count += count;
  } else {
    a.layers.push_back(LayerRun{kind, count});
  }
}

namespace detail {

std::optional<std::vector<bool>> sliding_layers(ConfigReader& c, std::int64_t layers) {
  const std::vector<std::string> types = c.words_if_given("layer_types", layers);
  if (types.empty()) return std::nullopt;
  std::vector<bool> sliding;
  for (const std::string& type : types) {
    if (type != "sliding_attention" && type != "full_attention") {
      c.fail("layer_types", "holds " + text::quoted(type), "valid: full_attention, sliding_attention");
    }
    sliding.push_back(type == "sliding_attention");
  }
  return sliding;
}

}  // namespace detail
}  // namespace preflop
