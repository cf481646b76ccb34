// The exact search: every ordinal of a space is refused by name, excluded by a proved bound, or priced.
//
// Work is split by tp, cp, sp (rows of the tables are not shared between parts): part i of n looks at its own
// cells and results are merged. The outcome does not depend on the number of parts nor on how often advance()
// is called: plans are ordered by what the objective says and, where that is equal, by ordinal.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "preflop/plan.hpp"
#include "src/search/tables.hpp"

namespace preflop {

struct Limits {
  double seconds = 0;  // per step; 0 = none
  double device_bytes = 0;
  bool allow_tight = false;
};

// A plan as the tables price it.
struct Priced {
  std::uint64_t ordinal = 0;
  double seconds = 0;  // per step; 0 = not known
  double needed = 0;   // bytes: allocated at most by the fullest stage, and what lives outside the allocator
  double device = 0;   // reserved and outside
  Verdict verdict = Verdict::unknown;
};
// Does it fit, and meet what is asked for?
bool usable(const Priced& priced, const Limits& limits);
// What is minimised first, and then. Equal pairs: the smaller ordinal.
std::pair<double, double> rank(Objective objective, const Priced& priced, std::int64_t micro_batch);

struct Reason {
  std::string text;  // "--tp: N does not divide the N query heads"
  Error example;     // with the numbers of the first one met
  std::uint64_t count = 0;
  std::uint64_t first = 0;  // its ordinal
};

// Does it come from the sizes of a layout? Where no layout is legal, what does not is the reason that counts.
bool of_layout(const Error& error);
// Not where a layout has another ordinal too: it is counted, last, and is no reason for anyone.
bool is_refusal(const Reason& reason);

struct Found {
  Priced priced;
  std::pair<double, double> rank;
};
struct SearchResult {
  std::uint64_t space = 0, pruned = 0, checked = 0, priced = 0, rows = 0;
  // By count, the largest first; where no layout is legal, first those that no layout mends, last that sizes do not
  // divide the GPUs.
  std::vector<Reason> rejected;
  std::vector<Found> best;       // at most `top`
  std::optional<Found> nearest;  // legal, and short of memory by least, where nothing fits
  std::optional<Found> tight;    // the best of the hidden tight ones
  std::optional<Found> slow;     // the fastest of those that miss a limit of time
};

class Search {
 public:
  // `question` and `space` must outlive the search.
  // By time, what cannot be faster than `top` plans known beforehand (src/search/seed.hpp) is not priced.
  enum class Bound : std::uint8_t { none, seeded };
  Search(const Question& question, const Space& space, Objective objective, const Limits& limits, std::size_t top,
         std::uint32_t part = 0, std::uint32_t parts = 1, Bound bound = Bound::seeded);
  Search(const Question& question, const Space& space, Objective objective, const Limits& limits, std::size_t top,
         Bound bound)
      : Search(question, space, objective, limits, top, 0, 1, bound) {}
  ~Search();
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // Looks at about `ordinals` more. False when nothing is left.
  bool advance(std::uint64_t ordinals);
  SearchResult result() const;

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

SearchResult merge(std::vector<SearchResult> parts, std::size_t top);

// One ordinal by the tables; the error says why it is none.
Result<Priced> price_ordinal(const Question& question, const Space& space, Tables& tables, std::uint64_t ordinal);

}  // namespace preflop
