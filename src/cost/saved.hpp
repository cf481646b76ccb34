// What a block keeps for its backward pass: a set of storages, plus private copies.
#pragma once

#include <vector>

#include "src/cost/block_cost.hpp"
#include "src/cost/link.hpp"

namespace preflop {

struct SavedSet {
  std::vector<SavedItem> kept;
  std::vector<SavedItem> dropped;  // recomputed: alive only while their segment runs backward
  std::vector<int> kept_saver;     // per kept item: index of the op whose backward frees it (its first saver)
  std::vector<int> dropped_saver;
  std::vector<int> dropped_needed;   // per dropped item: index of the op whose backward needs it first
  std::vector<int> dropped_segment;  // per dropped item: which of the setting's segments makes it again
};

// Which of the setting's segments an operator belongs to; -1 = none.
int segment_of(const Op& op, const Setting& setting);
// Does the backward pass run this operator's forward again?
bool replayed(const Op& op, const Setting& setting);
// The same of every operator of a block, where only what the backward pass reads is made again.
std::vector<bool> run_again(const Block& block, const Link& link, const Extents& extents, const Setting& setting);
// Does its result wait in the host's memory for the backward pass?
bool waits_on_host(const Op& op, const Setting& setting);
double element_width(Element element, const Setting& setting);

// What the gradients of weights read: inputs of products, each once, and the gradients of their results.
std::vector<SavedItem> deferred_set(const Block& block, const Link& link, const Extents& extents,
                                    const Setting& setting);

SavedSet saved_set(const Block& block, const Link& link, const Extents& extents, const Setting& setting);

}  // namespace preflop
