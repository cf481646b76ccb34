// Families with state spaces: Mamba-2, Nemotron-H and Nemotron 3, Granite 4, Qwen3-Next and Qwen3.5.
#include "src/adapt/hf_config_state.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "src/adapt/hf_config_experts.hpp"
#include "src/adapt/layer_pattern.hpp"
#include "src/base/text.hpp"

namespace preflop {
namespace {

// How the classes spell the sizes of a state space.
struct StateKeys {
  Keys heads, dim, groups, state, conv, chunk, conv_bias, bias;
};
const StateKeys kMamba2 = {{"num_heads"},   {"head_dim"},   {"n_groups"},      {"state_size"},
                           {"conv_kernel"}, {"chunk_size"}, {"use_conv_bias"}, {"use_bias"}};
const StateKeys kNemotron = {{"mamba_num_heads"}, {"mamba_head_dim"}, {"n_groups"},      {"ssm_state_size"},
                             {"conv_kernel"},     {"chunk_size"},     {"use_conv_bias"}, {"mamba_proj_bias"}};
const StateKeys kGranite = {{"mamba_n_heads"}, {"mamba_d_head"},     {"mamba_n_groups"},  {"mamba_d_state"},
                            {"mamba_d_conv"},  {"mamba_chunk_size"}, {"mamba_conv_bias"}, {"mamba_proj_bias"}};

// Groups deal the heads evenly.
void check_groups(ConfigReader& c, const StateSpace& s, const Keys& heads, const Keys& groups) {
  if (!c.ok() || (s.heads / s.groups).valid()) return;
  c.fail(groups.front(),
         "is " + std::to_string(s.groups.get()) + ", which does not divide the " + std::to_string(s.heads.get()) +
             " heads (" + std::string(heads.front()) + ")",
         "valid: a divisor of them");
}

StateSpace read_state_space(ConfigReader& c, const StateKeys& k) {
  constexpr std::int64_t kChunk = 256, kConv = 4;
  StateSpace s;
  s.heads = c.size(k.heads);
  s.dim = c.size(k.dim);
  s.groups = c.size(k.groups);
  s.state = c.size(k.state);
  s.conv = c.size_or(k.conv, kConv);
  s.chunk = c.size_or(k.chunk, kChunk);
  s.conv_bias = c.flag_or(k.conv_bias, true);
  s.bias = c.flag_or(k.bias, false);
  check_groups(c, s, k.heads, k.groups);
  return s;
}

void read_ends(ConfigReader& c, Architecture& a, bool tied) {
  a.hidden = c.size({"hidden_size"});
  a.vocab = c.size({"vocab_size"});
  a.tied = c.flag_or({"tie_word_embeddings"}, tied);
  a.max_seq = read_max_seq(c);
}

// Every layer of the string is one sublayer; a layer of multi-token prediction is attention and experts ("*E").
void read_pattern(ConfigReader& c, Architecture& a, const LayerKind& parts, std::int64_t layers) {
  const std::string pattern = c.word_or({"hybrid_override_pattern"}, "");
  if (!c.ok()) return;
  if (pattern.empty()) return c.fail("hybrid_override_pattern", "is absent", "valid: M, *, - or E for each layer");
  if (static_cast<std::int64_t>(pattern.size()) != layers)
    return c.fail("hybrid_override_pattern",
                  "has " + std::to_string(pattern.size()) + " layers, num_hidden_layers is " + std::to_string(layers),
                  "valid: a letter for each layer");
  const std::size_t other = pattern.find_first_not_of("M*-E");
  if (other != std::string::npos)
    return c.fail("hybrid_override_pattern", "has a layer " + text::quoted(std::string(1, pattern[other])),
                  "valid: M (Mamba-2), * (attention), - (MLP), E (experts)");
  if (const char lacks = append_pattern(a, pattern, parts))
    c.fail("hybrid_override_pattern",
           "has a layer " + text::quoted(std::string(1, lacks)) + " of which no size is stated",
           "valid: the sizes of every kind of layer");
}

// The experts of Nemotron 3: no gate, some on a latent of their own.
ExpertSpec nemotron_experts(ConfigReader& c, Activation activation) {
  ExpertSpec e = read_experts(c, {"moe_intermediate_size"}, activation);
  e.gated = false;
  if (c.whole_if_given("n_shared_experts").value_or(0) > 0)
    e.shared_width = c.size({"moe_shared_expert_intermediate_size"});
  e.latent = c.size_if_given({"moe_latent_size"});
  for (std::string_view key : {"n_group", "topk_group"}) {
    if (c.whole_if_given(key).value_or(1) > 1)
      c.fail(key, "is more than 1", "valid: 1 (groups of experts are not read in this family)");
  }
  return e;
}

// layer_types: one of two words for each layer.
std::string letters_of_types(ConfigReader& c, std::int64_t layers, std::string_view state, std::string_view attention) {
  std::string out;
  for (const std::string& type : c.words_if_given("layer_types", layers)) {
    if (type != state && type != attention) {
      c.fail("layer_types", "holds " + text::quoted(type),
             "valid: " + std::string(state) + ", " + std::string(attention));
      return "";
    }
    out += type == state ? 'm' : 'a';
  }
  return out;
}

}  // namespace

void read_mamba2(ConfigReader& c, Architecture& a) {
  read_ends(c, a, false);
  const std::int64_t layers = c.layers({"num_hidden_layers"});
  a.positions = Positions::none;
  LayerKind kind;
  kind.state_space = read_state_space(c, kMamba2);
  kind.feeds_forward = false;
  repeat_layer(a, kind, layers);
}

// The files of state-spaces/mamba2-*: sizes follow from d_model, what differs from the class stands in ssm_cfg.
void read_mamba_lm(ConfigReader& c, Architecture& a) {
  a.hidden = c.size({"d_model"});
  const std::int64_t layers = c.layers({"n_layer"});
  const Count multiple = c.size_or({"pad_vocab_size_multiple"}, 8);
  a.vocab = round_up(c.size({"vocab_size"}), multiple);
  a.tied = c.flag_or({"tie_embeddings"}, true);
  a.positions = Positions::none;
  if (c.whole_if_given("d_intermediate").value_or(0) > 0)
    c.fail("d_intermediate", "is not 0", "valid: 0 (an MLP beside the state space is not read in this family)");
  if (!c.list_if_given("attn_layer_idx", layers).empty())
    c.fail("attn_layer_idx", "is not empty", "valid: [] (attention with a convolution is not read)");
  const nlohmann::json* own = c.object("ssm_cfg");
  if (own == nullptr) return c.fail("ssm_cfg", "is absent", "valid: an object with layer Mamba2");
  ConfigReader s(*own, c.where() + ": ssm_cfg", c.assume());
  if (s.word_or({"layer"}, "Mamba1") != "Mamba2") s.fail("layer", "is not Mamba2", "valid: Mamba2");
  constexpr std::int64_t kState = 128, kConv = 4, kExpand = 2, kDim = 64, kChunk = 256;
  StateSpace m;
  m.dim = s.size_or({"headdim"}, kDim);
  m.heads = a.hidden * s.size_or({"expand"}, kExpand) / m.dim;
  m.groups = s.size_or({"ngroups"}, 1);
  m.state = s.size_or({"d_state"}, kState);
  m.conv = s.size_or({"d_conv"}, kConv);
  m.chunk = s.size_or({"chunk_size"}, kChunk);
  m.conv_bias = s.flag_or({"conv_bias"}, true);
  m.bias = s.flag_or({"bias"}, false);
  c.adopt(s);
  if (c.ok() && !m.heads.valid()) c.fail("d_model", "is not a multiple of the head width", "valid: a multiple of it");
  check_groups(c, m, {"d_model"}, {"ngroups"});
  LayerKind kind;
  kind.state_space = m;
  kind.feeds_forward = false;
  repeat_layer(a, kind, layers);
}

// Nemotron-H and Nemotron 3: state spaces, attention without positions, MLPs and experts, one a layer.
void read_nemotron_h(ConfigReader& c, Architecture& a) {
  read_ends(c, a, false);
  const std::int64_t layers = c.layers({"num_hidden_layers"});
  a.positions = Positions::none;
  LayerKind parts;
  const Count heads = c.size({"num_attention_heads"});
  set_heads(c, parts.attention, a.hidden, heads, c.size({"num_key_value_heads"}),
            c.size_if_given({"attention_head_dim", "head_dim"}));
  const bool bias = c.flag_or({"attention_bias"}, false);
  set_qkv_bias(parts.attention, bias);
  parts.attention.out_bias = bias;
  parts.attention.window = c.size_if_given({"sliding_window"});
  parts.attention.dropout = c.dropout_or({"attention_dropout"}, 0);
  const Activation activation = c.activation_or({"mlp_hidden_act"}, "relu2");
  if (const auto width = c.size_if_given({"intermediate_size"}))
    parts.mlp = MlpSpec{*width, false, activation, c.flag_or({"mlp_bias"}, false)};
  parts.state_space = read_state_space(c, kNemotron);
  if (c.whole_if_given("n_routed_experts").value_or(0) > 0) parts.experts = nemotron_experts(c, activation);
  parts.dropout = c.dropout_or({"hidden_dropout"}, 0);
  read_pattern(c, a, parts, layers);
  a.mtp_layers = c.whole_if_given("num_nextn_predict_layers", ConfigReader::kMaxMtp).value_or(0);
  a.mtp_kind = kind_of_letter('a', parts);
}

// Granite 4: a state space or attention, then experts beside an MLP that works on every token, or that MLP alone.
void read_granite_hybrid(ConfigReader& c, Architecture& a) {
  read_ends(c, a, false);
  const std::int64_t layers = c.layers({"num_hidden_layers"});
  const std::string positions = c.word_or({"position_embedding_type"}, "rope");
  if (positions != "rope" && positions != "nope")
    c.fail("position_embedding_type", "is " + text::quoted(positions), "valid: rope, nope");
  a.positions = positions == "rope" ? Positions::rope : Positions::none;
  LayerKind parts;
  const Count heads = c.size({"num_attention_heads"});
  set_heads(c, parts.attention, a.hidden, heads, c.size({"num_key_value_heads"}), std::nullopt);
  const bool bias = c.flag_or({"attention_bias"}, false);
  set_qkv_bias(parts.attention, bias);
  parts.attention.out_bias = bias;
  parts.attention.dropout = c.dropout_or({"attention_dropout"}, 0);
  const Activation activation = c.activation_or({"hidden_act"}, "silu");
  const Count shared = c.size({"shared_intermediate_size"});
  parts.mlp = MlpSpec{shared, true, activation, false};
  parts.state_space = read_state_space(c, kGranite);
  if (c.whole_if_given("num_local_experts").value_or(0) > 0) {
    parts.experts = read_experts(c, {"intermediate_size"}, activation);
    parts.experts->shared_width = shared;
  }
  const std::string letters = letters_of_types(c, layers, "mamba", "attention");
  if (c.ok() && letters.empty()) c.fail("layer_types", "is absent", "valid: mamba or attention for each layer");
  append_pattern(a, letters, parts);
}

// Qwen3-Next and Qwen3.5: three gated delta rules, then gated attention, each before experts or an MLP.
void read_qwen3_next(ConfigReader& c, Architecture& a) {
  read_ends(c, a, false);
  const std::int64_t layers = c.layers({"num_hidden_layers"});
  LayerKind parts;
  const Count heads = c.size({"num_attention_heads"});
  constexpr std::int64_t kHeadDim = 256, kConv = 4, kChunk = 64;  // the chunk of fla's chunk_gated_delta_rule
  set_heads(c, parts.attention, a.hidden, heads, c.size({"num_key_value_heads"}), c.size_or({"head_dim"}, kHeadDim));
  parts.attention.gate = c.flag_or({"attn_output_gate"}, true);
  parts.attention.qk_norm = QkNorm::head;
  const bool bias = c.flag_or({"attention_bias"}, false);
  set_qkv_bias(parts.attention, bias);
  parts.attention.out_bias = bias;
  parts.attention.dropout = c.dropout_or({"attention_dropout"}, 0);
  StateSpace s;
  s.kind = ScanKind::gated_delta;
  s.heads = c.size({"linear_num_value_heads"});
  s.dim = c.size({"linear_value_head_dim"});
  s.groups = c.size({"linear_num_key_heads"});
  s.state = c.size({"linear_key_head_dim"});
  s.conv = c.size_or({"linear_conv_kernel_dim"}, kConv);
  s.chunk = kChunk;
  check_groups(c, s, {"linear_num_value_heads"}, {"linear_num_key_heads"});
  parts.state_space = s;
  const Activation activation = c.activation_or({"hidden_act"}, "silu");
  if (c.whole_if_given("num_experts").value_or(0) > 0) {
    parts.experts = read_experts(c, {"moe_intermediate_size"}, activation);
    parts.experts->shared_width = c.size({"shared_expert_intermediate_size"});
    parts.experts->shared_gate = true;
  }
  const std::vector<std::int64_t> dense = c.list_if_given("mlp_only_layers", layers);
  const std::int64_t step = c.size_or({"decoder_sparse_step"}, 1).get();
  if (!parts.experts || !dense.empty() || step > 1)
    parts.mlp = MlpSpec{c.size({"intermediate_size"}), true, activation, false};
  std::string letters = letters_of_types(c, layers, "linear_attention", "full_attention");
  if (letters.empty() && c.ok()) {
    const std::int64_t every = c.size_or({"full_attention_interval"}, 4).get();
    for (std::int64_t i = 0; i < layers; ++i) letters += (i + 1) % every == 0 ? 'a' : 'm';
  }
  for (std::size_t i = 0; i < letters.size(); ++i) {
    LayerKind own = parts;
    const std::int64_t layer = static_cast<std::int64_t>(i);
    if ((layer + 1) % step != 0 || std::find(dense.begin(), dense.end(), layer) != dense.end()) own.experts.reset();
    append_pattern(a, letters.substr(i, 1), own);
  }
  for (std::string_view key : {"num_nextn_predict_layers", "mtp_num_hidden_layers"}) {
    if (const auto mtp = c.whole_if_given(key, ConfigReader::kMaxMtp)) a.mtp_layers = *mtp;
  }
  a.mtp_kind = kind_of_letter('a', parts);
}

}  // namespace preflop
