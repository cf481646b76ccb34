// torchtitan: its older TOML, and configurations in Python (its own and Megatron-Bridge's).
#include <algorithm>

#include "src/adapt/import/import.hpp"
#include "src/adapt/optimizer_words.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/base/text.hpp"
#include "src/base/toml_read.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

using Flat = std::map<std::string, std::string>;

std::string at(const Flat& from, const std::string& path) {
  const auto found = from.find(path);
  return found == from.end() ? "" : found->second;
}

// optimizer.implementation: for-loop, foreach, fused or, with moments in bf16, fused_opt_states_bf16.
void read_implementation(const Flat& from, Request& out) {
  const std::string way = at(from, "optimizer.implementation");
  if (way.empty()) return;
  const bool narrow = way == "fused_opt_states_bf16";
  out.keys["optimizer_implementation"] = narrow ? "fused" : way;
  if (narrow) out.keys["moment_dtype"] = "bf16";
}

// A number, or a product of numbers: "128 * 8192".
std::int64_t whole(const Flat& from, const std::string& path) {
  std::int64_t product = 1, part = 0;
  bool digits = false;
  for (const char c : at(from, path)) {
    if (c >= '0' && c <= '9') {
      if (part > (std::int64_t{1} << 50)) return 0;
      part = part * 10 + (c - '0');
      digits = true;
    } else if (c == '*') {
      if (part > 0 && product > (std::int64_t{1} << 53) / part) return 0;
      product *= part;
      part = 0;
    } else if (c != ' ' && c != '_') {
      return 0;
    }
  }
  if (!digits || (part > 0 && product > (std::int64_t{1} << 53) / part)) return 0;
  return product * part;
}

void put(Request& out, const char* key, std::int64_t value) {
  if (value > 0) out.keys[key] = std::to_string(value);
}

std::string schedule_of(const std::string& name) {
  if (name == "GPipe") return "gpipe";
  return name == "Interleaved1F1B" ? "interleaved" : "1f1b";
}

void read_degrees(const Flat& f, Request& out) {
  put(out, "tp", whole(f, "parallelism.tensor_parallel_degree"));
  put(out, "pp", whole(f, "parallelism.pipeline_parallel_degree"));
  put(out, "cp", whole(f, "parallelism.context_parallel_degree"));
  put(out, "ep", whole(f, "parallelism.expert_parallel_degree"));
  const std::int64_t replicas = std::max<std::int64_t>(1, whole(f, "parallelism.data_parallel_replicate_degree"));
  const std::int64_t shard = whole(f, "parallelism.data_parallel_shard_degree");
  if (replicas > 1 && shard > 1) put(out, "hsdp", shard);
  if (shard > 0) put(out, "dp", replicas * shard);
  const std::string reshard = at(f, "parallelism.fsdp_reshard_after_forward");
  if (shard == 1 && replicas > 1)
    out.keys["zero"] = "0";
  else if (reshard == "never")
    out.keys["zero"] = "2";
  else
    out.keys["zero"] = "3";
  if (whole(f, "parallelism.pipeline_parallel_degree") > 1) {
    const std::string schedule = at(f, "parallelism.pipeline_parallel_schedule");
    out.keys["schedule"] = schedule_of(schedule);
    if (schedule != "Interleaved1F1B") out.keys["vpp"] = "1";
  }
  if (whole(f, "parallelism.tensor_parallel_degree") > 1) {
    const std::string sp = at(f, "parallelism.enable_sequence_parallel");
    out.keys["sp"] = sp == "False" || sp == "false" ? "false" : "true";
  }
}

// "[\"a\", \"b\"]" as "a,b".
std::string words_of_list(const std::string& list) {
  std::string out;
  for (const char c : list) {
    if (c != '[' && c != ']' && c != '"' && c != '\'' && c != ' ') out += c;
  }
  return out;
}

