// A launch script of Megatron-LM's pretrain_gpt.py.
#include <algorithm>
#include <cmath>

#include "src/adapt/export/export.hpp"
#include "src/adapt/layer_pattern.hpp"
#include "src/adapt/optimizer_words.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/base/decimal.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

std::string num(std::int64_t v) { return std::to_string(v); }

// Lines of options; each is remembered as written.
struct Script {
  Exported out;
  std::string line;
  void option(const std::string& key, const std::string& value = "") {
    out.options.emplace_back(key, value);
    line += " " + key + (value.empty() ? "" : " " + value);
  }
  void size(const std::string& key, std::int64_t value) { option(key, num(value)); }
  void end() {
    if (!line.empty()) out.text += " \\\n " + line;
    line.clear();
  }
};

// Does some layer have a state space, or one sublayer alone?
bool is_hybrid(const Architecture& a) {
  return std::any_of(a.layers.begin(), a.layers.end(), [](const LayerRun& run) {
    return run.kind.state_space || !run.kind.mixes || !run.kind.feeds_forward;
  });
}

// Of a hybrid the kinds that options describe: each by a layer that has it.
Status hybrid_options(Script& s, const Architecture& a) {
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

// The experts of its layers; null: it has none.
const ExpertSpec* experts_of(const Architecture& a) {
  for (const LayerRun& run : a.layers) {
    if (run.kind.experts) return &*run.kind.experts;
  }
  return nullptr;
}

Status model_options(Script& s, const Architecture& a) {
  const LayerKind& k = a.layers.back().kind;
  if (is_hybrid(a)) return hybrid_options(s, a);
  for (const LayerRun& run : a.layers) {
    const bool same = run.kind.attention == k.attention && run.kind.norm == k.norm && run.kind.placement == k.placement;
    if (!same)
      return Error{"--to",
                   "megatron: the export of layers that alternate, as those of " + a.name + ", is not written yet",
                   "megatron-bridge"};
  }
  if (k.placement != NormPlacement::pre || k.attention.latent || k.attention.indexer || k.attention.sinks ||
      a.embedding_norm)
    return Error{"--to", "megatron: the export of layers as those of " + a.name + " is not written yet",
                 "megatron-bridge"};
  s.size("--num-layers", a.layer_count());
  s.size("--hidden-size", a.hidden.get());
  s.size("--ffn-hidden-size", k.mlp.width.get() > 0 ? k.mlp.width.get() : k.experts->width.get());
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
  const MlpSpec& mlp = k.mlp;
  const bool gated = k.experts ? k.experts->gated : mlp.gated;
  const Activation activation = k.experts ? k.experts->activation : mlp.activation;
  if (gated && activation == Activation::silu) s.option("--swiglu");
  if (!gated && activation == Activation::relu2) s.option("--squared-relu");
  if (!k.attention.out_bias && !mlp.bias) s.option("--disable-bias-linear");
  if (k.attention.query_bias && !k.attention.out_bias) s.option("--add-qkv-bias");
  if (k.attention.qk_norm == QkNorm::head) s.option("--qk-layernorm");
  if (!a.tied) s.option("--untie-embeddings-and-output-weights");
  s.end();
  s.option("--attention-dropout", shortest(k.attention.dropout));
  s.option("--hidden-dropout", shortest(k.dropout));
  s.option("--tokenizer-type", "NullTokenizer");
  s.size("--vocab-size", a.vocab.get());
  s.end();
  return Nothing{};
}

void expert_options(Script& s, const Architecture& a, const Recipe& r) {
  const ExpertSpec& e = *experts_of(a);
  s.size("--num-experts", e.count.get());
  s.size("--moe-router-topk", e.top_k.get());
  s.size("--moe-ffn-hidden-size", e.width.get());
  if (e.latent) s.size("--moe-latent-size", e.latent->get());
  if (e.shared_width.get() > 0) s.size("--moe-shared-expert-intermediate-size", e.shared_width.get());
  std::string pattern;
  for (const LayerRun& run : a.layers)
    pattern += (pattern.empty() ? "([" : "+[") + std::string(run.kind.experts ? "1" : "0") + "]*" + num(run.count);
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

Status layout_options(Script& s, const Problem& p) {
  const Recipe& r = p.analysed.recipe;
  const Layout& l = r.layout;
  s.size("--tensor-model-parallel-size", l.tp);
  if (l.sp) s.option("--sequence-parallel");
  s.size("--pipeline-model-parallel-size", l.pp);
  if (l.vpp > 1) s.size("--num-virtual-stages-per-pipeline-rank", l.vpp);
  if (l.cp > 1) {
    s.size("--context-parallel-size", l.cp);
    s.option("--cp-comm-type", r.cp_comm);
  }
  if (p.analysed.split_how.starts_with("embedding and loss")) {
    s.option("--account-for-embedding-in-pipeline-split");
    s.option("--account-for-loss-in-pipeline-split");
  } else if (const std::string layout = stage_layout(p); !layout.empty()) {
    s.option("--pipeline-model-parallel-layout", "'" + layout + "'");
  } else if (!p.analysed.split_how.empty()) {
    const auto& stages = p.analysed.stages;
    for (std::size_t i = 2; i + 1 < stages.size(); ++i) {
      if (stages[i].layer_count() != stages[1].layer_count())
        return Error{"--to", "megatron: stages in the middle differ", "equal middle stages"};
    }
    s.size("--decoder-first-pipeline-num-layers", stages.front().layer_count());
    s.size("--decoder-last-pipeline-num-layers", stages.back().layer_count());
  }
  if (l.zero == 1) s.option("--use-distributed-optimizer");
  if (l.zero == 1 && l.hsdp > 0) s.size("--num-distributed-optimizer-instances", l.dp * l.cp / l.hsdp);
  if (l.zero >= 2) {
    s.option("--use-megatron-fsdp");
    s.option("--data-parallel-sharding-strategy", l.zero == 2 ? "optim_grads" : "optim_grads_params");
  }
  if (r.dp_overlap) s.option("--overlap-grad-reduce");
  if (r.dp_overlap && l.zero >= 1) s.option("--overlap-param-gather");
  if (l.zero >= 2) s.option("--ckpt-format", "fsdp_dtensor");  // the only one of Megatron-FSDP
  s.end();
  return Nothing{};
}

// CUDA graphs of the parts that the model has, and exchanges beside compute.
Status software_options(Script& s, const Architecture& a, const Recipe& r) {
  if (r.cuda_graph != "none") s.option("--cuda-graph-impl", r.cuda_graph);
  if (r.cuda_graph == "transformer_engine" || r.cuda_graph == "local") {
    const auto some = [&](auto has) {
      return std::any_of(a.layers.begin(), a.layers.end(), [&](const LayerRun& run) { return has(run.kind); });
    };
    const std::pair<const char*, bool> parts[] = {
        {"attn", some([](const LayerKind& k) { return k.mixes && !k.state_space; })},
        {"mamba", some([](const LayerKind& k) { return k.state_space.has_value(); })},
        {"mlp", some([](const LayerKind& k) { return k.feeds_forward && !k.experts; })},
        {"moe_router", experts_of(a) != nullptr},
        {"moe_preprocess", experts_of(a) != nullptr}};
    std::string held;
    for (const auto& [part, there] : parts) {
      const auto& scope = r.cuda_graph_scope;
      if (there && std::find(scope.begin(), scope.end(), part) != scope.end())
        held += (held.empty() ? "" : " ") + std::string(part);
    }
    // Without modules Megatron-LM captures whole layers.
    if (held.empty())
      return Error{"--to", "megatron: " + a.name + " has none of the parts of --cuda-graph-scope", "leave it out"};
    s.option("--cuda-graph-modules", held);
  }
  if (r.tp_overlap && r.layout.tp > 1) {
    if (!r.layout.sp) return Error{"--to", "megatron: --tp-comm-overlap needs sequence parallelism", "--sp"};
    s.option("--tp-comm-overlap");
  }
  if (r.ep_overlap) s.option("--overlap-moe-expert-parallel-comm");
  s.end();
  return Nothing{};
}

Status optimizer_options(Script& s, const Recipe& r) {
  const std::string name = megatron_optimizer(r.optimizer);
  if (name.empty())
    return Error{"--to", "megatron: --optimizer of Megatron-LM has no " + r.optimizer,
                 text::list(megatron_optimizers())};
  if (r.layout.zero >= 2 && name != "adam" && name != "sgd")
    return Error{"--to", "megatron: Megatron-FSDP does not run --optimizer " + name, "--stack megatron, or adamw"};
  s.option("--optimizer", name);
  if (r.optimizer == "sgd") s.option("--sgd-momentum", "0");  // its default is 0.9
  s.option("--lr", "1.5e-4");
  s.option("--clip-grad", "1.0");
  s.option("--mock-data");
  s.option("--log-interval", "10");
  s.option("--log-throughput");
  s.end();
  return Nothing{};
}

// What gradients, moments and master weights are kept in, where it is not the options' default: fp32, and under
// Megatron-FSDP the parameters' own type for gradients.
void state_options(Script& s, const Recipe& r) {
  if (r.layout.zero >= 2) {
    if (r.grad_dtype != r.weight_dtype) s.option("--megatron-fsdp-main-grads-dtype", std::string(name(r.grad_dtype)));
  } else if (r.precision != "fp16" && r.grad_dtype == Dtype::bf16) {
    s.option("--grad-reduce-in-bf16");
  }
  if (!keeps_narrow_states(r)) return;
  if (r.offload.optimizer <= 0) s.option("--use-precision-aware-optimizer");
  if (r.moment_dtype != Dtype::fp32) {
    s.option("--exp-avg-dtype", std::string(name(r.moment_dtype)));
    s.option("--exp-avg-sq-dtype", std::string(name(r.moment_dtype)));
  }
  if (r.master_dtype == Dtype::fp16) s.option("--main-params-dtype", "fp16");
}

void training_options(Script& s, const Recipe& r) {
  s.size("--seq-length", r.seq);
  s.size("--max-position-embeddings", r.seq);
  s.size("--micro-batch-size", r.micro_batch);
  s.size("--global-batch-size", r.global_batch);
  const double steps =
      r.tokens ? std::ceil(*r.tokens / (static_cast<double>(r.global_batch) * static_cast<double>(r.seq))) : 1000;
  s.size("--train-iters", static_cast<std::int64_t>(steps));
  if (r.precision != "fp32") s.option(r.precision == "fp16" ? "--fp16" : "--bf16");
  if (const PrecisionWords* words = words_of_precision(r.precision); words != nullptr && *words->megatron_width != 0) {
    const std::string width = std::string("--") + words->megatron_width;
    s.option(width + "-format", words->megatron_format);
    s.option(width + "-recipe", words->megatron_recipe);
  }
  s.end();
  if (r.recompute.kind == RecomputeKind::full) {
    s.option("--recompute-granularity", "full");
    s.option("--recompute-method", r.recompute.some() ? "block" : "uniform");
    s.size("--recompute-num-layers", std::max<std::int64_t>(r.recompute.layers, 1));
  } else if (r.recompute.kind != RecomputeKind::none) {
    s.option("--recompute-granularity", "selective");
    std::string modules = r.recompute.kind == RecomputeKind::selective ? "core_attn" : "";
    for (const std::string& module : r.recompute.modules) modules += (modules.empty() ? "" : " ") + module;
    s.option("--recompute-modules", modules);
  }
  if (r.offload.optimizer > 0) {
    s.option("--use-precision-aware-optimizer");
    s.option("--optimizer-cpu-offload");
    s.option("--optimizer-offload-fraction", shortest(r.offload.optimizer));
  }
  if (r.offload.some_layers()) s.size("--cpu-offloading-num-layers", r.offload.activations);
  if (r.loss == LossKind::fused) {
    s.option("--cross-entropy-loss-fusion");
    s.option("--cross-entropy-fusion-impl", "te");
  }
  state_options(s, r);
  const char* backend = r.attention == AttentionKernel::unfused ? "unfused"
                        : r.attention == AttentionKernel::cudnn ? "fused"
                                                                : "flash";
  s.option("--attention-backend", backend);
  s.end();
}

// Keys that the options say: the remark leaves them out.
std::vector<std::string> carried_keys(const Problem& p) {
  const Recipe& r = p.analysed.recipe;
  std::vector<std::string> out = {"tp",
                                  "pp",
                                  "vpp",
                                  "cp",
                                  "ep",
                                  "etp",
                                  "dp",
                                  "zero",
                                  "sp",
                                  "hsdp",
                                  "seq",
                                  "micro_batch",
                                  "global_batch",
                                  "recompute",
                                  "offload",
                                  "loss",
                                  "attention",
                                  "schedule",
                                  "layers_per_stage",
                                  "capacity_factor",
                                  "cuda_graph",
                                  "cuda_graph_scope",
                                  "dp_overlap",
                                  "ep_overlap",
                                  "optimizer"};
  const PrecisionWords* words = words_of_precision(r.precision);
  if (words == nullptr || *words->megatron_width != 0) out.emplace_back("precision");
  if (r.precision != "fp16" && r.precision != "fp32") out.emplace_back("grad_dtype");
  if (keeps_narrow_states(r)) out.emplace_back("moment_dtype");
  if (r.layout.tp > 1) out.emplace_back("tp_overlap");
  if (has_experts(*p.model)) out.emplace_back("dispatcher");
  return out;
}

}  // namespace

Result<Exported> export_megatron(const Problem& p, const Request& request) {
  const Recipe& r = p.analysed.recipe;
  if (!r.stack.starts_with("megatron") && r.stack != "textbook")
    return Error{"--to", "megatron does not run a plan of stack " + r.stack, "--stack megatron"};
  if (r.stack == "megatron-deepspeed")
    return Error{"--to", "megatron: Megatron-DeepSpeed has options of its own", "--stack megatron"};
  Script s;
  const bool hybrid = is_hybrid(p.architecture);
  const std::int64_t node = processes_per_node(p);
  s.out.text = "#!/bin/bash\n";
  s.out.text += rest_line(p, request, carried_keys(p), s.out.left_out);
  // Megatron-FSDP refuses one connection; tensor and context parallelism without it ask for one.
  s.out.text += r.layout.zero >= 2 ? "unset CUDA_DEVICE_MAX_CONNECTIONS\n" : "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  s.out.text += "torchrun --nnodes " + num(p.cluster.nodes()) + " --nproc_per_node " + num(node) +
                " --rdzv_backend c10d --rdzv_endpoint \"${HEAD_NODE:-localhost}:29500\" " +
                (hybrid ? "pretrain_mamba.py" : "pretrain_gpt.py");
  if (Status ok = model_options(s, p.architecture); !ok) return ok.error();
  if (experts_of(p.architecture) != nullptr) expert_options(s, p.architecture, r);
  if (r.mtp > 0) s.size("--mtp-num-layers", r.mtp);
  if (r.mtp > 1 && p.architecture.mtp_shared) s.option("--mtp-use-repeated-layer");
  if (r.mtp > 0 && hybrid) s.option("--mtp-hybrid-override-pattern", experts_of(p.architecture) ? "'*E'" : "'*-'");
  if (Status ok = layout_options(s, p); !ok) return ok.error();
  training_options(s, r);
  if (Status ok = software_options(s, p.architecture, r); !ok) return ok.error();
  if (Status ok = optimizer_options(s, r); !ok) return ok.error();
  s.out.text += "\n";
  return std::move(s.out);
}

}  // namespace preflop
