// A request becomes a problem: model, cluster, stack and a complete, legal recipe. What was not given
// is chosen by the defaults of the documentation and listed in recipe.assumed.
#include <algorithm>
#include <tuple>
#include <utility>

#include "src/adapt/gpu_defaults.hpp"
#include "src/adapt/question.hpp"
#include "src/adapt/recipe_keys.hpp"
#include "src/adapt/request.hpp"
#include "src/adapt/run_keys.hpp"
#include "src/adapt/shape_string.hpp"
#include "src/adapt/stack_choice.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/run/forecast.hpp"
#include "src/stack/chip.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

constexpr std::int64_t kDefaultSeq = 8192;
constexpr std::int64_t kTuningSeq = 4096;  // of fine-tuning
constexpr std::int64_t kLargestSeq = std::int64_t{1} << 24;

std::string num(std::int64_t v) { return std::to_string(v); }
void assume(Recipe& r, std::string line) { r.assumed.push_back(std::move(line)); }

Status read_sequence(const Request& request, const Architecture& model, Recipe& recipe) {
  auto seq = size_key(request, "seq");
  if (!seq) return seq.error();
  const auto longest_sample = size_key(request, "max_length");
  if (!longest_sample) return longest_sample.error();
  if (*seq && *longest_sample && **longest_sample > **seq)
    return Error{"--max-length", num(**longest_sample) + " is longer than --seq " + num(**seq), "at most that"};
  if (!*seq && *longest_sample) *seq = **longest_sample;
  const std::int64_t most = text_of(request, "samples") == nullptr ? kDefaultSeq : kTuningSeq;
  const std::int64_t longest = model.max_seq ? model.max_seq->get() : 0;
  if (*seq) {
    recipe.seq = **seq;
    if (recipe.seq > kLargestSeq) return Error{"--seq", num(recipe.seq) + " tokens", "at most " + num(kLargestSeq)};
    if (model.positions == Positions::learned && recipe.seq > model.position_rows.get()) {
      return Error{
          "--seq",
          num(recipe.seq) + " tokens, but the model has " + num(model.position_rows.get()) + " learned positions",
          "at most that"};
    }
  } else {
    recipe.seq = longest > 0 ? std::min(longest, most) : most;
    assume(recipe, "seq=" + num(recipe.seq) + (longest > 0 && longest <= most ? " (the model's maximum)" : ""));
  }
  const auto micro = size_key(request, "micro_batch");
  if (!micro) return micro.error();
  recipe.micro_batch = micro->value_or(1);
  if (!*micro) assume(recipe, "micro_batch=1");
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
    assume(recipe, "imbalance=1 (a balanced router, no token dropped)");
  if (experts) {
    const Result<std::string> dispatcher = dispatcher_here(request, stack, gpu);
    if (!dispatcher) return dispatcher.error();
    recipe.dispatcher = *dispatcher;
    if (text_of(request, "dispatcher") == nullptr) assume(recipe, "dispatcher=" + recipe.dispatcher);
  }
  const std::string* mtp = text_of(request, "mtp");
  if (mtp == nullptr) {
    recipe.mtp = model.mtp_layers;
    if (model.mtp_layers > 0) assume(recipe, "mtp=" + num(model.mtp_layers) + " (the model's own)");
    return Nothing{};
  }
  constexpr std::int64_t kMostLayers = 64;
  const auto layers = parse_count(*mtp, "--mtp");
  if (!layers) return layers.error();
  if (layers->get() > kMostLayers) return Error{"--mtp", num(layers->get()) + " layers", "0 to " + num(kMostLayers)};
  recipe.mtp = model.mtp_layers = layers->get();
  return Nothing{};
}

