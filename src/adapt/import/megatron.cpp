// A Megatron-LM launch script or line as people write them.
#include <algorithm>
#include <optional>

#include "src/adapt/import/fields.hpp"
#include "src/adapt/import/options.hpp"
#include "src/adapt/optimizer_words.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

// Layers of every virtual stage of "Et*4|(t*4|)*14tmL": E embedding, t layer, m multi-token prediction, L loss;
// "*N" repeats the letter or the parenthesis before it. Empty: not of that form.
std::vector<std::int64_t> layers_of_layout(std::string_view text) {
  std::string flat;
  std::size_t unit = 0, open = std::string::npos;  // where what "*N" repeats begins
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' && open == std::string::npos) {
      open = flat.size();
    } else if (c == ')' && open != std::string::npos) {
      unit = open;
      open = std::string::npos;
    } else if (c == '*') {
      std::int64_t times = 0;
      while (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9' && times < 1000)
        times = times * 10 + (text[++i] - '0');
      const std::string again = flat.substr(unit);
      if (times < 1 || again.size() * static_cast<std::size_t>(times) > 100'000) return {};
      for (std::int64_t k = 1; k < times; ++k) flat += again;
    } else if (std::string_view("EtmL|").find(c) != std::string_view::npos) {
      unit = flat.size();
      flat += c;
    } else if (c != ',' && c != ' ') {
      return {};
    }
  }
  std::vector<std::int64_t> out(1, 0);
  for (const char c : flat) {
    if (c == '|') out.push_back(0);
    out.back() += c == 't' ? 1 : 0;
  }
  return out;
}

// Layers of the first and the last stage, where the script sets one of them or counts the embedding or the loss as a
// layer: the others share the rest. Both counted is what the stack does by itself.
Status read_ends(const Options& o, std::int64_t pp, Request& out) {
  const std::int64_t layers = o.number("--num-layers");
  std::int64_t first = o.number("--decoder-first-pipeline-num-layers"),
               last = o.number("--decoder-last-pipeline-num-layers");
  const bool embedding = o.has("--account-for-embedding-in-pipeline-split"),
             loss = o.has("--account-for-loss-in-pipeline-split");
  if (first == 0 && last == 0 && embedding != loss && pp > 1) {
    first = embedding ? (layers + 1) / pp - 1 : 0;
    last = loss ? (layers + 1) / pp - 1 : 0;
  }
  if (pp < 2 || layers == 0 || (first == 0 && last == 0)) return Nothing{};
  const std::int64_t others = pp - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0), rest = layers - first - last;
  if (rest < others || (others == 0 ? rest != 0 : rest % others != 0))
    return Error{"--from",
                 "of " + std::to_string(layers) + " layers the first stage has " + std::to_string(first) +
                     " and the last " + std::to_string(last) + ", and pipelines of " + std::to_string(pp) +
                     " stages do not share the rest",
                 "layers that divide"};
  std::string split;
  for (std::int64_t i = 0; i < pp; ++i) {
    const std::int64_t here = i == 0 && first > 0 ? first : i == pp - 1 && last > 0 ? last : rest / others;
    split += (split.empty() ? "" : ",") + std::to_string(here);
  }
  out.keys["layers_per_stage"] = split;
  return Nothing{};
}

// Virtual stages of a stage that hold as many layers each, and not all stages the same: a split into stages.
void read_stages(const std::vector<std::int64_t>& chunks, std::size_t pp, Request& out) {
  std::string split;
  bool even = true, same = true;
  for (std::size_t stage = 0; stage < pp; ++stage) {
    std::int64_t layers = 0;
    for (std::size_t i = stage; i < chunks.size(); i += pp) {
      even = even && chunks[i] == chunks[stage];
      layers += chunks[i];
    }
    same = same && chunks[stage] == chunks[0];
    split += (split.empty() ? "" : ",") + std::to_string(layers);
  }
  if (chunks.size() == pp || (even && !same)) out.keys["layers_per_stage"] = split;
}

