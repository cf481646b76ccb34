#include "src/adapt/shape_string.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "src/adapt/layer_pattern.hpp"
#include "src/adapt/shape_reader.hpp"

namespace preflop {
namespace {

constexpr std::array kShapeKeys = std::to_array<std::string_view>({"layers",
                                                                   "hidden",
                                                                   "heads",
                                                                   "vocab",
                                                                   "kv_heads",
                                                                   "head_dim",
                                                                   "ffn",
                                                                   "seq",
                                                                   "tied",
                                                                   "gated",
                                                                   "activation",
                                                                   "norm",
                                                                   "placement",
                                                                   "bias",
                                                                   "qkv_bias",
                                                                   "out_bias",
                                                                   "mlp_bias",
                                                                   "head_bias",
                                                                   "qk_norm",
                                                                   "positions",
                                                                   "position_rows",
                                                                   "dropout",
                                                                   "attention_dropout",
                                                                   "embedding_dropout",
                                                                   "window",
                                                                   "full_every",
                                                                   "nope_every",
                                                                   "embedding_norm",
                                                                   "final_norm",
                                                                   "value_dim",
                                                                   "sinks",
                                                                   "chunked",
                                                                   "kv_lora",
                                                                   "q_lora",
                                                                   "nope_dim",
                                                                   "rope_dim",
                                                                   "index_heads",
                                                                   "index_dim",
                                                                   "index_top_k",
                                                                   "experts",
                                                                   "top_k",
                                                                   "expert_ffn",
                                                                   "shared_ffn",
                                                                   "shared_gate",
                                                                   "expert_bias",
                                                                   "router_bias",
                                                                   "correction_bias",
                                                                   "expert_groups",
                                                                   "top_groups",
                                                                   "dense_first",
                                                                   "experts_every",
                                                                   "mtp",
                                                                   "counted",
                                                                   "mtp_shared",
                                                                   "pattern",
                                                                   "scan",
                                                                   "ssm_heads",
                                                                   "ssm_dim",
                                                                   "ssm_groups",
                                                                   "ssm_state",
                                                                   "ssm_conv",
                                                                   "ssm_chunk",
                                                                   "ssm_bias",
                                                                   "expert_latent",
                                                                   "attention_gate",
                                                                   "rope_theta",
                                                                   "rope_share",
                                                                   "norm_eps"});

constexpr std::array kActivations = {Word{"gelu", Activation::gelu}, Word{"relu", Activation::relu},
                                     Word{"relu2", Activation::relu2}, Word{"silu", Activation::silu},
                                     Word{"quick_gelu", Activation::quick_gelu}};
constexpr std::array kNorms = {Word{"rms", NormKind::rms}, Word{"layer", NormKind::layer},
                               Word{"layer_no_bias", NormKind::layer_no_bias}, Word{"none", NormKind::layer_no_weight}};
constexpr std::array kPlacements = {
    Word{"pre", NormPlacement::pre}, Word{"post", NormPlacement::post}, Word{"sandwich", NormPlacement::sandwich},
    Word{"shared_pre", NormPlacement::shared_pre}, Word{"split_pre", NormPlacement::split_pre}};
constexpr std::array kQkNorms = {Word{"none", QkNorm::none}, Word{"head", QkNorm::head},
                                 Word{"per_head", QkNorm::per_head}, Word{"full", QkNorm::full}};
constexpr std::array kPositions = {Word{"learned", Positions::learned}, Word{"rope", Positions::rope},
                                   Word{"alibi", Positions::alibi}, Word{"none", Positions::none}};

void read_heads(ShapeReader& r, AttentionSpec& attention, Count hidden) {
  attention.heads = r.size("heads");
  attention.kv_heads = r.size_or("kv_heads", attention.heads);
  if (const auto stated = r.size_if_given("head_dim")) {
    attention.head_dim = *stated;
  } else {
    attention.head_dim = hidden / attention.heads;
    if (attention.head_dim.valid()) r.defaulted("head_dim", std::to_string(attention.head_dim.get()));
  }
  if (!attention.head_dim.valid()) {
    r.fail("heads",
           "is " + std::to_string(attention.heads.get()) +
               ", which does not divide hidden=" + std::to_string(hidden.get()),
           "valid: a divisor of hidden, or a head_dim of its own");
  }
  if (!(attention.heads / attention.kv_heads).valid()) {
    r.fail("kv_heads",
           "is " + std::to_string(attention.kv_heads.get()) +
               ", which does not divide heads=" + std::to_string(attention.heads.get()),
           "valid: a divisor of heads");
  }
}

void read_mlp(ShapeReader& r, MlpSpec& mlp, Count hidden, bool llama) {
  mlp.gated = r.flag_or("gated", llama);
  mlp.activation = r.word_or("activation", kActivations, llama ? Activation::silu : Activation::gelu);
  if (!llama && mlp.gated) {
    mlp.width = r.size("ffn");
  } else {
    // LLaMA 1 and 2: two thirds of 4 * hidden, rounded up to a multiple of 256.
    mlp.width = r.size_or("ffn", mlp.gated ? round_up(Count(hidden.get() * 8 / 3), 256) : hidden * 4);
  }
}

void read_biases(ShapeReader& r, Architecture& a, LayerKind& kind, bool llama) {
  const bool bias = r.flag_or("bias", !llama);
  const auto own = [&r, bias](std::string_view key) { return r.given(key) ? r.flag_or(key, bias) : bias; };
  kind.attention.query_bias = kind.attention.key_bias = kind.attention.value_bias = own("qkv_bias");
  kind.attention.out_bias = own("out_bias");
  kind.mlp.bias = own("mlp_bias");
  a.head_bias = r.given("head_bias") && r.flag_or("head_bias", false);
}

void read_positions(ShapeReader& r, Architecture& a, LayerKind& kind, bool llama) {
  a.positions = r.word_or("positions", kPositions, llama ? Positions::rope : Positions::learned);
  kind.attention.rope = a.positions == Positions::rope;
  if (a.positions == Positions::learned) {
    a.max_seq = r.size_or("seq", 2048);
    a.position_rows = r.size_if_given("position_rows").value_or(*a.max_seq);
  } else {
    a.max_seq = r.size_if_given("seq");
    if (r.given("position_rows"))
      r.fail("position_rows", "is given, but positions are not learned", "valid: positions=learned");
  }
}

// Nothing is counted by these: launch files say them.
void read_shape_constants(ShapeReader& r, Architecture& a) {
  a.rope_theta = r.real_if_given("rope_theta", Architecture::kMostTheta);
  a.rope_share = r.real_if_given("rope_share", 1);
  a.norm_eps = r.real_if_given("norm_eps", Architecture::kMostEps);
  for (const char* key : {"rope_theta", "rope_share"}) {
    if (r.given(key) && a.positions != Positions::rope)
      r.fail(key, "is given, but positions are not rope", "valid: positions=rope");
  }
}

// Dropout names that are not given follow `dropout`.
void read_dropout(ShapeReader& r, Architecture& a, LayerKind& kind, bool llama) {
  kind.dropout = r.dropout_or("dropout", llama ? 0.0 : 0.1);
  const auto own = [&](std::string_view key) { return r.given(key) ? r.dropout_or(key, kind.dropout) : kind.dropout; };
  kind.attention.dropout = own("attention_dropout");
  a.embedding_dropout = own("embedding_dropout");
}

void append_layers(ShapeReader& r, Architecture& a, const LayerKind& kind, const ExpertLayers& experts,
                   std::int64_t layers) {
  const std::optional<Count> window = r.size_if_given("window");
  const std::int64_t full_every = r.given("full_every") ? r.size_or("full_every", 0, 0).get() : 0;
  const std::int64_t nope_every = r.given("nope_every") ? r.size_or("nope_every", 0, 0).get() : 0;
  const bool chunked = r.given("chunked") && r.flag_or("chunked", false);
  if (chunked && !window) r.fail("chunked", "is given without a window", "valid: window=N,chunked=true");
  if (full_every != 0 && !window) r.fail("full_every", "is given without a window", "valid: window=N,full_every=M");
  if (nope_every != 0 && a.positions != Positions::rope)
    r.fail("nope_every", "is given, but positions are not rope", "valid: positions=rope");
  for (std::int64_t i = 0; i < layers; ++i) {
    LayerKind own = kind;
    if (full_every == 0 || (i + 1) % full_every != 0) own.attention.window = window;
    own.attention.chunked = chunked && own.attention.window.has_value();
    if (experts.at(i)) {
      own.experts = experts.experts;
      own.mlp = {};
    }
    if (nope_every != 0 && (i + 1) % nope_every == 0) own.attention.rope = false;
    if (!a.layers.empty() && a.layers.back().kind == own) {
      ++a.layers.back().count;
    } else {
      a.layers.push_back(LayerRun{own, 1});
    }
  }
}

// A letter for each layer. Attention that no layer has is not asked for.
bool pattern_attends(const ShapeReader& r) {
  const auto pattern = r.given("pattern");
  return !pattern || pattern->find_first_of("*a") != std::string_view::npos;
}

void append_hybrid(ShapeReader& r, Architecture& a, LayerKind parts, const ExpertLayers& experts, std::int64_t layers) {
  const std::string_view pattern = *r.given("pattern");
  parts.state_space = read_state_shape(r);
  parts.experts = experts.experts;
  parts.attention.window = r.size_if_given("window");
  for (const char* key : {"full_every", "nope_every", "chunked", "dense_first", "experts_every"}) {
    if (r.given(key)) r.fail(key, "is given with a pattern", "valid: a pattern, or layers that alternate by number");
  }
  if (static_cast<std::int64_t>(pattern.size()) != layers)
    return r.fail("pattern", "has " + std::to_string(pattern.size()) + " layers of " + std::to_string(layers),
                  "valid: a letter for each layer");
  if (const char letter = append_pattern(a, pattern, parts))
    r.fail("pattern", "has a layer " + text::quoted(std::string(1, letter)) + " that its keys do not describe",
           "valid: M (state space), * (attention), - (MLP), E (experts); m, a with MLP or experts behind");
  a.mtp_kind = kind_of_letter('a', parts);
}

}  // namespace

bool looks_like_shape(std::string_view model) {
  const std::size_t colon = model.find(':');
  return colon != std::string_view::npos && colon > 0 && model.find('/') == std::string_view::npos &&
         model.find('\\') == std::string_view::npos;
}

bool known_shape_key(std::string_view key) {
  return std::find(kShapeKeys.begin(), kShapeKeys.end(), key) != kShapeKeys.end();
}

std::vector<std::string> shape_keys() { return {kShapeKeys.begin(), kShapeKeys.end()}; }

Result<Architecture> build_shape(std::string_view base, const ShapeKeys& keys, std::string_view where) {
  if (base != "gpt" && base != "llama") return text::unknown_name(where, "shape", base, {"gpt", "llama"});
  const bool llama = base == "llama";
  ShapeReader r(keys, where);
  Architecture a;
  a.family = base;
  LayerKind kind;
  const std::int64_t layers = r.size("layers", ConfigReader::kMaxLayers).get();
  a.hidden = r.size("hidden");
  if (pattern_attends(r)) read_heads(r, kind.attention, a.hidden);
  a.vocab = r.size("vocab");
  read_mlp(r, kind.mlp, a.hidden, llama);
  a.tied = r.flag_or("tied", !llama);
  kind.norm = a.final_norm = r.word_or("norm", kNorms, llama ? NormKind::rms : NormKind::layer);
  if (r.given("placement")) kind.placement = r.word_or("placement", kPlacements, NormPlacement::pre);
  if (r.given("qk_norm")) kind.attention.qk_norm = r.word_or("qk_norm", kQkNorms, QkNorm::none);
  if (r.given("embedding_norm")) a.embedding_norm = r.flag_or("embedding_norm", false);
  if (r.given("final_norm")) a.has_final_norm = r.flag_or("final_norm", true);
  read_biases(r, a, kind, llama);
  read_positions(r, a, kind, llama);
  read_shape_constants(r, a);
  read_dropout(r, a, kind, llama);
  read_latent_shape(r, kind.attention);
  const ExpertLayers experts = read_expert_shape(r, kind.mlp);
  if (experts.experts && std::max(experts.dense_first, experts.every - 1) >= layers)
    r.fail(experts.dense_first >= layers ? "dense_first" : "experts_every", "leaves no layer with experts",
           "valid: less than the " + std::to_string(layers) + " layers");
  read_mtp_shape(r, a);
  if (r.given("attention_gate")) kind.attention.gate = r.flag_or("attention_gate", false);
  if (r.given("pattern"))
    append_hybrid(r, a, kind, experts, layers);
  else if (read_state_shape(r))
    r.fail("ssm_heads", "is given without a pattern", "valid: pattern=, a letter for each layer");
  else
    append_layers(r, a, kind, experts, layers);
  if (r.error()) return *r.error();
  a.defaulted = r.take_defaulted();
  return a;
}

Result<Architecture> read_shape(std::string_view text, std::string_view where) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return Error{std::string(where), text::quoted(text) + " has no colon",
                 "valid: gpt:layers=..,hidden=..,heads=..,vocab=.. or llama:.."};
  }
  ShapeKeys keys;
  for (std::string_view rest = text.substr(colon + 1);;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size()) {
      return Error{std::string(where), text::quoted(part) + " is not KEY=VALUE",
                   "valid keys: " + text::list(shape_keys())};
    }
    keys.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  Result<Architecture> a = build_shape(text.substr(0, colon), keys, where);
  if (a) {
    a->name = text;
    a->source = "shape string";
  }
  return a;
}

}  // namespace preflop
