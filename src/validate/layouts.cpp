#include "src/validate/layouts.hpp"

#include <algorithm>

#include "src/search/plan.hpp"
#include "src/search/why.hpp"

namespace preflop {

namespace {

Question question_of(const Problem& problem) {
  Question q{problem.model.get(), problem.stack, problem.cluster, problem.analysed.recipe, 0};
  for (const char* key : kPlannedKeys) q.recipe.given.erase(key);
  q.recipe.layout = Layout{};
  q.recipe.layout.schedule = problem.stack->schedules.front();
  return q;
}

}  // namespace

std::optional<PublishedLayout> published_layout(const RowRequest& row, const std::string& id, const std::string& source,
                                                const Catalogues& catalogues) {
  const auto& keys = row.request.keys;
  const bool timed = std::any_of(row.readings.begin(), row.readings.end(),
                                 [](const Reading& r) { return r.metric == "time.step_seconds"; });
  if (!timed || row.skip || (keys.find("tp") == keys.end() && keys.find("pp") == keys.end())) return std::nullopt;
  const auto problem = row_problem(row, catalogues);
  if (!problem) return std::nullopt;
  const Estimate theirs = estimate<double>(problem->analysed, problem->cluster);
  if (!theirs.step) return std::nullopt;
  const Question question = question_of(*problem);
  const Space space = make_space(question);
  const SearchResult found = search_all(question, space, PlanOptions{Objective::time, {}, 1});
  if (found.best.empty()) return std::nullopt;
  const auto analysed = analyse_plan(question, space, found.best.front().priced.ordinal);
  if (!analysed) return std::nullopt;
  const Estimate best = estimate<double>(*analysed, question.cluster);
  if (!best.step) return std::nullopt;
  PublishedLayout out;
  out.id = id;
  out.source = source;
  out.job = row.model + " on " + std::to_string(theirs.cluster.gpus) + " x " + theirs.cluster.gpu.id + ", " +
            theirs.recipe.precision;
  out.theirs = theirs.recipe;
  out.best = best.recipe;
  out.seconds = theirs.step->seconds.number();
  out.best_seconds = best.step->seconds.number();
  out.verdict = theirs.memory.verdict;
  out.difference = difference_words(step_differences(best, theirs), 2);
  return out;
}

}  // namespace preflop