Status read_pipeline(const Options& o, Request& out) {
  const std::int64_t pp = std::max<std::int64_t>(1, o.number("--pipeline-model-parallel-size"));
  if (o.has("--num-virtual-stages-per-pipeline-rank")) {
    out.keys["vpp"] = o.value("--num-virtual-stages-per-pipeline-rank");
  } else if (const std::int64_t each = o.number("--num-layers-per-virtual-pipeline-stage"); each > 0) {
    out.keys["vpp"] = std::to_string(std::max<std::int64_t>(1, o.number("--num-layers") / (pp * each)));
  }
  read_stage_layout(o.value("--pipeline-model-parallel-layout"), pp, out);
  return out.keys.contains("layers_per_stage") ? Status(Nothing{}) : read_ends(o, pp, out);
}

void read_memory(const Options& o, Request& out) {
  const std::string granularity = o.value("--recompute-granularity");
  std::string modules;
  for (const std::string& module : o.values("--recompute-modules")) modules += (modules.empty() ? "" : ",") + module;
  if (granularity == "full" || o.has("--checkpoint-activations"))
    out.keys["recompute"] = whole_layers(o.value(o.either("--recompute-method", "--checkpoint-method")),
                                         o.value(o.either("--recompute-num-layers", "--checkpoint-num-layers")));
  else if (granularity == "selective" || o.has("--recompute-activations"))
    out.keys["recompute"] = modules.empty() || modules == "core_attn" ? "selective" : modules;
  else
    out.keys["recompute"] = "none";
  std::string offload;
  if (o.has("--optimizer-cpu-offload"))
    offload = "optimizer=" + (o.has("--optimizer-offload-fraction") ? o.value("--optimizer-offload-fraction") : "1");
  if (o.number("--cpu-offloading-num-layers") > 0)
    offload += std::string(offload.empty() ? "" : ",") + "activations=" + o.value("--cpu-offloading-num-layers");
  if (!offload.empty()) out.keys["offload"] = offload;
  const std::string strategy = o.value("--data-parallel-sharding-strategy");
  const bool fsdp = o.has("--use-megatron-fsdp") || o.has("--use-custom-fsdp") || o.has("--use-torch-fsdp2");
  const bool sharded = o.has("--use-distributed-optimizer");  // FSDP of itself
  if (fsdp)
    out.keys["zero"] = strategy == "optim" ? "1" : strategy == "optim_grads" ? "2" : "3";
  else
    out.keys["zero"] = sharded ? "1" : "0";
  if (fsdp && !out.keys.contains("stack")) out.keys["stack"] = "megatron-fsdp";
  out.keys["loss"] = o.has("--cross-entropy-loss-fusion") ? "fused" : "plain";
  const std::string backend = o.value("--attention-backend");
  if (o.has("--use-flash-attn") || backend == "flash") out.keys.emplace("attention", "fa2");
  if (backend == "fused") out.keys["attention"] = "cudnn";
  if (backend == "unfused" || backend == "local") out.keys["attention"] = "unfused";
}

// CUDA graphs: today's --cuda-graph-impl with the modules that they hold, and the options before it.
void read_graphs(const Options& o, Request& out) {
  const std::string option = o.either("--cuda-graph-modules", "--cuda-graph-scope");
  std::string impl = o.value("--cuda-graph-impl"), scope;
  if (o.has("--enable-cuda-graph")) impl = "local";
  if (o.has("--external-cuda-graph")) impl = "transformer_engine";
  const std::vector<std::string> known = cuda_graph_parts();
  std::string words;
  for (const std::string& word : o.values(option)) words += word + ",";
  for (std::size_t from = 0; from < words.size();) {
    const std::size_t comma = words.find(',', from);
    const std::string part = words.substr(from, comma - from);
    from = comma + 1;
    if (part == "full_iteration")
      impl = part;
    else if (std::find(known.begin(), known.end(), part) != known.end())
      scope += (scope.empty() ? "" : ",") + part;
    else if (part != "full" && !part.empty())  // whole layers
      o.leave(option);
  }
  if (impl.empty() || impl == "none") return;
  out.keys["cuda_graph"] = impl;
  if (!scope.empty() && impl != "full_iteration") out.keys["cuda_graph_scope"] = scope;
}