// CUDA graphs, exchanges and the optimizer. A switch that is off is said, too: the remark may know it otherwise.
void read_bridge_software(const Flat& f, Request& out) {
  const std::string graphs = at(f, "model.cuda_graph_impl"), parts = words_of_list(at(f, "model.cuda_graph_modules"));
  if (!graphs.empty()) out.keys["cuda_graph"] = graphs;
  if (!parts.empty() && (graphs == "local" || graphs == "transformer_engine")) out.keys["cuda_graph_scope"] = parts;
  for (const auto& [path, key] :
       {std::pair("model.tp_comm_overlap", "tp_overlap"), std::pair("comm_overlap.tp_comm_overlap", "tp_overlap"),
        std::pair("model.overlap_moe_expert_parallel_comm", "ep_overlap"),
        std::pair("comm_overlap.overlap_moe_expert_parallel_comm", "ep_overlap"),
        std::pair("ddp.overlap_grad_reduce", "dp_overlap")}) {
    if (const std::string value = at(f, path); value == "True" || value == "False")
      out.keys[key] = value == "True" ? "true" : "false";
  }
  const std::string exchange = at(f, "model.cp_comm_type");
  if (exchange == "p2p" || exchange == "a2a") out.keys["cp_comm"] = exchange;
  const std::string type = at(f, "model.moe_token_dispatcher_type");
  const std::string way = type == "flex" ? at(f, "model.moe_flex_dispatcher_backend") : type;
  const std::vector<std::string> known = dispatcher_names();
  if (std::find(known.begin(), known.end(), way) != known.end()) out.keys["dispatcher"] = way;
  const std::string capacity = at(f, "model.moe_expert_capacity_factor");
  if (!capacity.empty() && capacity != "None") out.keys["capacity_factor"] = capacity;
  const std::string optimizer = optimizer_of_megatron(at(f, "optimizer.optimizer")),
                    momentum = at(f, "optimizer.sgd_momentum");
  const bool still = !momentum.empty() && momentum.find_first_not_of("0.") == std::string::npos;
  if (!optimizer.empty()) out.keys["optimizer"] = optimizer == "sgd-momentum" && still ? "sgd" : optimizer;
}

// Attention, loss, further tokens, and what gradients, moments and master weights are kept in.
void read_bridge_kernels(const Flat& f, Request& out) {
  const auto on = [&](const char* path) { return at(f, path) == "True"; };
  const std::string backend = at(f, "model.attention_backend");
  if (backend.ends_with(".flash")) out.keys.emplace("attention", "fa2");
  if (backend.ends_with(".fused")) out.keys["attention"] = "cudnn";
  if (backend.ends_with(".unfused") || backend.ends_with(".local")) out.keys["attention"] = "unfused";
  if (f.contains("model.cross_entropy_loss_fusion"))
    out.keys.emplace("loss", on("model.cross_entropy_loss_fusion") ? "fused" : "plain");
  if (on("model.fp8_dot_product_attention")) out.keys["fp8_attention"] = "true";
  if (on("model.use_transformer_engine_op_fuser")) out.keys["fused_experts"] = "true";
  put(out, "mtp", whole(f, "model.mtp_num_layers"));
  // In bf16 gradients are summed in fp32 unless the file says otherwise; Megatron-FSDP keeps the parameters' type.
  if (at(f, "mixed_precision").find("bf16_") != std::string::npos)
    out.keys.emplace("grad_dtype",
                     on("ddp.use_megatron_fsdp") || at(f, "ddp.grad_reduce_in_fp32") == "False" ? "bf16" : "fp32");
  for (const auto& [path, key] :
       {std::pair("ddp.megatron_fsdp_main_grads_dtype", "grad_dtype"),
        std::pair("optimizer.exp_avg_dtype", "moment_dtype"), std::pair("optimizer.main_params_dtype", "master_dtype"),
        std::pair("ddp.megatron_fsdp_main_params_dtype", "master_dtype")}) {
    for (const auto& [type, word] : {std::pair("torch.float32", "fp32"), std::pair("torch.bfloat16", "bf16"),
                                     std::pair("torch.float16", "fp16")}) {
      if (at(f, path) == type) out.keys[key] = word;
    }
  }
  const std::int64_t groups = whole(f, "ddp.num_distributed_optimizer_instances"),
                     stages = std::max<std::int64_t>(1, whole(f, "model.pipeline_model_parallel_size")),
                     tensors = std::max<std::int64_t>(1, whole(f, "model.tensor_model_parallel_size"));
  std::int64_t gpus = 0;  // of "64xh100-sxm"
  for (const char c : out.on) {
    if (c < '0' || c > '9' || gpus > 100'000'000) break;
    gpus = gpus * 10 + (c - '0');
  }
  if (groups > 1 && gpus >= groups * stages * tensors)
    out.keys.emplace("hsdp", std::to_string(gpus / (groups * stages * tensors)));
}

