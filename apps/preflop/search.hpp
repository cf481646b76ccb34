// The search with every core of this machine; the library itself starts no thread.
#pragma once

#include "src/search/plan.hpp"

namespace preflop::cli {

SearchResult search_parallel(const Question& question, const Space& space, const PlanOptions& options);

}  // namespace preflop::cli
