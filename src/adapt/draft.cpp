// A request read as far as its layout: model, cluster, software, numerics, batch of tokens and run.
#include <algorithm>
#include <tuple>
#include <utility>

#include "src/adapt/gpu_defaults.hpp"
#include "src/adapt/recipe_keys.hpp"
#include "src/adapt/request.hpp"
#include "src/adapt/run_keys.hpp"
#include "src/adapt/shape_string.hpp"
#include "src/adapt/stack_choice.hpp"
#include "src/base/text.hpp"
#include "src/search/search.hpp"
#include "src/stack/legality.hpp"
#include "src/step/memory.hpp"

namespace preflop {

namespace {

constexpr std::int64_t kDefaultSeq = 8192;
constexpr std::int64_t kTuningSeq = 4096;  // of fine-tuning
constexpr std::int64_t kLargestSeq = std::int64_t{1} << 24;

std::string whole(std::int64_t v) { return std::to_string(v); }
void assume_of(Recipe& r, std::string line) { r.assumed.push_back(std::move(line)); }

Status read_sequence(const Request& request, const Architecture& model, Recipe& recipe) {
  auto seq = size_key(request, "seq");
  if (!seq) return seq.error();
  const auto longest_sample = size_key(request, "max_length");
  if (!longest_sample) return longest_sample.error();
  if (*seq && *longest_sample && **longest_sample > **seq)
    return Error{"--max-length", whole(**longest_sample) + " is longer than --seq " + whole(**seq), "at most that"};
  if (!*seq && *longest_sample) *seq = **longest_sample;
  const std::int64_t most = text_of(request, "samples") == nullptr ? kDefaultSeq : kTuningSeq;
  const std::int64_t longest = model.max_seq ? model.max_seq->get() : 0;
  if (*seq) {
    recipe.seq = **seq;
    if (recipe.seq > kLargestSeq) return Error{"--seq", whole(recipe.seq) + " tokens", "at most " + whole(kLargestSeq)};
    if (model.positions == Positions::learned && recipe.seq > model.position_rows.get()) {
      return Error{
          "--seq",
          whole(recipe.seq) + " tokens, but the model has " + whole(model.position_rows.get()) + " learned positions",
          "at most that"};
    }
  } else {
    recipe.seq = longest > 0 ? std::min(longest, most) : most;
    assume_of(recipe, "seq=" + whole(recipe.seq) + (longest > 0 && longest <= most ? " (the model's maximum)" : ""));
  }
  const auto micro = size_key(request, "micro_batch");
  if (!micro) return micro.error();
  recipe.micro_batch = micro->value_or(1);
  if (!*micro) assume_of(recipe, "micro_batch=1");
  return Nothing{};
}

// What the routing does to the load of experts, and how many layers of multi-token prediction are trained.
Status read_experts(const Request& request, const Stack& stack, const Gpu& gpu, Architecture& model, Recipe& recipe) {
  const bool experts = std::any_of(model.layers.begin(), model.layers.end(),
                                   [](const LayerRun& run) { return run.kind.experts.has_value(); });
  for (const auto& [key, slot, least] :
       {std::tuple("capacity_factor", &recipe.capacity_factor, 0.0), std::tuple("imbalance", &recipe.imbalance, 1.0)}) {
    const std::string* text = text_of(request, key);
    if (text == nullptr) continue;
    constexpr double kMost = 1024;
    const auto value = parse_real(*text, flag_of(key));
    if (!value) return value.error();
    if (!experts) return Error{flag_of(key), "the model has no experts", "leave it out"};
    if (!(*value >= least && *value <= kMost))
      return Error{flag_of(key), text::quoted(*text) + " is out of range", text::fixed(least, 0) + " to 1024"};
    *slot = *value;
  }
  const std::string* given = text_of(request, "dispatcher");
  if (!experts && given != nullptr && *given != "alltoall")
    return Error{"--dispatcher", "the model has no experts", "leave it out"};
  if (experts && text_of(request, "capacity_factor") == nullptr && text_of(request, "imbalance") == nullptr)
    assume_of(recipe, "imbalance=1 (a balanced router, no token dropped)");
  if (experts) {
    const Result<std::string> dispatcher = dispatcher_here(request, stack, gpu);
    if (!dispatcher) return dispatcher.error();
    recipe.dispatcher = *dispatcher;
    if (text_of(request, "dispatcher") == nullptr) assume_of(recipe, "dispatcher=" + recipe.dispatcher);
  }
  const std::string* mtp = text_of(request, "mtp");
  if (mtp == nullptr) {
    recipe.mtp = model.mtp_layers;
    if (model.mtp_layers > 0) assume_of(recipe, "mtp=" + whole(model.mtp_layers) + " (the model's own)");
    return Nothing{};
  }
  constexpr std::int64_t kMostLayers = 64;
  const auto layers = parse_count(*mtp, "--mtp");
  if (!layers) return layers.error();
  if (layers->get() > kMostLayers)
    return Error{"--mtp", whole(layers->get()) + " layers", "0 to " + whole(kMostLayers)};
  recipe.mtp = model.mtp_layers = layers->get();
  return Nothing{};
}

// What a config.json or a shape string left open. A catalogue's row leaves nothing open.
void assume_shape(const Request& request, const Architecture& a, Recipe& recipe) {
  const bool shape = !request.config && looks_like_shape(request.model);
  for (const std::string& line : a.assumed) assume_of(recipe, line + " (--assume)");
  if (!request.config && !shape) return;
  for (const std::string& line : a.defaulted)
    assume_of(recipe,
              line + (shape ? " (not in the shape string)" : " (not in config.json: the default of its class)"));
}

}  // namespace

Result<Architecture> model_of(const Request& request, const Catalogues& catalogues) {
  if (request.config) return read_hf_config(request.config->text, request.config->where, request.assume);
  if (!request.assume.empty())
    return Error{"--assume", "it completes a config.json, not a model known by name", "give the path of a config.json"};
  if (looks_like_shape(request.model)) return read_shape(request.model, "MODEL");
  return catalogues.models.find(request.model);
}

Result<Cluster> cluster_of(const Request& request, const Catalogues& catalogues) {
  if (request.cluster) return cluster_from_toml(request.cluster->text, request.cluster->where, catalogues.machines);
  if (request.on.empty()) return Error{"--on", "no cluster given", "e.g. --on 64xh100-sxm"};
  return catalogues.machines.cluster(request.on);
}

namespace {

Result<Draft> draft_on_its_stack(const Request& request, const Catalogues& catalogues) {
  if (Status s = check_keys(request); !s) return s.error();
  Draft out;
  auto architecture = model_of(request, catalogues);
  if (!architecture) return architecture.error();
  out.architecture = std::move(architecture).value();
  auto cluster = cluster_of(request, catalogues);
  if (!cluster) return cluster.error();
  out.cluster = std::move(cluster).value();

  Recipe& recipe = out.recipe;
  for (const auto& [key, value] : request.keys) recipe.given.insert(key);
  const auto stack = pick_stack(request, catalogues.stacks, out.architecture, out.cluster, recipe);
  if (!stack) return stack.error();
  out.stack = *stack;
  if (Status s = runs_layers(*out.stack, out.architecture); !s) return s.error();
  recipe.stack = out.stack->name;
  recipe.stack_generation = out.stack->generation;
  const Result<GpuDefaults> here = with_gpu_defaults(request, *out.stack, out.cluster.gpu);
  if (!here) return here.error();
  for (const std::string& assumption : here->assumed) assume_of(recipe, assumption);
  if (Status s = read_numerics(here->request, *out.stack, recipe); !s) return s.error();
  if (Status s = read_sequence(request, out.architecture, recipe); !s) return s.error();
  if (Status s = read_experts(request, *out.stack, out.cluster.gpu, out.architecture, recipe); !s) return s.error();

  out.model = std::make_unique<Model>(build_model(out.architecture));
  if (request.config) out.model->notes = out.architecture.notes;  // those of the catalogue: `models NAME`
  if (!summarise(*out.model).params_total.valid())
    return Error{"MODEL", "more than 2^53 parameters", "a smaller shape"};
  if (Status s = read_run(request, catalogues.run, out.cluster, *out.model, recipe); !s) return s.error();
  assume_shape(request, out.architecture, recipe);
  return out;
}

// What the stack says of the recipe whatever its layout: of one rank a replica, without what only sizes decide.
Status runs_at_all(const Request& request, const Draft& draft) {
  Recipe r = draft.recipe;
  const auto recompute = recompute_key(request);
  if (!recompute) return recompute.error();
  if (*recompute) r.recompute = **recompute;
  if (Status s = check_recompute(*draft.model, *draft.stack, r); !s) return s;
  r.layout = Layout{};
  r.layout.schedule = draft.stack->schedules.front();
  r.layout.zero = draft.stack->zero_allowed.back();
  r.layout.dp = draft.cluster.gpus;
  r.micro_batch = 1;
  r.global_batch = draft.cluster.gpus;
  Status s = check_legal(*draft.model, *draft.stack, r);
  return s || of_layout(s.error()) ? Status(Nothing{}) : s;
}

}  // namespace

// A default stack that refuses what is asked for by name gives way to one that does not.
Result<Draft> draft(const Request& request, const Catalogues& catalogues) {
  auto first = draft_on_its_stack(request, catalogues);
  if (text_of(request, "stack") != nullptr || !request.default_stack.empty() || (first && runs_at_all(request, *first)))
    return first;
  for (const char* name : {"megatron", "torchtitan", "megatron-fsdp", "textbook"}) {
    if (first && first->stack->name == name) continue;
    Request with = request;
    with.default_stack = name;
    auto other = draft_on_its_stack(with, catalogues);
    // On TPUs one stack stands for all that runs there.
    if (!other || other->cluster.gpu.arch == "tpu" || !runs_at_all(request, *other)) continue;
    const std::string why =
        (first ? first->stack->name + ", the default here, " : std::string("the default here ")) + "does not run this";
    for (std::string& line : other->recipe.assumed) {
      if (line.starts_with("stack=")) line = "stack=" + other->stack->full_name() + " (" + why + ")";
    }
    return other;
  }
  return first;
}

}  // namespace preflop
