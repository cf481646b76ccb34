#include "src/search/plan.hpp"

#include <limits>

#include "src/step/time.hpp"

namespace preflop {

const char* name(Objective objective) {
  static constexpr const char* kNames[kObjectives] = {"time",   "cost", "gpu-hours", "energy",
                                                      "memory", "gpus", "seq",       "micro-batch"};
  return kNames[static_cast<int>(objective)];
}

namespace {

// Seconds of a step on one GPU's worth of the model; 0 where no time can be predicted.
Result<double> plain_seconds(const Question& q) {
  const Convention* c = find_convention(q.recipe.mfu_convention);
  Recipe r = q.recipe;
  r.layout = Layout{};
  r.layout.schedule = q.stack->schedules.front();
  r.layout.zero = q.stack->zero_default;
  r.micro_batch = 1;
  const auto analysed = analyse_recipe(*q.model, *q.stack, r);
  if (!analysed) return analysed.error();
  const auto step = step_estimate<double>(*analysed, q.cluster, compute_estimate<double>(*analysed, *c));
  return step ? step->seconds.number() : 0;
}

}  // namespace

Status prepare(Question& q) {
  if (!q.recipe.mfu) return Nothing{};
  // The time of a given MFU does not know the layout.
  const Result<double> seconds = plain_seconds(q);
  if (!seconds) return seconds.error();
  q.given_seconds = *seconds;
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
  if (q.recipe.mfu) {
    // At a given MFU all layouts take the same time: the best is the one by prediction, where there is one.
    Question predicted = question;
    predicted.recipe.mfu.reset();
    const Result<double> seconds = plain_seconds(predicted);
    if (seconds && *seconds > 0) q.recipe.mfu.reset();
  }
  if (Status s = prepare(q); !s) return s.error();
  const Space space = make_space(q);
  const SearchResult found = search_all(q, space, PlanOptions{Objective::time, {}, 1});
  const bool fits = !found.best.empty();
  const std::optional<Found>& second = found.tight ? found.tight : found.nearest;
  if (!fits && !second) {
    if (!found.rejected.empty() && !of_layout(found.rejected.front().example)) return found.rejected.front().example;
    const std::string met =
        found.rejected.empty() ? "" : " (most often: " + found.rejected.front().example.text() + ")";
    return Error{
        "--on",
        "no legal layout of " + std::to_string(q.cluster.gpus) + " GPUs for this model on stack " + q.stack->name + met,
        "another GPU count or --global-batch"};
  }
  const auto analysed = analyse_plan(q, space, fits ? found.best.front().priced.ordinal : second->priced.ordinal);
  if (!analysed) return analysed.error();
  const bool timed = !q.recipe.mfu && (fits ? found.best.front() : *second).priced.seconds > 0;
  LayoutChoice out{analysed->recipe, fits || found.tight.has_value(), timed};
  out.recipe.mfu = question.recipe.mfu;
  return out;
}

SpaceReport report(const SearchResult& result) {
  SpaceReport out{result.space, result.pruned, result.checked, result.priced, {}};
  for (const Reason& r : result.rejected) {
    if (is_refusal(r)) out.rejected.push_back({r.text, r.example.text(), r.count});
  }
  return out;
}

}  // namespace preflop
