// An estimate as text of at most 80 columns, for a terminal. No colour, ASCII only.
#pragma once

#include <string>
#include <vector>

#include "preflop/estimate.hpp"
#include "src/run/napkin.hpp"
#include "src/step/verdict_changes.hpp"

namespace preflop {

struct TextOptions {
  bool everything = false;                  // -v: every stage, every assumption
  bool brief = false;                       // -q: the first line only
  std::vector<VerdictChange> changes = {};  // choices that nobody made and that would change the verdict
};

std::string estimate_text(const Estimate& estimate, const TextOptions& options);

// What the page needs to be read: `on` is the cluster as given, empty for none; `mfu_assumed` says that the
// utilisation is not the user's.
struct NapkinWords {
  std::string on;
  std::string gpu;
  std::string peak_source;
  bool mfu_assumed = false;
};
std::string napkin_text(const NapkinInput& input, const Napkin& napkin, const NapkinWords& words);

}  // namespace preflop
