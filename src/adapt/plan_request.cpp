#include "src/adapt/plan_request.hpp"

#include <algorithm>

#include "src/adapt/recipe_keys.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/machine/cluster.hpp"

namespace preflop {

namespace {

constexpr std::int64_t kMostClusters = 64;

Result<Objective> read_objective(const std::string& text) {
  if (text.empty()) return Objective::time;
  std::vector<std::string> names;
  for (int i = 0; i < kObjectives; ++i) {
    const Objective o = static_cast<Objective>(i);
    if (text == name(o)) return o;
    names.emplace_back(name(o));
  }
  return text::unknown_name("--objective", "objective", text, names);
}

// Every cluster that is asked about, understood.
Status read_clusters(const Request& request, const PlanWords& words, const Catalogues& catalogues, PlanAsk& out) {
  std::vector<PlanAsk::Asked> all;
  std::size_t ranges = 0;
  for (const std::string& on : words.on) {
    const auto file = words.files.find(on);
    if (file != words.files.end()) {
      all.push_back({on, file->second, {}, 0});
      continue;
    }
    auto counts = cluster_counts(on, catalogues.machines);
    if (!counts) return counts.error();
    ranges += counts->size() > 1 ? 1 : 0;
    for (std::string& count : *counts) all.push_back({count, std::nullopt, {}, counts->size() > 1 ? ranges : 0});
  }
  if (all.empty()) all.push_back({request.cluster ? request.cluster->where : request.on, request.cluster, {}, 0});
  if (static_cast<std::int64_t>(all.size()) > kMostClusters)
    return Error{"--on", std::to_string(all.size()) + " clusters", "at most " + std::to_string(kMostClusters)};
  for (PlanAsk::Asked& one : all) {
    Request here;
    here.on = one.as;
    here.cluster = one.file;
    auto cluster = cluster_of(here, catalogues);
    if (!cluster) return cluster.error();
    one.cluster = std::move(cluster).value();
    const auto same = std::find_if(out.on.begin(), out.on.end(), [&](const PlanAsk::Asked& known) {
      return same_cluster(known.cluster, one.cluster);
    });
    if (same == out.on.end())
      out.on.push_back(std::move(one));
    else if (same->as != one.as)
      out.again.push_back(one.as + " is the same cluster as " + same->as + ".");
  }
  return Nothing{};
}

}  // namespace

Result<PlanAsk> read_plan_words(const Request& request, const PlanWords& words, const Catalogues& catalogues) {
  PlanAsk out;
  const auto objective = read_objective(words.objective);
  if (!objective) return objective.error();
  out.objective = *objective;
  out.limits.allow_tight = words.allow_tight;
  if (!words.within.empty()) {
    const auto within = parse_duration(words.within, "--within");
    if (!within) return within.error();
    out.limits.within = within->number();
  }
  if (!words.budget.empty()) {
    const auto budget = parse_money(words.budget, "--budget");
    if (!budget) return budget.error();
    out.limits.budget = budget->number();
  }
  if (!words.max_memory.empty()) {
    const auto bytes = parse_bytes(words.max_memory, "--max-memory");
    if (!bytes) return bytes.error();
    out.limits.max_memory = bytes->number();
  }
  if (!words.top.empty()) {
    const auto top = parse_count(words.top, "--top");
    if (!top) return top.error();
    if (top->get() < 1 || top->get() > 1000) return Error{"--top", words.top + " plans", "1 to 1000"};
    out.top = static_cast<std::size_t>(top->get());
  }
  const bool limited = out.limits.within || out.limits.budget;
  if (limited && text_of(request, "tokens") == nullptr)
    return Error{"--tokens", "a limit of the whole run needs its length", "e.g. --tokens 1.4T"};
  if (out.objective == Objective::gpus && !limited)
    return Error{"--objective", "fewest GPUs need a limit", "--within 20d or --budget 2M$"};
  if (Status s = read_clusters(request, words, catalogues, out); !s) return s.error();
  return out;
}

Result<std::vector<std::string>> cluster_counts(const std::string& on, const MachineCatalogue& machines) {
  const std::size_t dots = on.find("..");
  const std::size_t x = on.find('x');
  if (dots == std::string::npos || x == std::string::npos || dots > x) return std::vector<std::string>{on};
  const auto range = parse_range(on.substr(0, x), "--on");
  if (!range) return range.error();
  const auto one = machines.cluster(std::to_string(range->high.get()) + on.substr(x));
  if (!one) return one.error();
  const std::int64_t node = std::max<std::int64_t>(1, one->gpus_per_node);
  std::vector<std::int64_t> counts = {range->low.get(), range->high.get()};
  for (std::int64_t n = node; n <= range->high.get(); n *= 2) {
    for (const std::int64_t count : {n, n / 2 * 3}) {
      if (count > range->low.get() && count < range->high.get() && count % node == 0) counts.push_back(count);
    }
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<std::string> out;
  for (const std::int64_t count : counts) out.push_back(std::to_string(count) + on.substr(x));
  return out;
}

}  // namespace preflop
