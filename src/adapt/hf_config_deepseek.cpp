// DeepSeek-V2, V2-Lite, V3, R1, V3.2, Kimi-K2 and GLM-5: latent attention, experts after a few dense layers.
#include <vector>

#include "src/adapt/hf_config_experts.hpp"
#include "src/base/text.hpp"

namespace preflop {
namespace {

// Heads of latent attention: num_key_value_heads and head_dim say nothing here.
void read_latent(ConfigReader& c, AttentionSpec& attention) {
  LatentAttention latent;
  latent.q_lora = c.size_if_given({"q_lora_rank"});
  if (!latent.q_lora && !c.states_null("q_lora_rank")) c.defaulted("q_lora_rank", "null");
  latent.kv_lora = c.size({"kv_lora_rank"});
  latent.nope_dim = c.size({"qk_nope_head_dim"});
  latent.rope_dim = c.size({"qk_rope_head_dim"});
  latent.value_dim = c.size({"v_head_dim"});
  attention.heads = attention.kv_heads = c.size({"num_attention_heads"});
  attention.head_dim = latent.nope_dim + latent.rope_dim;
  attention.latent = latent;
  const bool bias = c.flag_or({"attention_bias"}, false);
  set_qkv_bias(attention, bias);
  attention.out_bias = bias;
  attention.dropout = c.dropout_or({"attention_dropout"}, 0);
}

// Everything but the layers.
Decoder read_latent_decoder(ConfigReader& c, Architecture& a) {
  Decoder d;
  a.hidden = c.size({"hidden_size"});
  d.layers = c.layers({"num_hidden_layers"});
  a.vocab = c.size({"vocab_size"});
  read_latent(c, d.kind.attention);
  d.kind.mlp = MlpSpec{c.size({"intermediate_size"}), true, c.activation_or({"hidden_act"}, "silu"), false};
  a.tied = c.flag_or({"tie_word_embeddings"}, false);
  a.max_seq = read_max_seq(c);
  a.mtp_layers = c.whole_if_given("num_nextn_predict_layers", ConfigReader::kMaxMtp).value_or(0);
  return d;
}

// The router's groups; as many chosen as there are is no limit. Absent: the class's, recorded; 0: it has none.
void read_groups(ConfigReader& c, ExpertSpec& experts, std::int64_t groups, std::int64_t chosen) {
  const auto read = [&](std::string_view key, std::int64_t fallback) {
    return fallback > 0 ? c.size_or({key}, fallback) : c.size_if_given({key}).value_or(0);
  };
  const Count all = read("n_group", groups), top = read("topk_group", chosen);
  if (!(top < all)) return;
  if (experts.count.get() % all.get() != 0 || top.get() == 0) {
    c.fail("n_group", "is " + std::to_string(all.get()), "valid: a divisor of the number of experts");
    return;
  }
  experts.groups = all;
  experts.top_groups = top;
}

ExpertSpec latent_experts(ConfigReader& c, const Decoder& d, std::string_view method) {
  ExpertSpec experts = read_experts(c, {"moe_intermediate_size"}, d.kind.mlp.activation);
  experts.shared_width = read_shared_width(c, experts.width);
  experts.correction_bias = c.word_or({"topk_method"}, method) == "noaux_tc";
  return experts;
}

std::optional<SparseIndexer> read_indexer(ConfigReader& c) {
  if (!c.has("index_topk")) return std::nullopt;
  SparseIndexer out;
  out.heads = c.size({"index_n_heads"});
  out.dim = c.size({"index_head_dim"});
  out.top_k = c.size({"index_topk"});
  c.note("the indexer's choice of keys is counted; its warm-up loss and training are not modelled");
  return out;
}

}  // namespace

void read_deepseek(ConfigReader& c, Architecture& a) {
  const Decoder d = read_latent_decoder(c, a);
  ExpertSpec experts = latent_experts(c, d, "greedy");
  read_groups(c, experts, 0, 0);
  append_expert_layers(a, d, experts, dense_first(c, d.layers));
}

void read_deepseek_v3(ConfigReader& c, Architecture& a) {
  Decoder d = read_latent_decoder(c, a);
  d.kind.attention.indexer = read_indexer(c);
  ExpertSpec experts = latent_experts(c, d, "noaux_tc");
  constexpr std::int64_t kGroups = 8, kTopGroups = 4;
  read_groups(c, experts, kGroups, kTopGroups);
  append_expert_layers(a, d, experts, dense_first(c, d.layers));
}

// GLM-5: as DeepSeek-V3.2; GLM-5.2 lets most layers take the choice of an earlier one.
void read_glm_dsa(ConfigReader& c, Architecture& a) {
  Decoder d = read_latent_decoder(c, a);
  d.kind.attention.indexer = read_indexer(c);
  const ExpertSpec experts = latent_experts(c, d, "noaux_tc");
  const std::vector<std::string> types = c.words_if_given("indexer_types", d.layers);
  const HasExperts has_experts = dense_first(c, d.layers);
  for (std::int64_t i = 0; i < d.layers; ++i) {
    LayerKind kind = d.kind;
    if (!types.empty() && kind.attention.indexer) {
      const std::string& type = types[static_cast<std::size_t>(i)];
      if (type != "full" && type != "shared")
        c.fail("indexer_types", "holds " + text::quoted(type), "valid: full, shared");
      kind.attention.indexer->shared = type == "shared";
    }
    if (has_experts(i)) {
      kind.experts = experts;
      kind.mlp = {};
    }
    append_layer(a, kind);
  }
  // Multi-token prediction has an indexer of its own.
  if (c.ok() && a.mtp_layers > 0 && d.kind.attention.indexer) {
    a.mtp_kind = a.layers.back().kind;
    a.mtp_kind->attention.indexer->shared = false;
  }
}

}  // namespace preflop