// Exchanges beside compute, how rows reach their experts, and what the optimizer is.
void read_software(const Options& o, Request& out) {
  const bool torch_fsdp = o.has("--use-torch-fsdp2");  // always beside compute
  const bool gradients = o.has("--overlap-grad-reduce"), weights = o.has("--overlap-param-gather");
  if (!gradients && !weights && !torch_fsdp) out.keys["dp_overlap"] = "false";
  if (o.has("--tp-comm-overlap")) out.keys["tp_overlap"] = "true";
  if (o.has("--overlap-moe-expert-parallel-comm")) out.keys["ep_overlap"] = "true";
  if (o.has("--use-transformer-engine-op-fuser") && o.has("--num-experts")) out.keys["fused_experts"] = "true";
  const std::string type = o.value("--moe-token-dispatcher-type");
  std::string backend = o.value("--moe-flex-dispatcher-backend");
  if (backend.empty() || o.has("--moe-enable-deepep")) backend = "deepep";
  if (const std::string way = type == "flex" ? backend : type; o.has("--num-experts") && !way.empty()) {
    const std::vector<std::string> known = dispatcher_names();
    if (std::find(known.begin(), known.end(), way) != known.end())
      out.keys["dispatcher"] = way;
    else
      o.leave(type == "flex" ? "--moe-flex-dispatcher-backend" : "--moe-token-dispatcher-type");
  }
  const std::string optimizer = o.value("--optimizer"), momentum = o.value("--sgd-momentum");
  const bool still = !momentum.empty() && momentum.find_first_not_of("0.") == std::string::npos;
  if (const std::string name = optimizer_of_megatron(optimizer); !name.empty())
    out.keys["optimizer"] = name == "sgd-momentum" && still ? "sgd" : name;
  else if (!optimizer.empty())
    o.leave("--optimizer");
}

// How long the run is: tokens, of steps or of samples. A script of ours says them in its remark.
void read_length(const Options& o, bool ours, Request& out) {
  const std::int64_t seq = o.number("--seq-length"), batch = o.number("--global-batch-size");
  const std::int64_t steps = o.number("--train-iters"), samples = o.number("--train-samples");
  const std::vector<std::string> ramp = o.values("--rampup-batch-size");
  const double sequences =
      samples > 0 ? static_cast<double>(samples) : static_cast<double>(steps) * static_cast<double>(batch);
  for (const char* option : {"--train-iters", "--train-samples"}) {
    if (o.has(option) && o.number(option) == 0) o.leave(option);
  }
  if (ours || !(sequences > 0) || seq == 0) return;
  out.keys["tokens"] = shortest(sequences * static_cast<double>(seq));
  if (ramp.size() == 3) out.keys["batch_ramp"] = ramp[0] + ":" + ramp[1] + ":" + ramp[2];
}

// Products in fp8 or fp4 beside --bf16; a recipe is delayed (fp8) or nvfp4 where the script names none.
Status read_precision(const Options& o, const std::string& file, Request& out) {
  const bool fp4 = o.has("--fp4-format");
  const bool fp8 = o.has("--fp8-format") || o.has("--fp8-hybrid") || o.has("--fp8-e4m3");
  const std::string eight = o.value("--fp8-recipe"), four = o.value("--fp4-recipe");
  const bool half = o.has("--fp16"), bf16 = o.has("--bf16");
  if (fp4 || fp8) {
    const std::string option = fp4 ? "--fp4-recipe" : "--fp8-recipe";
    const std::string& given = fp4 ? four : eight;
    const std::string recipe = !given.empty() ? given : fp4 ? "nvfp4" : "delayed";
    const PrecisionWords* words = precision_called(&PrecisionWords::megatron_recipe, recipe);
    if (words == nullptr)
      return Error{"--from", option + " of " + text::quoted(file) + " is " + text::quoted(recipe),
                   text::list(all_words(&PrecisionWords::megatron_recipe))};
    out.keys["precision"] = words->precision;
  } else if (half) {
    out.keys["precision"] = "fp16";
  } else {
    out.keys.emplace("precision", bf16 ? "bf16" : "fp32");
  }
  return Nothing{};
}

