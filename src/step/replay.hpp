// The oracle of pipeline schedules: plays a step event by event. Every rank runs its forwards and backwards in
// the order of the schedule, each as soon as what it needs is there. Slow and obvious; compose() must agree
// with it wherever it claims to.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace preflop {

// Seconds of one micro-batch. `forward[i][c]`: chunk c of rank i, the chunks of one rank in model order;
// every rank has the same number of chunks.
struct ReplayWork {
  std::vector<std::vector<double>> forward, backward;
  std::vector<std::vector<double>> weights;  // zb-*: of `backward`, what makes the gradients of weights and can wait
  double hop = 0;                            // from a rank to the next, both directions; the sender does not wait
  // zb-*: of a micro-batch's activations, the share that the gradients of weights still need, per rank. Empty: that of
  // the paper's models.
  std::vector<double> kept = {};
};

// One pass of a rank, in the order of the rank.
struct ReplayEvent {
  bool forward = true;
  bool weights = false;  // zb-*: not backward, but the gradients of weights
  std::int64_t micro_batch = 0, chunk = 0;
  double start = 0, end = 0;  // seconds
};

struct Replay {
  // Until the last backward ends; zb-*, whose optimizer waits for no other rank: of the busiest rank, from its first
  // forward on.
  double seconds = 0;
  std::vector<double> busy;                      // per rank
  std::vector<std::int64_t> most_alive;          // per rank: micro-batches x chunks forward and not yet backward
  std::vector<std::vector<ReplayEvent>> events;  // per rank
  bool deadlock = false;                         // the order needs what comes later: a fault of the schedule
};

// `schedule`: gpipe, 1f1b, interleaved (which needs micro_batches to be a multiple of the ranks), zb-h1, zb-1p or zb-2p
// (arXiv:2401.10241: one chunk a rank; gradients of weights fill the gaps, within the memory of 1f1b, or twice that).
Replay replay(std::string_view schedule, const ReplayWork& work, std::int64_t micro_batches);

// replay().seconds of zb-h1 and zb-1p, or with `twice` of zb-2p, to the bit: the same play, without writing it down.
double zero_bubble_seconds(const ReplayWork& work, std::int64_t micro_batches, bool twice = false);

// Seconds below which no schedule with gradients of weights apart can come: all work of a rank, or the way to a later
// rank, its forwards and backwards, and back. With the memory of zb-2p the paper's search comes within 0.7 % of it
// wherever micro-batches are three times the ranks (its table 5), so this is how long zb-2p takes.
double zero_bubble_least(const ReplayWork& work, std::int64_t micro_batches);

}  // namespace preflop
