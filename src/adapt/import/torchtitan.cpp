// torchtitan: its older TOML, and its configurations in Python.
#include <algorithm>

#include "src/adapt/import/fields.hpp"
#include "src/adapt/import/import.hpp"
#include "src/adapt/import/python.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/base/text.hpp"
#include "src/base/toml_read.hpp"

namespace preflop {

namespace {

const std::string kParallelism = "parallelism.";

// for-loop, foreach, fused or, with moments in bf16, fused_opt_states_bf16.
void titan_optimizer(const Fields& f, Request& out) {
  const std::string path = "optimizer.implementation", way = f.value(path);
  const bool narrow = way == "fused_opt_states_bf16";
  if (!way.empty()) f.put(out, "optimizer_implementation", path, narrow ? "fused" : way);
  if (narrow) f.put(out, "moment_dtype", path, "bf16");
  if (f.on("optimizer.fused")) f.put(out, "optimizer_implementation", "optimizer.fused", "fused");
}

// Types of states. With parameters in bf16 their gradients and moments are in bf16, too: FSDP2 casts the reduced
// gradient to the parameter's type, torch.optim keeps moments in it.
void titan_types(const Fields& f, Request& out) {
  if (f.value("training.dtype") == "bf16") {
    for (const char* key : {"grad_dtype", "moment_dtype"}) out.keys.emplace(key, "bf16");
    out.keys.emplace("master_dtype", "none");
  }
  const std::string path = "training.mixed_precision_param", compute = f.value(path);
  if (!compute.empty()) f.put(out, "precision", path, compute);
  if (f.on("training.enable_cpu_offload"))
    f.put(out, "offload", "training.enable_cpu_offload", "optimizer=cpu,params=cpu");
}

void titan_sharding(const Fields& f, Request& out) {
  const std::string shard_path = kParallelism + "data_parallel_shard_degree";
  const std::int64_t replicas = std::max<std::int64_t>(1, f.number(kParallelism + "data_parallel_replicate_degree"));
  const std::int64_t shard = f.number(shard_path);
  if (replicas > 1 && shard > 1) f.put_number(out, "hsdp", shard_path, shard);
  f.put_number(out, "dp", shard_path, product({replicas, shard}));
  const bool never = f.value(kParallelism + "fsdp_reshard_after_forward") == "never";
  out.keys["zero"] = shard == 1 && replicas > 1 ? "0" : never ? "2" : "3";
}

// Layers of plain stages, where the file says how many fewer the first and the last one hold.
void titan_split(std::int64_t stages, std::int64_t each, std::int64_t first, std::int64_t last, Request& out) {
  constexpr std::int64_t kMost = 4096;
  if (stages < 2 || stages > kMost || each <= std::max(first, last) || first + last == 0) return;
  std::string split = std::to_string(each - first);
  for (std::int64_t i = 2; i < stages; ++i) split += "," + std::to_string(each);
  out.keys.emplace("layers_per_stage", split + "," + std::to_string(each - last));
}

// Without a count of layers a schedule of several stages a rank has two.
void titan_pipeline(const Fields& f, Request& out) {
  const std::string schedule_path = kParallelism + "pipeline_parallel_schedule",
                    layers_path = kParallelism + "pipeline_parallel_layers_per_stage",
                    first = kParallelism + "pipeline_parallel_first_stage_less_layers",
                    last = kParallelism + "pipeline_parallel_last_stage_less_layers";
  const std::string schedule = f.value(schedule_path);
  const std::int64_t layers = f.number(layers_path);
  const std::int64_t less = (f.has(first) ? f.number(first) : 1) + (f.has(last) ? f.number(last) : 1);
  if (f.number(kParallelism + "pipeline_parallel_degree") < 2) return;
  f.put(out, "schedule", schedule_path, schedule.empty() ? "1f1b" : schedule);
  if (schedule != "interleaved") {
    out.keys["vpp"] = "1";
    titan_split(f.number(kParallelism + "pipeline_parallel_degree"), layers, f.number(first), f.number(last), out);
  } else if (!out.keys.contains("vpp")) {
    f.put(out, "vpp", layers > 0 ? layers_path : schedule_path, "2");
    out.unsettled.layers_a_chunk = layers;
    out.unsettled.less_layers = less;
  }
}

void titan_parallelism(const Fields& f, Request& out) {
  titan_sharding(f, out);
  titan_pipeline(f, out);
  const bool tensor = f.number(kParallelism + "tensor_parallel_degree") > 1;
  if (tensor) out.keys["sp"] = f.value(kParallelism + "enable_sequence_parallel") == "false" ? "false" : "true";
  for (const char* path : {"compile.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel"}) {
    if (f.on(path) && tensor) f.put(out, "tp_overlap", path, "true");
  }
}

// Steps of the run, where the file says what a step is.
void titan_steps(const Fields& f, const Request& given, std::int64_t tokens_a_step, Request& out) {
  const std::int64_t steps = f.number("training.steps");
  if (!given.keys.contains("tokens")) f.put_number(out, "tokens", "training.steps", product({steps, tokens_a_step}));
}

// Converters of linear layers, wherever the file gives them to the registry.
void read_converters(std::string_view text, Request& out) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view code = line.substr(0, line.find('#'));
    for (const PrecisionWords& w : precision_words()) {
      const bool used =
          *w.titan != 0 && code.find(std::string(w.titan) + "LinearConverter.Config(") != std::string_view::npos;
      if (used) out.keys["precision"] = w.precision;
    }
  }
}

