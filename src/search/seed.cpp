#include "src/search/seed.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "src/search/cell.hpp"

namespace preflop {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kSmall = 64;  // layouts that are not worth a first look
constexpr std::size_t kCentres = 3;   // plans whose neighbours are looked at, a few times
constexpr int kRounds = 3;

template <class T>
void first_of(std::vector<T>& axis, std::size_t n) {
  if (axis.size() > n) axis.resize(n);
}

// Few values where an axis decides little, and either end of what is recomputed.
Space thinned(const Space& space, const Stack& stack, bool long_sequences) {
  Space out = space;
  if (!long_sequences) first_of(out.cp, 1);
  first_of(out.micro_batch, long_sequences ? 1 : 2);
  first_of(out.vpp, 1);
  if (stack.own_etp) first_of(out.etp, 1);
  first_of(out.loss, 1);
  first_of(out.split, 1);
  first_of(out.hsdp, 1);
  if (out.recompute.size() > 2) out.recompute.erase(out.recompute.begin() + 1, out.recompute.end() - 1);
  return out;
}

// The position in `space` of a position in a space thinned from it: axes lose their later values, and recomputation
// what lies between its ends.
Position widened(const Space& space, const Position& at) {
  Position out = at;
  std::uint32_t& recompute = out[static_cast<std::size_t>(PlanAxis::recompute)];
  if (recompute > 0) recompute = space.size(PlanAxis::recompute) - 1;
  return out;
}

// Plans within the limits, by ordinal.
class Pool : public Cells::Sink {
 public:
  Pool(const Question& question, const Space& space, const Limits& limits)
      : space_(space), limits_(limits), tables_(question, space), cells_(question, space, tables_, *this) {}

  void look(const Position& at) {
    if (!seen_.insert(space_.ordinal(at)).second) return;
    cells_.only(at);
    cells_.look(cells_.cell_of(at));
  }
  void look_around(const Position& at) {
    for (int axis = 0; axis < kPlanAxes; ++axis) {
      Position other = at;
      std::uint32_t& digit = other[static_cast<std::size_t>(axis)];
      for (digit = 0; digit < space_.size(static_cast<PlanAxis>(axis)); ++digit) look(other);
    }
  }
  // Seconds and ordinals, the fastest first.
  std::vector<std::pair<double, std::uint64_t>> fastest(std::size_t n) const {
    std::vector<std::pair<double, std::uint64_t>> out = plans_;
    std::sort(out.begin(), out.end());
    if (out.size() > n) out.resize(n);
    return out;
  }

  void priced(const Priced& p, std::int64_t) override {
    if (p.seconds > 0 && usable(p, limits_)) plans_.emplace_back(p.seconds, p.ordinal);
  }
  void short_of_memory(const Priced&) override {}
  double nearest_needed() const override { return 0; }

 private:
  const Space& space_;
  const Limits& limits_;
  Tables tables_;
  Cells cells_;
  std::set<std::uint64_t> seen_;
  std::vector<std::pair<double, std::uint64_t>> plans_;
};

}  // namespace

double seconds_reached(const Question& question, const Space& space, Objective objective, const Limits& limits,
                       std::size_t top) {
  const bool by_seconds = objective == Objective::time && !question.recipe.mfu && !question.cluster.memory_only;
  if (!by_seconds || top == 0 || space.size() <= kSmall) return kUnknown;
  Pool pool(question, space, limits);
  for (const bool long_sequences : {false, true}) {
    const Space thin = thinned(space, *question.stack, long_sequences);
    Search coarse(question, thin, objective, limits, top, Search::Bound::none);
    while (coarse.advance(std::numeric_limits<std::uint64_t>::max())) {
    }
    for (const Found& found : coarse.result().best) pool.look(widened(space, thin.position(found.priced.ordinal)));
    if (!pool.fastest(1).empty()) break;
  }
  std::set<std::uint64_t> centres;
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& [seconds, ordinal] : pool.fastest(kCentres)) {
      if (centres.insert(ordinal).second) pool.look_around(space.position(ordinal));
    }
  }
  const auto known = pool.fastest(top);
  return known.size() == top ? known.back().first : kUnknown;
}

}  // namespace preflop
