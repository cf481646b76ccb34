// One cluster of a plan: what was asked there, what its search found, and the best of it as estimates.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/adapt/plan_request.hpp"
#include "src/run/simulate.hpp"
#include "src/search/plan.hpp"

namespace preflop {

struct Offer {
  Request request;  // with the numerics and the sequence that are this offer's own
  Draft draft;
  Question question;
  Space space;
  SearchResult found;
};

// Understood, and not searched yet.
Result<std::unique_ptr<Offer>> pose_offer(const Request& request, const Catalogues& catalogues);

// Limits of the whole run as limits of a step.
Limits step_limits(const PlanAsk& asked, const Question& question);

// One layout of the cluster. Without the run's forecast, which takes longest, where nobody asks for it yet. Forecasts
// of one plan share their draws. Errors: what its layout cannot do of the run, as check_run says.
Result<Estimate> estimate_of(const Offer& offer, const Found& found, SharedDraws& draws, bool with_run = true);

// The best plans of the cluster within the limits, each of another shape; the run of the first is forecast, and of the
// others where limits ask for it. Errors: plans were found, and none can go through the run: why the best cannot.
Result<std::vector<Estimate>> best_of(const Offer& offer, const PlanLimits& limits, std::size_t top,
                                      SharedDraws& draws);

// Forecasts the runs that are not yet.
Status complete(std::vector<Estimate>& plans, const std::vector<std::unique_ptr<Offer>>& offers, SharedDraws& draws);
// The one that made a plan, by its cluster and numerics; null: none of them.
const Offer* offer_of(const Estimate& plan, const std::vector<std::unique_ptr<Offer>>& offers);

// What a batch twice as large would gain on the cluster of the best plan, in words, where the batch was not given:
// at least as much. Empty: little.
std::string gain_of_batch(const Offer& offer, const Estimate& best);

// The longest sequence that any layout fits: doubled until none does, then halved in on.
class LongestSequence {
 public:
  // The length to try; none: found, or not even the shortest fits.
  std::optional<std::int64_t> next() const {
    if (doubling_ && high_ <= kLongest) return high_;
    if (low_ == 0 || high_ - low_ <= kGrain || high_ > kLongest) return std::nullopt;
    return (low_ + high_) / (2 * kGrain) * kGrain;
  }
  void tell(bool fits) {
    const std::int64_t tried = *next();
    (fits ? low_ : high_) = tried;
    if (doubling_ && fits)
      high_ = 2 * tried;
    else
      doubling_ = false;
  }
  std::int64_t found() const { return low_; }  // 0: none fits

  static constexpr std::int64_t kLongest = std::int64_t{1} << 22;  // that is tried

 private:
  static constexpr std::int64_t kGrain = 1024;
  std::int64_t low_ = 0, high_ = kGrain;
  bool doubling_ = true;
};

}  // namespace preflop
