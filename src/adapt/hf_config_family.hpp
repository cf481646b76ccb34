// What the families share: the plain decoder's keys, and building the run-length list of layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "preflop/architecture.hpp"
#include "src/adapt/hf_config_reader.hpp"

namespace preflop {

// num_key_value_heads where it is absent.
enum class KvHeads : std::uint8_t {
  as_heads,  // the class takes num_attention_heads
  needed,    // the class takes a number of its own, which is right for few models: refused
  own        // the family has no such key, or reads it itself
};

// How the plain decoder families' classes differ where a key is absent.
struct DecoderDefaults {
  bool tied = false;  // tie_word_embeddings
  KvHeads kv = KvHeads::as_heads;
  std::int64_t head_dim = 0;  // 0: hidden_size / num_attention_heads
  bool ffn_is_4h = false;     // intermediate_size = 4 * hidden_size; false: the key is needed
  bool gated = true;
  std::string_view activation_key = "hidden_act";
  std::string_view activation = "silu";
  double attention_dropout = 0;
};

struct Decoder {
  std::int64_t layers = 1;
  LayerKind kind;  // of every layer, until the family says otherwise
};

// hidden, vocab, layers, heads, kv heads, head_dim, ffn, activation, tied, max_seq, attention dropout.
Decoder read_decoder(ConfigReader& c, Architecture& a, const DecoderDefaults& defaults);

extern const Keys kKvHeads;  // the spellings of num_key_value_heads

// The attention's heads alone: family readers with their own key names use it.
void set_heads(ConfigReader& c, AttentionSpec& attention, Count hidden, Count heads, std::optional<Count> kv_heads,
               std::optional<Count> head_dim);

void set_qkv_bias(AttentionSpec& attention, bool bias);
void set_linear_bias(LayerKind& kind, bool bias);  // q, k, v, out and both of the MLP

// The model's own maximum, by any of its names; absent is no error.
std::optional<Count> read_max_seq(ConfigReader& c);

// Appends one layer, or grows the last run when it is of the same kind.
void append_layer(Architecture& a, const LayerKind& kind);
void repeat_layer(Architecture& a, const LayerKind& kind, std::int64_t count);

// Layers with the window where `slides(i)`, full attention elsewhere. A layer_types list in the config
// (sliding_attention | full_attention per layer) wins over `slides`.
template <class Slides>
void append_windowed(ConfigReader& c, Architecture& a, const Decoder& d, std::optional<Count> window, Slides&& slides);

namespace detail {
// nothing: no layer_types; else one bool per layer, true = sliding.
std::optional<std::vector<bool>> sliding_layers(ConfigReader& c, std::int64_t layers);
}  // namespace detail

template <class Slides>
void append_windowed(ConfigReader& c, Architecture& a, const Decoder& d, std::optional<Count> window, Slides&& slides) {
  const std::optional<std::vector<bool>> stated = detail::sliding_layers(c, d.layers);
  for (std::int64_t i = 0; i < d.layers; ++i) {
    const bool sliding = stated ? (*stated)[static_cast<std::size_t>(i)] : slides(i);
    if (sliding && stated && !window)
      c.fail("sliding_window", "is absent, but layer_types has sliding layers", "valid: the window in tokens");
    LayerKind kind = d.kind;
    if (sliding) kind.attention.window = window;
    append_layer(a, kind);
  }
}

// A family fills the architecture; errors stay in the reader.
using ReadFamily = void (*)(ConfigReader&, Architecture&);

void read_llama(ConfigReader& c, Architecture& a);
void read_mistral(ConfigReader& c, Architecture& a);
void read_ministral3(ConfigReader& c, Architecture& a);
void read_qwen2(ConfigReader& c, Architecture& a);
void read_qwen3(ConfigReader& c, Architecture& a);
void read_phi3(ConfigReader& c, Architecture& a);
void read_smollm3(ConfigReader& c, Architecture& a);
void read_granite(ConfigReader& c, Architecture& a);
void read_olmo(ConfigReader& c, Architecture& a);
void read_olmo2(ConfigReader& c, Architecture& a);
void read_olmo3(ConfigReader& c, Architecture& a);
void read_internlm2(ConfigReader& c, Architecture& a);
void read_glm(ConfigReader& c, Architecture& a);
void read_glm4(ConfigReader& c, Architecture& a);
void read_gemma(ConfigReader& c, Architecture& a);
void read_gemma2(ConfigReader& c, Architecture& a);
void read_gemma3(ConfigReader& c, Architecture& a);
void read_cohere(ConfigReader& c, Architecture& a);
void read_cohere2(ConfigReader& c, Architecture& a);
void read_stablelm(ConfigReader& c, Architecture& a);
void read_nemotron(ConfigReader& c, Architecture& a);
void read_starcoder2(ConfigReader& c, Architecture& a);
void read_gpt2(ConfigReader& c, Architecture& a);
void read_gpt_bigcode(ConfigReader& c, Architecture& a);
void read_gptj(ConfigReader& c, Architecture& a);
void read_gpt_neox(ConfigReader& c, Architecture& a);
void read_phi(ConfigReader& c, Architecture& a);
void read_opt(ConfigReader& c, Architecture& a);
void read_bloom(ConfigReader& c, Architecture& a);
void read_falcon(ConfigReader& c, Architecture& a);
void read_falcon_rw(ConfigReader& c, Architecture& a);
void read_mpt(ConfigReader& c, Architecture& a);
void read_mpt_foundry(ConfigReader& c, Architecture& a);
void read_qwen1(ConfigReader& c, Architecture& a);
void read_chatglm(ConfigReader& c, Architecture& a);
void read_baichuan(ConfigReader& c, Architecture& a);

}  // namespace preflop
