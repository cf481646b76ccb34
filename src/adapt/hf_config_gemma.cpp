// Gemma 1 to 3, Cohere, and the other gated families with norms or blocks of their own.
#include "src/adapt/hf_config_family.hpp"

namespace preflop {
namespace {

// hidden_activation wins over the older hidden_act, which early Gemma files state wrongly.
DecoderDefaults gemma_defaults(ConfigReader& c) {
  return {.tied = true,
          .kv = KvHeads::needed,
          .head_dim = 256,
          .activation_key = c.has("hidden_act") && !c.has("hidden_activation") ? "hidden_act" : "hidden_activation",
          .activation = "gelu_pytorch_tanh"};
}

void gemma_attention_bias(ConfigReader& c, LayerKind& kind) {
  const bool bias = c.flag_or({"attention_bias"}, false);
  set_qkv_bias(kind.attention, bias);
  kind.attention.out_bias = bias;
}

Decoder cohere_decoder(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.tied = true});
  gemma_attention_bias(c, d.kind);
  d.kind.norm = a.final_norm = NormKind::layer_no_bias;
  d.kind.placement = NormPlacement::shared_pre;
  return d;
}

}  // namespace

void read_gemma(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, gemma_defaults(c));
  gemma_attention_bias(c, d.kind);
  repeat_layer(a, d.kind, d.layers);
}

// Even layers slide, odd ones see everything.
void read_gemma2(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, gemma_defaults(c));
  gemma_attention_bias(c, d.kind);
  d.kind.placement = NormPlacement::sandwich;
  append_windowed(c, a, d, c.size_or({"sliding_window"}, 4096), [](std::int64_t i) { return i % 2 == 0; });
}

// One full layer in six.
void read_gemma3(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, gemma_defaults(c));
  gemma_attention_bias(c, d.kind);
  d.kind.placement = NormPlacement::sandwich;
  d.kind.attention.qk_norm = QkNorm::head;
  const std::int64_t every = c.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, 6).get();
  append_windowed(c, a, d, c.size_or({"sliding_window"}, 4096),
                  [every](std::int64_t i) { return (i + 1) % every != 0; });
}

void read_cohere(ConfigReader& c, Architecture& a) {
  Decoder d = cohere_decoder(c, a);
  if (c.flag_or({"use_qk_norm"}, false)) d.kind.attention.qk_norm = QkNorm::per_head;
  repeat_layer(a, d.kind, d.layers);
}

// Command-R7B: three sliding layers with rotary embeddings, then a full one without.
void read_cohere2(ConfigReader& c, Architecture& a) {
  const Decoder d = cohere_decoder(c, a);
  const std::int64_t every = c.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, 4).get();
  append_windowed(c, a, d, c.size_or({"sliding_window"}, 4096),
                  [every](std::int64_t i) { return (i + 1) % every != 0; });
  for (LayerRun& run : a.layers) run.kind.attention.rope = run.kind.attention.window.has_value();
}

void read_stablelm(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed});
  set_qkv_bias(d.kind.attention, c.flag_or({"use_qkv_bias"}, false));
  if (c.flag_or({"qk_layernorm"}, false)) d.kind.attention.qk_norm = QkNorm::per_head;
  if (c.flag_or({"use_parallel_residual"}, false)) d.kind.placement = NormPlacement::shared_pre;
  d.kind.norm = a.final_norm = NormKind::layer;
  d.kind.dropout = c.dropout_or({"hidden_dropout"}, 0);
  repeat_layer(a, d.kind, d.layers);
}

// Nemotron-4, Minitron: squared ReLU without a gate, LayerNorm whose scale is stored minus one.
void read_nemotron(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.gated = false, .activation = "relu2"});
  gemma_attention_bias(c, d.kind);
  d.kind.mlp.bias = c.flag_or({"mlp_bias"}, false);
  d.kind.norm = a.final_norm = NormKind::layer;
  repeat_layer(a, d.kind, d.layers);
}

void read_starcoder2(ConfigReader& c, Architecture& a) {
  Decoder d =
      read_decoder(c, a, {.tied = true, .kv = KvHeads::needed, .gated = false, .activation = "gelu_pytorch_tanh"});
  set_linear_bias(d.kind, c.flag_or({"use_bias"}, true));
  d.kind.norm = a.final_norm = NormKind::layer;
  d.kind.dropout = c.dropout_or({"residual_dropout"}, 0);
  a.embedding_dropout = c.dropout_or({"embedding_dropout"}, 0);
  append_windowed(c, a, d, c.size_if_given({"sliding_window"}), [](std::int64_t) { return true; });
}

}  // namespace preflop
