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
};

bool in_segment(const Op& op, const Segment* segment);
double element_width(Element element, const Setting& setting);

SavedSet saved_set(const Block& block, const Link& link, const Extents& extents, const Setting& setting);

}  // namespace preflop
