#include "src/run/utilisation.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/text.hpp"
#include "src/run/utilisation_causes.hpp"
#include "src/step/time.hpp"

namespace preflop {

namespace {

constexpr double kSame = 0.005;     // two roundings of one rate
constexpr double kNonsense = 1000;  // times the peak: no mistake but a unit explains it

const char* name_of(Rung rung) {
  static constexpr const char* kNames[] = {"exact", "same_chip", "class_rule", "given", "unknown"};
  return kNames[static_cast<int>(rung)];
}

bool is_rate(std::string_view field) { return field.ends_with("_flops") && !field.starts_with("matmul_"); }

void add_known(std::vector<KnownPeak>& out, double flops, const Gpu& gpu) {
  for (const auto& [field, datum] : gpu.data) {
    const bool sparse = field.ends_with("_sparse_headline");
    if (!datum.value || !(sparse || is_rate(field))) continue;
    if (std::fabs(flops / *datum.value - 1) > kSame) continue;
    out.push_back({gpu.id, field, datum.source, *datum.value, sparse});
  }
}

bool is_dense_of(const std::vector<KnownPeak>& known, const Gpu& gpu, std::string_view field) {
  return std::any_of(known.begin(), known.end(),
                     [&](const KnownPeak& k) { return k.gpu == gpu.id && k.field == field; });
}

Result<Peak> choose_peak(const Recipe& recipe, const Cluster& cluster, std::optional<double> given,
                         const MachineCatalogue& machines) {
  Peak out;
  const std::string field(peak_field(recipe.precision));
  const Datum& datum = cluster.datum(field);
  out.catalogue = datum.value;
  out.given = given;
  if (given) out.known = known_peaks(*given, cluster.gpu, machines);
  if (!datum.value && !given) {
    return Error{"--peak",
                 cluster.gpu.id + " has no known dense " + recipe.precision + " peak" +
                     (datum.source.empty() ? "" : " (" + datum.source + ")"),
                 "give it in FLOP/s, e.g. --peak 989e12"};
  }
  // A number that is known to be something else (sparse, another GPU's, another precision's) is not what
  // this GPU can reach; one that nothing knows is the user's own and counts.
  const bool own = given && (!datum.value || (out.known.empty() && std::fabs(*given / *datum.value - 1) > kSame));
  out.flops = own ? *given : *datum.value;
  out.field = own ? "given" : field;
  out.source = own ? "given with --peak" : datum.source;
  out.rung = name_of(own ? Rung::given : datum.rung);
  return out;
}

double tokens_per_second_of(const Analysed& a, const Measurement& m, double gpus) {
  const double step_tokens = static_cast<double>(a.recipe.global_batch) * static_cast<double>(a.recipe.seq);
  switch (m.kind) {
    case Measurement::Kind::tokens_per_second:
      return m.value;
    case Measurement::Kind::tokens_per_second_per_gpu:
      return m.value * gpus;
    case Measurement::Kind::step_seconds:
      return step_tokens / m.value;
    case Measurement::Kind::flops_per_gpu:
      break;
  }
  return m.value / flops_per_token<double>(a, *m.convention, false).number() * gpus;
}

const char* flag_of(Measurement::Kind kind) {
  static constexpr const char* kFlags[] = {"--tokens-per-second", "--tokens-per-second-per-gpu", "--step-seconds",
                                           "--tflops-per-gpu"};
  return kFlags[static_cast<int>(kind)];
}

}  // namespace

std::vector<KnownPeak> known_peaks(double flops, const Gpu& own, const MachineCatalogue& machines) {
  std::vector<KnownPeak> out;
  add_known(out, flops, own);
  for (const Gpu& gpu : machines.gpus()) {
    if (gpu.id != own.id) add_known(out, flops, gpu);
  }
  return out;
}

Result<Utilisation> utilisation(const Analysed& a, const Estimate& e, const Measurement& measured,
                                std::optional<double> peak, const MachineCatalogue& machines) {
  Result<Peak> chosen = choose_peak(a.recipe, e.cluster, peak, machines);
  if (!chosen) return chosen.error();
  Utilisation out;
  out.measured = measured;
  out.peak = std::move(chosen).value();
  const double gpus = static_cast<double>(e.cluster.gpus);
  const double step_tokens = static_cast<double>(a.recipe.global_batch) * static_cast<double>(a.recipe.seq);
  out.tokens_per_second = tokens_per_second_of(a, measured, gpus);
  out.tokens_per_second_per_gpu = out.tokens_per_second / gpus;
  out.step_seconds = step_tokens / out.tokens_per_second;
  const bool other = peak && out.peak.field != "given" && !is_dense_of(out.peak.known, e.cluster.gpu, out.peak.field);
  for (const Convention& c : conventions()) {
    ConventionUse use;
    use.convention = &c;
    use.flops_per_token = flops_per_token<double>(a, c, false).number();
    use.flops_per_gpu = use.flops_per_token * out.tokens_per_second_per_gpu;
    use.mfu = use.flops_per_gpu / out.peak.flops;
    if (other) use.mfu_of_given = use.flops_per_gpu / *peak;
    out.conventions.push_back(use);
  }
  out.mfu = out.conventions.front().mfu;
  if (!std::isfinite(out.mfu) || !std::isfinite(out.step_seconds) || out.mfu > kNonsense || out.mfu <= 0) {
    return Error{flag_of(measured.kind),
                 text::scientific(out.tokens_per_second_per_gpu, 3) + " tokens/s on each GPU would be " +
                     text::scientific(out.mfu, 3) + " times its peak",
                 "tokens a second, seconds a step, or TFLOP/s"};
  }
  if (e.step) {
    const double rate = e.step->tokens_per_second_per_gpu.number();
    out.predicted_tokens_per_second_per_gpu = rate;
    out.predicted_mfu = out.conventions.front().flops_per_token * rate / out.peak.flops;
    out.unexplained = *out.predicted_mfu - out.mfu;
  }
  out.causes = likely_causes(out, a, e, machines);
  return out;
}

}  // namespace preflop
