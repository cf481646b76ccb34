// The model that a Megatron-LM launch describes.
#include <algorithm>
#include <optional>
#include <tuple>

#include "src/adapt/import/options.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

// Layers of a hybrid, without the bars between its stages; empty: it is none.
std::string hybrid_pattern(const Options& o) {
  std::string out = o.value(o.has("--hybrid-layer-pattern") ? "--hybrid-layer-pattern" : "--hybrid-override-pattern");
  out = out.substr(0, out.find('/'));  // behind it multi-token prediction
  std::erase(out, '|');
  return out;
}

// A model with state spaces of which no layer is named: Megatron-LM then deals them by a ratio, or makes all of them
// state spaces.
bool unsaid_hybrid(std::string_view script, const Options& o) {
  return hybrid_pattern(o).empty() &&
         (script.find("pretrain_mamba.py") != std::string_view::npos || o.has("--is-hybrid-model") ||
          o.has("--hybrid-attention-ratio") || o.has("--hybrid-mlp-ratio"));
}

// Megatron-LM core/transformer/transformer_config.py: what its state spaces are without options.
std::string state_keys(const Options& o, const std::string& pattern) {
  std::string out = ",pattern=" + pattern;
  if (pattern.find('M') == std::string::npos) return out;
  const std::int64_t dim = o.has("--mamba-head-dim") ? o.number("--mamba-head-dim") : 64;
  const std::int64_t heads = o.has("--mamba-num-heads")
                                 ? o.number("--mamba-num-heads")
                                 : 2 * o.number("--hidden-size") / std::max<std::int64_t>(dim, 1);
  out += ",ssm_heads=" + std::to_string(heads) + ",ssm_dim=" + std::to_string(dim);
  out += ",ssm_groups=" + (o.has("--mamba-num-groups") ? o.value("--mamba-num-groups") : "8");
  return out + ",ssm_state=" + (o.has("--mamba-state-dim") ? o.value("--mamba-state-dim") : "128");
}

// "[0]*3+[1]*58", "([0]+[1]*23)*2" or "[0,1,1]": lists of 0 and 1 that are joined and repeated. Empty: not of that
// form.
struct ListReader {
  static constexpr std::size_t kMost = 10'000;
  std::string_view text;
  std::size_t at = 0;
  bool fine = true;
  int depth = 0;

  bool take(char c) {
    while (at < text.size() && text[at] == ' ') ++at;
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  }
  std::vector<bool> sum() {
    std::vector<bool> out = product();
    while (fine && take('+')) {
      const std::vector<bool> more = product();
      out.insert(out.end(), more.begin(), more.end());
      fine = fine && out.size() <= kMost;
    }
    return out;
  }
  std::vector<bool> product() {
    std::vector<bool> out = list();
    while (fine && take('*')) {
      std::size_t times = 0;
      while (at < text.size() && text[at] == ' ') ++at;
      while (at < text.size() && text[at] >= '0' && text[at] <= '9' && times < kMost)
        times = times * 10 + static_cast<std::size_t>(text[at++] - '0');
      fine = times > 0 && out.size() * times <= kMost;
      const std::vector<bool> one = out;
      for (std::size_t i = 1; fine && i < times; ++i) out.insert(out.end(), one.begin(), one.end());
    }
    return out;
  }
  std::vector<bool> list() {
    std::vector<bool> out;
    if (depth < 16 && take('(')) {
      ++depth;
      out = sum();
      --depth;
      fine = fine && take(')');
      return out;
    }
    fine = fine && take('[');
    do {
      const bool one = take('1');
      fine = fine && (one || take('0'));
      out.push_back(one);
    } while (fine && take(','));
    fine = fine && take(']');
    return out;
  }
};

// Which layers "3" (layers 0, 3, 6..) or a list means; empty: neither, or not one word a layer.
std::vector<bool> layers_flagged(const std::string& text, std::int64_t layers) {
  std::vector<bool> out;
  if (layers > static_cast<std::int64_t>(ListReader::kMost)) return out;
  if (text.find('[') == std::string::npos) {
    std::int64_t every = 0;
    for (const char c : text) every = c >= '0' && c <= '9' && every < (1 << 20) ? every * 10 + (c - '0') : -1;
    for (std::int64_t i = 0; every > 0 && i < layers; ++i) out.push_back(i % every == 0);
    return out;
  }
  ListReader reader{text};
  out = reader.sum();
  if (!reader.fine || reader.at < text.size() || static_cast<std::int64_t>(out.size()) != layers) out.clear();
  return out;
}

