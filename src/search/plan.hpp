// From a question to a plan: the search, and its best layouts as estimates of their own.
#pragma once

#include "preflop/plan.hpp"
#include "src/search/search.hpp"

namespace preflop {

struct PlanOptions {
  Objective objective = Objective::time;
  Limits limits;
  std::size_t top = 5;
};

// A search to its end, in one part. Callers with threads run the parts themselves.
SearchResult search_all(const Question& question, const Space& space, const PlanOptions& options);

// The recipe of an ordinal, analysed.
Result<Analysed> analyse_plan(const Question& question, const Space& space, std::uint64_t ordinal);

// The best layout for `estimate`: the plan that fits, tight where nothing else does, else the one that is short
// by least. Errors: nothing is legal, naming what was met most often.
struct LayoutChoice {
  Recipe recipe;
  bool fits = false;
  bool timed = false;  // it is the fastest; else steps have no time, or one and the same
};
Result<LayoutChoice> best_layout(const Question& question);

// Sets what a search needs once per question: with --mfu every layout takes the same time.
Status prepare(Question& question);

SpaceReport report(const SearchResult& result);

}  // namespace preflop
