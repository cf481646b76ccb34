// A Megatron-LM launch script or line as people write them.
#include <algorithm>
#include <optional>

#include "src/adapt/import/import.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

// Options with what follows them, up to the next option.
class Options {
 public:
  explicit Options(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (!words[i].starts_with("--")) continue;
      const std::size_t equals = words[i].find('=');
      std::string key = words[i].substr(0, equals);
      std::replace(key.begin() + 2, key.end(), '_', '-');
      std::vector<std::string>& value = all_[key];
      value.clear();
      if (equals != std::string::npos) value.push_back(words[i].substr(equals + 1));
      while (equals == std::string::npos && i + 1 < words.size() && !words[i + 1].starts_with("--"))
        value.push_back(words[++i]);
    }
  }
  bool has(const std::string& key) const { return all_.contains(key); }
  std::string value(const std::string& key) const {
    const auto at = all_.find(key);
    return at == all_.end() || at->second.empty() ? "" : at->second.front();
  }
  std::vector<std::string> values(const std::string& key) const {
    const auto at = all_.find(key);
    return at == all_.end() ? std::vector<std::string>{} : at->second;
  }
  std::int64_t number(const std::string& key) const {
    std::int64_t out = 0;
    for (const char c : value(key)) {
      if (c < '0' || c > '9' || out > (std::int64_t{1} << 53)) return 0;
      out = out * 10 + (c - '0');
    }
    return out;
  }

 private:
  std::map<std::string, std::vector<std::string>> all_;
};

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

// The model that the options describe, as a shape string; empty where they do not.
std::string shape(const Options& o) {
  for (const char* key : {"--num-layers", "--hidden-size", "--num-attention-heads"}) {
    if (o.number(key) == 0) return "";
  }
  const bool rms = o.value("--normalization") == "RMSNorm";
  std::string out = "gpt:layers=" + o.value("--num-layers") + ",hidden=" + o.value("--hidden-size") +
                    ",heads=" + o.value("--num-attention-heads");
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) out += std::string(",") + key + "=" + value;
  };
  add("vocab", o.number("--vocab-size") > 0 ? o.value("--vocab-size") : "50257");
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
  add("positions", positions == "rope" || o.has("--use-rotary-position-embeddings") ? "rope"
                   : positions == "none"                                            ? "none"
                                                                                    : "learned");
  add("attention_dropout", o.has("--attention-dropout") ? o.value("--attention-dropout") : "0.1");
  add("dropout", o.has("--hidden-dropout") ? o.value("--hidden-dropout") : "0.1");
  if (positions != "rope" && positions != "none" && o.has("--max-position-embeddings"))
    add("position_rows", o.value("--max-position-embeddings"));
  const std::string pattern = hybrid_pattern(o);
  if (!pattern.empty()) out += state_keys(o, pattern);
  if (o.has("--num-experts")) {
    add("experts", o.value("--num-experts"));
    add("top_k", o.has("--moe-router-topk") ? o.value("--moe-router-topk") : "2");
    add("expert_ffn", o.has("--moe-ffn-hidden-size") ? o.value("--moe-ffn-hidden-size") : o.value("--ffn-hidden-size"));
    if (o.has("--moe-shared-expert-intermediate-size"))
      add("shared_ffn", o.value("--moe-shared-expert-intermediate-size"));
    if (o.has("--moe-latent-size")) add("expert_latent", o.value("--moe-latent-size"));
  }
  return out;
}

// Layers of every virtual stage of "Et*4|(t*4|)*14tmL": E embedding, t layer, m multi-token prediction, L loss;
// "*N" repeats the letter or the parenthesis before it. Empty: not of that form.
std::vector<std::int64_t> layers_of_layout(std::string_view text) {
  std::string flat;
  std::size_t unit = 0, open = std::string::npos;  // where what "*N" repeats begins
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' && open == std::string::npos) {
      open = flat.size();
    } else if (c == ')' && open != std::string::npos) {
      unit = open;
      open = std::string::npos;
    } else if (c == '*') {
      std::int64_t times = 0;
      while (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9' && times < 1000)
        times = times * 10 + (text[++i] - '0');
      const std::string again = flat.substr(unit);
      if (times < 1 || again.size() * static_cast<std::size_t>(times) > 100'000) return {};
      for (std::int64_t k = 1; k < times; ++k) flat += again;
    } else if (std::string_view("EtmL|").find(c) != std::string_view::npos) {
      unit = flat.size();
      flat += c;
    } else if (c != ',' && c != ' ') {
      return {};
    }
  }
  std::vector<std::int64_t> out(1, 0);
  for (const char c : flat) {
    if (c == '|') out.push_back(0);
    out.back() += c == 't' ? 1 : 0;
  }
  return out;
}