void read_bridge(const Flat& f, Request& out) {
  put(out, "tp", whole(f, "model.tensor_model_parallel_size"));
  put(out, "pp", whole(f, "model.pipeline_model_parallel_size"));
  put(out, "vpp", whole(f, "model.virtual_pipeline_model_parallel_size"));
  put(out, "cp", whole(f, "model.context_parallel_size"));
  put(out, "ep", whole(f, "model.expert_model_parallel_size"));
  put(out, "etp", whole(f, "model.expert_tensor_parallel_size"));
  put(out, "seq", whole(f, "model.seq_length"));
  put(out, "micro_batch", whole(f, "train.micro_batch_size"));
  put(out, "global_batch", whole(f, "train.global_batch_size"));
  if (whole(f, "model.tensor_model_parallel_size") > 1)
    out.keys["sp"] = at(f, "model.sequence_parallel") == "True" ? "true" : "false";
  const std::string strategy = at(f, "ddp.data_parallel_sharding_strategy");
  out.keys["zero"] = strategy == "optim"                                 ? "1"
                     : strategy == "optim_grads"                         ? "2"
                     : strategy == "optim_grads_params"                  ? "3"
                     : at(f, "ddp.use_distributed_optimizer") == "False" ? "0"
                                                                         : "1";
  const std::string granularity = at(f, "model.recompute_granularity");
  const std::string modules = words_of_list(at(f, "model.recompute_modules"));
  out.keys["recompute"] = granularity == "full"
                              ? whole_layers(at(f, "model.recompute_method"), at(f, "model.recompute_num_layers"))
                          : granularity != "selective"                ? "none"
                          : modules.empty() || modules == "core_attn" ? "selective"
                                                                      : modules;
  std::string offload;
  if (at(f, "optimizer.optimizer_cpu_offload") == "True") {
    const std::string share = at(f, "optimizer.optimizer_offload_fraction");
    offload = "optimizer=" + (share.empty() ? "1" : share);
  }
  if (whole(f, "model.cpu_offloading_num_layers") > 0)
    offload += (offload.empty() ? "activations=" : ",activations=") + at(f, "model.cpu_offloading_num_layers");
  if (!offload.empty()) out.keys["offload"] = offload;
  read_layout(at(f, "model.pipeline_model_parallel_layout"), whole(f, "model.pipeline_model_parallel_size"), out);
  read_bridge_software(f, out);
  read_bridge_kernels(f, out);
  out.keys.emplace("stack", at(f, "ddp.use_megatron_fsdp") == "True" ? "megatron-fsdp" : "megatron");
}

