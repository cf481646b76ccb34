// The one table of recipe keys: flags, recipe files, JSON requests and --help all read it.
#include "src/adapt/request.hpp"

namespace preflop {

// NOLINTNEXTLINE(readability-function-size): a table
const std::vector<Key>& request_keys() {
  static const std::vector<Key> kAllKeys = {
      {"seq", "N", "batch", "sequence length in tokens", ""},
      {"micro_batch", "N", "batch", "sequences per GPU and pass", ""},
      {"global_batch", "N|4Mtok", "batch", "sequences (or tokens, with the suffix tok) per optimizer step", ""},
      {"samples", "N", "batch", "fine-tuning: samples of the data set", ""},
      {"epochs", "N", "batch", "fine-tuning: passes over the samples", ""},
      {"mean_length", "N", "batch", "mean tokens of a sample", ""},
      {"max_length", "N", "batch", "fine-tuning: longest sample in tokens; the sequence length", ""},
      {"packing", "on|off", "batch", "samples packed into full sequences; each attends within its mean length", ""},

      {"tp", "N", "parallel", "tensor parallel size", ""},
      {"pp", "N", "parallel", "pipeline parallel size", ""},
      {"vpp", "N", "parallel", "virtual stages per pipeline rank", ""},
      {"cp", "N", "parallel", "context parallel size", ""},
      {"ep", "N", "parallel", "expert parallel size", ""},
      {"etp", "N", "parallel", "tensor parallel size of experts", ""},
      {"dp", "N", "parallel", "data parallel size; fills the cluster when not given", ""},
      {"sp", "", "parallel", "sequence parallelism (--no-sp: off)", ""},
      {"zero", "0-3", "parallel", "sharding of states: 1 optimizer, 2 + gradients, 3 + weights", ""},
      {"hsdp", "N", "parallel", "ranks that shard together; replicas beyond", ""},
      {"schedule", "NAME", "parallel", "pipeline schedule of the stack", ""},
      {"layers_per_stage", "N,N,..", "parallel", "layers of each pipeline stage", ""},

      {"precision", "NAME", "numerics", "bf16, fp16, fp32, fp8-tensorwise, fp8-delayed, .., mxfp8, nvfp4", ""},
      {"optimizer", "NAME", "numerics", "adamw, adamw-8bit, sgd, .. (see preflop optimizers)", ""},
      {"weight_dtype", "DTYPE", "numerics", "storage of weights", ""},
      {"grad_dtype", "DTYPE", "numerics", "storage of gradients", ""},
      {"master_dtype", "DTYPE", "numerics", "storage of master weights; none: the weights are their own", ""},
      {"moment_dtype", "DTYPE", "numerics", "storage of the optimizer's moments", ""},

      {"recompute", "none|selective|full[:N]|MODULE,..", "memory", "activations recomputed in the backward pass", ""},
      {"attention", "NAME", "memory", "unfused, sdpa, fa1, fa2, fa3 or cudnn, as the stack has them", ""},
      {"loss", "NAME", "memory", "implementation of the loss", ""},
      {"compile", "", "memory", "torch.compile of the layers (--no-compile: off)", ""},
      {"offload", "WHAT", "memory", "states or activations kept on the host", "offloading"},
      {"lora", "r=N,..", "fine-tuning", "low-rank adapters", "low-rank adapters"},
      {"quantize", "NAME", "fine-tuning", "quantised frozen weights", "quantised weights"},
      {"freeze", "WHAT", "fine-tuning", "frozen parts", "frozen parts"},
      {"cp_comm", "p2p|a2a", "software", "context parallelism: keys round a ring, or heads for tokens", ""},
      {"dispatcher", "NAME", "software", "how rows reach their experts: alltoall, deepep or hybridep", ""},
      {"cuda_graph", "NAME", "software", "none, transformer_engine, local or full_iteration", ""},
      {"dp_overlap", "", "software", "data-parallel exchanges beside compute (--no-dp-overlap: off)", ""},
      {"tp_overlap", "", "software", "tensor-parallel exchange beside the product it feeds (async TP)", ""},
      {"ep_overlap", "", "software", "expert exchange beside another micro-batch's compute", ""},
      {"fused_experts", "", "software", "grouped products with activation and quantisation in one kernel", ""},
      {"fp8_attention", "", "software", "attention in fp8", ""},
      {"mtp", "N", "model", "multi-token prediction layers that are trained; 0: none", ""},
      {"capacity_factor", "X", "model", "rows that an expert takes over the mean, the rest dropped; 0: dropless", ""},
      {"imbalance", "X", "model", "rows of the fullest GPU's experts over the mean", ""},

      {"stack", "NAME[@GENERATION]", "stack", "software that runs the model (see preflop stacks)", ""},
      {"tokens", "N", "run", "tokens of the whole run, e.g. 1.4T; chinchilla: 20 a parameter", ""},
      {"mfu", "X[@CONVENTION]", "run", "use this utilisation instead of predicting", ""},
      {"start", "DATE", "run", "first day of the run, e.g. 2026-03-01", ""},
      {"within", "TIME", "run", "limit for the median time of the run (with --check)", ""},
      {"budget", "USD", "run", "limit for its cost then (with --check)", ""},
      {"price", "USD", "run", "dollars per GPU-hour, or on-demand, reserved", ""},
      {"seed", "N", "run", "seed of the simulated runs", ""},
      {"batch_ramp", "START:STEP:SAMPLES", "run", "smaller batches at the beginning, in sequences", ""},
      {"evaluation", "X%|TIME/STEPS", "run", "time of evaluations; none", ""},
      {"checkpoint", "sync|async|none", "run", "does training stop while a checkpoint is written", ""},
      {"checkpoint_every", "STEPS|TIME|auto", "run", "training between checkpoints; auto: the least loss", ""},
      {"checkpoint_bandwidth", "GB/s", "run", "of all nodes together, to and from the store", ""},
      {"checkpoint_stall", "TIME", "run", "how long training stops for an async checkpoint", ""},
      {"mtbf", "TIME[/node|/gpu]", "run", "mean time between failures of the job, a node or a GPU; none", ""},
      {"eviction", "TIME", "run", "mean time between evictions of a spot cluster", ""},
      {"detection", "TIME", "run", "until a failure is found and its node replaced", ""},
      {"restart", "TIME", "run", "from there until training goes on, without loading the checkpoint", ""},
      {"spares", "N", "run", "nodes held ready, and paid for (with --repair)", ""},
      {"repair", "TIME", "run", "until a broken node is back", ""},
      {"maintenance", "TIME/TIME", "run", "planned outages and the time between them; none", ""},
      {"data_stalls", "X%", "run", "waiting for data, over training time", ""},
      {"stragglers", "X%", "run", "waiting for slow nodes, over training time", ""},
      {"watts", "W", "run", "of one GPU and its share of the host while training", ""},
      {"pue", "X", "run", "power of the site over that of its machines", ""},
      {"grid", "G|PLACE", "run", "grams of CO2e per kWh, or a country", ""},
  };
  return kAllKeys;
}

}  // namespace preflop
