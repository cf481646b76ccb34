// Megatron-Bridge's configurations in Python.
#include "src/adapt/import/python.hpp"
#include "src/adapt/optimizer_words.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

// "[\"a\", \"b\"]" as "a,b".
std::string plain_list(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("[]\"' ").find(c) == std::string_view::npos) out += c;
  }
  return out;
}

void bridge_sharding(const Fields& f, Request& out) {
  const std::string strategy = f.value("ddp.data_parallel_sharding_strategy");
  const bool whole = f.value("ddp.use_distributed_optimizer") == "false";
  out.keys["zero"] = strategy == "optim_grads" ? "2" : strategy == "optim_grads_params" ? "3" : whole ? "0" : "1";
  const std::int64_t instances = f.number("ddp.num_distributed_optimizer_instances");
  if (instances > 1) {
    out.unsettled.replicas = instances;
    out.places["hsdp"] = f.place("ddp.num_distributed_optimizer_instances");
  }
  if (f.on("ddp.use_megatron_fsdp")) out.keys.emplace("stack", "megatron-fsdp");
}

// Exchanges beside compute. The recipe of their own (CommOverlapConfig) says the same as the settings of DDP.
void bridge_overlap(const Fields& f, Request& out) {
  for (const char* section : {"ddp.", "comm_overlap."}) {
    const std::string gradients = section + std::string("overlap_grad_reduce"),
                      weights = section + std::string("overlap_param_gather");
    const std::string one = f.value(gradients), other = f.value(weights);
    if (!one.empty() || !other.empty())
      f.put(out, "dp_overlap", one.empty() ? weights : gradients, one == "true" || other == "true" ? "true" : "false");
  }
}

// How rows reach their experts, what graphs hold, and what the optimizer is.
void bridge_software(const Fields& f, Request& out) {
  const std::string way = "model.moe_token_dispatcher_type", flex = "model.moe_flex_dispatcher_backend",
                    backend = f.value(flex), path = "optimizer.optimizer";
  const std::string type = f.value(way);
  if (!type.empty()) f.put(out, "dispatcher", way, type != "flex" ? type : backend.empty() ? "deepep" : backend);
  for (const char* parts : {"model.cuda_graph_scope", "model.cuda_graph_modules"}) {
    const std::string impl = f.value("model.cuda_graph_impl"), scope = plain_list(f.value(parts));
    if (!scope.empty() && scope != "full" && (impl == "local" || impl == "transformer_engine"))
      f.put(out, "cuda_graph_scope", parts, scope);
  }
  const std::string name = optimizer_of_megatron(f.value(path)), momentum = f.value("optimizer.sgd_momentum");
  const bool still = !momentum.empty() && momentum.find_first_not_of("0.") == std::string::npos;
  if (!name.empty()) f.put(out, "optimizer", path, name == "sgd-momentum" && still ? "sgd" : name);
}

// The split into stages. Where a remark of ours says it, the rest says the same again.
void bridge_stages(const Fields& f, Request& out) {
  const std::string layout = "model.pipeline_model_parallel_layout";
  const bool ours = out.keys.contains("layers_per_stage") || !out.on.empty();
  const bool embedding = f.on("model.account_for_embedding_in_pipeline_split"),
             loss = f.on("model.account_for_loss_in_pipeline_split");
  if (!out.keys.contains("layers_per_stage"))
    read_stage_layout(f.value(layout), f.number("model.pipeline_model_parallel_size"), out);
  for (const char* end : {"model.num_layers_in_first_pipeline_stage", "model.num_layers_in_last_pipeline_stage"}) {
    if (f.number(end) > 0 && !ours) f.leave(end);
  }
  if (embedding != loss && !ours)
    f.leave(std::string("model.account_for_") + (loss ? "loss" : "embedding") + "_in_pipeline_split");
  if (!f.value(layout).empty() && !ours && !out.keys.contains("layers_per_stage")) f.leave(layout);
}