// Parallel sizes that were given, the others 1, dp filling the cluster.
Status read_layout(const Request& request, const Cluster& cluster, const Stack& stack, bool experts, Recipe& recipe) {
  Layout& l = recipe.layout;
  const std::pair<const char*, std::int64_t*> sizes[] = {
      {"tp", &l.tp}, {"pp", &l.pp}, {"vpp", &l.vpp}, {"cp", &l.cp}, {"ep", &l.ep}, {"etp", &l.etp}, {"hsdp", &l.hsdp}};
  for (const auto& [key, slot] : sizes) {
    const auto size = size_key(request, key);
    if (!size) return size.error();
    if (*size)
      *slot = **size;
    else if (std::string_view(key) == "etp" && experts && !stack.own_etp && l.tp > 1) {
      *slot = l.tp;
      assume(recipe, "etp=" + num(l.tp) + " (stack " + stack.full_name() + ")");
    } else if (*slot == 1 && std::string_view(key) != "vpp" && (experts || (key[0] != 'e')))
      assume(recipe, std::string(key) + "=1");
  }
  l.zero = stack.zero_default;
  if (const std::string* text = text_of(request, "zero")) {
    if (text->size() != 1 || (*text)[0] < '0' || (*text)[0] > '3')
      return Error{"--zero", text::quoted(*text) + " is no stage", "0, 1, 2 or 3"};
    l.zero = (*text)[0] - '0';
  } else {
    assume(recipe, "zero=" + num(l.zero) + " (stack " + stack.name + ")");
  }
  const std::int64_t model_parallel = l.tp * l.pp * l.cp;
  if (cluster.gpus % model_parallel != 0) {
    const std::int64_t below = cluster.gpus / model_parallel * model_parallel;
    return Error{"--on",
                 num(cluster.gpus) + " GPUs are not a multiple of tp " + num(l.tp) + " x pp " + num(l.pp) + " x cp " +
                     num(l.cp) + " = " + num(model_parallel),
                 (below > 0 ? num(below) + " or " : "") + num(below + model_parallel) + " GPUs"};
  }
  l.dp = cluster.gpus / model_parallel;
  const auto dp = size_key(request, "dp");
  if (!dp) return dp.error();
  if (*dp && **dp != l.dp) {
    return Error{"--dp",
                 "tp " + num(l.tp) + " x pp " + num(l.pp) + " x cp " + num(l.cp) + " x dp " + num(**dp) + " is " +
                     num(model_parallel * **dp) + " GPUs, the cluster has " + num(cluster.gpus),
                 "--dp " + num(l.dp)};
  }
  if (!*dp) assume(recipe, "dp=" + num(l.dp) + " (fills the cluster)");
  if (l.hsdp > 0 && (l.dp * l.cp) % l.hsdp != 0)
    return Error{"--hsdp", num(l.hsdp) + " does not divide dp x cp = " + num(l.dp * l.cp), "a divisor"};
  return Nothing{};
}

Status read_layout_rest(const Request& request, const Stack& stack, Recipe& recipe) {
  Layout& l = recipe.layout;
  const auto sp = switch_key(request, "sp");
  if (!sp) return sp.error();
  l.sp = sp->value_or(stack.sp_default) && l.tp > 1;
  if (!*sp && l.tp > 1) assume(recipe, std::string("sp=") + (l.sp ? "true" : "false") + " (stack " + stack.name + ")");
  if (*sp && **sp && l.tp == 1) assume(recipe, "sp=false (tp is 1)");
  auto split = list_key(request, "layers_per_stage");
  if (!split) return split.error();
  l.layers_per_stage = std::move(split).value();
  if (!l.layers_per_stage.empty() && l.vpp > 1)
    return Error{"--layers-per-stage", "an explicit split with --vpp is not built yet", "one of the two"};
  if (const std::string* text = text_of(request, "schedule")) {
    l.schedule = *text;
  } else {
    l.schedule = l.vpp > 1 ? "interleaved" : stack.schedules.front();
    if (l.pp > 1) assume(recipe, "schedule=" + l.schedule);
  }
  return Nothing{};
}

// Of all that the stack can recompute with this layout, what is fastest and fits; nothing where no time is known, or
// nothing fits.
std::optional<Recompute> fastest_recompute(const Draft& draft) {
  Question q;
  q.model = draft.model.get();
  q.stack = draft.stack;
  q.cluster = draft.cluster;
  q.recipe = draft.recipe;
  q.recipe.given.insert(kPlannedKeys.begin(), kPlannedKeys.end());
  q.recipe.given.erase("recompute");
  const auto choice = best_layout(q);
  if (!choice || !choice->fits || !choice->timed) return std::nullopt;
  return choice->recipe.recompute;
}

// With a given layout: none, if that fits; else what costs least time and fits. Where no time is known: the least that
// fits. Full when nothing does. Returns what it was chosen for.
std::string choose_recompute(Draft& draft) {
  Recipe& recipe = draft.recipe;
  const Stack& stack = *draft.stack;
  std::vector<RecomputeKind> policies = {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full};
  if (stack.recompute_default == "selective") policies.erase(policies.begin());
  if (stack.selective.empty()) std::erase(policies, RecomputeKind::selective);
  bool first = true;
  for (RecomputeKind policy : policies) {
    recipe.recompute.kind = policy;
    const Result<Analysed> analysed = analyse_recipe(*draft.model, stack, recipe);
    if (!analysed) return "";  // reported by the caller, who analyses again
    const MemoryEstimate<double> memory = memory_estimate<double>(*analysed, draft.cluster);
    if (!memory.margin || memory.margin->number() >= 0) return "";
    if (!std::exchange(first, false)) continue;
    if (const auto fastest = fastest_recompute(draft)) {
      recipe.recompute = *fastest;
      return " (the fastest that fits)";
    }
  }
  return "";
}

