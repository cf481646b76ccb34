// A configuration function of torchtitan (the generation whose configurations are Python).
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
    const std::int64_t layers = p.architecture.layer_count(), chunks = l.pp * l.vpp;
    const bool less = !p.analysed.split_how.empty();
    c.set("parallelism.pipeline_parallel_schedule", quoted_python(schedule_name(l.schedule)));
    c.set("parallelism.pipeline_parallel_layers_per_stage", (layers + (less ? 2 : 0) + chunks - 1) / chunks);
    c.set("parallelism.pipeline_parallel_first_stage_less_layers", std::int64_t{less ? 1 : 0});
    c.set("parallelism.pipeline_parallel_last_stage_less_layers", std::int64_t{less ? 1 : 0});
    c.set("parallelism.num_pp_microbatches", r.micro_batches());
  }
}

}  // namespace

Result<Exported> export_torchtitan(const Problem& p, const Request& request) {
  const Recipe& r = p.analysed.recipe;
  const Layout& l = r.layout;
  if (Status s = sayable(r); !s) return s.error();
  PythonConfig c;
  c.object = "config";
  std::vector<std::string> carried = {
      "tp",  "pp",          "cp",           "ep",        "dp",      "zero",     "hsdp",    "sp",
      "seq", "micro_batch", "global_batch", "recompute", "offload", "schedule", "compile", "optimizer_implementation"};
  const PrecisionWords* words = words_of_precision(r.precision);
  const bool converted = words != nullptr && *words->titan != 0;
  if (words == nullptr || converted) carried.emplace_back("precision");
  if (l.vpp == 1) carried.emplace_back("vpp");  // layers a stage say more chunks only beside the model's layers
  c.out.text = rest_line(p, request, carried, c.out.left_out);
  c.out.text += "from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC\n";
  std::string family = p.architecture.name;
  for (char& ch : family) ch = ch == '-' || ch == '.' ? '_' : ch;
  c.out.text += "from torchtitan.trainer import Trainer\n";
  if (converted) converters(c, *words, has_experts(*p.model));
  c.out.text += "\n\ndef " + function_name(p) + "(config: Trainer.Config) -> Trainer.Config:\n";
  c.out.text += "    # config: the model's own, from the registry of its family\n";
  c.set("training.max_context_length", r.seq);
  c.set("training.num_tokens_per_microbatch_per_dp_rank", r.micro_batch * r.seq);
  c.set("training.num_tokens_per_train_step", r.global_batch * r.seq);
  if (r.precision == "fp32") c.set("training.mixed_precision_param", quoted_python("float32"));
  if (l.pp > 1 || l.ep > 1) c.set("training.disable_cuda_graphs", true);
  set_parallelism(c, p);
  if (l.zero >= 2) c.set("parallelism.fsdp_reshard_after_forward", quoted_python(l.zero == 2 ? "never" : "default"));
  c.set("activation_checkpoint", std::string(r.recompute.kind == RecomputeKind::none   ? "None"
                                             : r.recompute.kind == RecomputeKind::full ? "FullAC.Config()"
                                                                                       : "SelectiveAC.Config()"));
  if (r.offload.params) c.set("training.enable_cpu_offload", true);
  c.set("compile.enable", r.compile);
  const bool narrow = r.moment_dtype == Dtype::bf16 && r.optimizer_implementation == "fused";
  if (narrow || r.given.contains("optimizer_implementation"))
    c.set("optimizer.implementation", quoted_python(narrow ? "fused_opt_states_bf16" : r.optimizer_implementation));
  c.out.text += "    return config\n";
  return std::move(c.out);
}

}  // namespace preflop
