// A plan, search by search: between two calls stands one search, which the caller runs as it likes, with threads
// or bit by bit. The outcome does not depend on how.
#pragma once

#include <functional>
#include <memory>

#include "src/adapt/plan_request.hpp"
#include "src/search/plan.hpp"

namespace preflop {

struct PendingSearch {
  const Question* question = nullptr;
  const Space* space = nullptr;
  PlanOptions options;
};

class PlanRun {
 public:
  // `catalogues` must outlive the run. Errors: words or a recipe that say nothing, nothing legal to ask.
  static Result<std::unique_ptr<PlanRun>> begin(const Request& request, const PlanWords& words,
                                                const Catalogues& catalogues);
  ~PlanRun();
  PlanRun(const PlanRun&) = delete;
  PlanRun& operator=(const PlanRun&) = delete;

  // The search to be run next; null when the plan is complete. Valid until `give`.
  const PendingSearch* pending() const;
  // What that search found, merged. An error ends the run.
  Status give(SearchResult found);

  std::size_t clusters() const;       // asked about
  std::size_t clusters_done() const;  // and searched
  // Once nothing is pending.
  Plan take();

 private:
  struct Work;
  explicit PlanRun(std::unique_ptr<Work> work);
  std::unique_ptr<Work> work_;
};

// A run to its end.
using Searcher = std::function<SearchResult(const Question&, const Space&, const PlanOptions&)>;
Result<Plan> make_plan(const Request& request, const PlanWords& words, const Catalogues& catalogues,
                       const Searcher& search);

}  // namespace preflop