// A name that mixed_precision takes; a configuration of its own is no name.
Status read_bridge_precision(const Flat& f, const std::string& file, Request& out) {
  std::string name = at(f, "mixed_precision");
  if (const std::size_t open = name.find("(\""); open != std::string::npos && name.ends_with("\")"))
    name = name.substr(open + 2, name.size() - open - 4);  // of get_mixed_precision_config("..")
  const PrecisionWords* words = precision_called(&PrecisionWords::bridge, name);
  if (words != nullptr || name == "fp16_mixed" || name == "None")
    out.keys["precision"] = words != nullptr ? words->precision : name == "None" ? "fp32" : "fp16";
  else if (name == "bf16_mixed")
    out.keys.emplace("precision", "bf16");
  else if (!name.empty())
    return Error{"--from", "mixed_precision of " + text::quoted(file) + " is " + text::quoted(name),
                 "bf16_mixed, fp16_mixed, " + text::list(all_words(&PrecisionWords::bridge))};
  return Nothing{};
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

// Weights, and with them gradients and states, in bf16; the loss; the exchange of tensor parallelism beside compute.
void read_python_training(const Flat& f, Request& out) {
  if (at(f, "training.dtype") == "bfloat16") {
    for (const char* key : {"weight_dtype", "grad_dtype", "moment_dtype"}) out.keys.emplace(key, "bf16");
    out.keys.emplace("master_dtype", "none");
  }
  if (at(f, "compile.enable_async_tensor_parallel") == "True") out.keys["tp_overlap"] = "true";
  // Where the file says how many layers fewer the first and the last stage hold, and there are no virtual ones.
  const std::string path = "parallelism.pipeline_parallel_";
  const std::int64_t stages = whole(f, path + "degree"), each = whole(f, path + "layers_per_stage"),
                     first = whole(f, path + "first_stage_less_layers"),
                     last = whole(f, path + "last_stage_less_layers");
  const bool plain = at(f, path + "schedule") == "1F1B" || at(f, path + "schedule") == "GPipe";
  if (plain && stages > 1 && stages <= 4096 && each > std::max(first, last) && first + last > 0 &&
      f.contains(path + "first_stage_less_layers") && f.contains(path + "last_stage_less_layers")) {
    std::string split = std::to_string(each - first);
    for (std::int64_t i = 2; i < stages; ++i) split += "," + std::to_string(each);
    out.keys.emplace("layers_per_stage", split + "," + std::to_string(each - last));
  }
  const std::string loss = at(f, "loss");
  if (loss.starts_with("ChunkedLossWrapper")) out.keys["loss"] = "chunked";
  if (loss.starts_with("CrossEntropyLoss")) out.keys["loss"] = "plain";
}

// Does the name of a setting say that it cuts the model or the batch, or that it changes the numerics of products?
bool decides(const std::string& path) {
  constexpr std::string_view kEnds[] = {"_degree",     "batch_size",   "microbatches",         "layers_per_stage",
                                        "less_layers", "split_points", "enable_float8_linear", "model.converters"};
  return std::any_of(std::begin(kEnds), std::end(kEnds), [&](std::string_view end) { return path.ends_with(end); });
}

// Names moved between the releases whose configurations are TOML. One that decides something, and that is not read, is
// refused; off, or of size 1, it decides nothing.
Status refuse_unread(const Flat& f, const std::string& file) {
  static const std::vector<std::string> kRead = {"parallelism.data_parallel_replicate_degree",
                                                 "parallelism.data_parallel_shard_degree",
                                                 "parallelism.tensor_parallel_degree",
                                                 "parallelism.pipeline_parallel_degree",
                                                 "parallelism.context_parallel_degree",
                                                 "parallelism.expert_parallel_degree",
                                                 "training.local_batch_size",
                                                 "training.batch_size",
                                                 "training.global_batch_size"};
  static const std::vector<std::string> kNeutral = {"", "1", "0", "-1", "false"};
  // How a run is watched, checked and started: nothing of its layout.
  static const std::vector<std::string> kApart = {"validation", "metrics", "checkpoint", "profiling", "comm", "job"};
  const auto among = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  for (const auto& [path, value] : f) {
    const std::string section = path.substr(0, path.find('.')), key = path.substr(section.size() + 1);
    if (!decides(path) || among(kRead, path) || among(kNeutral, value) || among(kApart, section)) continue;
    const std::string moved = "parallelism." + key;
    return Error{"--from", path + " = " + value + " of " + text::quoted(file) + " is not read",
                 among(kRead, moved) ? moved : "flags that say it, and a file without it"};
  }
  return Nothing{};
}

// A list as one value, so that it can be named: empty where it is.
std::string list_words(const TomlTable& table, const std::string& key) {
  const auto words = table.find<std::vector<std::string>>(key);
  if (!words || !words->has_value()) return "";
  std::string out;
  for (const std::string& word : **words) out += (out.empty() ? "" : ",") + word;
  return out;
}

}  // namespace

