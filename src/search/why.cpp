#include "src/search/why.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/text.hpp"
#include "src/machine/cluster.hpp"
#include "src/run/estimate.hpp"
#include "src/search/plan.hpp"
#include "src/step/memory.hpp"

namespace preflop {

namespace {

std::string signed_seconds(double s) { return (s < 0 ? "-" : "+") + text::seconds(std::abs(s)); }

std::string faster_by(double ours, double theirs) { return text::percent(theirs / ours - 1); }

std::string describe(const Recipe& r) {
  const Layout& l = r.layout;
  std::string out = "tp " + std::to_string(l.tp) + " pp " + std::to_string(l.pp) + " dp " + std::to_string(l.dp);
  if (l.vpp > 1) out += " vpp " + std::to_string(l.vpp);
  if (l.cp > 1) out += " cp " + std::to_string(l.cp);
  if (l.ep > 1) out += " ep " + std::to_string(l.ep);
  if (l.etp > 1) out += " etp " + std::to_string(l.etp);
  return out + " zero " + std::to_string(l.zero) + " micro-batch " + std::to_string(r.micro_batch);
}

std::vector<TermDifference> largest_first(std::vector<TermDifference> terms) {
  std::erase_if(terms, [](const TermDifference& t) { return t.a == t.b; });
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& x, const auto& y) { return std::abs(x.b - x.a) > std::abs(y.b - y.a); });
  return terms;
}

// The recipe with another degree of one axis, dp filling the cluster again; none where it cannot.
std::optional<Recipe> neighbour(const Question& q, Recipe r, const char* axis, std::int64_t times) {
  Layout& l = r.layout;
  const std::string_view key = axis;
  if (key == "vpp" && l.pp == 1) return std::nullopt;
  const std::vector<int>& stages = q.stack->zero_allowed;
  if (key == "zero" && std::find(stages.begin(), stages.end(), l.zero + 1) == stages.end()) return std::nullopt;
  l.layers_per_stage.clear();
  if (key == "tp") l.tp *= times;
  if (key == "pp") l.pp *= times;
  if (key == "cp") l.cp *= times;
  if (key == "ep") l.ep *= times;
  if (key == "micro_batch") r.micro_batch *= times;
  if (key == "vpp") {
    l.vpp *= times;
    l.schedule = "interleaved";
  }
  if (key == "zero") l.zero += 1;
  if (!q.stack->own_etp && has_experts(*q.model)) l.etp = l.tp;
  if (q.cluster.gpus % l.model_parallel() != 0) return std::nullopt;
  l.dp = q.cluster.gpus / l.model_parallel();
  l.sp = q.stack->sp_default && l.tp > 1;
  return r;
}

}  // namespace

const char* breakdown_words(Lost lost) {
  static constexpr const char* kWords[kLost] = {"matrix products",
                                                "attention",
                                                "memory-bound operators",
                                                "output layer and loss",
                                                "recomputation",
                                                "kernel launches",
                                                "tensor-parallel communication",
                                                "context-parallel communication",
                                                "expert-parallel communication",
                                                "pipeline communication",
                                                "data-parallel communication",
                                                "offloading",
                                                "imbalance",
                                                "pipeline bubble",
                                                "optimizer step",
                                                "not broken down"};
  return kWords[static_cast<int>(lost)];
}

std::vector<TermDifference> step_differences(const Estimate& a, const Estimate& b) {
  std::vector<TermDifference> out;
  for (int i = 0; i < kLost && a.step && b.step; ++i) {
    const auto part = [&](const Estimate& e) { return e.step->breakdown[i] ? e.step->breakdown[i]->number() : 0.0; };
    out.push_back({breakdown_words(static_cast<Lost>(i)), part(a), part(b)});
  }
  return largest_first(std::move(out));
}

std::vector<TermDifference> memory_differences(const Estimate& a, const Estimate& b) {
  std::vector<TermDifference> out;
  for (int i = 0; i < kTerms; ++i) {
    const auto part = [&](const Estimate& e) { return e.memory.stages[e.memory.peak_stage].terms[i].number(); };
    out.push_back({name(static_cast<Term>(i)), part(a), part(b)});
  }
  return largest_first(std::move(out));
}

std::string difference_words(const std::vector<TermDifference>& differences, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < std::min(most, differences.size()); ++i)
    out += (out.empty() ? "" : ", ") + differences[i].name + " " + signed_seconds(differences[i].b - differences[i].a);
  return out;
}

std::string broken_limits(const Estimate& e, const Limits& limits) {
  std::string out;
  const auto add = [&](const std::string& what) { out += (out.empty() ? "" : ", ") + what; };
  if (e.memory.verdict == Verdict::tight && !limits.allow_tight) add("tight");
  const double over = e.memory.stages[e.memory.peak_stage].device.number() - limits.device_bytes;
  if (limits.device_bytes > 0 && over > 0) add(text::gib(over) + " over --max-memory");
  if (limits.seconds > 0 && e.step && e.step->seconds.number() > limits.seconds) add("too slow for the limit");
  return out;
}

