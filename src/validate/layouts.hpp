// The layouts that experts published, against the best that the search finds for the same job: their numerics, batch,
// sequence, stack and cluster, every layout axis open. Both are predictions; what was measured of two layouts of one
// job is set beside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/validate/validate.hpp"

namespace preflop {

struct PublishedLayout {
  std::string id, source, job;  // "llama3-70b on 64 x h100-sxm, bf16"
  Recipe theirs, best;
  double params = 0, gpus = 0;           // of the model and the cluster
  std::string gpu;                       // "h100-sxm"
  bool cut = false;                      // a model of fewer layers, in the layout of the whole
  double seconds = 0, best_seconds = 0;  // of a step, predicted
  double measured_seconds = 0;           // of theirs; 0: not known as seconds
  Verdict verdict = Verdict::unknown;    // of theirs
  std::string difference;                // terms of the step in which theirs differs, the largest first
  // Of the other published layouts of this job, of any release, the one measured as the fastest, where it took less
  // than 1 / 1.05 of the time: its index.
  std::optional<std::size_t> overtaken;
  bool near() const { return seconds <= 1.05 * best_seconds; }
};

// Empty: the row repeats another, names no tensor or pipeline size, did not measure time, cannot be predicted, or
// nothing fits.
std::optional<PublishedLayout> published_layout(const Row& row, const std::string& source, Validator& validator,
                                                const Catalogues& catalogues);
// Fills `overtaken`.
void compare_measured(std::vector<PublishedLayout>& layouts);
// "tp 8 pp 12 dp 4 zero 1 mb 1 full"
std::string layout_sizes(const Recipe& recipe);

// docs/layouts.md: counts by source, and each layout that is more than 5 % slower than the best.
std::string layouts_page(const std::vector<PublishedLayout>& layouts);

}  // namespace preflop
