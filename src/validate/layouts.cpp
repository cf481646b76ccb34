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

std::optional<Estimate> best_of(const Question& question) {
  const Space space = make_space(question);
  const SearchResult found = search_all(question, space, PlanOptions{Objective::time, {}, 1});
  if (found.best.empty()) return std::nullopt;
  const auto analysed = analyse_plan(question, space, found.best.front().priced.ordinal);
  if (!analysed) return std::nullopt;
  return estimate<double>(*analysed, question.cluster);
}

double measured_seconds(const Row& row, const std::string& source, Validator& validator) {
  std::vector<Entry> entries;
  validator.add(row, source, entries);
  for (const Entry& e : entries) {
    if (e.metric == "time.step_seconds" && e.measured) return *e.measured;
  }
  return 0;
}

bool same_job(const PublishedLayout& a, const PublishedLayout& b) {
  // Releases scale fp8 per tensor by the past or by the present: products run at one rate.
  const auto rate = [](const PublishedLayout& l) {
    const bool by_tensor = l.theirs.precision == "fp8-delayed" || l.theirs.precision == "fp8-tensorwise";
    return by_tensor ? std::string("fp8") : l.theirs.precision;
  };
  return a.params == b.params && a.gpus == b.gpus && a.gpu == b.gpu && a.theirs.seq == b.theirs.seq &&
         a.theirs.global_batch == b.theirs.global_batch && a.theirs.sample_tokens == b.theirs.sample_tokens &&
         rate(a) == rate(b);
}

}  // namespace

std::optional<PublishedLayout> published_layout(const Row& row, const std::string& source, Validator& validator,
                                                const Catalogues& catalogues) {
  const RowRequest request = validator.request(row, source);
  const auto& keys = request.request.keys;
  const bool timed = std::any_of(request.readings.begin(), request.readings.end(),
                                 [](const Reading& r) { return r.metric == "time.step_seconds"; });
  const bool named = keys.find("tp") != keys.end() || keys.find("pp") != keys.end();
  if (!timed || !named || request.skip || row.flag("duplicate")) return std::nullopt;
  const auto problem = row_problem(request, catalogues);
  if (!problem) return std::nullopt;
  const Estimate theirs = estimate<double>(problem->analysed, problem->cluster);
  const std::optional<Estimate> best = best_of(question_of(*problem));
  if (!theirs.step || !best || !best->step) return std::nullopt;
  PublishedLayout out;
  out.id = row.id;
  out.source = source;
  out.job = request.model + " on " + std::to_string(theirs.cluster.gpus) + " x " + theirs.cluster.gpu.id + ", " +
            theirs.recipe.precision;
  out.theirs = theirs.recipe;
  out.best = best->recipe;
  out.params = theirs.model.params_total.real();
  out.gpus = static_cast<double>(theirs.cluster.gpus);
  out.gpu = theirs.cluster.gpu.id;
  out.cut = row.flag("proxy");
  out.seconds = theirs.step->seconds.number();
  out.best_seconds = best->step->seconds.number();
  out.measured_seconds = measured_seconds(row, source, validator);
  out.verdict = theirs.memory.verdict;
  out.difference = difference_words(step_differences(*best, theirs), 2);
  return out;
}

void compare_measured(std::vector<PublishedLayout>& layouts) {
  for (PublishedLayout& slow : layouts) {
    double least = slow.measured_seconds / 1.05;
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      const PublishedLayout& fast = layouts[i];
      if (fast.measured_seconds <= 0 || fast.measured_seconds >= least || !same_job(slow, fast)) continue;
      if (layout_sizes(slow.theirs) == layout_sizes(fast.theirs)) continue;
      least = fast.measured_seconds;
      slow.overtaken = i;
    }
  }
}

}  // namespace preflop