Status check_tokens(const Recipe& r) {
  if (r.run.sequences && *r.run.sequences < static_cast<double>(r.global_batch))
    return Error{"--samples",
                 text::grouped(static_cast<long long>(*r.run.sequences)) + " sequences are less than one step of " +
                     num(r.global_batch),
                 "more samples or epochs, or a smaller --global-batch"};
  if (r.run.sequences) return Nothing{};
  const double step = static_cast<double>(r.global_batch) * static_cast<double>(r.seq);
  if (!r.tokens || *r.tokens >= step) return Nothing{};
  return Error{"--tokens",
               text::grouped(static_cast<long long>(*r.tokens)) + " tokens are less than one step of " +
                   text::grouped(static_cast<long long>(step)),
               "at least one step, or a smaller --global-batch"};
}

// No size is given: the stack's best plan.
Status plan_layout(const Request& request, Draft& draft) {
  const auto question = ask(request, draft);
  if (!question) return question.error();
  auto choice = best_layout(*question);
  if (!choice) return choice.error();
  draft.recipe = std::move(choice->recipe);
  assume_planned(*question, draft.recipe,
                 choice->fits ? "the best plan: preflop plan" : "nothing fits; this is short by least");
  return Nothing{};
}

Status complete_layout(const Request& request, Draft& draft) {
  if (leaves_layout_open(request)) return plan_layout(request, draft);
  Recipe& recipe = draft.recipe;
  bool batch_given = false;
  const auto set_batch = batch_rule(request, recipe, batch_given);
  if (!set_batch) return set_batch.error();
  const auto recompute = recompute_key(request);
  if (!recompute) return recompute.error();
  if (*recompute) recipe.recompute = **recompute;
  // A policy that the stack does not have is said before any layout is tried.
  if (Status s = check_recompute(*draft.model, *draft.stack, recipe); !s) return s.error();
  if (Status s = read_layout(request, draft.cluster, *draft.stack, has_experts(*draft.model), recipe); !s)
    return s.error();
  if (Status s = read_layout_rest(request, *draft.stack, recipe); !s) return s.error();
  (*set_batch)(recipe);
  if (!*recompute) {
    const std::string why = choose_recompute(draft);
    assume(recipe, "recompute=" + recompute_text(recipe.recompute) + why);
  }
  if (!batch_given)
    assume(recipe, "global_batch=" + num(recipe.global_batch) +
                       (text_of(request, "samples") == nullptr ? " (4 Mi tokens" : " (64 sequences") +
                       ", to the nearest whole micro-batches)");
  return check_tokens(recipe);
}

// What a config.json or a shape string left open. A catalogue's row leaves nothing open.
void assume_shape(const Request& request, const Architecture& a, Recipe& recipe) {
  const bool shape = !request.config && looks_like_shape(request.model);
  for (const std::string& line : a.assumed) assume(recipe, line + " (--assume)");
  if (!request.config && !shape) return;
  for (const std::string& line : a.defaulted)
    assume(recipe, line + (shape ? " (not in the shape string)" : " (not in config.json: the default of its class)"));
}

}  // namespace

Result<Catalogues> Catalogues::load(const std::map<std::string, std::string>& overlays) {
  const auto text = [&](const char* file) {
    const auto it = overlays.find(file);
    return it == overlays.end() ? std::string_view() : std::string_view(it->second);
  };
  std::map<std::string, std::string> stack_files;
  for (const auto& [file, content] : overlays) {
    if (file.starts_with("stacks/")) stack_files[file.substr(7)] = content;
  }
  auto machines = MachineCatalogue::load(text("gpus.csv"), text("platforms.csv"));
  if (!machines) return machines.error();
  auto models = ModelCatalogue::load(text("models.csv"));
  if (!models) return models.error();
  auto stacks = StackCatalogue::load(stack_files);
  if (!stacks) return stacks.error();
  auto run = RunData::load(overlays);
  if (!run) return run.error();
  return Catalogues{std::move(machines).value(), std::move(models).value(), std::move(stacks).value(),
                    std::move(run).value()};
}

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

Result<Draft> draft(const Request& request, const Catalogues& catalogues) {
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
  recipe.stack = out.stack->name;
  recipe.stack_generation = out.stack->generation;
  const Result<GpuDefaults> here = with_gpu_defaults(request, *out.stack, out.cluster.gpu);
  if (!here) return here.error();
  for (const std::string& assumption : here->assumed) assume(recipe, assumption);
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

Result<Problem> pose(const Request& request, const Catalogues& catalogues) {
  auto drafted = draft(request, catalogues);
  if (!drafted) return drafted.error();
  if (Status s = complete_layout(request, *drafted); !s) return s.error();
  auto analysed = analyse_recipe(*drafted->model, *drafted->stack, drafted->recipe);
  if (!analysed) return offered_here(analysed.error(), *drafted->stack, drafted->cluster.gpu);
  Problem out;
  out.architecture = std::move(drafted->architecture);
  out.model = std::move(drafted->model);
  out.stack = drafted->stack;
  out.cluster = std::move(drafted->cluster);
  out.analysed = std::move(analysed).value();
  if (out.analysed.recipe.tokens) {
    if (Status s = check_run(out.analysed, out.cluster); !s) return s.error();
  }
  return out;
}

}  // namespace preflop
