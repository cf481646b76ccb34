#include "src/adapt/layout_rule.hpp"

#include <algorithm>

#include "src/stack/optimizer.hpp"

namespace preflop {

namespace {

std::vector<std::int64_t> tensor_sizes(const Cluster& cluster) {
  std::vector<std::int64_t> out;
  const std::int64_t node = std::min(cluster.gpus, cluster.gpus_per_node);
  for (std::int64_t tp = 1; tp <= node; tp *= 2) {
    if (node % tp == 0) out.push_back(tp);
  }
  return out;
}

std::vector<std::int64_t> pipeline_sizes(const Cluster& cluster, std::int64_t tp, std::int64_t layers) {
  std::vector<std::int64_t> out;
  const std::int64_t rest = cluster.gpus / tp;
  for (std::int64_t pp = 1; pp <= std::min(rest, layers); ++pp) {
    if (cluster.gpus % tp == 0 && rest % pp == 0) out.push_back(pp);
  }
  return out;
}

// Experts over the GPUs of a node, else over as many as a stage has: the largest sizes that divide both.
std::vector<std::int64_t> expert_sizes(const Model& model, const Cluster& cluster, std::int64_t pp) {
  const std::int64_t experts = expert_count(model);
  if (experts == 0) return {1};
  const std::int64_t ranks = cluster.gpus / pp;
  std::vector<std::int64_t> out;
  for (const std::int64_t most : {std::min<std::int64_t>(ranks, cluster.gpus_per_node), ranks}) {
    std::int64_t best = 1;
    for (std::int64_t ep = 1; ep <= std::min(most, experts); ++ep) {
      if (experts % ep == 0 && ranks % ep == 0) best = ep;
    }
    if (out.empty() || out.back() != best) out.push_back(best);
  }
  return out;
}

// One layout, priced. Not a candidate when it is illegal.
struct Candidate {
  Recipe recipe;
  double short_by = 0;  // bytes; <= 0 fits
};

std::optional<Candidate> price_layout(const Model& model, const Stack& stack, const Cluster& cluster, Recipe recipe) {
  const Result<Analysed> analysed = analyse_recipe(model, stack, recipe);
  if (!analysed) return std::nullopt;
  const MemoryEstimate<double> memory = memory_estimate<double>(*analysed, cluster);
  return Candidate{std::move(recipe), memory.margin ? -memory.margin->number() : 0};
}

// Bytes of states alone, from below: parameters over tp x pp, everything sharded that zero can shard.
// A layout whose states do not fit cannot fit.
bool states_cannot_fit(const Model& model, const Cluster& cluster, const Recipe& r) {
  const Datum& capacity = cluster.datum("capacity_bytes");
  if (!capacity.value) return false;
  const Layout& l = r.layout;
  const double experts = expert_parameters(model).real();
  const double dense = counted_parameters(model, Counted::main).real() - experts;
  const double params = dense / static_cast<double>(l.tp * l.pp) + experts / static_cast<double>(l.ep * l.etp * l.pp);
  const double shard = static_cast<double>(std::max(l.dp * l.cp, l.edp()));
  const Result<const Optimizer*> optimizer = find_optimizer(r.optimizer);
  const double moments = optimizer ? width_over_all(**optimizer, r.moment_dtype) : 0;
  const double weights = width(r.weight_dtype) / (r.layout.zero >= 3 ? shard : 1);
  const double gradients = width(r.grad_dtype) / (r.layout.zero >= 2 ? shard : 1);
  const double states = (width(r.master_dtype) + moments) / (r.layout.zero >= 1 ? shard : 1);
  return params * (weights + gradients + states) > *capacity.value;
}

struct Search {
  const Model& model;
  const Stack& stack;
  const Cluster& cluster;
  const SetBatch& set_batch;
  std::optional<Candidate> best;  // short by least so far

  // The first layout that fits under this recomputation, in the rule's order.
  bool run(const Recipe& base) {
    std::int64_t layers = 0;
    for (const BlockRun& run : model.layers) layers += run.count;
    for (std::int64_t tp : tensor_sizes(cluster)) {
      for (std::int64_t pp : pipeline_sizes(cluster, tp, layers)) {
        for (int zero : stack.zero_allowed) {
          if (zero < stack.zero_default) continue;
          for (std::int64_t ep : expert_sizes(model, cluster, pp)) {
            if (try_one(base, tp, pp, ep, zero)) return true;
          }
        }
      }
    }
    return false;
  }

  bool try_one(Recipe r, std::int64_t tp, std::int64_t pp, std::int64_t ep, int zero) {
    r.layout.tp = tp;
    r.layout.ep = ep;
    r.layout.pp = pp;
    r.layout.dp = cluster.gpus / (tp * pp);
    r.layout.zero = zero;
    r.layout.sp = stack.sp_default && tp > 1;
    set_batch(r);
    // A hopeless layout is still the answer when it is the only one: price it if nothing else was.
    if (best && states_cannot_fit(model, cluster, r) && best->short_by <= 0) return false;
    std::optional<Candidate> c = price_layout(model, stack, cluster, std::move(r));
    if (!c) return false;
    const bool fits = c->short_by <= 0;
    if (!best || c->short_by < best->short_by || fits) best = std::move(c);
    return fits;
  }
};

}  // namespace

Result<LayoutChoice> choose_layout(const Model& model, const Stack& stack, const Cluster& cluster, const Recipe& recipe,
                                   bool recompute_given, const SetBatch& set_batch) {
  Search search{model, stack, cluster, set_batch, {}};
  std::vector<RecomputeKind> policies = {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full};
  if (recompute_given)
    policies = {recipe.recompute.kind};
  else if (stack.recompute_default == "selective")
    policies = {RecomputeKind::selective, RecomputeKind::full};
  for (RecomputeKind policy : policies) {
    Recipe r = recipe;
    r.recompute.kind = policy;
    if (search.run(r)) return LayoutChoice{search.best->recipe, true};
  }
  if (!search.best) {
    return Error{"--on",
                 "no legal layout of " + std::to_string(cluster.gpus) + " GPUs for this model on stack " + stack.name,
                 "another GPU count, or give --tp, --pp and --global-batch"};
  }
  return LayoutChoice{search.best->recipe, false};
}

}  // namespace preflop
