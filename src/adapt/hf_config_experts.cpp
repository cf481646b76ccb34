// Reading experts, and the families whose attention is Llama's: Mixtral, Qwen, OLMoE, MiniMax-M2, DBRX, Grok.
#include "src/adapt/hf_config_experts.hpp"

#include <algorithm>

namespace preflop {

ExpertSpec read_experts(ConfigReader& c, const Keys& width_keys, Activation activation) {
  ExpertSpec e;
  e.count = c.size({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"});
  e.top_k = c.size({"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k", "top_k_experts"});
  e.width = c.size(width_keys);
  e.activation = activation;
  if (c.ok() && e.count < e.top_k) {
    c.fail("num_experts_per_tok", "is " + std::to_string(e.top_k.get()) + " of " + std::to_string(e.count.get()),
           "valid: at most the number of experts");
  }
  return e;
}

Count read_shared_width(ConfigReader& c, Count expert_width) {
  const std::optional<std::int64_t> shared = c.whole_if_given("n_shared_experts");
  return shared ? Count(*shared) * expert_width : Count(0);
}

void append_expert_layers(Architecture& a, const Decoder& d, const ExpertSpec& experts, const HasExperts& has_experts,
                          const WindowOf& window) {
  for (std::int64_t i = 0; i < d.layers; ++i) {
    LayerKind kind = d.kind;
    if (has_experts(i)) {
      kind.experts = experts;
      kind.mlp = {};
    }
    if (window) kind.attention.window = window(i);
    append_layer(a, kind);
  }
}

HasExperts dense_first(ConfigReader& c, std::int64_t layers) {
  const std::int64_t first = c.whole_if_given("first_k_dense_replace").value_or(0);
  const std::int64_t every = c.size_or({"moe_layer_freq"}, 1).get();
  if (first > layers)
    c.fail("first_k_dense_replace", "is " + std::to_string(first), "valid: at most num_hidden_layers");
  return [first, every](std::int64_t i) { return i >= first && i % every == 0; };
}

namespace {

const HasExperts kEveryLayer = [](std::int64_t) { return true; };

// decoder_sparse_step and mlp_only_layers: which layers have experts.
HasExperts qwen_experts(ConfigReader& c, std::int64_t layers) {
  const std::int64_t step = c.size_or({"decoder_sparse_step"}, 1).get();
  const std::vector<std::int64_t> dense = c.list_if_given("mlp_only_layers", layers);
  return [step, dense](std::int64_t i) {
    return (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
  };
}

// use_sliding_window with max_window_layers: the layers from there on slide.
WindowOf qwen_windows(ConfigReader& c) {
  if (!c.flag_or({"use_sliding_window"}, false)) return nullptr;
  const Count window = c.size({"sliding_window"});
  const std::int64_t full = c.size({"max_window_layers"}).get();
  return [window, full](std::int64_t i) { return i >= full ? std::optional<Count>(window) : std::nullopt; };
}

WindowOf one_window(ConfigReader& c) {
  const std::optional<Count> window = c.size_if_given({"sliding_window"});
  return [window](std::int64_t) { return window; };
}

void qkv_out_bias(ConfigReader& c, LayerKind& kind, bool fallback) {
  const bool bias = c.flag_or({"attention_bias"}, fallback);
  set_qkv_bias(kind.attention, bias);
  kind.attention.out_bias = bias;
}

}  // namespace

void read_mixtral(ConfigReader& c, Architecture& a) {
  const Decoder d = read_decoder(c, a, {.kv = KvHeads::needed});
  const ExpertSpec experts = read_experts(c, {"intermediate_size"}, d.kind.mlp.activation);
  append_expert_layers(a, d, experts, kEveryLayer, one_window(c));
}

// Phi-3.5-MoE: LayerNorm with bias, a bias of the head where the file asks for it.
void read_phimoe(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed});
  qkv_out_bias(c, d.kind, false);
  d.kind.norm = a.final_norm = NormKind::layer;
  a.head_bias = c.flag_or({"lm_head_bias"}, false);
  const ExpertSpec experts = read_experts(c, {"intermediate_size"}, d.kind.mlp.activation);
  append_expert_layers(a, d, experts, kEveryLayer, one_window(c));
}

void read_olmoe(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {});
  qkv_out_bias(c, d.kind, false);
  d.kind.attention.qk_norm = QkNorm::full;
  append_expert_layers(a, d, read_experts(c, {"intermediate_size"}, d.kind.mlp.activation), kEveryLayer);
}

// Qwen1.5-MoE and Qwen2-MoE: intermediate_size is that of dense layers, the shared expert has a width of its
// own and a gate.
void read_qwen2_moe(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed});
  set_qkv_bias(d.kind.attention, c.flag_or({"qkv_bias"}, true));
  ExpertSpec experts = read_experts(c, {"moe_intermediate_size"}, d.kind.mlp.activation);
  experts.shared_width = c.size({"shared_expert_intermediate_size"});
  experts.shared_gate = true;
  append_expert_layers(a, d, experts, qwen_experts(c, d.layers), qwen_windows(c));
}

