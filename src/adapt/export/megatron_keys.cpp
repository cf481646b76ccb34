// What Megatron-LM's options and Megatron-Bridge's settings have in common.
#include <algorithm>

#include "src/adapt/export/megatron_script.hpp"
#include "src/adapt/precision_words.hpp"

namespace preflop {

bool is_fsdp(const Recipe& r) { return r.layout.zero >= 2 || r.stack == "megatron-fsdp"; }

const char* sharding_strategy(int zero) {
  constexpr const char* kNames[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
  return kNames[zero];
}

std::int64_t sharding_replicas(const Layout& l) {
  return l.zero > 0 && l.hsdp > 0 ? std::max<std::int64_t>(1, l.dp * l.cp / l.hsdp) : 1;
}

const char* attention_backend(AttentionKernel kernel) {
  return kernel == AttentionKernel::unfused ? "unfused" : kernel == AttentionKernel::cudnn ? "fused" : "flash";
}

Status megatron_runs(const Problem& p, const std::string& format) {
  const Recipe& r = p.analysed.recipe;
  if (r.offload.params)
    return Error{"--to", format + " has no option that keeps weights on the host", "--offload optimizer, or none"};
  // core/transformer/transformer_config.py: cpu_offloading_num_layers is below num_layers.
  if (r.offload.activations >= p.architecture.layer_count())
    return Error{"--to", format + " moves the activations of fewer layers than the model has",
                 "--offload activations=N, N below " + std::to_string(p.architecture.layer_count())};
  // core/transformer/dot_product_attention.py asserts it.
  if (r.attention == AttentionKernel::unfused && r.layout.cp > 1)
    return Error{"--to", format + " has no context parallelism with unfused attention", "--attention fa2, or --cp 1"};
  return Nothing{};
}

std::vector<std::string> megatron_keys(const Problem& p) {
  const Recipe& r = p.analysed.recipe;
  const Layout& l = r.layout;
  const bool scaled = words_of_precision(r.precision) != nullptr;
  const bool plain_order = l.schedule == (l.vpp > 1 ? "interleaved" : "1f1b");
  // A key, and whether the options say its value.
  const std::pair<const char*, bool> keys[] = {
      {"tp", true},
      {"pp", true},
      {"vpp", true},
      {"cp", true},
      {"ep", true},
      {"etp", true},
      {"dp", true},
      {"zero", true},
      {"sp", true},
      {"hsdp", l.zero > 0},
      {"seq", true},
      {"micro_batch", true},
      {"global_batch", true},
      {"recompute", true},
      {"offload", true},
      {"layers_per_stage", true},
      {"capacity_factor", true},
      {"cuda_graph", true},
      {"cuda_graph_scope", true},
      {"dp_overlap", true},
      {"ep_overlap", true},
      {"optimizer", true},
      {"precision", true},
      {"fused_experts", true},
      {"mtp", true},
      {"loss", r.loss == LossKind::plain || r.loss == LossKind::fused},
      // Which FlashAttention runs is what is installed.
      {"attention", r.attention == AttentionKernel::unfused || r.attention == AttentionKernel::cudnn ||
                        r.attention == AttentionKernel::fa2},
      {"schedule", plain_order},
      {"grad_dtype", r.precision == "bf16" || scaled || r.grad_dtype == Dtype::fp32},
      {"moment_dtype", keeps_narrow_states(r)},
      {"master_dtype", keeps_narrow_states(r)},
      {"cp_comm", l.cp > 1},
      {"tp_overlap", l.tp > 1},
      {"dispatcher", has_experts(*p.model)}};
  std::vector<std::string> out;
  for (const auto& [key, said] : keys) {
    if (said) out.emplace_back(key);
  }
  return out;
}

}  // namespace preflop