Result<Recipe> best_form(const Question& q, const Recipe& recipe, bool keep_chunks, const PlanOptions& options) {
  Question one = q;
  one.recipe = recipe;
  for (const char* size : {"tp", "pp", "cp", "ep", "zero", "micro_batch"}) one.recipe.given.insert(size);
  if (keep_chunks) one.recipe.given.insert("vpp");
  const Space space = make_space(one);
  const auto recipe_of = [&](const Found& found) -> Result<Recipe> {
    std::optional<Recipe> at = recipe_at(one, space, space.position(found.priced.ordinal));
    if (!at) return Error{"plan", "no layout at this ordinal", ""};
    at->given = q.recipe.given;
    return std::move(*at);
  };
  SearchResult found = search_all(one, space, {options.objective, options.limits, 1});
  if (!found.best.empty()) return recipe_of(found.best.front());
  found = search_all(one, space, {options.objective, Limits{0, 0, true}, 1});
  if (!found.best.empty()) return recipe_of(found.best.front());
  if (found.nearest) return recipe_of(*found.nearest);
  const auto analysed = analyse_recipe(*q.model, *q.stack, recipe);
  if (!analysed) return analysed.error();
  return found.rejected.empty() ? Error{"plan", "no legal layout", ""} : found.rejected.front().example;
}

std::string against(const Question& q, const Recipe& recipe, const Estimate& best, const Limits& limits) {
  const auto analysed = analyse_recipe(*q.model, *q.stack, recipe);
  if (!analysed) return "illegal: " + analysed.error().text();
  const Estimate e = bare_estimate<double>(*analysed, q.cluster);
  if (e.memory.margin && e.memory.margin->number() < 0) {
    const auto terms = memory_differences(best, e);
    const std::string most = terms.empty() ? ""
                                           : "; " + terms.front().name + " " + text::gib(terms.front().b) +
                                                 " against " + text::gib(terms.front().a);
    return "short of memory by " + text::gib(-e.memory.margin->number()) + most;
  }
  const std::string broken = broken_limits(e, limits);
  const std::string tight = !broken.empty() ? broken + ", " : e.memory.verdict == Verdict::tight ? "tight, " : "";
  if (!e.step || !best.step) return tight + "fits";
  const double ours = best.step->seconds.number(), theirs = e.step->seconds.number();
  if (theirs == ours) return tight + "as fast";
  return tight + (theirs > ours ? faster_by(ours, theirs) + " slower: " : faster_by(theirs, ours) + " faster: ") +
         difference_words(step_differences(best, e), 2);
}

std::vector<std::string> explain_plan(const Question& q, const std::vector<Estimate>& plans,
                                      const PlanOptions& options) {
  std::vector<std::string> out;
  const Estimate& best = plans.front();
  if (best.recipe.mfu)
    out.push_back(
        "At the MFU that is given every layout takes the same time: the first is the one that needs least memory. "
        "Without --mfu layouts are told apart by their predicted times.");
  if (best.step && !best.recipe.mfu) {
    double most = 0;
    int limit = -1;
    for (int i = 0; i < kLost; ++i) {
      const double part = best.step->breakdown[i] ? best.step->breakdown[i]->number() : 0;
      if (static_cast<Lost>(i) == Lost::gemm || part <= most) continue;
      most = part;
      limit = i;
    }
    if (limit >= 0)
      out.push_back(
          "What costs most beside matrix products: " + std::string(breakdown_words(static_cast<Lost>(limit))) + ", " +
          text::percent(most / best.step->seconds.number()) + " of the step" +
          (best.memory.margin ? "; " + text::gib(best.memory.margin->number()) + " of memory to spare." : "."));
  }
  if (plans.size() > 1 && best.step && plans[1].step) {
    const std::string difference = difference_words(step_differences(best, plans[1]), 3);
    const double more = (needed_at_most(plans[1].memory) - needed_at_most(best.memory)).number();
    const std::string memory = options.objective == Objective::memory && more != 0
                                   ? "; " + text::gib(std::abs(more)) + (more > 0 ? " more" : " less") + " a GPU"
                                   : "";
    const Cluster &ours = best.cluster, &theirs = plans[1].cluster;
    const std::string there = same_cluster(ours, theirs) ? ""
                                                         : text::grouped(theirs.gpus) + " x " +
                                                               machine_name(theirs, {&ours, &theirs}) + " at ";
    out.push_back("Against the next, " + there + describe(plans[1].recipe) + ": " +
                  (difference.empty() ? "the same step" : difference) + memory + ".");
  }
  for (const auto& [axis, times] : {std::pair("tp", 2), std::pair("pp", 2), std::pair("vpp", 2), std::pair("cp", 2),
                                    std::pair("ep", 2), std::pair("micro_batch", 2), std::pair("zero", 1)}) {
    if (q.fixed(axis) || (std::string_view(axis) == "ep" && !has_experts(*q.model))) continue;
    const std::optional<Recipe> next = neighbour(q, best.recipe, axis, times);
    if (!next) continue;
    const std::string key = std::string_view(axis) == "micro_batch" ? "micro-batch" : axis;
    const Result<Recipe> form = best_form(q, *next, key == "vpp", options);
    out.push_back("More " + key + " (" + describe(form ? *form : *next) +
                  "): " + (form ? against(q, *form, best, options.limits) : "illegal: " + form.error().text()) + ".");
  }
  return out;
}

}  // namespace preflop