void read_pipeline(const Options& o, Request& out) {
  const std::int64_t pp = std::max<std::int64_t>(1, o.number("--pipeline-model-parallel-size"));
  if (o.has("--num-virtual-stages-per-pipeline-rank")) {
    out.keys["vpp"] = o.value("--num-virtual-stages-per-pipeline-rank");
  } else if (const std::int64_t each = o.number("--num-layers-per-virtual-pipeline-stage"); each > 0) {
    out.keys["vpp"] = std::to_string(std::max<std::int64_t>(1, o.number("--num-layers") / (pp * each)));
  }
  // A layout of plain stages is a split; one of virtual stages is dealt by the stack's rule.
  const std::vector<std::int64_t> given = layers_of_layout(o.value("--pipeline-model-parallel-layout"));
  if (pp > 1 && given.size() == static_cast<std::size_t>(pp)) {
    std::string split;
    for (const std::int64_t layers : given) split += (split.empty() ? "" : ",") + std::to_string(layers);
    out.keys["layers_per_stage"] = split;
    return;
  }
  if (pp > 1 && given.size() > 1 && given.size() % static_cast<std::size_t>(pp) == 0)
    out.keys["vpp"] = std::to_string(given.size() / static_cast<std::size_t>(pp));
  const std::int64_t first = o.number("--decoder-first-pipeline-num-layers"),
                     last = o.number("--decoder-last-pipeline-num-layers");
  const std::int64_t layers = o.number("--num-layers");
  if (first == 0 || last == 0 || pp < 3 || (layers - first - last) % (pp - 2) != 0) return;
  std::string split = std::to_string(first);
  for (std::int64_t i = 0; i < pp - 2; ++i) split += "," + std::to_string((layers - first - last) / (pp - 2));
  out.keys["layers_per_stage"] = split + "," + std::to_string(last);
}

void read_memory(const Options& o, Request& out) {
  const std::string granularity = o.value("--recompute-granularity");
  std::string modules;
  for (const std::string& module : o.values("--recompute-modules")) modules += (modules.empty() ? "" : ",") + module;
  if (granularity == "full" || o.has("--checkpoint-activations"))
    out.keys["recompute"] =
        whole_layers(o.value(o.has("--recompute-method") ? "--recompute-method" : "--checkpoint-method"),
                     o.value(o.has("--recompute-num-layers") ? "--recompute-num-layers" : "--checkpoint-num-layers"));
  else if (granularity == "selective" || o.has("--recompute-activations"))
    out.keys["recompute"] = modules.empty() || modules == "core_attn" ? "selective" : modules;
  else
    out.keys["recompute"] = "none";
  std::string offload;
  if (o.has("--optimizer-cpu-offload"))
    offload = "optimizer=" + (o.has("--optimizer-offload-fraction") ? o.value("--optimizer-offload-fraction") : "1");
  if (o.number("--cpu-offloading-num-layers") > 0)
    offload += std::string(offload.empty() ? "" : ",") + "activations=" + o.value("--cpu-offloading-num-layers");
  if (!offload.empty()) out.keys["offload"] = offload;
  const std::string strategy = o.value("--data-parallel-sharding-strategy");
  const bool fsdp = o.has("--use-megatron-fsdp") || o.has("--use-custom-fsdp") || o.has("--use-torch-fsdp2");
  if (fsdp)
    out.keys["zero"] = strategy == "optim" ? "1" : strategy == "optim_grads" ? "2" : "3";
  else
    out.keys["zero"] = o.has("--use-distributed-optimizer") ? "1" : "0";
  if (fsdp && !out.keys.contains("stack")) out.keys["stack"] = "megatron-fsdp";
  out.keys["loss"] = o.has("--cross-entropy-loss-fusion") ? "fused" : "plain";
  const std::string backend = o.value("--attention-backend");
  if (o.has("--use-flash-attn") || backend == "flash") out.keys.emplace("attention", "fa2");
  if (backend == "fused") out.keys["attention"] = "cudnn";
  if (backend == "unfused" || backend == "local") out.keys["attention"] = "unfused";
}

// Products in fp8 or fp4 beside --bf16; a recipe is delayed (fp8) or nvfp4 where the script names none.
Status read_precision(const Options& o, const std::string& file, Request& out) {
  const bool fp4 = o.has("--fp4-format");
  const bool fp8 = o.has("--fp8-format") || o.has("--fp8-hybrid") || o.has("--fp8-e4m3");
  if (fp4 || fp8) {
    const std::string option = fp4 ? "--fp4-recipe" : "--fp8-recipe";
    const std::string recipe = o.has(option) ? o.value(option) : fp4 ? "nvfp4" : "delayed";
    const PrecisionWords* words = precision_called(&PrecisionWords::megatron_recipe, recipe);
    if (words == nullptr)
      return Error{"--from", option + " of " + text::quoted(file) + " is " + text::quoted(recipe),
                   text::list(all_words(&PrecisionWords::megatron_recipe))};
    out.keys["precision"] = words->precision;
  } else if (o.has("--fp16")) {
    out.keys["precision"] = "fp16";
  } else {
    out.keys.emplace("precision", o.has("--bf16") ? "bf16" : "fp32");
  }
  return Nothing{};
}

