#include "src/step/replay.hpp"

#include <algorithm>

namespace preflop {

namespace {

struct Task {
  bool forward = true;
  std::int64_t micro = 0, chunk = 0;
};

// One chunk a rank: `ahead` forwards, then one backward for each further forward.
std::vector<Task> plain_order(std::int64_t ahead, std::int64_t m) {
  std::vector<Task> out;
  std::int64_t next = 0;
  for (; next < std::min(ahead, m); ++next) out.push_back({true, next, 0});
  for (std::int64_t back = 0; back < m; ++back) {
    if (next < m) out.push_back({true, next++, 0});
    out.push_back({false, back, 0});
  }
  return out;
}

// Interleaved 1F1B (arXiv:2104.04473 section 2.2; Megatron-LM schedules.py): micro-batches go round in groups of p,
// chunk after chunk; backwards take the chunks in the other direction.
std::vector<Task> interleaved_order(std::int64_t rank, std::int64_t p, std::int64_t v, std::int64_t m) {
  const std::int64_t all = m * v;
  const auto task = [&](bool forward, std::int64_t k) {
    const std::int64_t chunk = k % (p * v) / p;
    return Task{forward, k / (p * v) * p + k % p, forward ? chunk : v - 1 - chunk};
  };
  std::vector<Task> out;
  std::int64_t next = 0;
  const std::int64_t ahead = std::min(2 * (p - rank - 1) + (v - 1) * p, all);
  for (; next < ahead; ++next) out.push_back(task(true, next));
  for (std::int64_t back = 0; back < all; ++back) {
    if (next < all) out.push_back(task(true, next++));
    out.push_back(task(false, back));
  }
  return out;
}

class Player {
 public:
  Player(const ReplayWork& work, std::int64_t m)
      : work_(work),
        p_(static_cast<std::int64_t>(work.forward.size())),
        v_(static_cast<std::int64_t>(work.forward.front().size())),
        m_(m) {
    const std::size_t n = static_cast<std::size_t>(p_ * v_ * m_);
    forward_.assign(n, -1);
    backward_.assign(n, -1);
  }

  Replay run(const std::vector<std::vector<Task>>& orders) {
    Replay out;
    const std::size_t ranks = orders.size();
    std::vector<std::size_t> at(ranks, 0);
    std::vector<double> now(ranks, 0.0);
    std::vector<std::int64_t> alive(ranks, 0);
    out.busy.assign(ranks, 0.0);
    out.most_alive.assign(ranks, 0);
    out.events.resize(ranks);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < ranks; ++i) {
        while (at[i] < orders[i].size()) {
          const Task& t = orders[i][at[i]];
          const double ready = ready_at(static_cast<std::int64_t>(i), t);
          if (ready < 0) break;
          const double length = (t.forward ? work_.forward : work_.backward)[i][static_cast<std::size_t>(t.chunk)];
          now[i] = std::max(now[i], ready) + length;
          (t.forward ? forward_ : backward_)[slot(static_cast<std::int64_t>(i), t)] = now[i];
          out.busy[i] += length;
          out.events[i].push_back({t.forward, false, t.micro, t.chunk, now[i] - length, now[i]});
          alive[i] += t.forward ? 1 : -1;
          out.most_alive[i] = std::max(out.most_alive[i], alive[i]);
          ++at[i];
          moved = true;
        }
      }
    }
    for (std::size_t i = 0; i < ranks; ++i) {
      out.deadlock = out.deadlock || at[i] < orders[i].size();
      out.seconds = std::max(out.seconds, now[i]);
    }
    return out;
  }

 private:
  std::size_t slot(std::int64_t rank, const Task& t) const {
    return static_cast<std::size_t>((t.chunk * p_ + rank) * m_ + t.micro);
  }
  // When what a task needs has arrived; -1: not made yet.
  double ready_at(std::int64_t rank, const Task& t) const {
    const std::int64_t depth = t.chunk * p_ + rank;
    const auto made = [&](const std::vector<double>& when, std::int64_t at, double hop) {
      const double done = when[static_cast<std::size_t>(at * m_ + t.micro)];
      return done < 0 ? -1.0 : done + hop;
    };
    const double hop = p_ > 1 ? work_.hop : 0.0;
    if (t.forward) return depth == 0 ? 0.0 : made(forward_, depth - 1, hop);
    return depth == p_ * v_ - 1 ? made(forward_, depth, 0.0) : made(backward_, depth + 1, hop);
  }

  const ReplayWork& work_;
  std::int64_t p_, v_, m_;
  std::vector<double> forward_, backward_;  // end of each task, by depth and micro-batch
};

}  // namespace

Replay replay_zero_bubble(const ReplayWork& work, std::int64_t m, bool twice);  // src/step/replay_zero_bubble

Replay replay(std::string_view schedule, const ReplayWork& work, std::int64_t m) {
  if (schedule.starts_with("zb-")) return replay_zero_bubble(work, m, schedule == "zb-2p");
  const auto p = static_cast<std::int64_t>(work.forward.size());
  const auto v = static_cast<std::int64_t>(work.forward.front().size());
  std::vector<std::vector<Task>> orders;
  for (std::int64_t rank = 0; rank < p; ++rank) {
    if (schedule == "interleaved")
      orders.push_back(interleaved_order(rank, p, v, m));
    else
      orders.push_back(plain_order(schedule == "gpipe" ? m : p - rank - 1, m));
  }
  return Player(work, m).run(orders);
}

}  // namespace preflop