// Layers as the shape string counts them: behind the first so many every Nth.
struct Alternation {
  std::int64_t first = 0, every = 1;
};
std::optional<Alternation> alternation_of(const std::vector<bool>& flagged, std::int64_t layers) {
  if (static_cast<std::int64_t>(flagged.size()) != layers) return std::nullopt;
  const auto leading = std::find(flagged.begin(), flagged.end(), true) - flagged.begin();
  for (const std::int64_t first : {std::int64_t{0}, static_cast<std::int64_t>(leading)}) {
    for (std::int64_t every = 1; every <= layers; ++every) {
      std::int64_t same = 0;
      for (std::int64_t i = 0; i < layers && same == i; ++i)
        same += flagged[static_cast<std::size_t>(i)] == (i >= first && (i + 1) % every == 0) ? 1 : 0;
      if (same == layers) return Alternation{first, every};
    }
  }
  return std::nullopt;
}

// Shape keys of the experts.
Status expert_keys(const Options& o, std::string& out) {
  const auto add = [&](const char* key, const std::string& value) { out += std::string(",") + key + "=" + value; };
  const std::pair<const char*, const char*> values[] = {{"shared_ffn", "--moe-shared-expert-intermediate-size"},
                                                        {"expert_latent", "--moe-latent-size"},
                                                        {"expert_groups", "--moe-router-num-groups"},
                                                        {"top_groups", "--moe-router-group-topk"}};
  const std::pair<const char*, const char*> flags[] = {{"shared_gate", "--moe-shared-expert-gate"},
                                                       {"correction_bias", "--moe-router-enable-expert-bias"}};
  const std::string pattern = hybrid_pattern(o);
  const std::string top_k = o.value("--moe-router-topk"), width = o.value("--moe-ffn-hidden-size");
  const std::string freq = o.value("--moe-layer-freq");
  std::string more;
  for (const auto& [key, option] : values) {
    if (o.has(option)) more += std::string(",") + key + "=" + o.value(option);
  }
  for (const auto& [key, option] : flags) {
    if (o.has(option)) more += std::string(",") + key + "=true";
  }
  if (!o.has("--num-experts")) return Nothing{};
  add("experts", o.value("--num-experts"));
  add("top_k", top_k.empty() ? "2" : top_k);
  if (const std::string ffn = width.empty() ? o.value("--ffn-hidden-size") : width; !ffn.empty())
    add("expert_ffn", ffn);
  out += more;
  if (freq.empty() || !pattern.empty()) return Nothing{};
  const std::int64_t layers = o.number("--num-layers");
  const std::optional<Alternation> found = alternation_of(layers_flagged(freq, layers), layers);
  if (!found)
    return Error{"--from", "--moe-layer-freq " + text::quoted(freq) + " has experts in layers that no model here has",
                 "layers without experts at the beginning, or every Nth layer with experts"};
  if (found->first > 0) add("dense_first", std::to_string(found->first));
  if (found->every > 1) add("experts_every", std::to_string(found->every));
  return Nothing{};
}

// Shape keys of latent attention; without options Megatron-LM's own sizes (training/arguments.py:3548).
void latent_keys(const Options& o, std::string& out) {
  const std::tuple<const char*, const char*, const char*> sizes[] = {{"kv_lora", "--kv-lora-rank", "32"},
                                                                     {"q_lora", "--q-lora-rank", ""},
                                                                     {"nope_dim", "--qk-head-dim", "128"},
                                                                     {"rope_dim", "--qk-pos-emb-head-dim", "64"},
                                                                     {"value_dim", "--v-head-dim", "128"}};
  if (!o.has("--multi-latent-attention")) return;
  for (const auto& [key, option, usual] : sizes) {
    const std::string value = o.has(option) ? o.value(option) : usual;
    if (!value.empty()) out += std::string(",") + key + "=" + value;
  }
}

// Shape keys of a sliding window: so many tokens to the left, and the token itself. Every Nth layer sees all.
Status window_keys(const Options& o, std::string& out) {
  const std::string skip = o.value("--window-attn-skip-freq");
  std::string left;
  for (const char c : o.value("--window-size")) {
    if (c >= '0' && c <= '9')
      left += c;
    else if (!left.empty() || c == '-')
      break;
  }
  if (left.empty() || left.size() > 9) return Nothing{};
  out += ",window=" + std::to_string(std::stol(left) + 1);
  if (skip.empty()) return Nothing{};
  std::string every = skip;
  if (skip.find('[') != std::string::npos) {
    const std::int64_t layers = o.number("--num-layers");
    std::vector<bool> full = layers_flagged(skip, layers);
    full.flip();
    if (!full.empty() && std::find(full.begin(), full.end(), true) == full.end()) return Nothing{};
    const std::optional<Alternation> found = alternation_of(full, layers);
    if (!found || found->first > 0)
      return Error{"--from",
                   "--window-attn-skip-freq " + text::quoted(skip) + " has windows in layers that no model here has",
                   "every Nth layer without one"};
    every = std::to_string(found->every);
  }
  out += ",full_every=" + every;
  return Nothing{};
}

