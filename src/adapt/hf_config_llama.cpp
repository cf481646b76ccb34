// Llama and the families that differ from it by a bias, a norm or a window.
#include "src/adapt/hf_config_family.hpp"

namespace preflop {
namespace {

// attention_bias puts a bias on q, k, v and out alike.
void attention_bias(ConfigReader& c, LayerKind& kind, bool fallback) {
  const bool bias = c.flag_or({"attention_bias"}, fallback);
  set_qkv_bias(kind.attention, bias);
  kind.attention.out_bias = bias;
}

// use_sliding_window, sliding_window and max_window_layers: the layers from max_window_layers on slide.
void append_qwen_layers(ConfigReader& c, Architecture& a, const Decoder& d) {
  if (!c.flag_or({"use_sliding_window"}, false)) return repeat_layer(a, d.kind, d.layers);
  const Count window = c.size_or({"sliding_window"}, 4096);
  const bool stated = c.has("max_window_layers");
  const std::int64_t full = stated ? c.size({"max_window_layers"}).get() : 28;
  if (!stated) c.defaulted("max_window_layers", "28");
  append_windowed(c, a, d, window, [full](std::int64_t i) { return i >= full; });
}

}  // namespace

void read_llama(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {});
  attention_bias(c, d.kind, false);
  d.kind.mlp.bias = c.flag_or({"mlp_bias"}, false);
  repeat_layer(a, d.kind, d.layers);
}

// The class takes a window of 4096 where the key is absent; null is none.
void read_mistral(ConfigReader& c, Architecture& a) {
  const Decoder d = read_decoder(c, a, {.kv = KvHeads::needed});
  std::optional<Count> window = c.size_if_given({"sliding_window"});
  if (!window && !c.states_null("sliding_window")) window = c.size_or({"sliding_window"}, 4096);
  append_windowed(c, a, d, window, [](std::int64_t) { return true; });
}

void read_ministral3(ConfigReader& c, Architecture& a) {
  const Decoder d = read_decoder(c, a, {.kv = KvHeads::needed});
  append_windowed(c, a, d, c.size_if_given({"sliding_window"}), [](std::int64_t) { return true; });
}

void read_qwen2(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed});
  set_qkv_bias(d.kind.attention, true);
  append_qwen_layers(c, a, d);
}

void read_qwen3(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed, .head_dim = 128});
  attention_bias(c, d.kind, false);
  d.kind.attention.qk_norm = QkNorm::head;
  append_qwen_layers(c, a, d);
}

// Phi-3, 3.5 (dense) and 4: one matrix for q, k, v and one for gate and up; the count is Llama's.
void read_phi3(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {});
  d.kind.dropout = c.dropout_or({"resid_pdrop"}, 0);
  a.embedding_dropout = c.dropout_or({"embd_pdrop"}, 0);
  append_windowed(c, a, d, c.size_if_given({"sliding_window"}), [](std::int64_t) { return true; });
}

// Every fourth layer has no rotary embedding; no_rope_layers lists 1 where a layer has it.
void read_smollm3(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.tied = true, .kv = KvHeads::needed});
  attention_bias(c, d.kind, false);
  d.kind.mlp.bias = c.flag_or({"mlp_bias"}, false);
  if (c.flag_or({"use_sliding_window"}, false)) {
    c.fail("use_sliding_window", "is true", "valid: false (windows of SmolLM3 are not read)");
  }
  const std::vector<std::int64_t> stated = c.numbers_if_given("no_rope_layers", d.layers);
  const std::int64_t every = stated.empty() ? c.size_or({"no_rope_layer_interval"}, 4).get() : 1;
  for (std::int64_t i = 0; i < d.layers; ++i) {
    d.kind.attention.rope = stated.empty() ? (i + 1) % every != 0 : stated[static_cast<std::size_t>(i)] != 0;
    append_layer(a, d.kind);
  }
}

// Granite's four multipliers are constants, not parameters.
void read_granite(ConfigReader& c, Architecture& a) { read_llama(c, a); }

// OLMo 1: norms without parameters, and none to train at the end.
void read_olmo(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {});
  attention_bias(c, d.kind, false);
  d.kind.norm = a.final_norm = NormKind::layer_no_weight;
  repeat_layer(a, d.kind, d.layers);
}

void read_olmo2(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {});
  attention_bias(c, d.kind, false);
  d.kind.placement = NormPlacement::post;
  d.kind.attention.qk_norm = QkNorm::full;
  repeat_layer(a, d.kind, d.layers);
}

// OLMo 3 is OLMo 2 with a window on three layers of four.
void read_olmo3(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {});
  attention_bias(c, d.kind, false);
  d.kind.placement = NormPlacement::post;
  d.kind.attention.qk_norm = QkNorm::full;
  append_windowed(c, a, d, c.size_or({"sliding_window"}, 4096), [](std::int64_t i) { return (i + 1) % 4 != 0; });
}

void read_internlm2(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {});
  const bool bias = c.flag_or({"bias"}, true);
  set_qkv_bias(d.kind.attention, bias);
  d.kind.attention.out_bias = bias;
  repeat_layer(a, d.kind, d.layers);
}

// GLM-4 in Transformers' own classes: attention_bias means q, k and v only.
void read_glm(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed, .head_dim = 128});
  set_qkv_bias(d.kind.attention, c.flag_or({"attention_bias"}, true));
  repeat_layer(a, d.kind, d.layers);
}

void read_glm4(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed, .head_dim = 128});
  set_qkv_bias(d.kind.attention, c.flag_or({"attention_bias"}, false));
  d.kind.placement = NormPlacement::sandwich;
  repeat_layer(a, d.kind, d.layers);
}

}  // namespace preflop
