// A configuration of nanotron.
#include <algorithm>
#include <cmath>

#include "src/adapt/export/export.hpp"
#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/model/plain_decoder.hpp"

namespace preflop {

namespace {

struct Yaml {
  Exported out;
  std::vector<std::string> path;
  void begin(const std::string& name) {
    out.text += std::string(2 * path.size(), ' ') + name + ":\n";
    path.push_back(name);
  }
  void end() { path.pop_back(); }
  void set(const std::string& key, const std::string& value) {
    std::string full;
    for (const std::string& part : path) full += part + ".";
    out.options.emplace_back(full + key, value);
    out.text += std::string(2 * path.size(), ' ') + key + ": " + value + "\n";
  }
  void set(const std::string& key, std::int64_t value) { set(key, std::to_string(value)); }
  void set(const std::string& key, bool value) { set(key, std::string(value ? "true" : "false")); }
};

// A number with a point, which YAML asks of one with an exponent.
std::string with_point(double v) {
  std::string out = v < 1 ? shortest(v) : text::fixed(v, 1);
  if (out.find('.') == std::string::npos) out.insert(std::min(out.find('e'), out.size()), ".0");
  return out;
}

// What it has no option for, or refuses to start.
Status runs(const Problem& p) {
  const Recipe& r = p.analysed.recipe;
  const Layout& l = r.layout;
  const std::string lacks = l.zero >= 2       ? "zero 2 and 3"
                            : l.vpp > 1       ? "virtual stages"
                            : l.etp > 1       ? "etp"
                            : r.offload.any() ? "offloading"
                            : r.moment_dtype != Dtype::fp32 && r.optimizer == "adamw"
                                ? std::string("moments in ") + name(r.moment_dtype)
                            : r.optimizer != "adamw" && r.optimizer != "sgd" ? r.optimizer
                                                                             : "";
  if (!lacks.empty())
    return Error{"--to", "nanotron has no " + lacks, "--zero 1 --vpp 1, --optimizer adamw or sgd, nothing offloaded"};
  if (l.cp > 1) return Error{"--to", "nanotron starts cp above 1 from a checkpoint alone, not a new run", "--cp 1"};
  if (has_experts(*p.model))
    return Error{"--to", "nanotron: the export of models with experts is not written yet", "a model without experts"};
  if (!plain_decoder(p.architecture))
    return Error{"--to", "nanotron does not run the layers of " + p.architecture.name + " as its decoder",
                 "a model of LLaMA's or Qwen2's layers"};
  if (r.recompute.kind != RecomputeKind::none && r.recompute.kind != RecomputeKind::full)
    return Error{"--to", "nanotron recomputes all of a layer or nothing", "--recompute none or full"};
  return Nothing{};
}

void optimizer_section(Yaml& y, const Recipe& r) {
  y.begin("optimizer");
  y.set("zero_stage", std::int64_t{r.layout.zero});
  y.set("accumulate_grad_in_fp32", width(r.grad_dtype) == 4);
  y.set("clip_grad", std::string("1.0"));
  y.set("weight_decay", std::string("0.1"));
  y.begin("optimizer_factory");
  if (r.optimizer == "adamw") {
    y.set("name", std::string("adamW"));
    y.set("adam_beta1", std::string("0.9"));
    y.set("adam_beta2", std::string("0.95"));
    y.set("adam_eps", std::string("1.0e-8"));
    y.set("torch_adam_is_fused", true);
  } else {
    y.set("name", std::string("sgd"));
  }
  y.end();
  y.begin("learning_rate_scheduler");
  y.set("learning_rate", std::string("1.5e-4"));
  y.end();
  y.end();
}

void model_section(Yaml& y, const Architecture& a, const Recipe& r) {
  const LayerKind& k = a.layers.front().kind;
  y.begin("model");
  y.set("dtype", std::string(r.precision == "fp16" ? "float16" : r.precision == "fp32" ? "float32" : "bfloat16"));
  y.begin("init_method");
  y.set("std", std::string("0.02"));
  y.end();
  y.begin("model_config");
  y.set("is_qwen2_config", true);
  y.set("hidden_size", a.hidden.get());
  y.set("intermediate_size", k.mlp.width.get());
  y.set("num_hidden_layers", a.layer_count());
  y.set("num_attention_heads", k.attention.heads.get());
  y.set("num_key_value_heads", k.attention.kv_heads.get());
  y.set("vocab_size", a.vocab.get());
  y.set("max_position_embeddings", r.seq);
  y.set("tie_word_embeddings", a.tied);
  if (a.rope_theta) y.set("rope_theta", with_point(*a.rope_theta));
  if (a.norm_eps) y.set("rms_norm_eps", with_point(*a.norm_eps));
  if (k.attention.query_bias) y.set("attention_bias", true);
  if (const auto decoder = plain_decoder(a); decoder && decoder->no_rope_every > 0)
    y.set("no_rope_layer", decoder->no_rope_every);
  y.end();
  y.end();
}

}  // namespace

Result<Exported> export_nanotron(const Problem& p, const Request& request) {
  const Recipe& r = p.analysed.recipe;
  const Layout& l = r.layout;
  if (Status s = runs(p); !s) return s.error();
  Yaml y;
  const std::vector<std::string> carried = {"tp",           "pp",        "cp",        "ep",       "dp",
                                            "zero",         "sp",        "schedule",  "seq",      "micro_batch",
                                            "global_batch", "recompute", "optimizer", "precision"};
  y.out.text = rest_line(p, request, carried, y.out.left_out);
  y.out.text += unknown_constants(p.architecture, "nanotron's defaults");
  y.begin("general");
  y.set("project", std::string("preflop"));
  y.set("run", p.architecture.name + "-" + std::to_string(p.cluster.gpus) + "gpu");
  y.set("seed", std::int64_t{42});
  y.end();
  y.begin("parallelism");
  y.set("dp", l.dp);
  y.set("tp", l.tp);
  y.set("pp", l.pp);
  y.set("context_parallel_size", l.cp);
  y.set("expert_parallel_size", l.ep);
  y.set("pp_engine", std::string(l.schedule == "gpipe" ? "afab" : "1f1b"));
  y.set("tp_mode", std::string(l.sp ? "REDUCE_SCATTER" : "ALL_REDUCE"));
  y.set("recompute_layer", r.recompute.kind == RecomputeKind::full);
  y.end();
  model_section(y, p.architecture, r);
  y.begin("tokens");
  y.set("sequence_length", r.seq);
  y.set("micro_batch_size", r.micro_batch);
  y.set("batch_accumulation_per_replica", r.micro_batches());
  const double steps =
      r.tokens ? std::ceil(*r.tokens / (static_cast<double>(r.global_batch) * static_cast<double>(r.seq))) : 1000;
  y.set("train_steps", static_cast<std::int64_t>(steps));
  y.end();
  optimizer_section(y, r);
  return std::move(y.out);
}

}  // namespace preflop