// Does the name of a setting say that it cuts the model or the batch, or that it changes the numerics of products?
bool decides(const std::string& path) {
  constexpr std::string_view kEnds[] = {"_degree",     "batch_size",   "microbatches",         "layers_per_stage",
                                        "less_layers", "split_points", "enable_float8_linear", "model.converters"};
  return std::any_of(std::begin(kEnds), std::end(kEnds), [&](std::string_view end) { return path.ends_with(end); });
}

// Names moved between the releases whose configurations are TOML. One that decides something, and that is not read, is
// refused; off, or of size 1, it decides nothing.
Status refuse_unread(const Fields& f) {
  static const std::vector<std::string> kNeutral = {"", "1", "0", "-1", "false"};
  for (const std::string& path : f.unknown()) {
    const std::string value = f.shown(path), moved = kParallelism + path.substr(path.find('.') + 1);
    const bool neutral = std::find(kNeutral.begin(), kNeutral.end(), value) != kNeutral.end();
    if (!decides(path) || neutral || readable("torchtitan", path) != nullptr) continue;
    return Error{f.line(path), path + " = " + value + " is not read",
                 readable("torchtitan", moved) != nullptr ? moved : "flags that say it, and a file without it"};
  }
  return Nothing{};
}

void read_table(const TomlTable& table, const std::string& prefix, std::size_t file_size, int depth, Fields& f) {
  constexpr int kDeepest = 8;
  for (const std::string& key : table.keys()) {
    if (const auto inner = table.find<TomlTable>(key); inner && inner->has_value() && depth < kDeepest) {
      read_table(**inner, prefix + key + ".", file_size, depth + 1, f);
      continue;
    }
    const auto value = table.scalar(key);
    const auto list = table.find<std::vector<std::string>>(key);
    std::string words = value ? *value : list ? "" : "[..]";
    if (!value && list && list->has_value()) {
      for (const std::string& word : **list) words += (words.empty() ? "" : ",") + word;
    }
    const std::string where = table.where(key).substr(file_size);  // ":line:column"
    f.set(prefix + key, words,
          where.empty() ? 0 : static_cast<std::size_t>(whole_number(where.substr(1, where.find(':', 1) - 1))));
  }
}

}  // namespace

