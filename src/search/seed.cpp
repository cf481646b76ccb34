#include "src/search/seed.hpp"

#include <algorithm>
#include <limits>
#include <map>

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
Space thinned(const Space& space, bool long_sequences) {
  Space out = space;
  if (!long_sequences) first_of(out.cp, 1);
  first_of(out.micro_batch, long_sequences ? 1 : 2);
  first_of(out.vpp, 1);
  first_of(out.etp, 1);
  first_of(out.loss, 1);
  first_of(out.split, 1);
  first_of(out.hsdp, 1);
  if (out.recompute.size() > 2) out.recompute.erase(out.recompute.begin() + 1, out.recompute.end() - 1);
  return out;
}

// The position in `space` of a position in a space thinned from it.
template <class T>
std::uint32_t digit_of(const std::vector<T>& axis, const T& value) {
  return static_cast<std::uint32_t>(std::find(axis.begin(), axis.end(), value) - axis.begin());
}
std::uint32_t digit_of(const std::vector<Recompute>& axis, const Recompute& value) {
  const auto same = [&](const Recompute& r) {
    return r.kind == value.kind && r.layers == value.layers && r.modules == value.modules;
  };
  return static_cast<std::uint32_t>(std::find_if(axis.begin(), axis.end(), same) - axis.begin());
}
Position widened(const Space& space, const Space& thin, const Position& at) {
  Position out{};
  const auto put = [&](PlanAxis axis, const auto& wide, const auto& narrow) {
    const std::size_t i = static_cast<std::size_t>(axis);
    const auto& value = narrow[at[i]];
    out[i] = digit_of(wide, value);
  };
  put(PlanAxis::tp, space.tp, thin.tp);
  put(PlanAxis::cp, space.cp, thin.cp);
  put(PlanAxis::sp, space.sp, thin.sp);
  put(PlanAxis::pp, space.pp, thin.pp);
  put(PlanAxis::vpp, space.vpp, thin.vpp);
  put(PlanAxis::split, space.split, thin.split);
  put(PlanAxis::micro_batch, space.micro_batch, thin.micro_batch);
  put(PlanAxis::ep, space.ep, thin.ep);
  put(PlanAxis::etp, space.etp, thin.etp);
  put(PlanAxis::recompute, space.recompute, thin.recompute);
  put(PlanAxis::loss, space.loss, thin.loss);
  put(PlanAxis::zero, space.zero, thin.zero);
  put(PlanAxis::hsdp, space.hsdp, thin.hsdp);
  return out;
}

// Plans within the limits, by ordinal.
class Pool : public Cells::Sink {
 public:
  Pool(const Question& question, const Space& space, const Limits& limits)
      : space_(space), limits_(limits), tables_(question, space), cells_(question, space, tables_, *this) {}

  void look(const Position& at) {
    if (!seen_.emplace(space_.ordinal(at), true).second) return;
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
  std::map<std::uint64_t, bool> seen_;
  std::vector<std::pair<double, std::uint64_t>> plans_;
};

}  // namespace

double seconds_reached(const Question& question, const Space& space, Objective objective, const Limits& limits,
                       std::size_t top) {
  const bool by_seconds = objective == Objective::time && !question.recipe.mfu && !question.cluster.memory_only;
  if (!by_seconds || top == 0 || space.size() <= kSmall) return kUnknown;
  Pool pool(question, space, limits);
  for (const bool long_sequences : {false, true}) {
    const Space thin = thinned(space, long_sequences);
    Search coarse(question, thin, objective, limits, top, Search::Bound::none);
    while (coarse.advance(std::numeric_limits<std::uint64_t>::max())) {
    }
    for (const Found& found : coarse.result().best)
      pool.look(widened(space, thin, thin.position(found.priced.ordinal)));
    if (!pool.fastest(1).empty()) break;
  }
  std::map<std::uint64_t, bool> centres;
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& [seconds, ordinal] : pool.fastest(kCentres)) {
      if (centres.emplace(ordinal, true).second) pool.look_around(space.position(ordinal));
    }
  }
  const auto known = pool.fastest(top);
  return known.size() == top ? known.back().first : kUnknown;
}

}  // namespace preflop
