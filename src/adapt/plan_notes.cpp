#include "src/adapt/plan_notes.hpp"

#include <algorithm>
#include <vector>

#include "src/base/text.hpp"
#include "src/machine/cluster.hpp"
#include "src/step/time.hpp"

namespace preflop {

std::string no_time_of(const Estimate& e) {
  return e.cluster.memory_only ? "nothing but its memory is given" : missing_rates(e.recipe, e.cluster);
}

std::string differing_batches(const Plan& plan) {
  std::vector<const Cluster*> among;
  for (const Estimate& e : plan.clusters) among.push_back(&e.cluster);
  struct Batch {
    std::int64_t sequences = 0, clusters = 0;
    std::string names;
  };
  std::vector<Batch> batches;
  for (const Estimate& e : plan.clusters) {
    const auto same = std::find_if(batches.begin(), batches.end(),
                                   [&](const Batch& known) { return known.sequences == e.recipe.global_batch; });
    Batch& batch = same == batches.end() ? batches.emplace_back(Batch{e.recipe.global_batch, 0, ""}) : *same;
    batch.names +=
        (batch.clusters++ > 0 ? ", " : "") + text::grouped(e.cluster.gpus) + " x " + machine_name(e.cluster, among);
  }
  if (batches.size() < 2) return "";
  std::stable_sort(batches.begin(), batches.end(),
                   [](const Batch& a, const Batch& b) { return a.clusters > b.clusters; });
  std::string out = "The batch differs, as not every number of GPUs can share it out, and steps with it: " +
                    text::grouped(batches.front().sequences) + " sequences, but ";
  for (std::size_t i = 1; i < batches.size(); ++i)
    out += (i > 1 ? "; " : "") + text::grouped(batches[i].sequences) + " on " + batches[i].names;
  return out + ".";
}

std::string nearest_of_the_rest(const Plan& plan, const Cluster& missed) {
  std::vector<const Cluster*> among = {&missed};
  for (const Estimate& e : plan.clusters) among.push_back(&e.cluster);
  return "Of the clusters without a plan " + text::grouped(missed.gpus) + " x " + machine_name(missed, among) +
         " comes nearest: " + plan.nearest_why + ".";
}

std::string fewest_by_halving(const std::string& does, const std::string& does_not) {
  return "The fewest were looked for by halving what the range leaves, a node apart: " + does + " does, " + does_not +
         " does not; where batches differ a smaller number that was not tried may do, too.";
}

}  // namespace preflop
