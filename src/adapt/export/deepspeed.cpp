// A DeepSpeed configuration. JSON has no comments: what it cannot carry is only named.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/adapt/export/export.hpp"

namespace preflop {

namespace {

// Megatron-DeepSpeed cuts tensors and stages by options of its own script.
bool script_cuts(const Recipe& r) { return r.stack == "megatron-deepspeed"; }

// What changes the run and stands nowhere in the file is refused; the rest belongs to the training script.
Status says_in_json(const Recipe& r) {
  const Layout& l = r.layout;
  const std::string lacks =
      l.pp > 1 && !script_cuts(r) ? "pipeline (the training script has it)"
      : l.cp > 1                  ? "context parallelism"
      : l.etp > 1                 ? "etp above 1"
      : l.hsdp > 0 && l.zero != 3 ? "hsdp but of zero 3"
      : r.offload.some_layers() || (r.offload.activations > 0 && r.recompute.kind != RecomputeKind::full)
          ? "offloading of activations but of whole layers' inputs"
      : r.offload.params && l.zero != 3                                   ? "offloading of weights but of zero 3"
      : r.offload.optimizer > 0 && l.zero == 0                            ? "offloading without zero"
      : r.offload.optimizer > 0 && r.offload.optimizer < 1 && l.zero != 3 ? "offloading of a share but of zero 3"
                                                                          : "";
  if (!lacks.empty())
    return Error{"--to", "deepspeed's JSON has no " + lacks,
                 "a plan of --pp 1 --cp 1 --etp 1 and --precision bf16, fp16 or fp32"};
  return Nothing{};
}

}  // namespace

Result<Exported> export_deepspeed(const Problem& p, const Request& request) {
  const Recipe& r = p.analysed.recipe;
  const Layout& l = r.layout;
  if (Status s = says_in_json(r); !s) return s.error();
  Exported out;
  out.comments = false;
  nlohmann::json json = {
      {"train_micro_batch_size_per_gpu", r.micro_batch},
      {"gradient_accumulation_steps", r.micro_batches()},
      {"train_batch_size", r.global_batch},
      {"gradient_clipping", 1.0},
      {"zero_optimization", {{"stage", l.zero}, {"overlap_comm", true}, {"contiguous_gradients", true}}}};
  if (r.precision == "bf16") json["bf16"] = {{"enabled", true}};
  if (r.precision == "fp16") json["fp16"] = {{"enabled", true}};
  if (r.precision == "bf16") json["data_types"] = {{"grad_accum_dtype", width(r.grad_dtype) == 4 ? "fp32" : "bf16"}};
  nlohmann::json& zero = json["zero_optimization"];
  if (l.zero == 3 && l.hsdp > 0) zero["mics_shard_size"] = l.hsdp;  // hpZ shards no gradients and no states
  if (r.offload.optimizer > 0) zero["offload_optimizer"] = {{"device", "cpu"}};
  if (r.offload.optimizer > 0 && r.offload.optimizer < 1) zero["offload_optimizer"]["ratio"] = r.offload.optimizer;
  if (r.offload.params) zero["offload_param"] = {{"device", "cpu"}};
  if (l.tp > 1 && !script_cuts(r)) json["tensor_parallel"] = {{"autotp_size", l.tp}};
  if (l.ep > 1) json["expert_parallel"] = {{"enabled", true}, {"autoep_size", l.ep}};
  if (r.offload.activations > 0) json["activation_checkpointing"]["cpu_checkpointing"] = true;
  // How many checkpoints there are says that every layer is one; the model's code makes them.
  const bool whole_layers = r.recompute.kind == RecomputeKind::full && r.recompute.which == RecomputeLayers::all;
  if (whole_layers) {
    std::int64_t most = 0;
    for (const Stage& stage : p.analysed.stages) most = std::max(most, stage.layer_count());
    json["activation_checkpointing"]["number_checkpoints"] = most;
  }
  const auto remember = [&](const auto& self, const nlohmann::json& value, const std::string& path) -> void {
    if (value.is_object()) {
      for (const auto& [key, inner] : value.items()) self(self, inner, path.empty() ? key : path + "." + key);
      return;
    }
    out.options.emplace_back(path, value.dump());
  };
  remember(remember, json, "");
  std::vector<std::string> carried = {"ep",          "dp",           "zero",      "hsdp",      "offload",
                                      "micro_batch", "global_batch", "precision", "grad_dtype"};
  if (!script_cuts(r) || l.tp == 1) carried.emplace_back("tp");
  if (whole_layers) carried.emplace_back("recompute");
  rest_line(p, request, carried, out.left_out);
  out.text = json.dump(2) + "\n";
  return out;
}

}  // namespace preflop
