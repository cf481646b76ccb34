// Does recomputation free anything? Some choices do not: what the replayed part reads must stay, and that can be
// more than what it made.
#pragma once

#include <optional>

#include "src/step/memory.hpp"

namespace preflop {

// Bytes that all layers of the model keep for one micro-batch under the recipe's recomputation less what they keep
// without it: negative when it frees memory. Empty when nothing is recomputed.
std::optional<double> recompute_keeps_more(const Analysed& a);

// Bytes by which the fullest stage holds more than if every layer were recomputed by itself; empty unless several are
// recomputed together.
std::optional<double> units_hold_more(const Analysed& a, const Cluster& cluster);

// Does every layer of every stage belong to those that are recomputed?
bool recomputes_all(const Analysed& a);

}  // namespace preflop
