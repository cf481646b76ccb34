// Keys of shape strings beyond dense decoders: experts, latent attention, an indexer, multi-token prediction.
#include "src/adapt/shape_reader.hpp"

namespace preflop {
namespace {

constexpr std::array kCounted = {Word{"main", Counted::main}, Word{"main+mtp", Counted::main_mtp},
                                 Word{"main+mtp+copies", Counted::main_mtp_copies}};

constexpr std::array kScans = {Word{"mamba2", ScanKind::mamba2}, Word{"gated-delta", ScanKind::gated_delta}};

bool given_flag(ShapeReader& r, std::string_view key) { return r.given(key) && r.flag_or(key, false); }

// A number that may be 0; not given is 0 and no default to report.
std::int64_t given_or_zero(ShapeReader& r, std::string_view key) {
  return r.given(key) ? r.size_or(key, 0, 0).get() : 0;
}

}  // namespace

void read_latent_shape(ShapeReader& r, AttentionSpec& attention) {
  attention.sinks = given_flag(r, "sinks");
  attention.value_dim = r.given("kv_lora") ? std::nullopt : r.size_if_given("value_dim");
  if (!r.given("kv_lora")) {
    for (const char* key : {"q_lora", "nope_dim", "rope_dim", "index_heads", "index_dim", "index_top_k"}) {
      if (r.given(key)) r.fail(key, "is given without kv_lora", "valid: kv_lora=N with latent attention");
    }
    return;
  }
  LatentAttention latent;
  latent.kv_lora = r.size("kv_lora");
  latent.q_lora = r.size_if_given("q_lora");
  latent.nope_dim = r.size("nope_dim");
  latent.rope_dim = r.size("rope_dim");
  latent.value_dim = r.size("value_dim");
  attention.kv_heads = attention.heads;
  attention.head_dim = latent.nope_dim + latent.rope_dim;
  attention.latent = latent;
  if (!r.given("index_heads")) return;
  attention.indexer = SparseIndexer{r.size("index_heads"), r.size("index_dim"), r.size("index_top_k"), false};
}

ExpertLayers read_expert_shape(ShapeReader& r, const MlpSpec& mlp) {
  ExpertLayers out;
  if (!r.given("experts")) {
    for (const char* key :
         {"top_k", "expert_ffn", "shared_ffn", "shared_gate", "expert_bias", "router_bias", "correction_bias",
          "expert_groups", "top_groups", "dense_first", "experts_every", "expert_latent"}) {
      if (r.given(key)) r.fail(key, "is given without experts", "valid: experts=N,top_k=N,expert_ffn=N");
    }
    return out;
  }
  ExpertSpec e;
  e.count = r.size("experts");
  e.top_k = r.size("top_k");
  if (e.count < e.top_k) {
    r.fail("top_k", "is " + std::to_string(e.top_k.get()) + " of " + std::to_string(e.count.get()) + " experts",
           "valid: at most experts");
  }
  e.width = r.size("expert_ffn");
  e.gated = mlp.gated;
  e.activation = mlp.activation;
  e.shared_width = given_or_zero(r, "shared_ffn");
  e.shared_gate = given_flag(r, "shared_gate");
  e.bias = given_flag(r, "expert_bias");
  e.router_bias = given_flag(r, "router_bias");
  e.correction_bias = given_flag(r, "correction_bias");
  if (r.given("expert_groups").has_value() != r.given("top_groups").has_value())
    r.fail("top_groups", "and expert_groups belong together", "valid: expert_groups=N,top_groups=N");
  if (r.given("expert_groups") && r.given("top_groups")) {
    e.groups = r.size("expert_groups");
    e.top_groups = r.size("top_groups");
    if (e.groups < e.top_groups || e.count.get() % e.groups.get() != 0)
      r.fail("expert_groups", "is " + std::to_string(e.groups.get()),
             "valid: a divisor of experts, at least top_groups");
  }
  e.latent = r.size_if_given("expert_latent");
  out.experts = e;
  out.dense_first = given_or_zero(r, "dense_first");
  out.every = r.given("experts_every") ? r.size("experts_every").get() : 1;
  return out;
}

std::optional<StateSpace> read_state_shape(ShapeReader& r) {
  if (!r.given("ssm_heads")) {
    for (const char* key : {"scan", "ssm_dim", "ssm_groups", "ssm_state", "ssm_conv", "ssm_chunk", "ssm_bias"}) {
      if (r.given(key)) r.fail(key, "is given without ssm_heads", "valid: ssm_heads=N,ssm_dim=N,ssm_state=N");
    }
    return std::nullopt;
  }
  constexpr std::int64_t kConv = 4, kChunk = 128;
  StateSpace s;
  if (r.given("scan")) s.kind = r.word_or("scan", kScans, ScanKind::mamba2);
  s.heads = r.size("ssm_heads");
  s.dim = r.size("ssm_dim");
  s.groups = r.size_or("ssm_groups", 1);
  s.state = r.size("ssm_state");
  s.conv = r.size_or("ssm_conv", kConv);
  s.chunk = r.size_or("ssm_chunk", kChunk);
  s.conv_bias = s.kind == ScanKind::mamba2;
  s.bias = given_flag(r, "ssm_bias");
  if (!(s.heads / s.groups).valid())
    r.fail("ssm_groups", "is " + std::to_string(s.groups.get()), "valid: a divisor of ssm_heads");
  return s;
}

void read_mtp_shape(ShapeReader& r, Architecture& a) {
  constexpr std::int64_t kMost = 64;
  a.mtp_layers = given_or_zero(r, "mtp");
  if (a.mtp_layers > kMost) r.fail("mtp", "is " + std::to_string(a.mtp_layers), "valid: 0 to " + std::to_string(kMost));
  a.mtp_shared = given_flag(r, "mtp_shared");
  if (r.given("counted")) a.counted = r.word_or("counted", kCounted, Counted::main);
}

}  // namespace preflop
