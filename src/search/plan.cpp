#include "src/search/plan.hpp"

#include <limits>

#include "src/step/time.hpp"

namespace preflop {

const char* name(Objective objective) {
  static constexpr const char* kNames[kObjectives] = {"time",   "cost", "gpu-hours", "energy",
                                                      "memory", "gpus", "seq",       "micro-batch"};
  return kNames[static_cast<int>(objective)];
}

Status prepare(Question& q) {
  if (!q.recipe.mfu) return Nothing{};
  // One GPU's worth of the model is enough: the time of a given MFU does not know the layout.
  const Convention* c = find_convention(q.recipe.mfu_convention);
  Recipe r = q.recipe;
  r.layout = Layout{};
  r.layout.schedule = q.stack->schedules.front();
  r.layout.zero = q.stack->zero_default;
  r.micro_batch = 1;
  const auto analysed = analyse_recipe(*q.model, *q.stack, r);
  if (!analysed) return analysed.error();
  const auto step = step_estimate<double>(*analysed, q.cluster, compute_estimate<double>(*analysed, *c));
  if (step) q.given_seconds = step->seconds.number();
  return Nothing{};
}

SearchResult search_all(const Question& question, const Space& space, const PlanOptions& options) {
  Search search(question, space, options.objective, options.limits, options.top);
  while (search.advance(std::numeric_limits<std::uint64_t>::max())) {
  }
  std::vector<SearchResult> one;
  one.push_back(search.result());
  return merge(std::move(one), options.top);
}

Result<Analysed> analyse_plan(const Question& question, const Space& space, std::uint64_t ordinal) {
  const std::optional<Recipe> recipe = recipe_at(question, space, space.position(ordinal));
  if (!recipe) return Error{"plan", "no layout at this ordinal", ""};
  return analyse_recipe(*question.model, *question.stack, *recipe);
}

Result<LayoutChoice> best_layout(const Question& question) {
  Question q = question;
  if (Status s = prepare(q); !s) return s.error();
  const Space space = make_space(q);
  const SearchResult found = search_all(q, space, PlanOptions{Objective::time, {}, 1});
  const bool fits = !found.best.empty();
  const std::optional<Found>& second = found.tight ? found.tight : found.nearest;
  if (!fits && !second) {
    const std::string met = found.rejected.empty() ? "" : " (most often: " + found.rejected.front().example + ")";
    return Error{
        "--on",
        "no legal layout of " + std::to_string(q.cluster.gpus) + " GPUs for this model on stack " + q.stack->name + met,
        "another GPU count or --global-batch"};
  }
  const auto analysed = analyse_plan(q, space, fits ? found.best.front().priced.ordinal : second->priced.ordinal);
  if (!analysed) return analysed.error();
  return LayoutChoice{analysed->recipe, fits || found.tight.has_value()};
}

SpaceReport report(const SearchResult& result) {
  SpaceReport out{result.space, result.pruned, result.checked, result.priced, {}};
  for (const Reason& r : result.rejected) out.rejected.push_back({r.text, r.example, r.count});
  return out;
}

}  // namespace preflop
