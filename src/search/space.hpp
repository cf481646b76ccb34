// The layouts that a plan chooses from, as ordinals of a mixed-radix number: one digit per axis. What the
// user gave is an axis of one value. dp is no axis: it fills the cluster.
//
// Axes are wide on purpose (every divisor that could be legal); what is not legal is refused by the
// stack's own rules (src/stack/legality) and counted by reason.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "preflop/machine.hpp"
#include "preflop/recipe.hpp"
#include "src/model/model.hpp"
#include "src/stack/stack.hpp"

namespace preflop {

enum class PlanAxis : std::uint8_t {
  tp,
  cp,
  sp,
  pp,
  vpp,
  split,
  micro_batch,
  ep,
  etp,
  recompute,
  loss,
  zero,
  hsdp,
};
inline constexpr int kPlanAxes = 13;
const char* name(PlanAxis axis);
constexpr std::size_t index(PlanAxis axis) { return static_cast<std::size_t>(axis); }

// One position per axis.
using Position = std::array<std::uint32_t, kPlanAxes>;

// Keys of a recipe that a plan chooses, where they are not given; the rest is the job.
inline constexpr std::array kPlannedKeys = {"tp",          "pp",        "vpp",  "cp",       "ep",
                                            "etp",         "dp",        "sp",   "zero",     "hsdp",
                                            "micro_batch", "recompute", "loss", "schedule", "layers_per_stage"};

struct Space {
  std::vector<std::int64_t> tp, cp, pp, vpp, micro_batch, ep, etp, hsdp;
  std::vector<bool> sp;
  std::vector<int> zero;
  std::vector<Recompute> recompute;
  std::vector<LossKind> loss;
  // How layers are dealt: the stack's own rule, or its first/last-stage counts with middle stages of so many
  // layers more than the mean.
  std::vector<int> split;
  std::optional<std::int64_t> dp;  // given: every other is refused

  std::uint32_t size(PlanAxis axis) const;
  std::uint64_t size() const;  // product; saturates at 2^64 - 1
  std::uint64_t ordinal(const Position& at) const;
  Position position(std::uint64_t ordinal) const;
};

// What the user fixed, by recipe key; everything else is open.
struct Question {
  const Model* model = nullptr;
  const Stack* stack = nullptr;
  Cluster cluster;
  Recipe recipe;             // complete but for its layout; given values are set in it
  double given_seconds = 0;  // of a step, with --mfu: the same for every layout
  bool fixed(const char* key) const { return recipe.given.contains(key); }
};
Space make_space(const Question& question);

// The recipe of a position's digits, whether such a layout exists or not: what a block of it sees.
Recipe digits_at(const Question& question, const Space& space, const Position& at);
// The recipe at a position, dp filled in; an empty result where tp x pp x cp does not divide the cluster.
std::optional<Recipe> recipe_at(const Question& question, const Space& space, const Position& at);

// Explicit layers per stage of a split choice; empty = the stack's rule. No value: this choice is the same as
// another one, or impossible.
std::optional<std::vector<std::int64_t>> split_choice(std::int64_t layers, std::int64_t pp, std::int64_t vpp,
                                                      int choice, const Stack& stack);

}  // namespace preflop
