// Zero-bubble schedules (arXiv:2401.10241): a backward pass is split into the gradient of the input, which the rank
// before waits for, and those of the weights, which fill gaps.
#include <algorithm>
#include <cmath>

#include "src/step/replay.hpp"

namespace preflop {

namespace {

// Of a micro-batch's activations, what the gradients of weights still need: the inputs of products, 32 of 34 + 5 a s/h
// bytes (appendix of the paper), 0.37 to 0.43 in its models.
constexpr double kKept = 0.4;

class ZeroBubble {
 public:
  // `fill`: gradients of weights start in a gap of at least that share of their length.
  ZeroBubble(const ReplayWork& work, std::int64_t m, bool twice, double fill)
      : p_(static_cast<std::int64_t>(work.forward.size())), m_(m), twice_(twice), fill_(fill), hop_(work.hop) {
    ranks_.resize(static_cast<std::size_t>(p_));
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& r = ranks_[i];
      r.ahead = (twice ? 2 : 1) * (p_ - static_cast<std::int64_t>(i) - 1);
      r.kept = work.kept.empty() ? kKept : work.kept[i];
      r.of_forward = work.forward[i].front();
      r.of_weights = work.weights[i].front();
      r.of_backward = work.backward[i].front() - r.of_weights;
    }
    forward_.resize(static_cast<std::size_t>(p_ * m));
    backward_.resize(static_cast<std::size_t>(p_ * m));
  }

  double seconds() {
    play<false>();
    double out = 0;
    for (const Rank& r : ranks_) out = std::max(out, r.now - r.first);
    return out;
  }
  Replay run() {
    play<true>();
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
    double of_forward = 0, of_backward = 0, of_weights = 0;  // seconds of a pass, gradients of weights apart
    double kept = 0;
    std::int64_t ahead = 0;
    double now = 0, first = 0;
    std::int64_t forwards = 0, backwards = 0, weights = 0;  // done
    // Of a recorded run.
    double busy = 0;
    std::int64_t most_alive = 0;
    std::vector<ReplayEvent> events;

    double held() const {  // micro-batches' worth of activations
      return static_cast<double>(forwards - backwards) + kept * static_cast<double>(backwards - weights);
    }
    // Forwards and backwards in the order of 1f1b, with as long a warm-up or twice that.
    bool forward_is_next(std::int64_t m) const { return forwards < m && forwards <= backwards + ahead; }
  };

  template <bool kRecorded>
  void play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int64_t i = 0; i < p_; ++i) {
        while (advance<kRecorded>(i)) moved = true;
      }
    }
  }

  template <bool kRecorded>
  static void take(Rank& r, double ready, double seconds, ReplayEvent event) {
    r.now = std::max(r.now, ready) + seconds;
    if (!kRecorded) return;
    r.busy += seconds;
    event.start = r.now - seconds;
    event.end = r.now;
    r.events.push_back(event);
  }
  template <bool kRecorded>
  static void take_weights(Rank& r) {
    take<kRecorded>(r, 0, r.of_weights, {false, true, r.weights});
    ++r.weights;
  }

  std::size_t slot(std::int64_t rank, std::int64_t micro) const { return static_cast<std::size_t>(rank * m_ + micro); }
  // When what the next pass of a rank needs is there; < 0: not made yet.
  double ready_at(std::int64_t i, bool forward) const {
    const Rank* r = &ranks_[static_cast<std::size_t>(i)];
    if (forward) {
      if (i == 0) return 0;
      return r[-1].forwards > r->forwards ? forward_[slot(i - 1, r->forwards)] + hop_ : -1;
    }
    if (i == p_ - 1) return r->forwards > r->backwards ? forward_[slot(i, r->backwards)] : -1;
    return r[1].backwards > r->backwards ? backward_[slot(i + 1, r->backwards)] + hop_ : -1;
  }

  template <bool kRecorded>
  bool advance(std::int64_t i) {
    Rank& r = ranks_[static_cast<std::size_t>(i)];
    const bool waiting = r.weights < r.backwards;
    if (r.backwards == m_) {
      if (waiting) take_weights<kRecorded>(r);
      return waiting;
    }
    const bool forward = r.forward_is_next(m_);
    const double most = static_cast<double>(std::min((twice_ ? 2 : 1) * p_, m_));
    // A forward pass adds a micro-batch's activations; a backward pass what it leaves to the weights beyond them.
    const double more = forward ? 1 : std::max(r.kept - 1, 0.0);
    if (waiting && more > 0 && r.held() + more > most) {
      take_weights<kRecorded>(r);
      return true;
    }
    const double ready = ready_at(i, forward);
    if (ready < 0) return false;
    while (r.weights < r.backwards && r.now + fill_ * r.of_weights <= ready) take_weights<kRecorded>(r);
    if (forward) {
      if (r.forwards == 0) r.first = ready;
      take<kRecorded>(r, ready, r.of_forward, {true, false, r.forwards});
      forward_[slot(i, r.forwards++)] = r.now;
      if (kRecorded) r.most_alive = std::max(r.most_alive, static_cast<std::int64_t>(std::ceil(r.held())));
    } else {
      take<kRecorded>(r, ready, r.of_backward, {false, false, r.backwards});
      backward_[slot(i, r.backwards++)] = r.now;
    }
    return true;
  }

  std::int64_t p_, m_;
  bool twice_;
  double fill_, hop_;
  std::vector<Rank> ranks_;
  std::vector<double> forward_, backward_;  // end of each pass, by rank and micro-batch
};

// A gap shorter than the gradients of weights is worth filling or not, as the lengths of passes will have it.
struct Filled {
  double seconds = 0, fill = 1;
};
Filled better_fill(const ReplayWork& work, std::int64_t m, bool twice) {
  const double whole = ZeroBubble(work, m, twice, 1).seconds(), half = ZeroBubble(work, m, twice, 0.5).seconds();
  return half < whole ? Filled{half, 0.5} : Filled{whole, 1};
}

}  // namespace

Replay replay_zero_bubble(const ReplayWork& work, std::int64_t m, bool twice) {
  return ZeroBubble(work, m, twice, better_fill(work, m, twice).fill).run();
}

double zero_bubble_seconds(const ReplayWork& work, std::int64_t m, bool twice) {
  return better_fill(work, m, twice).seconds;
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
