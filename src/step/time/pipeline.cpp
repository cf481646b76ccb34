#include "src/step/time/pipeline.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace preflop {

namespace {

enum class Pass : std::uint8_t { forward, backward };
constexpr Pass other(Pass pass) { return pass == Pass::forward ? Pass::backward : Pass::forward; }

// Where a chain spends its warm-up.
struct Detour {
  enum class Kind : std::uint8_t { none, aside, waiting, wrapped } kind = Kind::none;
  double stage = 0;
};

// A chain is chosen with plain numbers (V = double) and then written down once more with those that explain
// themselves: the same formula, so the same bits.
template <class N>
class Chains {
 public:
  Chains(const StageRun<N>* runs, std::size_t n, const Schedule<N>& q) : runs_(runs), n_(n), q_(q) {}

  Seconds<N> longest(const Seconds<N>& slowest) const {
    const Found found = find<true>();
    const bool few_first = q_.all_forward || together() > found.length;
    const N length = few_first ? first_of_few<N>() : chain<N>(found.at, found.in, found.out);
    return beyond(length, slowest);
  }
  // The chain that is found, and not written down once more.
  Seconds<N> longest_plain(const Seconds<N>& slowest) const {
    return beyond(N(q_.all_forward ? together() : std::max(find<false>().length, together())), slowest);
  }

 private:
  struct Found {
    double length = -1, at = 0;  // on which stage it stays
    Detour in, out;
  };
  // Without names only the length is found: which chain it is costs as much again.
  template <bool kNamed>
  Found find() const {
    constexpr std::size_t kFew = 16;
    std::array<Run, kFew> small;
    std::vector<Run> many(n_ > kFew ? n_ : 0);
    Run* const all = n_ > kFew ? many.data() : small.data();
    measure(all);
    Found best;
    const auto consider = [&](std::size_t i, double s) {
      const Longer more = detours<kNamed>(all, i, s);
      const double length =
          all[i].both * passes() + (s - all[i].first) * all[i].both + all[i].earlier + more.by[0] + more.by[1];
      if (length > best.length) best = {length, s, more.detour[0], more.detour[1]};
    };
    for (std::size_t i = 0; i < n_; ++i) {
      consider(i, all[i].first);
      if (all[i].last > all[i].first) consider(i, all[i].last);
    }
    return best;
  }
  Seconds<N> beyond(const N& length, const Seconds<N>& slowest) const {
    return Seconds<N>(larger(length - slowest.number() * real<N>(q_.micro_batches), N(0.0)));
  }

  template <class V>
  static V real(double value) {
    return leaf<V>(value, [] { return Origin{"stages and micro-batches", "", "the pipeline's schedule", {}}; });
  }

