// The best plans: layouts of one training run on one cluster, found by an exact search.
//
// Shape and names follow the JSON contract preflop.plan/1. Numerics, batch and sequence are the user's and
// never change; every plan is an Estimate of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "preflop/estimate.hpp"

namespace preflop {

// What is best: the shortest step (time, cost, gpu_hours and energy agree on one cluster and differ between
// clusters), least memory, fewest GPUs within the limits, the longest sequence, the largest micro-batch.
enum class Objective : std::uint8_t { time, cost, gpu_hours, energy, memory, gpus, seq, micro_batch };
inline constexpr int kObjectives = 8;
const char* name(Objective objective);  // "time", "cost", "gpu-hours", ...

// Ordinals of the space: every one is rejected by a named reason, or priced; of the rejected ones `pruned` were
// excluded in bulk, by a rule or a proved bound, and `checked` = space - pruned were looked at one by one.
struct SpaceReport {
  std::uint64_t space = 0, pruned = 0, checked = 0, priced = 0;
  struct Rejected {
    std::string reason, example;
    std::uint64_t count = 0;
  };
  std::vector<Rejected> rejected;  // the most frequent first
};

// What a limit of the user does to a plan: seconds of the whole run, dollars.
struct PlanLimits {
  std::optional<double> within, budget, max_memory;
  bool allow_tight = false;
};

struct Plan {
  Objective objective = Objective::time;
  PlanLimits limits;
  SpaceReport space;                  // of all clusters together
  std::vector<Estimate> plans;        // the best first; empty: none was found
  std::vector<std::string> commands;  // of `plans`: the command line that estimates each again, to the same bits
  // The best of every cluster that was asked about, in the order asked; clusters without a plan are absent.
  std::vector<Estimate> clusters;
  std::vector<std::string> cluster_commands;  // of `clusters`
  // Of `clusters`: none is faster with no more GPUs and no more cost. What takes an unknown time is not of them.
  std::vector<std::size_t> pareto;
  // Where there is no plan: the legal layout that misses a limit, or memory, by least.
  std::optional<Estimate> nearest;
  // What it misses, the least first: nothing but a limit of the run, the allocator's reserve, the user's limit of
  // memory, memory itself. Only misses of one kind are compared by how much they miss.
  enum class Miss : std::uint8_t { run, tight, limit, memory } nearest_miss = Miss::run;
  std::string nearest_why;            // "short of memory by 3.2 GiB"
  double nearest_times = 0;           // what it takes over what there is
  std::vector<std::string> why;       // why the first is the first: against the next, what limits it, its neighbours
  std::vector<std::string> gains;     // what opening numerics would gain
  std::vector<std::string> switches;  // what switches of the software would gain that leave the mathematics alone
  // What the comparison leaves out and why, and what differs between its rows beside the layout.
  std::vector<std::string> notes;
};

}  // namespace preflop