// The model that the options describe, as a shape string; empty where they do not.
Result<std::string> shape(const Options& o) {
  for (const char* key : {"--num-layers", "--hidden-size", "--num-attention-heads"}) {
    if (o.number(key) == 0) return std::string();
  }
  const bool rms = o.value("--normalization") == "RMSNorm";
  std::string out = "gpt:layers=" + o.value("--num-layers") + ",hidden=" + o.value("--hidden-size") +
                    ",heads=" + o.value("--num-attention-heads");
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) out += std::string(",") + key + "=" + value;
  };
  add("vocab", o.number("--vocab-size") > 0 ? o.value("--vocab-size") : "50257");
  const bool gpt2 = o.value("--tokenizer-type") == "GPT2BPETokenizer" || o.has("--merge-file");
  if (!o.has("--vocab-size") && !gpt2) o.note("--vocab-size, which the tokenizer decides: 50257 of GPT-2 is taken");
  add("seq", o.value("--seq-length"));
  if (o.has("--num-query-groups")) add("kv_heads", o.value("--num-query-groups"));
  if (o.has("--kv-channels")) add("head_dim", o.value("--kv-channels"));
  const std::int64_t h = o.number("--hidden-size");
  const bool gated = o.has("--swiglu");
  if (o.has("--ffn-hidden-size"))
    add("ffn", o.value("--ffn-hidden-size"));
  else if (gated)
    add("ffn", std::to_string(h * 4 * 2 / 3 / 64 * 64));
  add("gated", gated ? "true" : "false");
  add("activation", gated ? "silu" : o.has("--squared-relu") ? "relu2" : "gelu");
  add("norm", rms ? "rms" : "layer");
  add("tied", o.has("--untie-embeddings-and-output-weights") ? "false" : "true");
  add("bias", o.has("--disable-bias-linear") ? "false" : "true");
  if (o.has("--add-qkv-bias")) add("qkv_bias", "true");
  if (o.has("--qk-layernorm")) add("qk_norm", "head");
  const std::string positions = o.value("--position-embedding-type");
  const bool rotary = positions == "rope" || positions == "yarn" || positions == "mrope";
  add("positions", rotary || o.has("--use-rotary-position-embeddings") ? "rope"
                   : positions == "none"                               ? "none"
                                                                       : "learned");
  if (out.find(",positions=rope") != std::string::npos) {
    add("rope_theta", o.value("--rotary-base"));
    add("rope_share", o.value("--rotary-percent"));
  }
  add("norm_eps", o.value(o.either("--norm-epsilon", "--layernorm-epsilon")));
  add("attention_dropout", o.has("--attention-dropout") ? o.value("--attention-dropout") : "0.1");
  add("dropout", o.has("--hidden-dropout") ? o.value("--hidden-dropout") : "0.1");
  if (!rotary && positions != "none" && o.has("--max-position-embeddings"))
    add("position_rows", o.value("--max-position-embeddings"));
  const std::string pattern = hybrid_pattern(o);
  if (!pattern.empty()) out += state_keys(o, pattern);
  if (o.has("--mtp-use-repeated-layer")) add("mtp_shared", "true");
  if (o.has("--attention-output-gate")) add("attention_gate", "true");
  latent_keys(o, out);
  if (Status s = window_keys(o, out); !s) return s.error();
  if (Status s = expert_keys(o, out); !s) return s.error();
  return out;
}

}  // namespace

Result<std::string> megatron_model(std::string_view script, const Options& o) {
  // Flags that a shape string implies, or that say the same again.
  for (const char* implied :
       {"--group-query-attention", "--squared-relu", "--moe-grouped-gemm", "--use-rotary-position-embeddings",
        "--max-position-embeddings", "--is-hybrid-model", "--mtp-hybrid-override-pattern", "--mamba-num-heads",
        "--mamba-head-dim", "--mamba-num-groups", "--mamba-state-dim"})
    o.has(implied);
  Result<std::string> found = shape(o);
  if (found && unsaid_hybrid(script, o)) return std::string();
  return found;
}

}  // namespace preflop
