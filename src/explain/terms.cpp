#include "src/explain/terms.hpp"

#include <utility>

#include "src/step/compute.hpp"

namespace preflop {

namespace {

constexpr std::pair<std::string_view, const char*> kSays[] = {
    {"model.params_total", "all parameters"},
    {"model.params_active", "parameters that act on a token"},
    {"model.params_embedding", "parameters of the embedding tables"},
    {"model.params_vision", "those of a vision tower and its projector, apart"},
    {"memory.margin_bytes", "capacity less what is needed at most, fullest stage"},
    {"memory.capacity_bytes", "total memory of one GPU as the driver reports it"},
    {"memory.peak_allocated_bytes", "allocated by tensors on the fullest stage"},
    {"memory.peak_reserved_bytes", "held by the caching allocator there"},
    {"memory.peak_device_bytes", "what nvidia-smi shows there"},
    {"memory.low_allocated_bytes", "lower end of the band of allocated memory"},
    {"memory.high_allocated_bytes", "its upper end, by which a plan fits or not"},
    {"memory.low_reserved_bytes", "lower end of the band of reserved memory"},
    {"memory.high_reserved_bytes", "its upper end"},
    {"memory.low_device_bytes", "lower end of the band of the device's memory"},
    {"memory.high_device_bytes", "its upper end"},
    {"memory.host_bytes_per_node", "host memory that a node needs"},
    {"memory.checkpoint_bytes", "one full checkpoint of the run"},
    {"memory.weights", "weights"},
    {"memory.gradients", "gradients"},
    {"memory.optimizer", "master weights and moments"},
    {"memory.activations", "kept by the forward pass for the backward pass"},
    {"memory.logits", "kept by the loss"},
    {"memory.buffers", "workspaces and cached tensors of the stack"},
    {"memory.transients", "alive for a moment of the backward pass"},
    {"memory.allocated", "sum of the terms above"},
    {"memory.reserved", "held by the caching allocator"},
    {"memory.context", "outside the allocator: CUDA context, communicators"},
    {"memory.device", "reserved and outside: what nvidia-smi shows"},
    {"memory.moments.init", "allocated when training starts"},
    {"memory.moments.loss", "allocated while the head and the loss run backward"},
    {"memory.moments.last_layer_backward", "allocated while the last layer runs backward"},
    {"memory.moments.first_layer_backward", "allocated while the first layer runs backward"},
    {"memory.moments.end_of_backward", "allocated after the backward pass"},
    {"memory.moments.reduction", "allocated while gradients are reduced"},
    {"memory.moments.optimizer_step", "allocated in the optimizer step"},
    {"compute.flops_per_token.model", "useful FLOPs, under compute.convention"},
    {"compute.flops_per_token.hardware", "executed FLOPs: recomputation included"},
    {"compute.flops_per_token.six_n", "6 x parameters"},
    {"compute.flops_per_token.attention", "the part of model that is attention"},
    {"step.seconds", "time of one optimizer step"},
    {"step.low_seconds", "lower end of the prediction band"},
    {"step.high_seconds", "upper end of the prediction band"},
    {"step.tokens_per_second", "tokens of the whole cluster"},
    {"step.tokens_per_second_per_gpu", "tokens of one GPU"},
    {"step.mfu", "useful FLOP/s over the dense peak"},
    {"step.peak_flops", "dense peak of one GPU"},
    {"step.hfu", "executed FLOP/s over the dense peak"},
    {"step.breakdown.gemm", "weight products"},
    {"step.breakdown.attention", "attention core"},
    {"step.breakdown.memory_bound", "operators that only move bytes"},
    {"step.breakdown.logits", "output layer and loss"},
    {"step.breakdown.recompute", "forward work done twice"},
    {"step.breakdown.launch", "gaps between kernels"},
    {"step.breakdown.tp_comm", "tensor-parallel communication, exposed"},
    {"step.breakdown.cp_comm", "context-parallel communication, exposed"},
    {"step.breakdown.ep_comm", "expert-parallel communication, exposed"},
    {"step.breakdown.pp_comm", "pipeline communication, exposed"},
    {"step.breakdown.dp_comm", "data-parallel communication, exposed"},
    {"step.breakdown.offload", "transfers to the host, exposed"},
    {"step.breakdown.imbalance", "waiting for the slowest expert or rank"},
    {"step.breakdown.bubble", "filling and draining the pipeline"},
    {"step.breakdown.optimizer", "optimizer step"},
    {"step.breakdown.other", "time not known apart"},
    {"run.tokens", "tokens of the run"},
    {"run.steps", "optimizer steps"},
    {"run.ideal_seconds", "steps x step time, nothing ever failing"},
    {"run.expected_seconds", "mean time, at the predicted step time and assumed rates"},
    {"run.p10_seconds", "time that one run in ten beats"},
    {"run.p50_seconds", "median time"},
    {"run.p90_seconds", "time that nine runs in ten beat"},
    {"run.gpu_hours", "GPUs, spares too, x the median time"},
    {"run.cost_usd", "price of these GPU-hours"},
    {"run.storage_usd", "price of keeping checkpoints"},
    {"run.energy_kwh", "energy of the site in the median time"},
    {"run.co2_kg", "emissions of that energy"},
    {"run.interruptions", "unplanned interruptions, expected"},
    {"run.mtbf_seconds", "time between unplanned interruptions of the job"},
    {"run.checkpoint_interval_seconds", "training between checkpoints"},
    {"run.effective", "ideal over expected time"},
    {"run.losses.startup", "the first start"},
    {"run.losses.ramp", "smaller batches at the beginning"},
    {"run.losses.data_stalls", "waiting for data"},
    {"run.losses.stragglers", "waiting for slow nodes"},
    {"run.losses.evaluation", "evaluations"},
    {"run.losses.checkpoints", "training stopped by checkpoints"},
    {"run.losses.lost_work", "work done again after interruptions"},
    {"run.losses.detection", "finding failures and replacing nodes"},
    {"run.losses.restart", "starting again"},
    {"run.losses.loading", "loading checkpoints"},
    {"run.losses.spares", "waiting for a node to be repaired"},
    {"run.losses.planned", "planned interruptions, maintenance"},
};

}  // namespace

std::string term_says(std::string_view path) {
  for (const auto& [term, says] : kSays) {
    if (term == path) return says;
  }
  if (path.starts_with("memory.way_out[")) {
    return path.ends_with("freed_bytes") ? "allocated memory that the change frees on the fullest stage"
                                         : "step time with the change over that without";
  }
  constexpr std::string_view kConventions = "compute.conventions.";
  if (path.starts_with(kConventions)) {
    if (const Convention* c = find_convention(path.substr(kConventions.size()))) return c->says;
  }
  return "";
}

}  // namespace preflop
