// Zero-bubble schedules (arXiv:2401.10241): a backward pass is split into the gradient of the input, which the rank
// before waits for, and those of the weights, which fill gaps.
#include <algorithm>
#include <cmath>

#include "src/step/replay.hpp"

namespace preflop {

namespace {

constexpr double kNotYet = -1;
// Of a micro-batch's activations, what the gradients of weights still need: the inputs of products, 32 of 34 + 5 a s/h
// bytes (appendix of the paper), 0.37 to 0.43 in its models.
constexpr double kKept = 0.4;

class ZeroBubble {
 public:
  // `fill`: gradients of weights start in a gap of at least that share of their length.
  ZeroBubble(const ReplayWork& work, std::int64_t m, bool twice, double fill)
      : work_(work), p_(static_cast<std::int64_t>(work.forward.size())), m_(m), twice_(twice), fill_(fill) {
    ranks_.resize(static_cast<std::size_t>(p_));
    for (Rank& r : ranks_) {
      r.forward.assign(static_cast<std::size_t>(m), kNotYet);
      r.backward.assign(static_cast<std::size_t>(m), kNotYet);
    }
  }

  Replay run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int64_t i = 0; i < p_; ++i) {
        while (advance(i)) moved = true;
      }
    }
    Replay out;
    for (Rank& r : ranks_) {
      out.deadlock = out.deadlock || r.backwards < m_;
      out.seconds = std::max(out.seconds, r.now - r.first);
      out.busy.push_back(r.busy);
      out.most_alive.push_back(r.most_alive);
      out.events.push_back(std::move(r.events));
    }
    return out;
  }

 private:
  struct Rank {
    double now = 0, first = 0, busy = 0;
    std::int64_t forwards = 0, backwards = 0, weights = 0, most_alive = 0;  // done
    std::vector<double> forward, backward;                                  // end of each, by micro-batch
    std::vector<ReplayEvent> events;
  };

  // Micro-batches' worth of activations.
  double kept(std::int64_t i) const { return work_.kept.empty() ? kKept : work_.kept[static_cast<std::size_t>(i)]; }
  double held(std::int64_t i) const {
    const Rank& r = ranks_[static_cast<std::size_t>(i)];
    return static_cast<double>(r.forwards - r.backwards) + kept(i) * static_cast<double>(r.backwards - r.weights);
  }
  static void note(Rank& r, bool forward, bool weights, std::int64_t micro, double seconds) {
    r.events.push_back({forward, weights, micro, 0, r.now - seconds, r.now});
  }
  static void take(Rank& r, double ready, double seconds) {
    r.now = std::max(r.now, ready) + seconds;
    r.busy += seconds;
  }
  double seconds_of(const std::vector<std::vector<double>>& what, std::int64_t i) const {
    return what[static_cast<std::size_t>(i)].front();
  }
  void take_weights(std::int64_t i) {
    Rank& r = ranks_[static_cast<std::size_t>(i)];
    const double seconds = seconds_of(work_.weights, i);
    take(r, 0, seconds);
    note(r, false, true, r.weights++, seconds);
  }
  // Forwards and backwards in the order of 1f1b, with as long a warm-up or twice that.
  bool forward_is_next(std::int64_t i) const {
    const Rank& r = ranks_[static_cast<std::size_t>(i)];
    const std::int64_t ahead = (twice_ ? 2 : 1) * (p_ - i - 1);
    return r.forwards < m_ && r.forwards <= r.backwards + ahead;
  }
  double ready_at(std::int64_t i, bool forward) const {
    const Rank& r = ranks_[static_cast<std::size_t>(i)];
    const auto from = [&](std::int64_t rank, bool of_forward, std::int64_t micro, double hop) {
      const Rank& other = ranks_[static_cast<std::size_t>(rank)];
      const double done = (of_forward ? other.forward : other.backward)[static_cast<std::size_t>(micro)];
      return done == kNotYet ? kNotYet : done + hop;
    };
    if (forward) return i == 0 ? 0 : from(i - 1, true, r.forwards, work_.hop);
    return i == p_ - 1 ? from(i, true, r.backwards, 0) : from(i + 1, false, r.backwards, work_.hop);
  }

  bool advance(std::int64_t i) {
    Rank& r = ranks_[static_cast<std::size_t>(i)];
    const bool waiting = r.weights < r.backwards;
    if (r.backwards == m_) {
      if (waiting) take_weights(i);
      return waiting;
    }
    const bool forward = forward_is_next(i);
    const double most = static_cast<double>(std::min((twice_ ? 2 : 1) * p_, m_));
    // A forward pass adds a micro-batch's activations; a backward pass what it leaves to the weights beyond them.
    const double more = forward ? 1 : std::max(kept(i) - 1, 0.0);
    if (waiting && more > 0 && held(i) + more > most) {
      take_weights(i);
      return true;
    }
    const double ready = ready_at(i, forward);
    if (ready == kNotYet) return false;
    while (r.weights < r.backwards && r.now + fill_ * seconds_of(work_.weights, i) <= ready) take_weights(i);
    if (forward) {
      if (r.forwards == 0) r.first = ready;
      take(r, ready, seconds_of(work_.forward, i));
      note(r, true, false, r.forwards, seconds_of(work_.forward, i));
      r.forward[static_cast<std::size_t>(r.forwards++)] = r.now;
      r.most_alive = std::max(r.most_alive, static_cast<std::int64_t>(std::ceil(held(i))));
    } else {
      const double seconds = seconds_of(work_.backward, i) - seconds_of(work_.weights, i);
      take(r, ready, seconds);
      note(r, false, false, r.backwards, seconds);
      r.backward[static_cast<std::size_t>(r.backwards++)] = r.now;
    }
    return true;
  }

  const ReplayWork& work_;
  std::int64_t p_, m_;
  bool twice_;
  double fill_;
  std::vector<Rank> ranks_;
};

}  // namespace

Replay replay_zero_bubble(const ReplayWork& work, std::int64_t m, bool twice) {
  // A gap shorter than the gradients of weights is worth filling or not, as the lengths of passes will have it.
  Replay whole = ZeroBubble(work, m, twice, 1).run();
  Replay half = ZeroBubble(work, m, twice, 0.5).run();
  return half.seconds < whole.seconds ? half : whole;
}

double zero_bubble_least(const ReplayWork& work, std::int64_t m) {
  const auto times = static_cast<double>(m);
  double least = 0, longest = 0;  // longest: from this rank's first forward to the return of its last backward
  for (std::size_t i = work.forward.size(); i-- > 0;) {
    const double forward = work.forward[i].front(), both = work.backward[i].front(), weights = work.weights[i].front();
    const double own = forward + both - weights;
    longest = std::max(i + 1 < work.forward.size() ? longest + own + 2 * work.hop : 0.0, times * own);
    least = std::max({least, longest + weights, times * (forward + both)});
  }
  return least;
}

}  // namespace preflop
