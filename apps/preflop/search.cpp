#include "apps/preflop/search.hpp"

#include <algorithm>
#include <limits>
#include <thread>

namespace preflop::cli {

// The parts of a search, one per core; the outcome does not depend on their number.
SearchResult search_parallel(const Question& question, const Space& space, const PlanOptions& options) {
  const std::uint32_t cores = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
  std::vector<SearchResult> results(cores);
  std::vector<std::thread> threads;
  const auto work = [&](std::uint32_t part) {
    Search search(question, space, options.objective, options.limits, options.top, part, cores);
    while (search.advance(std::numeric_limits<std::uint64_t>::max())) {
    }
    results[part] = search.result();
  };
  for (std::uint32_t part = 1; part < cores; ++part) threads.emplace_back(work, part);
  work(0);
  for (std::thread& thread : threads) thread.join();
  return merge(std::move(results), options.top);
}

}  // namespace preflop::cli
