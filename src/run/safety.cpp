#include "src/run/safety.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/math.hpp"
#include "src/run/sourced.hpp"

namespace preflop {

namespace {

constexpr double kGpusPerNode = 8;  // of the nodes that rates of failure are published for

template <class N>
N failure_rate(const RunSettings& s, const Cluster& cluster) {
  std::vector<N> rates;
  if (s.mtbf) {
    if (std::isfinite(s.mtbf->value)) rates.push_back(N(1.0) / take<N>(*s.mtbf, "time between failures", "s"));
  } else {
    const N eights =
        leaf<N>(static_cast<double>(cluster.gpus) / kGpusPerNode, [] { return Origin{"GPUs / 8", "", "--on", {}}; });
    const N software = take<N>(s.software, "software failures of 8 GPUs", "/s") * eights;
    const N most = take<N>(s.software_most, "software failures of one job, at most", "/s");
    rates.push_back(
        named(take<N>(s.hardware, "hardware failures of 8 GPUs", "/s") * eights, "hardware failures", "/s"));
    rates.push_back(named(smaller(software, most), "software failures", "/s"));
  }
  if (s.eviction) rates.push_back(N(1.0) / take<N>(*s.eviction, "time between evictions", "s"));
  return named(total(rates), "interruptions a second", "/s");
}

Waiting waiting(const RunSettings& s, const Cluster& cluster, double rate) {
  if (!s.spares || !s.repair || rate <= 0) return {};
  const double hardware = s.mtbf ? rate : s.hardware.value * static_cast<double>(cluster.gpus) / kGpusPerNode;
  const double broken = hardware * s.repair->value;
  double term = math::exp(-broken), none_free = 1;
  for (double k = 0; k < s.spares->value; ++k) {
    none_free -= term;
    term *= broken / (k + 1);
  }
  return {std::max(0.0, none_free) * std::min(1.0, hardware / rate), s.repair->value / (s.spares->value + 1)};
}

Interval interval_of(const RunSettings& s, double training, double step, double save, double pending,
                     const Hazard& hazard) {
  constexpr double kRounding = 1e-9;  // a whole number of intervals stays whole
  Interval out;
  const double least = std::min(std::max(step, pending - save), training);
  out.best = s.saving == Saving::none ? training : best_interval(save, pending, hazard, least, training);
  out.chosen = s.saving == Saving::none ? training
               : s.interval_seconds     ? *s.interval_seconds
               : s.interval_steps       ? *s.interval_steps * step
                                        : std::max(1.0, std::round(out.best / step)) * step;
  const double count = std::max(1.0, std::ceil(training / out.chosen - kRounding));
  out.segments = {count, training / count, save, std::min(pending, training / count + save)};
  return out;
}

}  // namespace

template <class N>
Safety<N> safety_of(const RunSettings& s, const Cluster& cluster, const std::optional<Bytes<N>>& checkpoint) {
  Safety<N> out;
  const N nodes = leaf<N>(static_cast<double>(cluster.nodes()), [] { return Origin{"nodes", "", "--on", {}}; });
  const BytesPerSecond<N> bandwidth(smaller(take<N>(s.node_bandwidth, "checkpoint bandwidth of a node", "B/s") * nodes,
                                            take<N>(s.store_bandwidth, "bandwidth of the store", "B/s")));
  const Bytes<N> size = checkpoint ? *checkpoint : Bytes<N>(N(0.0));
  const N transfer = named(size / bandwidth, "checkpoint written or read", "s").number();
  const bool saves = s.saving != Saving::none;
  const bool background = s.saving == Saving::background;
  out.loading = saves ? transfer : N(0.0);
  out.save = !saves ? N(0.0) : background ? take<N>(s.stall, "training stopped by a save", "s") : transfer;
  out.pending = background ? transfer : N(0.0);
  out.detection = take<N>(s.detection, "detection", "s");
  out.restart = take<N>(s.restart, "restart", "s");
  out.rate = failure_rate<N>(s, cluster);
  const double rate = plain(out.rate);
  out.wait = waiting(s, cluster, rate);
  out.hazard.mtbf = rate > 0 ? 1 / rate : std::numeric_limits<double>::infinity();
  out.hazard.restart = {plain(out.detection) + plain(out.restart) + plain(out.loading), out.wait.seconds,
                        out.wait.share};
  return out;
}

template Safety<double> safety_of<double>(const RunSettings&, const Cluster&, const std::optional<Bytes<double>>&);
template Safety<Traced> safety_of<Traced>(const RunSettings&, const Cluster&, const std::optional<Bytes<Traced>>&);

template <class N>
RunPlan<N> plan_run(const Analysed& a, const Cluster& cluster, const StepEstimate<N>& step,
                    const std::optional<Bytes<N>>& checkpoint) {
  RunPlan<N> out{work_of<N>(a, cluster, step), safety_of<N>(a.recipe.run, cluster, checkpoint), {}, 0};
  const double training = plain(out.work.training.number());
  out.step = training / static_cast<double>(out.work.steps);
  out.interval = interval_of(a.recipe.run, training, out.step, plain(out.safety.save), plain(out.safety.pending),
                             out.safety.hazard);
  return out;
}
template RunPlan<double> plan_run<double>(const Analysed&, const Cluster&, const StepEstimate<double>&,
                                          const std::optional<Bytes<double>>&);
template RunPlan<Traced> plan_run<Traced>(const Analysed&, const Cluster&, const StepEstimate<Traced>&,
                                          const std::optional<Bytes<Traced>>&);

}  // namespace preflop