void read_qwen3_moe(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed});
  qkv_out_bias(c, d.kind, false);
  d.kind.attention.qk_norm = QkNorm::head;
  const ExpertSpec experts = read_experts(c, {"moe_intermediate_size"}, d.kind.mlp.activation);
  append_expert_layers(a, d, experts, qwen_experts(c, d.layers), qwen_windows(c));
}

// MiniMax-M2: norms over the whole width of queries and keys ("per_layer"), several MTP modules.
void read_minimax_m2(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed});
  if (c.flag_or({"use_qk_norm"}, true)) {
    const std::string type = c.word_or({"qk_norm_type"}, "per_layer");
    if (type != "per_layer" && type != "per_head")
      c.fail("qk_norm_type", "is '" + type + "'", "valid: per_layer, per_head");
    d.kind.attention.qk_norm = type == "per_layer" ? QkNorm::full : QkNorm::head;
  }
  ExpertSpec experts = read_experts(c, {"intermediate_size"}, d.kind.mlp.activation);
  experts.correction_bias = c.flag_or({"use_routing_bias"}, true);
  experts.shared_width = c.whole_if_given("shared_intermediate_size").value_or(0);
  if (c.flag_or({"use_mtp"}, false))
    a.mtp_layers = c.whole_if_given("num_mtp_modules", ConfigReader::kMaxMtp).value_or(1);
  append_expert_layers(a, d, experts, kEveryLayer);
}

// DBRX: keys of its own, attention and experts in objects of their own, LayerNorm without bias.
void read_dbrx(ConfigReader& c, Architecture& a) {
  Decoder d;
  a.hidden = c.size({"d_model"});
  d.layers = c.layers({"n_layers"});
  const Count heads = c.size({"n_heads"});
  a.vocab = c.size({"vocab_size"});
  a.tied = c.flag_or({"tie_word_embeddings"}, false);
  a.max_seq = read_max_seq(c);
  d.kind.norm = a.final_norm = NormKind::layer_no_bias;
  d.kind.dropout = c.dropout_or({"resid_pdrop"}, 0);
  a.embedding_dropout = c.dropout_or({"emb_pdrop"}, 0);
  const nlohmann::json* attention = c.object("attn_config");
  const nlohmann::json* ffn = c.object("ffn_config");
  if (attention == nullptr || ffn == nullptr) {
    c.fail(attention == nullptr ? "attn_config" : "ffn_config", "is absent", "valid: the object with its keys");
    return;
  }
  ConfigReader at(*attention, c.where() + ": attn_config", c.assume());
  set_heads(c, d.kind.attention, a.hidden, heads, at.size({"kv_n_heads"}), std::nullopt);
  c.adopt(at);
  ConfigReader ff(*ffn, c.where() + ": ffn_config", c.assume());
  const ExpertSpec experts = read_experts(ff, {"ffn_hidden_size"}, Activation::silu);
  c.adopt(ff);
  append_expert_layers(a, d, experts, kEveryLayer);
}

// Grok-1: norms before and after both branches, GELU gates.
void read_grok1(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.tied = true, .kv = KvHeads::needed, .activation = "gelu"});
  d.kind.placement = NormPlacement::sandwich;
  append_expert_layers(a, d, read_experts(c, {"intermediate_size"}, d.kind.mlp.activation), kEveryLayer);
}

}  // namespace preflop
