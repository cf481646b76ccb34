#include "src/step/time.hpp"

#include <algorithm>

#include "src/step/time/compose.hpp"

namespace preflop {

std::string missing_rates(const Recipe& r, const Cluster& cluster) {
  const auto lacks = [&](std::string_view field) { return !cluster.datum(field).value; };
  if (lacks(peak_field(r.precision))) return cluster.gpu.id + " has no known dense " + r.precision + " peak";
  if (r.mfu) return "";
  if (lacks("memory_bandwidth")) return cluster.gpu.id + " has no known memory bandwidth";
  // Every group of more than one rank exchanges over the link that it reaches.
  const Layout& l = r.layout;
  const double domain = cluster.datum("scaleup_domain").value.value_or(static_cast<double>(cluster.gpus_per_node));
  const std::int64_t reaches[] = {l.tp, l.dp * l.cp > 1 ? l.tp * l.cp * l.dp : 1, l.pp > 1 ? l.world() : 1};
  for (const std::int64_t reach : reaches) {
    const bool inside = static_cast<double>(reach) <= domain || lacks("scaleout_bandwidth");
    if (reach > 1 && inside && lacks("scaleup_bandwidth")) return cluster.gpu.id + " has no known scale-up bandwidth";
  }
  return "";
}

namespace {

template <class N>
N given(double value, const char* label, const char* unit, const char* source) {
  return leaf<N>(value, [&] { return Origin{label, unit, source, {}}; });
}

template <class N>
void finish(StepEstimate<N>& out, const Analysed& a, const Cluster& cluster, const ComputeEstimate<N>& compute) {
  const Recipe& r = a.recipe;
  const Tokens<N> tokens(given<N>(static_cast<double>(r.global_batch) * static_cast<double>(r.seq), "tokens per step",
                                  "tokens", "global batch x sequence"));
  const N gpus = given<N>(static_cast<double>(cluster.gpus), "GPUs", "", "the cluster");
  out.tokens_per_second = named(tokens / out.seconds, "tokens per second", "tokens/s");
  out.tokens_per_second_per_gpu = named(out.tokens_per_second / gpus, "tokens per second and GPU", "tokens/s");
  out.mfu = named(compute.model * out.tokens_per_second_per_gpu / out.peak, "MFU", "");
  out.hfu = named(compute.hardware * out.tokens_per_second_per_gpu / out.peak, "HFU", "");
  out.mfu_convention = compute.convention;
}

// time = FLOPs of the step / (GPUs x peak x MFU)
template <class N>
StepEstimate<N> from_given_mfu(const Analysed& a, const Cluster& cluster, const Prices<N>& prices) {
  const Recipe& r = a.recipe;
  StepEstimate<N> out;
  out.method = "given mfu";
  out.peak = prices.peak;
  const Convention* c = find_convention(r.mfu_convention);
  const Tokens<N> tokens(given<N>(static_cast<double>(r.global_batch) * static_cast<double>(r.seq), "tokens per step",
                                  "tokens", "global batch x sequence"));
  const N gpus = given<N>(static_cast<double>(cluster.gpus), "GPUs", "", "the cluster");
  const N mfu = leaf<N>(*r.mfu, [] { return Origin{"MFU", "", "given with --mfu", {}}; });
  out.seconds = named(flops_per_token<N>(a, *c, false) * tokens / (out.peak * gpus * mfu), "step", "s");
  out.breakdown[static_cast<int>(Lost::other)] = out.seconds;
  return out;
}

template <class N>
StageTime<N> stage_time(const Analysed& a, const Stage& stage, const std::vector<Piece<N>>& pieces,
                        const StateTerms<N>& states, const Prices<N>& prices) {
  StageTime<N> out;
  const auto add = [&](const BlockRun& run) {
    add_piece(out, pieces[static_cast<std::size_t>(run.block)], static_cast<double>(run.count), states, prices);
  };
  if (stage.embedding) add({a.model->embedding, 1});
  for (const BlockRun& run : stage.layers) add(run);
  if (stage.head) {
    for (const BlockRun& run : a.model->mtp) add(run);
    add({a.model->head, 1});
  }
  wait_for_host(out);
  if (!a.recipe.offload.any()) return out;
  double kept = 0;
  for (const BlockRun& run : stage.layers) {
    if (offloads(*a.model, a.recipe, run.block))
      kept += static_cast<double>(run.count) * a.blocks[static_cast<std::size_t>(run.block)].saved_bytes();
  }
  add_offload(out, kept, states, prices);
  return out;
}

template <class N>
StepEstimate<N> predicted(const Analysed& a, const Cluster& cluster, const Prices<N>& prices,
                          const TimeParameters& parameters) {
  std::vector<Piece<N>> pieces;
  for (std::size_t i = 0; i < a.blocks.size(); ++i)
    pieces.push_back(price_block(a.blocks[i], a.recipe, a.model->is_layer(static_cast<int>(i)), prices));
  const StateTerms<N> states = state_terms(a.recipe, prices);
  std::vector<StageRun<N>> runs;
  for (std::size_t i = 0; i < a.stages.size(); ++i) {
    if (i > 0 && same_work(a.stages[i], a.stages[i - 1]))
      runs.back().count += 1;
    else
      runs.push_back({stage_time(a, a.stages[i], pieces, states, prices), 1});
  }
  const BlockCost& layer = a.blocks[static_cast<std::size_t>(a.stages.front().layers.front().block)];
  const Schedule<N> schedule = schedule_of(a.recipe, layer, static_cast<double>(cluster.nodes()), prices);
  const StepParts<N> step = compose(runs.data(), runs.size(), schedule, states, prices);
  StepEstimate<N> out;
  out.method = "kernels and links";
  out.peak = prices.peak;
  for (int i = 0; i < kLost; ++i)
    out.breakdown[i] = named(step.parts[static_cast<std::size_t>(i)], name(static_cast<Lost>(i)), "s");
  Parts<N> parts;
  for (int i = 0; i < kLost; ++i) parts[static_cast<std::size_t>(i)] = *out.breakdown[i];
  out.seconds = named(sum_of(parts), "step", "s");
  const Band<N> band = prices_band<N>(cluster, *a.stack, has_experts(*a.model), parameters);
  if (plain(band.low) > 0) out.low = Seconds<N>(named(out.seconds.number() * band.low, "10 % of runs are faster", "s"));
  if (plain(band.high) > 0)
    out.high = Seconds<N>(named(out.seconds.number() * band.high, "10 % of runs are slower", "s"));
  return out;
}

}  // namespace

std::optional<ReplayWork> replay_work(const Analysed& a, const Cluster& cluster) {
  if (cluster.memory_only || a.recipe.mfu || !missing_rates(a.recipe, cluster).empty()) return std::nullopt;
  const Prices<double> rates = prices<double>(cluster, *a.stack, a.recipe, TimeParameters::built_in());
  std::vector<Piece<double>> pieces;
  for (std::size_t i = 0; i < a.blocks.size(); ++i)
    pieces.push_back(price_block(a.blocks[i], a.recipe, a.model->is_layer(static_cast<int>(i)), rates));
  const StateTerms<double> states = state_terms(a.recipe, rates);
  ReplayWork out;
  const std::size_t chunks = static_cast<std::size_t>(a.recipe.layout.vpp);
  for (const Stage& stage : a.stages) {
    const StageTime<double> time = stage_time(a, stage, pieces, states, rates);
    out.forward.emplace_back(chunks, time.forward.number() / static_cast<double>(chunks));
    out.backward.emplace_back(chunks, time.backward.number() / static_cast<double>(chunks));
    out.weights.emplace_back(chunks, time.weights.number() / static_cast<double>(chunks));
  }
  const BlockCost& layer = a.blocks[static_cast<std::size_t>(a.stages.front().layers.front().block)];
  out.hop = schedule_of(a.recipe, layer, static_cast<double>(cluster.nodes()), rates).hop.number();
  return out;
}

template <class N>
std::optional<StepEstimate<N>> step_estimate(const Analysed& a, const Cluster& cluster,
                                             const ComputeEstimate<N>& compute, const TimeParameters& parameters) {
  if (cluster.memory_only || !missing_rates(a.recipe, cluster).empty()) return std::nullopt;
  const Prices<N> rates = prices<N>(cluster, *a.stack, a.recipe, parameters);
  StepEstimate<N> out = a.recipe.mfu ? from_given_mfu(a, cluster, rates) : predicted(a, cluster, rates, parameters);
  finish(out, a, cluster, compute);
  return out;
}

template std::optional<StepEstimate<double>> step_estimate<double>(const Analysed&, const Cluster&,
                                                                   const ComputeEstimate<double>&,
                                                                   const TimeParameters&);
template std::optional<StepEstimate<Traced>> step_estimate<Traced>(const Analysed&, const Cluster&,
                                                                   const ComputeEstimate<Traced>&,
                                                                   const TimeParameters&);

}  // namespace preflop
