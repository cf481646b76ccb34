// A configuration function of Megatron-Bridge.
#include <algorithm>

#include "src/adapt/export/python_config.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/base/decimal.hpp"

namespace preflop {

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
  std::vector<std::string> carried = {"tp",          "pp",           "vpp",       "cp",      "ep",
                                      "etp",         "dp",           "zero",      "sp",      "seq",
                                      "micro_batch", "global_batch", "recompute", "offload", "schedule"};
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
      std::string modules;
      for (const std::string& module : r.recompute.modules)
        modules += (modules.empty() ? "" : ", ") + quoted_python(module);
      c.set("model.recompute_granularity", quoted_python("selective"));
      c.set("model.recompute_modules", "[" + (modules.empty() ? quoted_python("core_attn") : modules) + "]");
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
  if (l.zero >= 2) {
    c.set("ddp.use_megatron_fsdp", true);
    c.set("ddp.data_parallel_sharding_strategy", quoted_python(l.zero == 2 ? "optim_grads" : "optim_grads_params"));
  }
  c.set("ddp.overlap_grad_reduce", r.dp_overlap);
  c.set("ddp.overlap_param_gather", r.dp_overlap && l.zero >= 1);
  c.out.text += "    return cfg\n";
  return std::move(c.out);
}

}  // namespace preflop