  // One chunk of one micro-batch on run i.
  template <class V>
  V pass(std::size_t i, Pass p) const {
    const N& whole = (p == Pass::forward ? runs_[i].time.forward : runs_[i].time.backward).number();
    if constexpr (std::is_same_v<V, N>)
      return q_.vpp > 1 ? whole / real<V>(q_.vpp) : whole;
    else
      return plain(whole) / q_.vpp;
  }
  std::size_t run_of(double stage) const {
    std::size_t i = 0;
    for (double end = runs_[0].count; end <= stage && i + 1 < n_; end += runs_[i].count) ++i;
    return i;
  }
  // Stages from..to, inclusive.
  template <class V>
  V sum(Pass p, double from, double to) const {
    V out = V(0.0);
    double first = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double count = std::min(to, first + runs_[i].count - 1) - std::max(from, first) + 1;
      if (count > 0) out = out + pass<V>(i, p) * real<V>(count);
      first += runs_[i].count;
    }
    return out;
  }
  template <class V>
  V most(Pass p, double from, double to) const {
    std::size_t at = run_of(from);
    double first = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      const bool inside = first <= to && first + runs_[i].count - 1 >= from;
      if (inside && pass<double>(i, p) > pass<double>(at, p)) at = i;
      first += runs_[i].count;
    }
    return pass<V>(at, p);
  }
  // Forwards before the first backward of a stage, less one.
  double ahead(double stage) const {
    return q_.vpp > 1 ? 2 * (q_.pp - 1 - stage) + (q_.vpp - 1) * q_.pp : q_.pp - 1 - stage;
  }
  double passes() const { return q_.micro_batches * q_.vpp; }

  // What a detour takes longer than the stage's own warm-up.
  template <class V>
  V extra(Pass p, double s, const Detour& d) const {
    const std::size_t own = run_of(s);
    switch (d.kind) {
      case Detour::Kind::none:
        break;
      case Detour::Kind::waiting:
        return (most<V>(p, 0, s) - pass<V>(own, p)) * real<V>(ahead(s));
      case Detour::Kind::aside:
        return sum<V>(p, s, d.stage) + sum<V>(other(p), s, d.stage) + most<V>(p, s, d.stage) * real<V>(ahead(d.stage)) -
               pass<V>(own, p) * real<V>(ahead(s) + 1) - pass<V>(own, other(p));
      case Detour::Kind::wrapped: {
        const double backwards = 2 * (d.stage - s) - q_.pp;
        const double forwards = ahead(d.stage) + backwards;
        const std::size_t there = run_of(d.stage);
        return sum<V>(p, 0, q_.pp - 1) + pass<V>(there, p) * real<V>(forwards) +
               pass<V>(there, other(p)) * real<V>(backwards) - pass<V>(own, p) * real<V>(forwards + q_.pp);
      }
    }
    return V(0.0);
  }

  // A run in plain numbers. By pass: of one chunk, the most of the runs up to it, and summed over the stages up to its
  // end. Of both passes: of one chunk, summed over the stages before it, and over those up to its end.
  struct Run {
    double first, last;
    double pass[2], most[2], sum[2];
    double both, earlier, through;
    double ahead;  // of its last stage
  };
  void measure(Run* all) const {
    double next = 0, most[2] = {0, 0}, sum[2] = {0, 0};
    for (std::size_t i = 0; i < n_; ++i) {
      Run& run = all[i];
      run.first = next;
      next += runs_[i].count;
      run.last = next - 1;
      run.earlier = sum[0] + sum[1];
      for (const Pass p : {Pass::forward, Pass::backward}) {
        const std::size_t k = static_cast<std::size_t>(p);
        run.pass[k] = pass<double>(i, p);
        run.most[k] = most[k] = std::max(run.pass[k], most[k]);
        run.sum[k] = sum[k] = sum[k] + run.pass[k] * runs_[i].count;
      }
      run.both = run.pass[0] + run.pass[1];
      run.through = sum[0] + sum[1];
      run.ahead = ahead(run.last);
    }
  }

  // What extra() says of the longest detours from stage s of run `own`, by pass, and which ones they are.
  struct Longer {
    double by[2] = {0, 0};
    Detour detour[2];
    template <bool kNamed>
    void consider(std::size_t k, double more, typename Detour::Kind kind, double stage) {
      if constexpr (kNamed) {
        if (more > by[k]) detour[k] = {kind, stage};
      }
      by[k] = std::max(by[k], more);
    }
  };
  template <bool kNamed>
  Longer detours(const Run* all, std::size_t own, double s) const {
    const Run& here = all[own];
    const bool interleaved = q_.vpp > 1;
    const bool long_enough = interleaved ? q_.micro_batches >= 2 * q_.pp : q_.micro_batches > q_.pp - s;
    const double before = ahead(s);
    Longer best;
    using Kind = typename Detour::Kind;
    if (interleaved && before + 1 <= passes()) {
      for (const std::size_t k : {0, 1})
        best.template consider<kNamed>(k, (here.most[k] - here.pass[k]) * before, Kind::waiting, s);
    }
    if (!long_enough) return best;
    const double earlier = (s - here.first) * here.both + here.earlier + here.both;
    double most[2] = {here.pass[0], here.pass[1]};
    for (std::size_t i = own; i < n_; ++i) {
      const Run& there = all[i];
      for (const std::size_t k : {0, 1}) most[k] = std::max(most[k], there.pass[k]);
      if (!(there.last > s)) continue;
      const double both = there.through - earlier;
      for (const std::size_t k : {0, 1})
        best.template consider<kNamed>(k, both + most[k] * there.ahead - here.pass[k] * before, Kind::aside,
                                       there.last);
      const double backwards = 2 * (there.last - s) - q_.pp;
      if (!interleaved || !(backwards > 0)) continue;
      const double forwards = there.ahead + backwards;
      for (const std::size_t k : {0, 1})
        best.template consider<kNamed>(k,
                                       all[n_ - 1].sum[k] + there.pass[k] * forwards + there.pass[1 - k] * backwards -
                                           here.pass[k] * (forwards + q_.pp),
                                       Kind::wrapped, there.last);
    }
    return best;
  }

  template <class V>
  V chain(double s, const Detour& in, const Detour& out) const {
    const std::size_t own = run_of(s);
    V length = (pass<V>(own, Pass::forward) + pass<V>(own, Pass::backward)) * real<V>(passes());
    if (s > 0) length = length + sum<V>(Pass::forward, 0, s - 1) + sum<V>(Pass::backward, 0, s - 1);
    if (in.kind != Detour::Kind::none) length = length + extra<V>(Pass::forward, s, in);
    if (out.kind != Detour::Kind::none) length = length + extra<V>(Pass::backward, s, out);
    return length;
  }

  // Stages that run all their forwards before their first backward (gpipe: all stages; 1f1b: the first ones where
  // micro-batches are fewer than stages) keep the first or the last micro-batch waiting.
  double few() const { return q_.all_forward ? q_.pp : q_.vpp > 1 ? 0 : q_.pp - q_.micro_batches + 1; }
  template <class V>
  V first_of_few() const {
    const double end = few() - 1;
    const V all = sum<V>(Pass::forward, 0, q_.pp - 1) + sum<V>(Pass::backward, 0, q_.pp - 1);
    const V forward = most<V>(Pass::forward, 0, end), backward = most<V>(Pass::backward, 0, end);
    const V wait = q_.all_forward ? forward + backward : larger(forward, backward);
    return all + wait * real<V>(q_.micro_batches - 1);
  }
  double together() const { return few() >= 1 ? first_of_few<double>() : -1; }

  const StageRun<N>* runs_;
  std::size_t n_;
  const Schedule<N>& q_;
};

}  // namespace

template <class N>
Seconds<N> fill_and_drain(const StageRun<N>* stages, std::size_t n, const Schedule<N>& schedule,
                          const Seconds<N>& slowest) {
  return Chains<N>(stages, n, schedule).longest(slowest);
}

Seconds<double> fill_and_drain_seconds(const StageRun<double>* stages, std::size_t n, const Schedule<double>& schedule,
                                       const Seconds<double>& slowest) {
  return Chains<double>(stages, n, schedule).longest_plain(slowest);
}

template Seconds<double> fill_and_drain(const StageRun<double>*, std::size_t, const Schedule<double>&,
                                        const Seconds<double>&);
template Seconds<Traced> fill_and_drain(const StageRun<Traced>*, std::size_t, const Schedule<Traced>&,
                                        const Seconds<Traced>&);

}  // namespace preflop
