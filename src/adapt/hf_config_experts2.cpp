// Families with experts and an attention of their own: GPT-OSS, Llama 4, GLM-4.5, MiMo-V2.
#include <vector>

#include "src/adapt/hf_config_experts.hpp"
#include "src/base/text.hpp"

namespace preflop {
namespace {

void qkv_bias(ConfigReader& c, LayerKind& kind, bool fallback) {
  set_qkv_bias(kind.attention, c.flag_or({"attention_bias"}, fallback));
}

// What GPT-OSS calls silu gates with x * sigmoid(1.702 x).
constexpr const char* kQuickGelu = "the experts gate with x * sigmoid(1.702 x), whatever hidden_act says";

}  // namespace

// GPT-OSS: biases everywhere, a sink per head, every other layer slides.
void read_gpt_oss(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed, .head_dim = 64});
  qkv_bias(c, d.kind, true);
  d.kind.attention.out_bias = d.kind.attention.query_bias;
  d.kind.attention.sinks = true;
  ExpertSpec experts = read_experts(c, {"intermediate_size"}, Activation::quick_gelu);
  experts.bias = experts.router_bias = true;
  c.note(kQuickGelu);
  d.kind.experts = experts;
  d.kind.mlp = {};
  append_windowed(c, a, d, c.size_or({"sliding_window"}, 128), [](std::int64_t i) { return i % 2 == 0; });
}

// Llama 4, the language model: three layers of four rotate and see their own chunk, the fourth sees all.
// intermediate_size is an expert's width, intermediate_size_mlp that of dense layers.
void read_llama4(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed, .head_dim = 128});
  const bool bias = c.flag_or({"attention_bias"}, false);
  set_qkv_bias(d.kind.attention, bias);
  d.kind.attention.out_bias = bias;
  if (c.flag_or({"use_qk_norm"}, true)) c.note("use_qk_norm normalises without weights: it is not counted");
  ExpertSpec experts = read_experts(c, {"intermediate_size"}, d.kind.mlp.activation);
  experts.shared_width = experts.width;
  d.kind.mlp.width = c.size({"intermediate_size_mlp"});
  const std::int64_t step = c.size_or({"interleave_moe_layer_step"}, 1).get();
  const std::vector<std::int64_t> moe = c.list_if_given("moe_layers", d.layers);
  const std::vector<std::int64_t> rotates = c.numbers_if_given("no_rope_layers", d.layers);
  const std::optional<Count> chunk = c.size_if_given({"attention_chunk_size"});
  for (std::int64_t i = 0; i < d.layers; ++i) {
    LayerKind kind = d.kind;
    bool has_experts = moe.empty() && (i + 1) % step == 0;
    for (const std::int64_t layer : moe) has_experts = has_experts || layer == i;
    if (has_experts) {
      kind.experts = experts;
      kind.mlp = {};
    }
    kind.attention.rope = rotates.empty() ? (i + 1) % 4 != 0 : rotates[static_cast<std::size_t>(i)] != 0;
    if (kind.attention.rope) kind.attention.window = chunk;
    kind.attention.chunked = kind.attention.window.has_value();
    append_layer(a, kind);
  }
}

// GLM-4.5 and 4.6: attention_bias is on queries, keys and values alone.
void read_glm4_moe(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed, .head_dim = 128});
  qkv_bias(c, d.kind, false);
  if (c.flag_or({"use_qk_norm"}, false)) d.kind.attention.qk_norm = QkNorm::head;
  ExpertSpec experts = read_experts(c, {"moe_intermediate_size"}, d.kind.mlp.activation);
  experts.correction_bias = true;
  experts.shared_width = read_shared_width(c, experts.width);
  a.mtp_layers = c.whole_if_given("num_nextn_predict_layers", ConfigReader::kMaxMtp).value_or(0);
  append_expert_layers(a, d, experts, dense_first(c, d.layers));
}

// MiMo-V2: sliding layers have heads of their own and sinks; moe_layer_freq lists the layers with experts.
void read_mimo_v2(ConfigReader& c, Architecture& a) {
  Decoder d = read_decoder(c, a, {.kv = KvHeads::needed});
  qkv_bias(c, d.kind, false);
  d.kind.attention.value_dim = c.size({"v_head_dim"});
  d.kind.attention.sinks = c.flag_or({"add_full_attention_sink_bias"}, false);
  AttentionSpec sliding = d.kind.attention;
  set_heads(c, sliding, a.hidden, c.size({"swa_num_attention_heads"}), c.size({"swa_num_key_value_heads"}),
            c.size({"swa_head_dim"}));
  sliding.value_dim = c.size({"swa_v_head_dim"});
  sliding.window = c.size({"sliding_window"});
  sliding.sinks = c.flag_or({"add_swa_attention_sink_bias"}, false);
  ExpertSpec experts = read_experts(c, {"moe_intermediate_size"}, d.kind.mlp.activation);
  experts.correction_bias = c.word_or({"topk_method"}, "greedy") == "noaux_tc";
  experts.shared_width = read_shared_width(c, experts.width);
  const std::vector<std::int64_t> pattern = c.numbers_if_given("hybrid_layer_pattern", d.layers);
  const std::vector<std::int64_t> moe = c.numbers_if_given("moe_layer_freq", d.layers);
  if (pattern.empty()) c.fail("hybrid_layer_pattern", "is absent", "valid: 0 (full) or 1 (sliding) for each layer");
  if (moe.empty()) c.fail("moe_layer_freq", "is absent", "valid: 0 (dense) or 1 (experts) for each layer");
  if (!c.ok()) return;
  for (std::int64_t i = 0; i < d.layers; ++i) {
    LayerKind kind = d.kind;
    if (pattern[static_cast<std::size_t>(i)] != 0) kind.attention = sliding;
    if (moe[static_cast<std::size_t>(i)] != 0) {
      kind.experts = experts;
      kind.mlp = {};
    }
    append_layer(a, kind);
  }
}

}  // namespace preflop
