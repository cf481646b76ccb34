// A configuration function of Megatron-Bridge.
#include <algorithm>

#include "src/adapt/export/megatron_script.hpp"
#include "src/adapt/export/python_config.hpp"
#include "src/adapt/optimizer_words.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/base/decimal.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

std::string python_list(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + quoted_python(word);
  return "[" + out + "]";
}

// CUDA graphs, exchanges and the optimizer, by the names of Megatron-LM's options.
Status bridge_software(PythonConfig& c, const Architecture& a, const Recipe& r) {
  c.set("model.cuda_graph_impl", quoted_python(r.cuda_graph));
  if (r.cuda_graph == "transformer_engine" || r.cuda_graph == "local") {
    const std::vector<std::string> held = graph_modules(a, r);
    if (held.empty())
      return Error{"--to", "megatron-bridge: " + a.name + " has none of the parts of --cuda-graph-scope",
                   "leave it out"};
    c.set("model.cuda_graph_modules", python_list(held));
  }
  if (r.tp_overlap && r.layout.tp > 1 && !r.layout.sp)
    return Error{"--to", "megatron-bridge: --tp-comm-overlap needs sequence parallelism", "--sp"};
  if (r.layout.tp > 1) c.set("model.tp_comm_overlap", r.tp_overlap);
  if (r.layout.cp > 1) c.set("model.cp_comm_type", quoted_python(r.cp_comm));
  if (experts_of(a) != nullptr) {
    c.set("model.overlap_moe_expert_parallel_comm", r.ep_overlap);
    const bool plain = r.dispatcher == "alltoall";
    c.set("model.moe_token_dispatcher_type", quoted_python(plain ? "alltoall" : "flex"));
    if (!plain) c.set("model.moe_flex_dispatcher_backend", quoted_python(r.dispatcher));
    c.set("model.moe_expert_capacity_factor", r.capacity_factor > 0 ? shortest(r.capacity_factor) : "None");
  }
  const std::string name = megatron_optimizer(r.optimizer);
  if (name.empty())
    return Error{"--to", "megatron-bridge: its optimizers have no " + r.optimizer, text::list(megatron_optimizers())};
  c.set("optimizer.optimizer", quoted_python(name));
  if (r.optimizer == "sgd") c.set("optimizer.sgd_momentum", std::string("0.0"));  // its default is 0.9
  return Nothing{};
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): one setting after the other
Result<Exported> export_megatron_bridge(const Problem& p, const Request& request) {
  const Recipe& r = p.analysed.recipe;
  const Layout& l = r.layout;
  if (r.stack != "megatron" && r.stack != "megatron-fsdp" && r.stack != "textbook")
    return Error{"--to", "megatron-bridge does not run a plan of stack " + r.stack, "--stack megatron"};
  PythonConfig c;
  c.object = "cfg";
  const PrecisionWords* words = words_of_precision(r.precision);
  const bool named = words != nullptr && *words->bridge != 0;
  std::vector<std::string> carried = {
      "tp",        "pp",      "vpp",      "cp",        "ep",          "etp",
      "dp",        "zero",    "sp",       "seq",       "micro_batch", "global_batch",
      "recompute", "offload", "schedule", "optimizer", "cuda_graph",  "cuda_graph_scope",
      "dp_overlap"};
  if (l.tp > 1) carried.emplace_back("tp_overlap");
  if (l.cp > 1) carried.emplace_back("cp_comm");
  if (has_experts(*p.model)) carried.insert(carried.end(), {"ep_overlap", "dispatcher", "capacity_factor"});
  if (words == nullptr || named) carried.emplace_back("precision");
  c.out.text = rest_line(p, request, carried, c.out.left_out);
  c.out.text +=
      "import torch\nfrom megatron.bridge import AutoBridge\nfrom megatron.bridge.recipes.common import "
      "_pretrain_common\n"
      "from megatron.bridge.training.config import ConfigContainer\n\n\ndef " +
      function_name(p) + "(hf_model: str) -> ConfigContainer:\n    cfg = _pretrain_common()\n" +
      "    cfg.model = AutoBridge.from_hf_pretrained(hf_model).get_model_config()\n";
  c.set("model.tensor_model_parallel_size", l.tp);
  c.set("model.sequence_parallel", l.sp);
  c.set("model.pipeline_model_parallel_size", l.pp);
  c.set("model.virtual_pipeline_model_parallel_size", l.vpp > 1 ? std::to_string(l.vpp) : "None");
  if (l.pp > 1) c.set("model.pipeline_dtype", std::string("torch.bfloat16"));
  c.set("model.context_parallel_size", l.cp);
  if (has_experts(*p.model)) {
    c.set("model.expert_model_parallel_size", l.ep);
    c.set("model.expert_tensor_parallel_size", l.etp);
  }
  const auto& stages = p.analysed.stages;
  if (p.analysed.split_how.starts_with("embedding and loss")) {
    c.set("model.account_for_embedding_in_pipeline_split", true);
    c.set("model.account_for_loss_in_pipeline_split", true);
  } else if (const std::string layout = stage_layout(p); !layout.empty()) {
    c.set("model.pipeline_model_parallel_layout", quoted_python(layout));
  } else if (!p.analysed.split_how.empty()) {
    c.set("model.num_layers_in_first_pipeline_stage", stages.front().layer_count());
    c.set("model.num_layers_in_last_pipeline_stage", stages.back().layer_count());
  }
  c.set("model.seq_length", r.seq);
  c.set("dataset.seq_length", r.seq);
  c.set("train.micro_batch_size", r.micro_batch);
  c.set("train.global_batch_size", r.global_batch);
  switch (r.recompute.kind) {
    case RecomputeKind::none:
      c.set("model.recompute_granularity", std::string("None"));
      break;
    case RecomputeKind::full:
      c.set("model.recompute_granularity", quoted_python("full"));
      c.set("model.recompute_method", quoted_python(r.recompute.some() ? "block" : "uniform"));
      c.set("model.recompute_num_layers", std::max<std::int64_t>(r.recompute.layers, 1));
      break;
    default: {
      const std::vector<std::string>& modules = r.recompute.modules;
      c.set("model.recompute_granularity", quoted_python("selective"));
      c.set("model.recompute_modules", python_list(modules.empty() ? std::vector<std::string>{"core_attn"} : modules));
    }
  }
  if (keeps_narrow_states(r) || r.offload.optimizer > 0) c.set("optimizer.use_precision_aware_optimizer", true);
  if (keeps_narrow_states(r) && r.moment_dtype != Dtype::fp32 && r.moment_dtype != Dtype::fp8) {
    const std::string type = r.moment_dtype == Dtype::bf16 ? "torch.bfloat16" : "torch.float16";
    c.set("optimizer.exp_avg_dtype", type);
    c.set("optimizer.exp_avg_sq_dtype", type);
  }
  if (r.offload.optimizer > 0) {
    c.set("optimizer.optimizer_cpu_offload", true);
    c.set("optimizer.optimizer_offload_fraction", shortest(r.offload.optimizer));
  }
  if (r.offload.some_layers()) {
    c.set("model.cpu_offloading", true);
    c.set("model.cpu_offloading_num_layers", r.offload.activations);
  }
  c.set("mixed_precision", r.precision == "fp32" ? "None"
                           : named               ? quoted_python(words->bridge)
                                                 : quoted_python(r.precision == "fp16" ? "fp16_mixed" : "bf16_mixed"));
  c.set("ddp.use_distributed_optimizer", l.zero >= 1);
  if (l.zero >= 1 && l.hsdp > 0) c.set("ddp.num_distributed_optimizer_instances", l.dp * l.cp / l.hsdp);
  if (l.zero >= 2) {
    c.set("ddp.use_megatron_fsdp", true);
    c.set("ddp.data_parallel_sharding_strategy", quoted_python(l.zero == 2 ? "optim_grads" : "optim_grads_params"));
  }
  c.set("ddp.overlap_grad_reduce", r.dp_overlap);
  c.set("ddp.overlap_param_gather", r.dp_overlap && l.zero >= 1);
  if (Status s = bridge_software(c, p.architecture, r); !s) return s.error();
  c.out.text += "    return cfg\n";
  return std::move(c.out);
}

}  // namespace preflop
