// Falcon in its two classes, and MPT.
#include "src/adapt/hf_config_family.hpp"
#include "src/base/text.hpp"

namespace preflop {
namespace {

// What both Falcon classes share once the number of key/value heads and the block are known.
void finish_falcon(ConfigReader& c, Architecture& a, Decoder d, bool alibi, bool bias) {
  set_linear_bias(d.kind, bias);
  d.kind.norm = a.final_norm = NormKind::layer;
  d.kind.dropout = c.dropout_or({"hidden_dropout"}, 0);
  if (alibi) a.positions = Positions::alibi;
  repeat_layer(a, d.kind, d.layers);
}

void falcon_kv_heads(ConfigReader& c, const Architecture& a, Decoder& d) {
  const Count heads = d.kind.attention.heads;
  set_heads(c, d.kind.attention, a.hidden, heads, c.size_or(kKvHeads, heads), d.kind.attention.head_dim);
}

constexpr DecoderDefaults kFalcon = {.tied = true,
                                     .kv = KvHeads::own,
                                     .ffn_is_4h = true,
                                     .gated = false,
                                     .activation_key = "activation",
                                     .activation = "gelu"};

}  // namespace

// new_decoder_architecture: grouped heads, and a norm for each branch unless the config says one.
void read_falcon(ConfigReader& c, Architecture& a) {
  const bool grouped = c.flag_or({"new_decoder_architecture"}, false);
  Decoder d = read_decoder(c, a, kFalcon);
  if (!grouped && c.flag_or({"multi_query"}, true)) {
    d.kind.attention.kv_heads = 1;
  } else {
    falcon_kv_heads(c, a, d);
  }
  if (grouped) {
    const bool one = c.has("num_ln_in_parallel_attn") && c.size({"num_ln_in_parallel_attn"}) == Count(1);
    d.kind.placement = one ? NormPlacement::shared_pre : NormPlacement::split_pre;
  } else if (c.flag_or({"parallel_attn"}, true)) {
    d.kind.placement = NormPlacement::shared_pre;
  }
  const bool alibi = c.flag_or({"alibi"}, false);
  finish_falcon(c, a, d, alibi, c.flag_or({"bias"}, false));
}

// The first files (RWForCausalLM) name two different blocks with one class: with n_head_kv it is the
// 40B's, with multi_query the 7B's. A file with neither says nothing about its heads.
void read_falcon_rw(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, kFalcon);
  if (c.has("n_head_kv") || c.has("num_kv_heads")) {
    falcon_kv_heads(c, a, d);
    d.kind.placement = NormPlacement::split_pre;
  } else if (c.has("multi_query")) {
    if (c.flag({"multi_query"})) d.kind.attention.kv_heads = 1;
    if (c.flag_or({"parallel_attn"}, false)) d.kind.placement = NormPlacement::shared_pre;
  } else {
    c.fail("n_head_kv", "is absent, and so is multi_query: the key/value heads are not stated",
           "valid: a divisor of n_head; supply it with --assume n_head_kv=N");
  }
  const bool alibi = c.flag_or({"alibi"}, false);
  finish_falcon(c, a, d, alibi, c.flag_or({"bias"}, false));
}

namespace {

// attn_config: the kind of heads and the positions.
void read_mpt_attention(ConfigReader& c, Architecture& a, LayerKind& kind, Count heads, bool alibi_fallback) {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  const nlohmann::json* nested = c.object("attn_config");
  ConfigReader attn(nested != nullptr ? *nested : kEmpty, c.where() + ": attn_config", c.assume());
  const std::string type = attn.word_or({"attn_type"}, "multihead_attention");
  std::optional<Count> kv_heads;
  if (type == "multiquery_attention") {
    kv_heads = 1;
  } else if (type == "grouped_query_attention") {
    kv_heads = attn.size({"kv_n_heads"});
  } else if (type != "multihead_attention") {
    attn.fail("attn_type", "is " + text::quoted(type),
              "valid: multihead_attention, multiquery_attention, grouped_query_attention");
  }
  set_heads(c, kind.attention, a.hidden, heads, kv_heads, std::nullopt);
  kind.attention.dropout = attn.dropout_or({"attn_pdrop"}, 0);
  for (const char* key : {"qk_ln", "qk_gn"}) {
    if (attn.flag_or({key}, false))
      attn.fail(key, "is true", "valid: false (MPT's norms of queries and keys are not built yet)");
  }
  const bool rope = attn.flag_or({"rope"}, false);
  const bool alibi = attn.flag_or({"alibi"}, alibi_fallback && !rope);
  const bool learned = c.flag_or({"learned_pos_emb"}, true);
  a.positions = alibi ? Positions::alibi : rope ? Positions::rope : learned ? Positions::learned : Positions::none;
  c.adopt(attn);
}

void read_mpt_with(ConfigReader& c, Architecture& a, bool alibi_fallback, bool no_bias_fallback) {
  a.hidden = c.size({"d_model"});
  const std::int64_t layers = c.layers({"n_layers"});
  const Count heads = c.size({"n_heads"});
  a.vocab = c.size({"vocab_size"});
  a.max_seq = c.size({"max_seq_len"});
  LayerKind kind;
  read_mpt_attention(c, a, kind, heads, alibi_fallback);
  if (a.positions == Positions::learned) a.position_rows = *a.max_seq;
  kind.mlp.width = a.hidden * c.size_or({"expansion_ratio"}, 4);
  if (const nlohmann::json* nested = c.object("ffn_config")) {
    ConfigReader ffn(*nested, c.where() + ": ffn_config", c.assume());
    const std::string type = ffn.word_or({"ffn_type"}, "mptmlp");
    if (type == "mptglu") {
      kind.mlp.gated = true;
    } else if (type != "mptmlp") {
      ffn.fail("ffn_type", "is " + text::quoted(type), "valid: mptmlp, mptglu (mixture of experts is not built yet)");
    }
    if (const auto width = ffn.size_if_given({"ffn_hidden_size"})) kind.mlp.width = *width;
    c.adopt(ffn);
  }
  const bool bias = !c.flag_or({"no_bias"}, no_bias_fallback);
  set_linear_bias(kind, bias);
  const std::string norm = c.word_or({"norm_type"}, "low_precision_layernorm");
  const bool rms = norm.find("rms") != std::string::npos;
  kind.norm = a.final_norm = rms ? NormKind::rms : bias ? NormKind::layer : NormKind::layer_no_bias;
  kind.dropout = c.dropout_or({"resid_pdrop"}, 0);
  a.embedding_dropout = c.dropout_or({"emb_pdrop"}, 0);
  a.tied = c.flag_or({"tie_word_embeddings"}, true);
  repeat_layer(a, kind, layers);
}

}  // namespace

// Transformers' class knows ALiBi only; llm-foundry's, the one in the model folders, learns positions
// unless attn_config says otherwise.
void read_mpt(ConfigReader& c, Architecture& a) { read_mpt_with(c, a, true, true); }
void read_mpt_foundry(ConfigReader& c, Architecture& a) { read_mpt_with(c, a, false, false); }

}  // namespace preflop
