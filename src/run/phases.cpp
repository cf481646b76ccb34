#include "src/run/phases.hpp"

#include <cmath>

#include "src/run/sourced.hpp"
#include "src/step/compute.hpp"
#include "src/step/time.hpp"

namespace preflop {

namespace {

double sequences_of(const Recipe& r) {
  return r.run.sequences ? *r.run.sequences : *r.tokens / static_cast<double>(r.seq);
}

// Step times of a ramp lie on a line through the smallest and the full batch: a fixed part (filling the pipeline,
// gradients, optimizer) and one for every sequence. A step of the ramp costs the fixed part once more than
// the same sequences in full batches.
template <class N>
Seconds<N> ramp_cost(const Analysed& a, const Cluster& cluster, const StepEstimate<N>& step, const RampSteps& ramp) {
  const Result<Analysed> first = ramp_recipe(a);
  if (!first) return Seconds<N>(N(0.0));
  const auto compute = compute_estimate<N>(*first, *find_convention("palm"));
  const auto small = step_estimate<N>(*first, cluster, compute);
  if (!small) return Seconds<N>(N(0.0));
  const N full_batch =
      leaf<N>(static_cast<double>(a.recipe.global_batch), [] { return Origin{"global batch", "", "recipe", {}}; });
  const N first_batch = leaf<N>(static_cast<double>(a.recipe.run.ramp->start),
                                [] { return Origin{"first batch of the ramp", "", "--batch-ramp", {}}; });
  const N slope = (step.seconds.number() - named(small->seconds.number(), "step of the first batch", "s")) /
                  (full_batch - first_batch);
  const N fixed =
      named(larger(step.seconds.number() - slope * full_batch, N(0.0)), "part of a step that is fixed", "s");
  const double more = ramp.steps - ramp.sequences / static_cast<double>(a.recipe.global_batch);
  const N extra = leaf<N>(more, [] { return Origin{"steps more than with full batches", "", "--batch-ramp", {}}; });
  return Seconds<N>(extra * fixed);
}

// With the recomputation given, what is legal and fits first of growing cp. Errors: nothing is or does, why the last
// one is not.
Result<Analysed> with_more_cp(const Analysed& a, const Cluster& cluster, Recipe r) {
  const std::int64_t ranks = r.layout.dp * r.layout.cp;
  const std::string sizes = "tp " + std::to_string(r.layout.tp) + " and pp " + std::to_string(r.layout.pp);
  Error last{"--then-seq", "no layout with " + sizes + " fits " + std::to_string(r.seq) + " tokens",
             "shorter sequences, or more --tp or --pp"};
  for (std::int64_t cp = r.layout.cp; cp <= ranks; ++cp) {
    if (ranks % cp != 0) continue;
    r.layout.cp = cp;
    r.layout.dp = ranks / cp;
    if (r.global_batch % r.layout.dp != 0) continue;
    Result<Analysed> now = analyse_recipe(*a.model, *a.stack, r);
    if (!now)
      last = {"--then-seq", std::to_string(r.seq) + " tokens: " + now.error().what, now.error().valid};
    else if (memory_estimate<double>(*now, cluster).verdict != Verdict::no)
      return now;
  }
  return last;
}

// The recipe of a later phase: its sequence length with as many tokens a step, the same tp and pp, and cp as it needs;
// where none fits, with everything recomputed. Errors: none is legal or fits.
Result<Analysed> phase_recipe(const Analysed& a, const Cluster& cluster, const SequencePhase& phase) {
  Recipe r = a.recipe;
  r.seq = phase.seq;
  r.micro_batch = 1;
  const double tokens = static_cast<double>(a.recipe.seq) * static_cast<double>(a.recipe.global_batch);
  r.global_batch = std::max<std::int64_t>(1, std::llround(tokens / static_cast<double>(phase.seq)));
  Result<Analysed> out = with_more_cp(a, cluster, r);
  if (out || r.recompute.kind == RecomputeKind::full) return out;
  r.recompute = {RecomputeKind::full, 0, {}};
  Result<Analysed> all = with_more_cp(a, cluster, r);
  return all ? std::move(all) : std::move(out);
}

template <class N>
struct Later {
  std::vector<N> seconds;  // by phase
  double steps = 0;
  std::optional<Error> refused;  // a phase that no layout can run
};

// Steps of the later phases, each with the step time of its own recipe.
template <class N>
Later<N> later_phases(const Analysed& a, const Cluster& cluster) {
  Later<N> out;
  for (const SequencePhase& phase : a.recipe.run.then) {
    const Result<Analysed> then = phase_recipe(a, cluster, phase);
    if (!then) {
      out.refused = then.error();
      return out;
    }
    const auto compute = compute_estimate<N>(*then, *find_convention("palm"));
    const auto step = step_estimate<N>(*then, cluster, compute);
    if (!step) continue;
    const double batch = static_cast<double>(then->recipe.global_batch) * static_cast<double>(phase.seq);
    const double count = std::ceil(phase.tokens / batch);
    const N steps = leaf<N>(count, [] { return Origin{"steps of the phase", "", "--then-seq", {}}; });
    out.seconds.push_back((named(step->seconds, "step of longer sequences", "s") * steps).number());
    out.steps += count;
  }
  return out;
}

template <class N>
Seconds<N> evaluation(const RunSettings& s, const Seconds<N>& trained, std::int64_t steps) {
  if (!s.evaluation_takes)
    return named(trained * take<N>(s.evaluation, "evaluation over training", ""), "evaluation", "s");
  const double count = std::floor(static_cast<double>(steps) / s.evaluation_every->value);
  const N times = leaf<N>(count, [] { return Origin{"evaluations", "", "--evaluation", {}}; });
  return named(Seconds<N>(times * take<N>(*s.evaluation_takes, "one evaluation", "s")), "evaluation", "s");
}

}  // namespace

RampSteps ramp_steps(const BatchRamp& ramp, std::int64_t global_batch) {
  RampSteps out;
  out.levels = (global_batch - ramp.start) / ramp.increment;
  if (out.levels < 1) return out;
  const double each = static_cast<double>(ramp.samples) / static_cast<double>(out.levels);
  for (std::int64_t k = 0; k < out.levels; ++k) {
    const auto batch = static_cast<double>(ramp.start + k * ramp.increment);
    const double steps = std::ceil(each / batch);
    out.steps += steps;
    out.sequences += steps * batch;
  }
  return out;
}

Result<Analysed> ramp_recipe(const Analysed& a) {
  Recipe first = a.recipe;
  first.global_batch = a.recipe.run.ramp->start;
  return analyse_recipe(*a.model, *a.stack, first);
}

template <class N>
Work<N> work_of(const Analysed& a, const Cluster& cluster, const StepEstimate<N>& step) {
  Work<N> out;
  const Recipe& r = a.recipe;
  const auto batch = static_cast<double>(r.global_batch);
  const double sequences = sequences_of(r);
  const double full = std::ceil(sequences / batch);
  const N steps = leaf<N>(full, [] { return Origin{"steps", "", "tokens / tokens per step, rounded up", {}}; });
  Later<N> later = later_phases<N>(a, cluster);
  out.refused = later.refused;
  later.seconds.insert(later.seconds.begin(), (step.seconds * steps).number());
  out.ideal = Seconds<N>(named(total(later.seconds), "ideal time", "s"));
  RampSteps ramp;
  if (r.run.ramp) ramp = ramp_steps(*r.run.ramp, r.global_batch);
  out.ramp = Seconds<N>(N(0.0));
  if (ramp.levels > 0) out.ramp = named(ramp_cost<N>(a, cluster, step, ramp), "batch ramp", "s");
  out.steps = static_cast<std::int64_t>(ramp.steps + std::ceil((sequences - ramp.sequences) / batch) + later.steps);
  const Seconds<N> trained = out.ideal + out.ramp;
  out.data_stalls =
      named(trained * take<N>(r.run.data_stalls, "waiting for data over training", ""), "data stalls", "s");
  out.stragglers = named(trained * take<N>(r.run.stragglers, "waiting for slow nodes", ""), "stragglers", "s");
  out.evaluation = evaluation<N>(r.run, trained, out.steps);
  out.training = Seconds<N>(named(total(std::vector<N>{out.ideal.number(), out.ramp.number(), out.data_stalls.number(),
                                                       out.stragglers.number(), out.evaluation.number()}),
                                  "training, stalls and evaluation", "s"));
  return out;
}
template Work<double> work_of<double>(const Analysed&, const Cluster&, const StepEstimate<double>&);
template Work<Traced> work_of<Traced>(const Analysed&, const Cluster&, const StepEstimate<Traced>&);

}  // namespace preflop