// What gradients and moments are kept in. With --bf16 gradients are summed in fp32 unless the script says otherwise;
// Megatron-FSDP keeps them in the parameters' type. One type is known of both moments.
Status read_states(const Options& o, const std::string& file, Request& out) {
  const std::string fsdp = o.value("--megatron-fsdp-main-grads-dtype");
  if (!fsdp.empty() && fsdp != "auto")
    out.keys["grad_dtype"] = fsdp;
  else if (o.has("--use-megatron-fsdp") && o.has("--bf16"))
    out.keys["grad_dtype"] = "bf16";
  else if (o.has("--bf16") && !o.has("--use-custom-fsdp") && !o.has("--use-torch-fsdp2"))
    out.keys["grad_dtype"] = o.has("--grad-reduce-in-bf16") ? "bf16" : "fp32";
  const bool summed_wide = o.has("--accumulate-allreduce-grads-in-fp32");  // with --bf16 the default
  if (o.has("--fp16") && summed_wide) out.keys["grad_dtype"] = "fp32";
  for (const auto& [key, option] :
       {std::pair{"grad_dtype", "--main-grads-dtype"}, std::pair{"master_dtype", "--main-params-dtype"},
        std::pair{"master_dtype", "--megatron-fsdp-main-params-dtype"}}) {
    if (const std::string type = o.value(option); !type.empty() && type != "auto") out.keys[key] = type;
  }
  const std::string first = o.value("--exp-avg-dtype"), second = o.value("--exp-avg-sq-dtype");
  if (first.empty() && second.empty()) return Nothing{};
  if (first != second)
    return Error{"--from",
                 "the moments of " + text::quoted(file) + " differ: --exp-avg-dtype " +
                     (first.empty() ? "fp32" : first) + ", --exp-avg-sq-dtype " + (second.empty() ? "fp32" : second),
                 "one type for both"};
  out.keys["moment_dtype"] = first;
  return Nothing{};
}

// GPUs of the launch, where torchrun's flags say them.
std::int64_t launched(const Options& o) {
  const std::int64_t nodes = std::max<std::int64_t>(1, o.number("--nnodes"));
  const std::int64_t each = std::max(o.number("--nproc-per-node"), o.number("--nproc_per_node"));
  return nodes * each;
}

// Options that are read where they say what is so without them, and left where they say another thing.
void leave_other_defaults(const Options& o) {
  for (const auto& [option, usual] :
       {std::pair{"--transformer-impl", "transformer_engine"}, std::pair{"--make-vocab-size-divisible-by", "128"},
        std::pair{"--spec", "megatron.core.models.mamba.mamba_layer_specs"}}) {
    if (o.has(option) && o.value(option) != usual) o.leave(option);
  }
  // These say nothing alone, or what others say.
  for (const char* implied :
       {"--use-precision-aware-optimizer", "--cross-entropy-fusion-impl", "--recompute-method",
        "--recompute-num-layers", "--checkpoint-method", "--checkpoint-num-layers", "--optimizer-offload-fraction",
        "--moe-expert-capacity-factor", "--grad-reduce-in-bf16", "--decoder-first-pipeline-num-layers",
        "--decoder-last-pipeline-num-layers", "--num-layers-per-virtual-pipeline-stage",
        "--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split", "--checkpoint-activations",
        "--recompute-activations"})
    o.has(implied);
}

// hsdp is what the GPUs of the run leave; those of the launch where nobody knows better.
void read_replicas(const Options& o, std::string_view text, const std::string& file, Request& out) {
  const std::string option = "--num-distributed-optimizer-instances";
  const std::int64_t n = o.number(option), gpus = launched(o);
  if (n < 2) return;
  const std::int64_t tp = o.number(o.either("--tensor-model-parallel-size", "--model-parallel-size")),
                     pp = o.number("--pipeline-model-parallel-size");
  const std::int64_t group = gpus / (std::max<std::int64_t>(1, tp) * std::max<std::int64_t>(1, pp) * n);
  if (gpus > 0) out.keys["hsdp"] = std::to_string(std::max<std::int64_t>(1, group));
  out.unsettled.replicas = n;
  out.places["hsdp"] = place_of(text, file, option) + ": " + option;
}

