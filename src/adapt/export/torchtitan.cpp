// A configuration function of torchtitan (the generation whose configurations are Python).
#include <algorithm>

#include "src/adapt/export/python_config.hpp"
#include "src/adapt/precision_words.hpp"

namespace preflop {

namespace {

// "Interleaved1F1B"; torchtitan's names.
const char* schedule_name(const std::string& schedule) {
  return schedule == "gpipe" ? "GPipe" : schedule == "interleaved" ? "Interleaved1F1B" : "1F1B";
}

// Scaled precisions are converters, which the registry of the model's family takes.
void converters(PythonConfig& c, const PrecisionWords& words, bool experts) {
  std::vector<std::string> names = {std::string(words.titan) + "LinearConverter"};
  if (experts && words.titan_experts) names.push_back(std::string(words.titan) + "GroupedExpertsConverter");
  const std::string recipe = words.titan_recipe;
  std::string imported, calls;
  for (const std::string& name : names) {
    const bool linear = name == names.front();
    c.out.options.emplace_back("model_registry(converters=[" + name + ".Config()])", "");
    if (linear && !recipe.empty()) c.out.options.emplace_back("converters[" + name + "].recipe_name", recipe);
    imported += (linear ? "" : ", ") + name;
    calls += (linear ? "" : ", ") + name + ".Config(" +
             (linear && !recipe.empty() ? "recipe_name=" + quoted_python(recipe) : "") + ")";
  }
  c.out.text +=
      std::string("from torchtitan.components.quantization.") + words.titan_module + " import " + imported +
      "\n\n# For the registry of the model's family: model_registry(.., converters=CONVERTERS)\nCONVERTERS = [" +
      calls + "]\n";
}

// What no torchtitan configuration says.
Status sayable(const Recipe& r) {
  const Layout& l = r.layout;
  if (l.zero == 1 || l.etp > 1 || r.precision == "fp16")
    return Error{"--to",
                 std::string("torchtitan has no ") + (l.zero == 1 ? "zero 1"
                                                      : l.etp > 1 ? "etp above 1"
                                                                  : "fp16"),
                 "--stack torchtitan"};
  if (r.offload.any() && !(r.offload.params && r.offload.optimizer == 1 && r.offload.activations == 0))
    return Error{"--to", "torchtitan moves all states to the host or none", "--offload optimizer,params, or none"};
  if (r.recompute.kind == RecomputeKind::modules)
    return Error{"--to", "torchtitan has no lists of modules to recompute", "--recompute none, selective or full"};
  return Nothing{};
}

// training.dtype = bfloat16: weights are kept in bf16 and no master weights beside them.
bool narrow_weights(const Recipe& r) { return r.weight_dtype == Dtype::bf16 && r.master_dtype == Dtype::none; }

// Only the first and the last stage hold fewer layers than the others.
bool says_split(const Problem& p) {
  const auto& chunks = p.analysed.chunk_layers;
  for (std::size_t i = 2; i + 1 < chunks.size(); ++i) {
    if (chunks[i] != chunks[1]) return false;
  }
  return chunks.size() < 3 || *std::max_element(chunks.begin(), chunks.end()) == chunks[1];
}

void set_parallelism(PythonConfig& c, const Problem& p) {
  const Recipe& r = p.analysed.recipe;
  const Layout& l = r.layout;
  const std::int64_t shard = l.hsdp > 0 ? l.hsdp : l.zero == 0 ? 1 : l.dp;
  c.set("parallelism.data_parallel_replicate_degree", l.dp / shard);
  c.set("parallelism.data_parallel_shard_degree", shard);
  c.set("parallelism.tensor_parallel_degree", l.tp);
  if (l.tp > 1) c.set("parallelism.enable_sequence_parallel", l.sp);
  c.set("parallelism.context_parallel_degree", l.cp);
  c.set("parallelism.expert_parallel_degree", l.ep);
  c.set("parallelism.pipeline_parallel_degree", l.pp);
  if (l.pp > 1) {
    const auto& chunks = p.analysed.chunk_layers;
    const std::int64_t each = *std::max_element(chunks.begin(), chunks.end());
    c.set("parallelism.pipeline_parallel_schedule", quoted_python(schedule_name(l.schedule)));
    c.set("parallelism.pipeline_parallel_layers_per_stage", each);
    c.set("parallelism.pipeline_parallel_first_stage_less_layers", each - chunks.front());
    c.set("parallelism.pipeline_parallel_last_stage_less_layers", each - chunks.back());
    c.set("parallelism.num_pp_microbatches", r.micro_batches());
  }
}

// What the configuration says whatever the parallel sizes are.
void set_training(PythonConfig& c, const Recipe& r) {
  const Layout& l = r.layout;
  c.set("training.max_context_length", r.seq);
  c.set("training.num_tokens_per_microbatch_per_dp_rank", r.micro_batch * r.seq);
  c.set("training.num_tokens_per_train_step", r.global_batch * r.seq);
  if (r.tokens) c.set("training.steps", train_steps(r));
  if (narrow_weights(r)) c.set("training.dtype", quoted_python("bfloat16"));
  if (r.precision == "fp32") c.set("training.mixed_precision_param", quoted_python("float32"));
  // On by default; the trainer refuses them beside a pipeline and with experts apart.
  c.set("training.disable_cuda_graphs", r.cuda_graph != "full_iteration" || l.pp > 1 || l.ep > 1);
  if (r.offload.params) c.set("training.enable_cpu_offload", true);
}

}  // namespace

Result<Exported> export_torchtitan(const Problem& p, const Request& request) {
  const Recipe& r = p.analysed.recipe;
  const Layout& l = r.layout;
  if (Status s = sayable(r); !s) return s.error();
  PythonConfig c;
  c.object = "config";
  std::vector<std::string> carried = {"tp",      "cp",       "ep",          "dp",           "zero",
                                      "hsdp",    "sp",       "pp",          "seq",          "compile",
                                      "offload", "schedule", "micro_batch", "global_batch", "recompute"};
  const PrecisionWords* words = words_of_precision(r.precision);
  const bool converted = words != nullptr && *words->titan != 0;
  const bool narrow = r.moment_dtype == Dtype::bf16 && r.optimizer_implementation == "fused" && !narrow_weights(r);
  const bool chunked = r.loss == LossKind::chunked, plain = r.loss == LossKind::plain;
  if (words == nullptr || converted) carried.emplace_back("precision");
  if (l.vpp == 1) carried.emplace_back("vpp");  // layers a stage say more chunks only beside the model's layers
  if (l.vpp == 1 && says_split(p)) carried.emplace_back("layers_per_stage");
  if (l.tp > 1) carried.emplace_back("tp_overlap");
  if (chunked || plain) carried.emplace_back("loss");
  if (narrow_weights(r) || (r.weight_dtype == Dtype::fp32 && r.master_dtype == Dtype::none)) {
    carried.emplace_back("weight_dtype");
    carried.emplace_back("master_dtype");
  }
  if (narrow) carried.emplace_back("moment_dtype");
  carried.emplace_back("optimizer_implementation");
  c.out.text = rest_line(p, request, carried, c.out.left_out);
  if (chunked || plain)
    c.out.text += std::string("from torchtitan.components.loss import ") +
                  (chunked ? "ChunkedLossWrapper" : "CrossEntropyLoss") + "\n";
  c.out.text +=
      "from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC\n"
      "from torchtitan.trainer import Trainer\n";
  if (converted) converters(c, *words, has_experts(*p.model));
  c.out.text += "\n\ndef " + function_name(p) + "(config: Trainer.Config) -> Trainer.Config:\n";
  c.out.text += "    # config: the model's own, from the registry of its family\n";
  set_training(c, r);
  set_parallelism(c, p);
  // Beside a pipeline the default keeps weights gathered.
  if (l.zero >= 2)
    c.set("parallelism.fsdp_reshard_after_forward", quoted_python(l.zero == 2 ? "never"
                                                                  : l.pp > 1  ? "always"
                                                                              : "default"));
  c.set("activation_checkpoint", std::string(r.recompute.kind == RecomputeKind::none   ? "None"
                                             : r.recompute.kind == RecomputeKind::full ? "FullAC.Config()"
                                                                                       : "SelectiveAC.Config()"));
  if (chunked || plain)
    c.set("loss", std::string(chunked ? "ChunkedLossWrapper.Config(num_chunks=8)" : "CrossEntropyLoss.Config()"));
  c.set("compile.enable", r.compile);
  if (r.tp_overlap && l.tp > 1) c.set("compile.enable_async_tensor_parallel", true);
  if (narrow || r.given.contains("optimizer_implementation"))
    c.set("optimizer.implementation", quoted_python(narrow ? "fused_opt_states_bf16" : r.optimizer_implementation));
  c.out.text += "    return config\n";
  return std::move(c.out);
}

}  // namespace preflop
