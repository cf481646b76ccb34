// accelerate's YAML: FSDP of both generations, DeepSpeed, Megatron-LM.
#include <algorithm>

#include "src/adapt/import/launchers.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

const std::string kFsdp = "fsdp_config.fsdp_", kSizes = "parallelism_config.parallelism_config_";

// fp8 is Transformer Engine's delayed scaling, or torchao's of whole tensors.
Status read_mixed_precision(const Fields& f, Request& out) {
  const std::string path = "mixed_precision", precision = f.value(path);
  if (precision == "bf16") out.keys.emplace("precision", "bf16");
  if (precision == "fp16") f.put(out, "precision", path, "fp16");
  if (precision == "no") f.put(out, "precision", path, "fp32");
  if (precision != "fp8") return Nothing{};
  const std::string option = f.has("fp8_config.backend") ? "fp8_config.backend" : "fp8_config.fp8_backend";
  const PrecisionWords* words = precision_called(&PrecisionWords::accelerate, lowered(f.value(option)));
  if (words == nullptr)
    return f.refused(option, "is " + text::quoted(f.value(option)), text::list(all_words(&PrecisionWords::accelerate)));
  f.put(out, "precision", option, words->precision);
  return Nothing{};
}

// Strategies of the first generation: hybrid ones shard within a node.
void read_first_generation(const Fields& f, Request& out) {
  const std::string path = kFsdp + (f.has(kFsdp + "sharding_strategy") ? "sharding_strategy" : "reshard_after_forward");
  const std::string strategy = f.value(path);
  const bool part = strategy == "SHARD_GRAD_OP" || strategy == "HYBRID_SHARD_ZERO2" || strategy == "false";
  f.put(out, "zero", path, strategy == "NO_SHARD" ? "0" : part ? "2" : "3");
  f.value(kFsdp + "reshard_after_forward");
  if (strategy != "NO_SHARD" && !out.keys.contains("stack")) f.put(out, "stack", kFsdp + "version", "fsdp1");
  if (!strategy.starts_with("HYBRID")) return;
  const std::int64_t gpus = f.number("num_processes"), nodes = f.number("num_machines");
  if (gpus > 0 && nodes > 0)
    f.put_number(out, "hsdp", path, gpus / nodes);
  else
    f.leave(path);
}

void read_fsdp(const Fields& f, Request& out) {
  const bool second = f.value(kFsdp + "version") == "2";
  const std::string path = kFsdp + "reshard_after_forward", strategy = kFsdp + "sharding_strategy",
                    checkpoints = kFsdp + "activation_checkpointing", offload = kFsdp + "offload_params";
  if (second) {
    const std::string reshard = f.value(path);
    f.put(out, "zero", path, reshard == "false" || reshard == "SHARD_GRAD_OP" ? "2" : "3");
    if (f.has(strategy)) f.leave(strategy);  // of the first generation
    const std::int64_t shard = f.number(kSizes + "dp_shard_size"), replicas = f.number(kSizes + "dp_replicate_size");
    if (replicas > 1 && shard > 1) f.put_number(out, "hsdp", kSizes + "dp_shard_size", shard);
  } else {
    read_first_generation(f, out);
  }
  // A remark of ours says which part of a layer is recomputed, or what is on the host.
  const std::string recompute = f.value(checkpoints);
  if (recompute == "true") f.put(out, "recompute", checkpoints, "full");
  if (recompute == "false") out.keys.emplace("recompute", "none");
  if (f.on(offload) && !out.keys.contains("offload")) f.put(out, "offload", offload, "optimizer=cpu,params=cpu");
}

// num_processes is the whole job.
Status read_processes(const Fields& f, Request& out) {
  std::int64_t sizes = 1;
  for (const char* key : {"tp", "pp", "cp"}) {
    const auto at = out.keys.find(key);
    if (at != out.keys.end()) sizes *= std::clamp<std::int64_t>(whole_number(at->second), 1, 1 << 20);
  }
  const std::int64_t gpus = f.number("num_processes");
  f.value("num_machines");
  if (gpus > 0 && gpus % sizes != 0)
    return f.refused("num_processes",
                     "is " + std::to_string(gpus) + ", no multiple of tp x pp x cp = " + std::to_string(sizes), "");
  f.put_number(out, "dp", "num_processes", gpus / sizes);
  return Nothing{};
}

}  // namespace

Result<Request> import_accelerate(std::string_view text, const std::string& file) {
  Fields f("accelerate", file);
  if (Status s = read_yaml(text, file, f); !s) return s.error();
  Request out;
  read_rest_line(text, out);
  const std::string type = f.shown("distributed_type");
  for (const auto& [of, section] : {std::pair{"FSDP", "fsdp_config."}, std::pair{"DEEPSPEED", "deepspeed_config."},
                                    std::pair{"MEGATRON_LM", "megatron_lm_config."}}) {
    if (type != of) f.erase_section(section);
  }
  if (Status s = f.read(out); !s) return s.error();
  f.value("distributed_type");
  if (Status s = read_mixed_precision(f, out); !s) return s.error();
  for (const auto& [key, path] : {std::pair{"tp", kSizes + "tp_size"}, std::pair{"cp", kSizes + "cp_size"}}) {
    if (f.number(path) > 1) f.put_number(out, key, path, f.number(path));
  }
  if (type == "FSDP") read_fsdp(f, out);
  if (type == "DEEPSPEED")
    read_deepspeed_offload(f, "deepspeed_config.offload_optimizer_device", "deepspeed_config.offload_param_device",
                           out);
  if (type == "MULTI_GPU" || type == "NO") f.put(out, "zero", "distributed_type", "0");
  if (type == "MEGATRON_LM") {
    out.keys.emplace("stack", "megatron");
    const std::string path = "megatron_lm_config.megatron_lm_sequence_parallelism", sp = f.value(path);
    if (f.number("megatron_lm_config.megatron_lm_tp_degree") > 1) f.put(out, "sp", path, sp.empty() ? "false" : sp);
  }
  if (Status s = read_processes(f, out); !s) return s.error();
  out.not_read = f.not_read();
  return out;
}

}  // namespace preflop
