// A launch script of Megatron-LM's pretrain_gpt.py.
#include <algorithm>
#include <cmath>

#include "src/adapt/export/megatron_script.hpp"
#include "src/adapt/optimizer_words.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/base/decimal.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

using Script = MegatronScript;
std::string num(std::int64_t v) { return std::to_string(v); }

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
  if (l.zero >= 1 && l.hsdp > 0) s.size("--num-distributed-optimizer-instances", l.dp * l.cp / l.hsdp);
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
    std::string held;
    for (const std::string& part : graph_modules(a, r)) held += (held.empty() ? "" : " ") + part;
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

void training_options(Script& s, const Recipe& r, std::int64_t position_rows) {
  s.size("--seq-length", r.seq);
  s.size("--max-position-embeddings", std::max(r.seq, position_rows));
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
  s.out.text += unknown_constants(p.architecture, "Megatron-LM's defaults");
  // Megatron-FSDP refuses one connection; tensor and context parallelism without it ask for one.
  s.out.text += "set -euo pipefail\n";
  s.out.text += r.layout.zero >= 2 ? "unset CUDA_DEVICE_MAX_CONNECTIONS\n" : "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  s.out.text +=
      "torchrun --nnodes " + num(p.cluster.nodes()) + " --nproc_per_node " + num(node) +
      " --rdzv_backend c10d --rdzv_id \"${SLURM_JOB_ID:-preflop}\" --rdzv_endpoint \"${HEAD_NODE:-localhost}:29500\" " +
      (hybrid ? "pretrain_mamba.py" : "pretrain_gpt.py");
  if (Status ok = model_options(s, p.architecture); !ok) return ok.error();
  if (experts_of(p.architecture) != nullptr) expert_options(s, p.architecture, r);
  if (r.mtp > 0) s.size("--mtp-num-layers", r.mtp);
  if (r.mtp > 1 && p.architecture.mtp_shared) s.option("--mtp-use-repeated-layer");
  if (r.mtp > 0 && hybrid) s.option("--mtp-hybrid-override-pattern", experts_of(p.architecture) ? "'*E'" : "'*-'");
  if (Status ok = layout_options(s, p); !ok) return ok.error();
  training_options(s, r, p.architecture.position_rows.get());
  if (Status ok = software_options(s, p.architecture, r); !ok) return ok.error();
  if (Status ok = optimizer_options(s, r); !ok) return ok.error();
  s.out.text += "\n";
  return std::move(s.out);
}

}  // namespace preflop