// What gradients and moments are kept in. With --bf16 gradients are summed in fp32 unless the script says otherwise;
// Megatron-FSDP keeps them in the parameters' type. One type is known of both moments.
Status read_states(const Options& o, const std::string& file, Request& out) {
  const std::string fsdp = o.value("--megatron-fsdp-main-grads-dtype");
  if (!fsdp.empty() && fsdp != "auto")
    out.keys["grad_dtype"] = fsdp;
  else if (o.has("--use-megatron-fsdp") && o.has("--bf16"))
    out.keys["grad_dtype"] = "bf16";
  else if (o.has("--bf16") && !o.has("--use-custom-fsdp") && !o.has("--use-torch-fsdp2"))
    out.keys["grad_dtype"] = o.has("--grad-reduce-in-bf16") ? "bf16" : "fp32";
  const std::string first = o.value("--exp-avg-dtype"), second = o.value("--exp-avg-sq-dtype");
  if (first.empty() && second.empty()) return Nothing{};
  if (first != second)
    return Error{"--from",
                 "the moments of " + text::quoted(file) + " differ: --exp-avg-dtype " +
                     (first.empty() ? "fp32" : first) + ", --exp-avg-sq-dtype " + (second.empty() ? "fp32" : second),
                 "one type for both"};
  out.keys["moment_dtype"] = first;
  return Nothing{};
}

// GPUs of the launch, where torchrun's flags say them.
std::int64_t launched(const Options& o) {
  const std::int64_t nodes = std::max<std::int64_t>(1, o.number("--nnodes"));
  const std::int64_t each = std::max(o.number("--nproc-per-node"), o.number("--nproc_per_node"));
  return nodes * each;
}

}  // namespace

Result<Request> import_megatron(std::string_view text, const std::string& file) {
  const Options o(shell_words(text));
  Request out;
  read_rest_line(text, out);
  if (!o.has("--tensor-model-parallel-size") && !o.has("--micro-batch-size") && !o.has("--num-layers")) {
    if (out.keys.contains("stack") && out.keys.contains("tp")) return out;  // a batch script of ours
    return Error{"--from", text::quoted(file) + " has no option of a Megatron launch",
                 "a script with --tensor-model-parallel-size ..."};
  }
  if (out.model.empty() && !unsaid_hybrid(text, o)) out.model = shape(o);
  const std::pair<const char*, const char*> sizes[] = {
      {"tp", "--tensor-model-parallel-size"},   {"pp", "--pipeline-model-parallel-size"},
      {"cp", "--context-parallel-size"},        {"ep", "--expert-model-parallel-size"},
      {"etp", "--expert-tensor-parallel-size"}, {"seq", "--seq-length"},
      {"micro_batch", "--micro-batch-size"},    {"global_batch", "--global-batch-size"}};
  for (const auto& [key, option] : sizes) {
    if (!o.has(option)) continue;
    if (o.number(option) == 0)
      return Error{"--from",
                   std::string(option) + " of " + text::quoted(file) + " is " + text::quoted(o.value(option)) +
                       ", no number that the script itself sets",
                   "a number, or give the flag"};
    out.keys[key] = o.value(option);
  }
  out.keys.emplace("tp", "1");
  out.keys.emplace("pp", "1");
  if (o.has("--num-experts") && !o.has("--expert-tensor-parallel-size")) out.keys.emplace("etp", out.keys["tp"]);
  if (out.keys["tp"] != "1") out.keys["sp"] = o.has("--sequence-parallel") ? "true" : "false";
  if (Status s = read_precision(o, file, out); !s) return s.error();
  if (Status s = read_states(o, file, out); !s) return s.error();
  if (o.has("--moe-expert-capacity-factor")) out.keys["capacity_factor"] = o.value("--moe-expert-capacity-factor");
  if (const std::string way = o.value("--cp-comm-type"); way == "p2p" || way == "a2a") out.keys["cp_comm"] = way;
  read_pipeline(o, out);
  read_memory(o, out);
  if (const std::int64_t n = o.number("--num-distributed-optimizer-instances"); n > 1 && launched(o) > 0) {
    const std::int64_t group =
        launched(o) /
        std::max<std::int64_t>(1, std::max<std::int64_t>(1, o.number("--tensor-model-parallel-size")) *
                                      std::max<std::int64_t>(1, o.number("--pipeline-model-parallel-size")) * n);
    out.keys["hsdp"] = std::to_string(std::max<std::int64_t>(1, group));
  }
  out.keys.emplace("stack", "megatron");
  return out;
}

}  // namespace preflop
