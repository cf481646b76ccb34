// The model in options of Megatron-LM.
#include <algorithm>

#include "src/adapt/export/megatron_script.hpp"
#include "src/adapt/layer_pattern.hpp"
#include "src/base/decimal.hpp"

namespace preflop {

// Does some layer have a state space, or one sublayer alone?
bool is_hybrid(const Architecture& a) {
  return std::any_of(a.layers.begin(), a.layers.end(), [](const LayerRun& run) {
    return run.kind.state_space || !run.kind.mixes || !run.kind.feeds_forward;
  });
}

// The experts of its layers; null: it has none.
const ExpertSpec* experts_of(const Architecture& a) {
  for (const LayerRun& run : a.layers) {
    if (run.kind.experts) return &*run.kind.experts;
  }
  return nullptr;
}

std::vector<std::string> graph_modules(const Architecture& a, const Recipe& r) {
  const auto some = [&](auto has) {
    return std::any_of(a.layers.begin(), a.layers.end(), [&](const LayerRun& run) { return has(run.kind); });
  };
  const std::pair<const char*, bool> parts[] = {
      {"attn", some([](const LayerKind& k) { return k.mixes && !k.state_space; })},
      {"mamba", some([](const LayerKind& k) { return k.state_space.has_value(); })},
      {"mlp", some([](const LayerKind& k) { return k.feeds_forward && !k.experts; })},
      {"moe_router", experts_of(a) != nullptr},
      {"moe_preprocess", experts_of(a) != nullptr}};
  std::vector<std::string> out;
  for (const auto& [part, there] : parts) {
    const auto& scope = r.cuda_graph_scope;
    if (there && std::find(scope.begin(), scope.end(), part) != scope.end()) out.emplace_back(part);
  }
  return out;
}

namespace {

// Constants of formulas, where they are known.
void constant_options(MegatronScript& s, const Architecture& a) {
  if (a.rope_theta) s.size("--rotary-base", static_cast<std::int64_t>(*a.rope_theta));  // it takes whole numbers
  if (a.rope_share && *a.rope_share != 1) s.option("--rotary-percent", shortest(*a.rope_share));
  if (a.norm_eps) s.option("--norm-epsilon", shortest(*a.norm_eps));
}

// Of a hybrid the kinds that options describe: each by a layer that has it.
Status hybrid_options(MegatronScript& s, const Architecture& a) {
  const std::string pattern = pattern_of(a);
  LayerKind parts;
  for (const LayerRun& run : a.layers) {
    const LayerKind& k = run.kind;
    if (k.state_space) parts.state_space = k.state_space;
    if (k.mixes && !k.state_space) parts.attention = k.attention;
    if (k.experts) parts.experts = k.experts;
    if (k.feeds_forward && !k.experts) parts.mlp = k.mlp;
  }
  const bool one_each = pattern.find_first_not_of("M*-E") == std::string::npos;
  if (pattern.empty() || !one_each || !parts.state_space || parts.state_space->kind != ScanKind::mamba2 ||
      parts.state_space->bias)
    return Error{"--to", "megatron: the export of hybrid layers as those of " + a.name + " is not written yet",
                 "megatron-bridge"};
  const StateSpace& m = *parts.state_space;
  s.size("--num-layers", a.layer_count());
  s.size("--hidden-size", a.hidden.get());
  if (parts.mlp.width.get() > 0 || parts.experts)
    s.size("--ffn-hidden-size", parts.mlp.width.get() > 0 ? parts.mlp.width.get() : parts.experts->width.get());
  const bool attends = parts.attention.heads.get() > 0;
  s.size("--num-attention-heads", attends ? parts.attention.heads.get() : m.heads.get());
  s.end();
  if (attends) {
    s.option("--group-query-attention");
    s.size("--num-query-groups", parts.attention.kv_heads.get());
    s.size("--kv-channels", parts.attention.head_dim.get());
  }
  s.option("--is-hybrid-model");
  s.option("--hybrid-override-pattern", "'" + pattern + "'");
  s.size("--mamba-num-heads", m.heads.get());
  s.size("--mamba-head-dim", m.dim.get());
  s.size("--mamba-num-groups", m.groups.get());
  s.size("--mamba-state-dim", m.state.get());
  s.end();
  const Activation activation = parts.experts ? parts.experts->activation : parts.mlp.activation;
  const bool gated = parts.experts ? parts.experts->gated : parts.mlp.gated;
  s.option("--position-embedding-type", a.positions == Positions::rope ? "rope" : "none");
  s.option("--normalization", "RMSNorm");
  constant_options(s, a);
  if (!gated && activation == Activation::relu2) s.option("--squared-relu");
  if (gated && activation == Activation::silu) s.option("--swiglu");
  s.option("--disable-bias-linear");
  if (!a.tied) s.option("--untie-embeddings-and-output-weights");
  s.end();
  s.option("--attention-dropout", shortest(parts.attention.dropout));
  s.option("--hidden-dropout", shortest(a.layers.front().kind.dropout));
  s.option("--tokenizer-type", "NullTokenizer");
  s.size("--vocab-size", a.vocab.get());
  s.end();
  return Nothing{};
}

// A layer that the options below say whole.
bool plain_layer(const Architecture& a, const LayerKind& k) {
  const AttentionSpec& t = k.attention;
  const ExpertSpec* e = experts_of(a);
  const bool gated = e != nullptr ? e->gated : k.mlp.gated;
  const Activation activation = e != nullptr ? e->activation : k.mlp.activation;
  const bool known =
      gated ? activation == Activation::silu : activation == Activation::gelu || activation == Activation::relu2;
  const bool attends = !t.latent && !t.indexer && !t.sinks && !t.chunked && !t.value_dim &&
                       (t.qk_norm == QkNorm::none || t.qk_norm == QkNorm::head) &&
                       t.rope == (a.positions == Positions::rope) && t.query_bias == t.key_bias &&
                       t.query_bias == t.value_bias && (t.query_bias || !t.out_bias);
  const bool biased = e != nullptr || t.out_bias == k.mlp.bias;
  return k.placement == NormPlacement::pre && (k.norm == NormKind::rms || k.norm == NormKind::layer) && attends &&
         biased && known && a.positions != Positions::alibi && !a.embedding_norm && !a.head_bias &&
         (e == nullptr || (!e->bias && !e->router_bias));
}

}  // namespace

Status model_options(MegatronScript& s, const Architecture& a) {
  const LayerKind& k = a.layers.back().kind;
  if (is_hybrid(a)) return hybrid_options(s, a);
  for (const LayerRun& run : a.layers) {
    const bool same = run.kind.attention == k.attention && run.kind.norm == k.norm && run.kind.placement == k.placement;
    if (!same)
      return Error{"--to",
                   "megatron: the export of layers that alternate, as those of " + a.name + ", is not written yet",
                   "megatron-bridge"};
  }
  if (!plain_layer(a, k))
    return Error{"--to", "megatron: the export of layers as those of " + a.name + " is not written yet",
                 "megatron-bridge"};
  s.size("--num-layers", a.layer_count());
  s.size("--hidden-size", a.hidden.get());
  // Of the layers without experts, where it has some.
  std::int64_t width = k.experts ? k.experts->width.get() : k.mlp.width.get();
  for (const LayerRun& run : a.layers) width = run.kind.experts ? width : run.kind.mlp.width.get();
  s.size("--ffn-hidden-size", width);
  s.size("--num-attention-heads", k.attention.heads.get());
  s.end();
  if (k.attention.kv_heads != k.attention.heads) {
    s.option("--group-query-attention");
    s.size("--num-query-groups", k.attention.kv_heads.get());
  }
  s.size("--kv-channels", k.attention.head_dim.get());
  s.option("--position-embedding-type", a.positions == Positions::learned ? "learned_absolute"
                                        : a.positions == Positions::rope  ? "rope"
                                                                          : "none");
  s.option("--normalization", k.norm == NormKind::rms ? "RMSNorm" : "LayerNorm");
  constant_options(s, a);
  const MlpSpec& mlp = k.mlp;
  const bool gated = k.experts ? k.experts->gated : mlp.gated;
  const Activation activation = k.experts ? k.experts->activation : mlp.activation;
  if (gated && activation == Activation::silu) s.option("--swiglu");
  if (!gated && activation == Activation::relu2) s.option("--squared-relu");
  if (!k.attention.out_bias && !mlp.bias) s.option("--disable-bias-linear");
  if (k.attention.query_bias && !k.attention.out_bias) s.option("--add-qkv-bias");
  if (k.attention.qk_norm == QkNorm::head) s.option("--qk-layernorm");
  if (k.attention.gate) s.option("--attention-output-gate");
  // So many to the left of the token, none to its right.
  if (k.attention.window) s.option("--window-size", std::to_string(k.attention.window->get() - 1) + ",0");
  if (!a.tied) s.option("--untie-embeddings-and-output-weights");
  s.end();
  s.option("--attention-dropout", shortest(k.attention.dropout));
  s.option("--hidden-dropout", shortest(k.dropout));
  s.option("--tokenizer-type", "NullTokenizer");
  s.size("--vocab-size", a.vocab.get());
  s.end();
  return Nothing{};
}

void expert_options(MegatronScript& s, const Architecture& a, const Recipe& r) {
  const ExpertSpec& e = *experts_of(a);
  s.size("--num-experts", e.count.get());
  s.size("--moe-router-topk", e.top_k.get());
  s.size("--moe-ffn-hidden-size", e.width.get());
  if (e.latent) s.size("--moe-latent-size", e.latent->get());
  if (e.shared_width.get() > 0) s.size("--moe-shared-expert-intermediate-size", e.shared_width.get());
  if (e.shared_gate) s.option("--moe-shared-expert-gate");
  if (e.correction_bias) {
    s.option("--moe-router-score-function", "sigmoid");  // the bias is of that alone
    s.option("--moe-router-enable-expert-bias");
  }
  std::string pattern;
  for (const LayerRun& run : a.layers)
    pattern +=
        (pattern.empty() ? "([" : "+[") + std::string(run.kind.experts ? "1" : "0") + "]*" + std::to_string(run.count);
  if (a.layers.size() > 1 && !is_hybrid(a)) s.option("--moe-layer-freq", "'" + pattern + ")'");
  s.option("--moe-grouped-gemm");
  if (r.dispatcher == "alltoall") {
    s.option("--moe-token-dispatcher-type", "alltoall");
  } else {
    s.option("--moe-token-dispatcher-type", "flex");
    s.option("--moe-flex-dispatcher-backend", r.dispatcher);
  }
  if (e.groups.get() > 0) {
    s.size("--moe-router-num-groups", e.groups.get());
    s.size("--moe-router-group-topk", e.top_groups.get());
  }
  s.size("--expert-model-parallel-size", r.layout.ep);
  s.size("--expert-tensor-parallel-size", r.layout.etp);
  if (r.capacity_factor > 0) s.option("--moe-expert-capacity-factor", shortest(r.capacity_factor));
  s.end();
}

}  // namespace preflop