void bridge_memory(const Fields& f, Request& out) {
  const std::string granularity = f.value("model.recompute_granularity"),
                    modules = plain_list(f.value("model.recompute_modules"));
  f.put(out, "recompute", "model.recompute_granularity",
        granularity == "full" ? whole_layers(f.value("model.recompute_method"), f.value("model.recompute_num_layers"))
        : granularity != "selective"                ? "none"
        : modules.empty() || modules == "core_attn" ? "selective"
                                                    : modules);
  std::string offload;
  if (f.on("optimizer.optimizer_cpu_offload")) {
    const std::string share = f.value("optimizer.optimizer_offload_fraction");
    offload = "optimizer=" + (share.empty() ? "1" : share);
  }
  if (f.number("model.cpu_offloading_num_layers") > 0 && f.shown("model.cpu_offloading") != "false")
    offload += (offload.empty() ? "activations=" : ",activations=") + f.value("model.cpu_offloading_num_layers");
  if (!offload.empty())
    f.put(out, "offload",
          f.has("optimizer.optimizer_cpu_offload") ? "optimizer.optimizer_cpu_offload"
                                                   : "model.cpu_offloading_num_layers",
          offload);
  f.value("model.cpu_offloading");
  const std::string first = f.value("optimizer.exp_avg_dtype"), second = f.value("optimizer.exp_avg_sq_dtype");
  if (!first.empty() && first == second)
    f.put(out, "moment_dtype", "optimizer.exp_avg_dtype", first);
  else if (!first.empty() || !second.empty())
    f.leave(first.empty() ? "optimizer.exp_avg_sq_dtype" : "optimizer.exp_avg_dtype");
}

// A name that mixed_precision takes; a configuration of its own is no name.
Status bridge_precision(const Fields& f, Request& out) {
  std::string name = f.value("mixed_precision");
  if (const std::size_t open = name.find("(\""); open != std::string::npos && name.ends_with("\")"))
    name = name.substr(open + 2, name.size() - open - 4);  // of get_mixed_precision_config("..")
  const PrecisionWords* words = precision_called(&PrecisionWords::bridge, name);
  if (words != nullptr || name == "fp16_mixed" || name == "None")
    f.put(out, "precision", "mixed_precision", words != nullptr ? words->precision : name == "None" ? "fp32" : "fp16");
  else if (name == "bf16_mixed")
    out.keys.emplace("precision", "bf16");
  else if (!name.empty())
    return f.refused("mixed_precision", "is " + text::quoted(name),
                     "bf16_mixed, fp16_mixed, " + text::list(all_words(&PrecisionWords::bridge)));
  return Nothing{};
}

}  // namespace

Result<Request> import_bridge(std::string_view text, const std::string& file) {
  Fields f("megatron-bridge", file);
  read_assignments(text, f);
  Request out;
  read_rest_line(text, out);
  const std::string kernel = out.keys.contains("attention") ? out.keys["attention"] : "";
  if (Status s = f.read(out); !s) return s.error();
  // One word for all FlashAttentions: the remark knows which.
  if (kernel.starts_with("fa") && f.value("model.attention_backend") == "fa2") out.keys["attention"] = kernel;
  const bool sequence = f.on("model.sequence_parallel");
  if (f.number("model.tensor_model_parallel_size") > 1)
    f.put(out, "sp", "model.sequence_parallel", sequence ? "true" : "false");
  bridge_sharding(f, out);
  bridge_memory(f, out);
  bridge_overlap(f, out);
  bridge_software(f, out);
  bridge_stages(f, out);
  const std::int64_t seq = f.number("model.seq_length"), batch = f.number("train.global_batch_size"),
                     steps = f.number("train.train_iters");
  if (out.on.empty()) f.put_number(out, "tokens", "train.train_iters", product({steps, batch, seq}));
  if (Status s = bridge_precision(f, out); !s) return s.error();
  // In bf16 gradients are summed in fp32 unless the file says otherwise; Megatron-FSDP keeps the parameters' type.
  if (f.value("mixed_precision").find("bf16_") != std::string::npos)
    out.keys.emplace("grad_dtype", f.on("ddp.use_megatron_fsdp") ? "bf16" : "fp32");
  out.keys.emplace("stack", "megatron");
  out.not_read = f.not_read();
  return out;
}

}  // namespace preflop
