// The layouts that experts published, against the best that the search finds for the same job: their numerics, batch,
// sequence, stack and cluster, every layout axis open. Both are predictions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/validate/validate.hpp"

namespace preflop {

struct PublishedLayout {
  std::string id, source, job;  // "llama3-70b on 64 x h100-sxm, bf16"
  Recipe theirs, best;
  double seconds = 0, best_seconds = 0;  // of a step
  Verdict verdict = Verdict::unknown;    // of theirs
  std::string difference;                // terms of the step in which theirs differs, the largest first
  bool near() const { return seconds <= 1.05 * best_seconds; }
};

// Empty: the row names no tensor or pipeline size, did not measure time, cannot be predicted, or nothing fits.
std::optional<PublishedLayout> published_layout(const RowRequest& row, const std::string& id, const std::string& source,
                                                const Catalogues& catalogues);

// docs/layouts.md: counts by source, and each layout that is more than 5 % slower than the best.
std::string layouts_page(const std::vector<PublishedLayout>& layouts);

}  // namespace preflop
