#include "src/step/recompute_worth.hpp"

namespace preflop {

namespace {

double kept(const Analysed& a) {
  double bytes = 0;
  for (const Stage& stage : a.stages) {
    for (const BlockRun& run : stage.layers)
      if (!inside_unit(*a.model, a.recipe, run.block))
        bytes += static_cast<double>(run.count) * a.blocks[static_cast<std::size_t>(run.block)].saved_bytes();
  }
  return bytes;
}

}  // namespace

bool recomputes_all(const Analysed& a) {
  for (const Stage& stage : a.stages) {
    for (const BlockRun& run : stage.layers) {
      if (run.block != a.model->kind(run.block)) return false;
    }
  }
  return true;
}

std::optional<double> recompute_keeps_more(const Analysed& a) {
  if (a.recipe.recompute.kind == RecomputeKind::none) return std::nullopt;
  Recipe without = a.recipe;
  without.recompute = {};
  const Result<Analysed> plain = analyse_recipe(*a.model, *a.stack, without);
  if (!plain) return std::nullopt;
  return kept(a) - kept(*plain);
}

std::optional<double> units_hold_more(const Analysed& a, const Cluster& cluster) {
  if (!a.recipe.recompute.units()) return std::nullopt;
  Recipe single = a.recipe;
  single.recompute = {RecomputeKind::full, 0, {}};
  const Result<Analysed> each = analyse_recipe(*a.model, *a.stack, single);
  if (!each) return std::nullopt;
  const auto fullest = [&](const Analysed& of) {
    const MemoryEstimate<double> m = memory_estimate<double>(of, cluster);
    return m.stages[m.peak_stage].allocated.number();
  };
  return fullest(a) - fullest(*each);
}

}  // namespace preflop
