// A launch file of Hugging Face accelerate, FSDP version 2. Batch and sequence belong to the training script.
#include "src/adapt/export/export.hpp"
#include "src/adapt/precision_words.hpp"

namespace preflop {

namespace {

struct FlatYaml {
  Exported out;
  std::string section;
  void begin(const std::string& name) {
    section = name;
    out.text += name + ":\n";
  }
  void set(const std::string& key, const std::string& value) {
    out.options.emplace_back(section.empty() ? key : section + "." + key, value);
    out.text += (section.empty() ? "" : "  ") + key + ": " + value + "\n";
  }
  void set(const std::string& key, std::int64_t value) { set(key, std::to_string(value)); }
  void set(const std::string& key, bool value) { set(key, std::string(value ? "true" : "false")); }
};

}  // namespace

Result<Exported> export_accelerate(const Problem& p, const Request& request) {
  const Recipe& r = p.analysed.recipe;
  const Layout& l = r.layout;
  if (l.pp > 1 || l.ep > 1)
    return Error{"--to", std::string("accelerate has no ") + (l.pp > 1 ? "pp" : "ep"), "--pp 1 --ep 1"};
  if (l.zero == 1) return Error{"--to", "accelerate with FSDP has no zero 1", "--zero 3, or --to deepspeed"};
  FlatYaml y;
  const PrecisionWords* words = words_of_precision(r.precision);
  const bool fp8 = words != nullptr && *words->accelerate != 0;
  const bool sharded = l.zero >= 2;
  std::vector<std::string> carried = {"tp", "pp", "cp", "dp", "zero", "hsdp"};
  // Whole layers or none; without FSDP the training script decides.
  const bool layers = r.recompute.kind == RecomputeKind::none || r.recompute.kind == RecomputeKind::full;
  if (sharded && layers) carried.emplace_back("recompute");
  if (sharded && r.offload.params) carried.emplace_back("offload");
  if (words == nullptr || fp8) carried.emplace_back("precision");
  y.out.text = rest_line(p, request, carried, y.out.left_out);
  y.set("compute_environment", std::string("LOCAL_MACHINE"));
  y.set("distributed_type", std::string(sharded ? "FSDP" : "MULTI_GPU"));
  y.set("mixed_precision", r.precision == "fp32" ? std::string("'no'")
                           : fp8                 ? std::string("fp8")
                           : words != nullptr    ? std::string("bf16")
                                                 : r.precision);
  y.set("num_machines", p.cluster.nodes());
  y.set("num_processes", p.cluster.gpus);
  y.set("machine_rank", std::int64_t{0});
  if (fp8) {
    y.begin("fp8_config");
    y.set("fp8_backend", std::string(words->accelerate));
    if (r.precision == "fp8-delayed") y.set("fp8_format", std::string("HYBRID"));
  }
  if (!sharded) return std::move(y.out);
  y.begin("fsdp_config");
  y.set("fsdp_version", std::int64_t{2});
  y.set("fsdp_reshard_after_forward", l.zero == 3);
  y.set("fsdp_auto_wrap_policy", std::string("TRANSFORMER_BASED_WRAP"));
  y.set("fsdp_activation_checkpointing", r.recompute.kind == RecomputeKind::full);
  y.set("fsdp_offload_params", r.offload.params);
  y.set("fsdp_state_dict_type", std::string("SHARDED_STATE_DICT"));
  const std::int64_t shard = l.hsdp > 0 ? l.hsdp : l.dp;
  if (l.tp == 1 && l.cp == 1 && shard == l.dp) return std::move(y.out);
  y.begin("parallelism_config");
  y.set("parallelism_config_dp_replicate_size", l.dp / shard);
  y.set("parallelism_config_dp_shard_size", shard);
  y.set("parallelism_config_tp_size", l.tp);
  y.set("parallelism_config_cp_size", l.cp);
  return std::move(y.out);
}

}  // namespace preflop