Result<Request> import_torchtitan_python(std::string_view text, const std::string& file) {
  Fields f("torchtitan", file);
  read_assignments(text, f);
  Request out;
  read_rest_line(text, out);
  const Request rest = out;
  if (!f.has("parallelism.tensor_parallel_degree") && !f.has("parallelism.data_parallel_shard_degree"))
    return Error{"--from", text::quoted(file) + " sets no parallel size",
                 "config.parallelism.... = N, or cfg.model.... = N"};
  if (Status s = f.read(out); !s) return s.error();
  titan_parallelism(f, out);
  const std::int64_t seq = f.number("training.max_context_length"),
                     step = f.number("training.num_tokens_per_train_step");
  const std::string micro_path = "training.num_tokens_per_microbatch_per_dp_rank",
                    pipeline_path = kParallelism + "num_pp_microbatches";
  if (seq > 0) {
    f.put_number(out, "micro_batch", micro_path, f.number(micro_path) / seq);
    f.put_number(out, "global_batch", "training.num_tokens_per_train_step", step / seq);
  }
  titan_steps(f, rest, step, out);
  if (!f.has("activation_checkpoint")) out.keys["recompute"] = "selective";
  titan_types(f, out);
  read_converters(text, out);
  titan_optimizer(f, out);
  out.keys.emplace("stack", "torchtitan");
  // Micro-batches of one pass through the pipeline; the program takes all of a step's.
  const std::int64_t passes = f.number(pipeline_path),
                     replicas = f.number(kParallelism + "data_parallel_replicate_degree"),
                     dp = product(
                         {f.number(kParallelism + "data_parallel_shard_degree"), std::max<std::int64_t>(1, replicas)});
  if (out.keys.contains("schedule") && passes > 0 && dp > 0 && step > 0 &&
      product({passes, dp, f.number(micro_path)}) != step)
    f.leave(pipeline_path);
  out.not_read = f.not_read();
  return out;
}

Result<Request> import_torchtitan(std::string_view text, const std::string& file) {
  const auto root = TomlTable::parse(text, file);
  if (!root) return root.error();
  Fields f("torchtitan", file);
  read_table(*root, "", file.size(), 0, f);
  Request out;
  read_rest_line(text, out);
  const Request rest = out;
  if (!f.has("training.local_batch_size") && !f.has("training.batch_size") && !f.has("training.seq_len"))
    return Error{"--from", text::quoted(file) + " has no [training] of torchtitan", "local_batch_size, seq_len"};
  if (Status s = f.read(out); !s) return s.error();
  if (Status s = refuse_unread(f); !s) return s.error();
  titan_parallelism(f, out);
  const std::string path = f.has("training.local_batch_size") ? "training.local_batch_size" : "training.batch_size",
                    micro_path = kParallelism + "pipeline_parallel_microbatch_size";
  const std::int64_t local = f.number(path), micro = std::max<std::int64_t>(1, f.number(micro_path));
  f.put_number(out, "global_batch", "training.global_batch_size", f.number("training.global_batch_size"));
  // A pipeline cuts a rank's batch into micro-batches, of one sequence where the file does not say more.
  const bool cut = out.keys.contains("schedule") && f.has("training.local_batch_size");
  f.put_number(out, "micro_batch", cut && f.has(micro_path) ? micro_path : path, cut ? micro : local);
  if (cut && local > micro && !out.keys.contains("global_batch")) f.leave(path);
  titan_steps(f, rest, product({f.number("training.global_batch_size"), f.number("training.seq_len")}), out);
  const std::string mode = f.value("activation_checkpoint.mode"),
                    option = f.value("activation_checkpoint.selective_ac_option");
  const bool layers = mode == "selective" && !option.empty() && option != "op";  // every nth layer
  if (!mode.empty()) f.put(out, "recompute", "activation_checkpoint.mode", layers ? "selective-layer:" + option : mode);
  titan_types(f, out);
  titan_optimizer(f, out);
  const std::string name = f.value("model.name"), flavor = f.value("model.flavor");
  if (out.model.empty() && !name.empty() && !flavor.empty()) out.model = name + "-" + lowered(flavor);
  out.keys.emplace("stack", "torchtitan");
  out.not_read = f.not_read();
  return out;
}

}  // namespace preflop
