#include "src/adapt/plan_stack.hpp"

#include <algorithm>

#include "src/adapt/command_line.hpp"
#include "src/adapt/plan_order.hpp"
#include "src/adapt/recipe_keys.hpp"
#include "src/base/text.hpp"
#include "src/machine/cluster.hpp"

namespace preflop {

namespace {

struct OwnStack {
  std::size_t at = 0;  // of the clusters
  std::string stack;
  std::int64_t gpus = 0;
};

std::string as_written(const Request& r) { return r.cluster ? r.cluster->where : r.on; }

// "8xh100-sxm, 16xh100-sxm and 3 more"
std::string clusters_of(const std::vector<OwnStack>& all, const std::string& stack,
                        const std::vector<Request>& requests) {
  constexpr std::size_t kNamed = 3;
  std::string out;
  std::size_t count = 0;
  for (const OwnStack& one : all) {
    if (one.stack != stack || ++count > kNamed) continue;
    out += (out.empty() ? "" : ", ") + as_written(requests[one.at]);
  }
  return count > kNamed ? out + " and " + std::to_string(count - kNamed) + " more" : out;
}

}  // namespace

std::string share_stack(std::vector<Request>& clusters, const Catalogues& catalogues) {
  if (clusters.size() < 2 || text_of(clusters.front(), "stack") != nullptr) return "";
  std::vector<OwnStack> own;
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    const auto drafted = draft(clusters[i], catalogues);
    if (drafted) own.push_back({i, drafted->stack->full_name(), drafted->cluster.gpus});
  }
  std::vector<std::string> stacks;  // of the largest clusters first
  std::vector<OwnStack> by_size = own;
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const OwnStack& a, const OwnStack& b) { return a.gpus > b.gpus; });
  for (const OwnStack& one : by_size) {
    if (std::find(stacks.begin(), stacks.end(), one.stack) == stacks.end()) stacks.push_back(one.stack);
  }
  if (stacks.size() < 2) return "";
  for (const std::string& stack : stacks) {
    const auto runs = [&](const OwnStack& one) {
      Request with = clusters[one.at];
      with.default_stack = stack;
      return draft(with, catalogues).ok();
    };
    if (!std::all_of(own.begin(), own.end(), runs)) continue;
    for (Request& request : clusters) request.default_stack = stack;
    std::string others;
    for (const std::string& other : stacks) {
      if (other != stack)
        others += (others.empty() ? "" : "; ") + other + " is the default of " + clusters_of(own, other, clusters);
    }
    return "All clusters are compared on one stack, " + stack + "; alone, " + others + " (--stack).";
  }
  std::string out;
  for (const std::string& stack : stacks)
    out += (out.empty() ? "" : "; ") + clusters_of(own, stack, clusters) + " on " + stack;
  return "No default stack runs on all clusters, so the software differs, too: " + out + ".";
}

std::string gain_alone(const std::vector<std::unique_ptr<Offer>>& offers, const Plan& plan, const PlanAsk& asked,
                       const Catalogues& catalogues) {
  constexpr double kWorthSaying = 0.005;
  const auto seconds_of_token = [](double seconds, const Recipe& r) {
    return seconds / (static_cast<double>(r.global_batch) * static_cast<double>(r.seq));
  };
  // The command that is named has no limits of memory.
  if (!wants_speed(asked.objective) || asked.limits.max_memory || asked.limits.allow_tight) return "";
  double most = kWorthSaying;
  std::string out;
  for (const auto& offer : offers) {
    const auto shown = std::find_if(plan.clusters.begin(), plan.clusters.end(), [&](const Estimate& e) {
      return same_cluster(e.cluster, offer->question.cluster);
    });
    if (offer->request.default_stack.empty() || shown == plan.clusters.end() || !shown->step || shown->recipe.mfu)
      continue;
    Request alone = offer->request;
    alone.default_stack.clear();
    const auto own = pose_offer(alone, catalogues);
    if (!own || (*own)->question.stack == offer->question.stack) continue;
    const Question& q = (*own)->question;
    const SearchResult found = search_all(q, (*own)->space, {Objective::time, step_limits(asked, q), 1});
    if (found.best.empty() || !(found.best.front().priced.seconds > 0)) continue;
    const double less = 1 - seconds_of_token(found.best.front().priced.seconds, q.recipe) /
                                seconds_of_token(shown->step->seconds.number(), shown->recipe);
    if (!(less > most)) continue;
    most = less;
    out = as_written(offer->request) + " alone is given " + q.stack->full_name() + ", on which its best plan takes " +
          text::percent(less) + " less time for a token: " + plan_command(offer->request, q.stack->full_name()) + ".";
  }
  return out;
}

}  // namespace preflop