Result<Request> import_python(std::string_view text, const std::string& file) {
  Flat f;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos || line[begin] == '#') continue;
    const std::size_t equals = line.find(" = ");
    const bool ours = line.compare(begin, 7, "config.") == 0 || line.compare(begin, 4, "cfg.") == 0;
    if (!ours || equals == std::string::npos) continue;
    const std::size_t dot = line.find('.', begin);
    std::string value = line.substr(equals + 3);
    if (const std::size_t hash = value.find("  #"); hash != std::string::npos) value.resize(hash);
    while (!value.empty() && (value.back() == ' ' || value.back() == '\r')) value.pop_back();
    if (value.size() > 1 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    f[line.substr(dot + 1, equals - dot - 1)] = value;
  }
  Request out;
  read_rest_line(text, out);
  if (f.contains("model.tensor_model_parallel_size")) {
    read_bridge(f, out);
    if (Status s = read_bridge_precision(f, file, out); !s) return s.error();
    return out;
  }
  if (!f.contains("parallelism.tensor_parallel_degree") && !f.contains("parallelism.data_parallel_shard_degree"))
    return Error{"--from", text::quoted(file) + " sets no parallel size",
                 "config.parallelism.... = N, or cfg.model.... = N"};
  read_degrees(f, out);
  const std::int64_t seq = whole(f, "training.max_context_length");
  put(out, "seq", seq);
  if (seq > 0) {
    put(out, "micro_batch", whole(f, "training.num_tokens_per_microbatch_per_dp_rank") / seq);
    put(out, "global_batch", whole(f, "training.num_tokens_per_train_step") / seq);
  }
  const std::string checkpoint = at(f, "activation_checkpoint");
  out.keys["recompute"] = checkpoint == "None" ? "none" : checkpoint.starts_with("FullAC") ? "full" : "selective";
  if (at(f, "training.enable_cpu_offload") == "True") out.keys["offload"] = "optimizer=cpu,params=cpu";
  if (at(f, "training.mixed_precision_param") == "float32") out.keys["precision"] = "fp32";
  read_converters(text, out);
  if (f.contains("compile.enable")) out.keys["compile"] = at(f, "compile.enable") == "True" ? "true" : "false";
  read_implementation(f, out);
  read_python_training(f, out);
  out.keys.emplace("stack", "torchtitan");
  return out;
}

Result<Request> import_torchtitan(std::string_view text, const std::string& file) {
  const auto root = TomlTable::parse(text, file);
  if (!root) return root.error();
  Flat f;
  for (const std::string& section : root->keys()) {
    const auto table = root->find<TomlTable>(section);
    if (!table || !table->has_value()) continue;
    for (const std::string& key : (*table)->keys()) {
      const auto value = (*table)->scalar(key);
      f[section + "." + key] = value ? *value : list_words(**table, key);
    }
  }
  Request out;
  read_rest_line(text, out);
  const bool known =
      f.contains("training.local_batch_size") || f.contains("training.batch_size") || f.contains("training.seq_len");
  if (!known)
    return Error{"--from", text::quoted(file) + " has no [training] of torchtitan", "local_batch_size, seq_len"};
  if (Status s = refuse_unread(f, file); !s) return s.error();
  read_degrees(f, out);
  if (whole(f, "parallelism.data_parallel_shard_degree") == 0) out.keys.erase("dp");
  put(out, "seq", whole(f, "training.seq_len"));
  put(out, "micro_batch", std::max(whole(f, "training.local_batch_size"), whole(f, "training.batch_size")));
  put(out, "global_batch", whole(f, "training.global_batch_size"));
  const std::string mode = at(f, "activation_checkpoint.mode");
  const std::string option = at(f, "activation_checkpoint.selective_ac_option");
  const bool layers = mode == "selective" && !option.empty() && option != "op";  // every nth layer
  if (!mode.empty()) out.keys["recompute"] = layers ? "selective-layer:" + option : mode;
  if (at(f, "training.enable_cpu_offload") == "true") out.keys["offload"] = "optimizer=cpu,params=cpu";
  read_implementation(f, out);
  const std::string compile = std::max(at(f, "compile.enable"), at(f, "training.compile"));
  if (!compile.empty()) out.keys["compile"] = compile;
  const std::string name = at(f, "model.name"), flavor = at(f, "model.flavor");
  if (out.model.empty() && !name.empty() && !flavor.empty()) {
    std::string lower = flavor;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    out.model = name + "-" + lower;
  }
  out.keys.emplace("stack", "torchtitan");
  return out;
}

}  // namespace preflop
