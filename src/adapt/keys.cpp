// The one table of recipe keys: flags, recipe files, JSON requests and --help all read it.
#include "src/adapt/request.hpp"

namespace preflop {

const std::vector<Key>& request_keys() {
  static const std::vector<Key> kKeys = {
      {"seq", "N", "batch", "sequence length in tokens", ""},
      {"micro_batch", "N", "batch", "sequences per GPU and pass", ""},
      {"global_batch", "N|4Mtok", "batch", "sequences (or tokens, with the suffix tok) per optimizer step", ""},
      {"samples", "N", "batch", "fine-tuning samples", "fine-tuning runs"},
      {"epochs", "N", "batch", "passes over the samples", "fine-tuning runs"},
      {"mean_length", "N", "batch", "mean tokens per sample", "fine-tuning runs"},
      {"max_length", "N", "batch", "longest sample in tokens", "fine-tuning runs"},
      {"packing", "on|off", "batch", "pack samples into full sequences", "fine-tuning runs"},

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

      {"precision", "NAME", "numerics",
       "bf16, fp16, fp32, fp8-tensorwise, fp8-delayed, fp8-rowwise, fp8-blockwise, mxfp8 or nvfp4", ""},
      {"optimizer", "NAME", "numerics", "adamw", ""},
      {"weight_dtype", "DTYPE", "numerics", "storage of weights", ""},
      {"grad_dtype", "DTYPE", "numerics", "storage of gradients", ""},
      {"master_dtype", "DTYPE", "numerics", "storage of master weights; none: the weights are their own", ""},
      {"moment_dtype", "DTYPE", "numerics", "storage of the optimizer's moments", ""},

      {"recompute", "none|selective|full|MODULE,..", "memory", "activations recomputed in the backward pass", ""},
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
      {"ep_overlap", "", "software", "expert exchange beside another micro-batch's compute", ""},
      {"fused_experts", "", "software", "grouped products with activation and quantisation in one kernel", ""},
      {"fp8_attention", "", "software", "attention in fp8", ""},
      {"mtp", "N", "model", "multi-token prediction layers that are trained; 0: none", ""},
      {"capacity_factor", "X", "model", "rows that an expert takes over the mean, the rest dropped; 0: dropless", ""},
      {"imbalance", "X", "model", "rows of the fullest GPU's experts over the mean", ""},

      {"stack", "NAME[@GENERATION]", "stack", "software that runs the model (see preflop stacks)", ""},
      {"tokens", "N", "run", "tokens of the whole run, e.g. 1.4T", ""},
      {"mfu", "X[@CONVENTION]", "run", "use this utilisation instead of predicting", ""},
      {"start", "DATE", "run", "first day of the run", "the run forecast"},
      {"price", "USD", "run", "dollars per GPU-hour", "the run forecast"},
      {"seed", "N", "run", "seed of the simulation", "the run forecast"},
  };
  return kKeys;
}

}  // namespace preflop
