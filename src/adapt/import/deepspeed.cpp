// DeepSpeed's JSON.
#include <algorithm>

#include "src/adapt/import/launchers.hpp"
#include "src/base/decimal.hpp"
#include "src/base/json_read.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

// Line of a path: its keys, one behind the other.
std::size_t line_of_path(std::string_view text, std::string_view path) {
  std::size_t at = 0;
  while (!path.empty() && at != std::string_view::npos) {
    const std::string_view key = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(key.size() + 1, path.size()));
    at = text.find("\"" + std::string(key) + "\"", at);
  }
  if (at == std::string_view::npos) return 0;
  return static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) + 1;
}

void flatten(const Json& json, const std::string& path, std::string_view text, Fields& out) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) flatten(value, path.empty() ? key : path + "." + key, text, out);
    return;
  }
  std::string value;
  if (const auto* s = json.get_ptr<const std::string*>())
    value = *s;
  else if (const auto* d = json.get_ptr<const double*>(); d != nullptr && json.is_number_float())
    value = shortest(*d);
  else
    value = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  out.set(path, value, line_of_path(text, path));
}

// Both at once DeepSpeed refuses; neither is fp32. "auto": the training script says it.
Status deepspeed_precision(const Fields& f, Request& out) {
  const std::string wide = f.has("bfloat16.enabled") ? "bfloat16.enabled" : "bf16.enabled", half = "fp16.enabled";
  const bool open = f.shown(wide).empty() ? f.has(wide) : false;
  const bool also_open = f.shown(half).empty() ? f.has(half) : false;
  const bool bf16 = f.on(wide), fp16 = f.on(half);
  if (bf16 && fp16) return f.refused(half, "is true beside " + wide, "one of the two");
  if (bf16 || fp16)
    f.put(out, "precision", bf16 ? wide : half, bf16 ? "bf16" : "fp16");
  else if (!open && !also_open)
    out.keys["precision"] = "fp32";
  return Nothing{};
}

// train_batch_size = micro-batch x accumulation x data-parallel ranks.
Status deepspeed_batch(const Fields& f, Request& out) {
  const std::string all = "train_batch_size", steps_path = "gradient_accumulation_steps";
  const std::int64_t micro = f.number("train_micro_batch_size_per_gpu"), steps = f.number(steps_path),
                     batch = f.number(all);
  if (steps > 0 && (micro == 0 || batch == 0)) f.leave(steps_path);
  if (steps == 0 || micro == 0 || batch == 0) return Nothing{};
  const std::int64_t each = product({micro, steps});
  if (each == 0 || batch % each != 0)
    return f.refused(all,
                     "is " + std::to_string(batch) + ", no multiple of train_micro_batch_size_per_gpu " +
                         std::to_string(micro) + " x gradient_accumulation_steps " + std::to_string(steps),
                     "their product times the data-parallel ranks");
  f.put_number(out, "dp", all, batch / each);
  return Nothing{};
}

}  // namespace

void read_deepspeed_offload(const Fields& f, const std::string& optimizer, const std::string& params, Request& out) {
  const std::string ratio = f.value("zero_optimization.offload_optimizer.ratio");
  const bool older = f.on("zero_optimization.cpu_offload"), older_params = f.on("zero_optimization.cpu_offload_param");
  std::string offload;
  if (f.value(optimizer) == "cpu" || older)
    offload = std::string("optimizer") + (ratio.empty() || ratio == "1" ? "" : "=" + ratio);
  if (f.value(params) == "cpu" || older_params) offload += offload.empty() ? "params" : ",params";
  if (!offload.empty())
    f.put(out, "offload",
          f.has(optimizer) ? optimizer
          : f.has(params)  ? params
                           : "zero_optimization.cpu_offload",
          offload);
  out.unsettled.framework = "DeepSpeed";
}

Result<Request> import_deepspeed(std::string_view text, const std::string& file) {
  const auto json = read_json(text, file);
  if (!json) return json.error();
  Fields f("deepspeed", file);
  flatten(*json, "", text, f);
  Request out;
  if (Status s = f.read(out); !s) return s.error();
  if (Status s = deepspeed_batch(f, out); !s) return s.error();
  read_deepspeed_offload(f, "zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device",
                         out);
  if (f.on("activation_checkpointing.cpu_checkpointing")) {
    std::string& offload = out.keys["offload"];
    offload += (offload.empty() ? "" : ",") + std::string("activations");
    out.keys["recompute"] = "full";  // what waits on the host are checkpoints
  }
  if (f.number("activation_checkpointing.number_checkpoints") > 0)
    f.put(out, "recompute", "activation_checkpointing.number_checkpoints", "full");
  const std::string optimizer = f.value("optimizer.type"), momentum = f.value("optimizer.params.momentum");
  const bool moves = !momentum.empty() && momentum != "0";
  if (!optimizer.empty())
    f.put(out, "optimizer", "optimizer.type", optimizer == "sgd" && moves ? "sgd-momentum" : optimizer);
  if (f.has("expert_parallel.autoep_size") && f.has("expert_parallel.enabled") && !f.on("expert_parallel.enabled"))
    out.keys.erase("ep");
  if (Status s = deepspeed_precision(f, out); !s) return s.error();
  out.not_read = f.not_read();
  return out;
}

}  // namespace preflop