// Values of the options that data/launch_read.csv knows: refused with their line, or recipe keys.
Status read_values(const Options& o, std::string_view text, const std::string& file, Request& out) {
  for (const std::string& option : o.all()) {
    const Readable* row = readable("megatron", option);
    if (row == nullptr) continue;
    const std::string place = place_of(text, file, option);
    const std::vector<std::string> words = o.values(option);
    if (words.empty())
      return Error{place, option + " has no value that the script itself sets", valid_values(row->values)};
    for (const std::string& value : words) {
      const auto word = word_of(row->values, value);
      if (!word) return Error{place, option + " is " + text::quoted(value), valid_values(row->values)};
      if (row->key.empty() || word->empty()) continue;
      out.keys[row->key] = *word;
      out.places[row->key] = place + ": " + option;
    }
  }
  return Nothing{};
}

}  // namespace

// A layout of plain stages is a split; one of virtual stages is dealt by the stack's rule, or a split of equal ones.
void read_stage_layout(std::string_view layout, std::int64_t pp, Request& out) {
  const std::vector<std::int64_t> given = layers_of_layout(layout);
  if (pp < 2 || given.size() < 2 || given.size() % static_cast<std::size_t>(pp) != 0) return;
  const std::size_t virtual_stages = given.size() / static_cast<std::size_t>(pp);
  if (virtual_stages > 1) out.keys["vpp"] = std::to_string(virtual_stages);
  read_stages(given, static_cast<std::size_t>(pp), out);
}

Result<Request> import_megatron(std::string_view text, const std::string& file) {
  const Options o(shell_words(text));
  Request out;
  read_rest_line(text, out);
  const bool ours = !out.keys.empty();
  // Two names: today's, and that of 2019 and 2020.
  const std::string tp = o.either("--tensor-model-parallel-size", "--model-parallel-size"),
                    micro = o.either("--micro-batch-size", "--batch-size");
  if (!o.has(tp) && !o.has(micro) && !o.has("--num-layers")) {
    if (out.keys.contains("stack") && out.keys.contains("tp")) return out;  // a batch script of ours
    return Error{"--from", text::quoted(file) + " has no option of a Megatron launch",
                 "a script with --tensor-model-parallel-size ..."};
  }
  if (o.has("--fp16") && o.has("--bf16"))
    return Error{place_of(text, file, "--fp16"), "--fp16 beside --bf16", "one of the two"};
  if (Status s = read_values(o, text, file, out); !s) return s.error();
  const Result<std::string> model = megatron_model(text, o);
  if (!model && out.model.empty()) return model.error();
  if (out.model.empty()) out.model = *model;
  out.keys.emplace("tp", "1");
  out.keys.emplace("pp", "1");
  if (o.has("--num-experts") && !o.has("--expert-tensor-parallel-size")) out.keys.emplace("etp", out.keys["tp"]);
  const bool sequence_parallel = o.has("--sequence-parallel");
  if (out.keys["tp"] != "1") out.keys["sp"] = sequence_parallel ? "true" : "false";
  if (Status s = read_precision(o, file, out); !s) return s.error();
  if (Status s = read_states(o, file, out); !s) return s.error();
  if (o.has("--moe-expert-capacity-factor")) out.keys["capacity_factor"] = o.value("--moe-expert-capacity-factor");
  const std::string way = o.value("--cp-comm-type");
  if (way == "p2p" || way == "a2a")
    out.keys["cp_comm"] = way;
  else if (!way.empty())
    o.leave("--cp-comm-type");
  if (Status s = read_pipeline(o, out); !s) return s.error();
  for (const char* split : {"--pipeline-model-parallel-layout", "--decoder-first-pipeline-num-layers",
                            "--decoder-last-pipeline-num-layers"}) {
    if (out.keys.contains("layers_per_stage") && o.has(split))
      out.places.emplace("layers_per_stage", place_of(text, file, split) + ": " + split);
  }
  read_memory(o, out);
  leave_other_defaults(o);
  read_graphs(o, out);
  read_software(o, out);
  read_length(o, ours, out);
  read_replicas(o, text, file, out);
  out.keys.emplace("stack", "megatron");
  out.not_read = o.not_read();
  return out;
}

}  // namespace preflop
