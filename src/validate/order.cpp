#include "src/validate/order.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

namespace preflop {

namespace {

constexpr double kApart = 1.03;

std::size_t different(const std::vector<const Entry*>& rows) {
  std::set<std::string_view> layouts;
  for (const Entry* row : rows) layouts.insert(row->layout);
  return layouts.size();
}

JobOrder order_of(const std::vector<const Entry*>& layouts) {
  JobOrder out{layouts.front()->source, layouts.front()->job, different(layouts)};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    for (std::size_t k = i + 1; k < layouts.size(); ++k) {
      const bool first = *layouts[i]->measured < *layouts[k]->measured;
      const Entry& fast = first ? *layouts[i] : *layouts[k];
      const Entry& slow = first ? *layouts[k] : *layouts[i];
      if (fast.layout == slow.layout || *slow.measured <= *fast.measured * kApart) continue;
      ++out.pairs;
      out.right += *fast.predicted < *slow.predicted ? 1.0 : *fast.predicted == *slow.predicted ? 0.5 : 0.0;
    }
  }
  const auto by = [](const std::optional<double> Entry::* value) {
    return [value](const Entry* a, const Entry* b) { return *(a->*value) < *(b->*value); };
  };
  const Entry* fastest = *std::min_element(layouts.begin(), layouts.end(), by(&Entry::measured));
  const Entry* chosen = *std::min_element(layouts.begin(), layouts.end(), by(&Entry::predicted));
  out.regret = *chosen->measured / *fastest->measured - 1;
  return out;
}

}  // namespace

bool marked(const Entry& entry) {
  static constexpr std::string_view kMarks[] = {"outlier", "placement"};
  return entry.flags && std::any_of(entry.flags->begin(), entry.flags->end(), [](const std::string& flag) {
           return std::find(std::begin(kMarks), std::end(kMarks), flag) != std::end(kMarks);
         });
}

std::vector<JobOrder> job_orders(const std::vector<Entry>& entries, std::size_t least) {
  std::map<std::pair<std::string, std::string>, std::vector<const Entry*>> jobs;
  for (const Entry& e : entries) {
    const bool timed =
        e.apart.empty() && e.metric == "time.step_seconds" && !e.skip && e.measured && e.predicted && *e.measured > 0;
    if (timed && !e.job.empty()) jobs[{e.source, e.job}].push_back(&e);
  }
  std::vector<JobOrder> out;
  for (const auto& [key, layouts] : jobs) {
    if (different(layouts) >= least) out.push_back(order_of(layouts));
  }
  return out;
}

double concordance(const std::vector<JobOrder>& jobs) {
  double right = 0, pairs = 0;
  for (const JobOrder& job : jobs) {
    right += job.right;
    pairs += static_cast<double>(job.pairs);
  }
  return pairs > 0 ? right / pairs : 0;
}

double largest_regret(const std::vector<JobOrder>& jobs) {
  double worst = 0;
  for (const JobOrder& job : jobs) worst = std::max(worst, job.regret);
  return worst;
}

}  // namespace preflop
