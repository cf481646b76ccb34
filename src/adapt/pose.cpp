// A request becomes a problem: model, cluster, stack and a complete, legal recipe. What was not given
// is chosen by the defaults of the documentation and listed in recipe.assumed.
#include <algorithm>
#include <utility>

#include "src/adapt/question.hpp"
#include "src/adapt/recipe_keys.hpp"
#include "src/adapt/request.hpp"
#include "src/adapt/run_keys.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/run/forecast.hpp"
#include "src/stack/chip.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

std::string num(std::int64_t v) { return std::to_string(v); }
void assume(Recipe& r, std::string line) { r.assumed.push_back(std::move(line)); }

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

// The batch that `plan` takes for this cluster, where the layout can share it out; else the nearest that it can.
void set_shared_batch(const SetBatch& set_batch, const Cluster& cluster, bool given, Recipe& recipe) {
  const Layout& l = recipe.layout;
  recipe.global_batch = shared_batch(set_batch, recipe, cluster.gpus, given);
  if (recipe.global_batch % (recipe.micro_batch * l.dp * (l.vpp > 1 ? l.pp : 1)) != 0) set_batch(recipe);
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
  set_shared_batch(*set_batch, draft.cluster, batch_given, recipe);
  if (!*recompute) {
    const std::string why = choose_recompute(draft);
    assume(recipe, "recompute=" + recompute_text(recipe.recompute) + why);
  }
  if (!batch_given) assume_batch(request, recipe);
  return check_tokens(recipe);
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
