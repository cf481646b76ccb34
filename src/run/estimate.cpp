#include "src/run/estimate.hpp"

#include <set>

#include "src/base/text.hpp"
#include "src/machine/cluster.hpp"
#include "src/run/forecast.hpp"
#include "src/run/way_out.hpp"
#include "src/stack/software.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/step/recompute_worth.hpp"

namespace preflop {

namespace {

std::vector<std::string> sources_of(const Analysed& a, const Cluster& cluster) {
  std::set<std::string> out(a.stack->sources.begin(), a.stack->sources.end());
  for (std::string_view field :
       {"capacity_bytes", "memory_bandwidth", "scaleup_bandwidth", "scaleout_bandwidth", "bf16_flops"}) {
    const Datum& d = cluster.datum(field);
    if (d.value && !d.source.empty()) out.insert(cluster.gpu.id + " " + std::string(field) + ": " + d.source);
  }
  return {out.begin(), out.end()};
}

// What is moved to the host has to fit there, and takes time that is only partly known.
template <class N>
void warn_of_host(EstimateOf<N>& out, const Analysed& a, const Cluster& cluster) {
  if (!out.memory.host) return;
  const std::string needed = text::bytes_iec(plain(out.memory.host->number())) + " of host memory a node";
  if (host_short(out.memory))
    out.warnings.push_back("the host: " + needed + ", and it has " +
                           text::bytes_iec(plain(out.memory.host_capacity->number())));
  else if (!out.memory.host_capacity)
    out.warnings.push_back("the host: " + needed + "; how much it has is not known");
  if (!cluster.datum("host_link_bandwidth").value && !cluster.datum("pcie_generation").value && !a.recipe.mfu)
    out.warnings.push_back("no time of offloading: the link between " + cluster.gpu.id + " and its host is not known");
}

// ZeRO or FSDP over one rank (in a layout of tp and pp often so) is expected to save memory, and saves none.
void warn_of_sharding(std::vector<std::string>& out, const Analysed& a) {
  const Layout& l = a.recipe.layout;
  if (l.zero > 0 && !can_shard(*a.model, l) && a.recipe.given.contains("zero"))
    out.push_back("--zero " + std::to_string(l.zero) + " shards nothing: one rank holds each state (dp x cp is " +
                  std::to_string(l.dp * l.cp) + ")");
}

// The rates that this recipe's time is made of: those below exact are assumed.
void assume_rates(Cluster& cluster, const Recipe& recipe) {
  add_assumed_rung(cluster, peak_field(recipe.precision));
  if (recipe.mfu) return;
  if (recipe.precision != "fp32") {
    add_assumed_rung(cluster, "matmul_bf16_flops");
    if (!cluster.datum("matmul_bf16_flops").value)
      cluster.assumed.push_back("matmul_bf16_flops=its dense peak (no matrix product was measured in the sources)");
  }
  add_assumed_rung(cluster, "scaleup_domain");
  const std::optional<double> domain = cluster.datum("scaleup_domain").value;
  if (domain && *domain < static_cast<double>(cluster.gpus) && !cluster.datum("scaleout_bandwidth").value &&
      cluster.datum("scaleup_bandwidth").value)
    cluster.assumed.push_back("scaleout_bandwidth=the scale-up bandwidth (not known for " + cluster.platform.id + ")");
}

template <class N>
void stretch_band(EstimateOf<N>& out, const Analysed& a) {
  if (!out.step || !out.step->high || !fills_memory(out.memory)) return;
  const Parameter* slow = TimeParameters::built_in().find(
      stack_owners(*a.stack, out.cluster.gpu), has_experts(*a.model) ? "band_high_full_moe" : "band_high_full_dense");
  if (slow == nullptr) return;
  const N end =
      leaf<N>(slow->value, [&] { return Origin{slow->field.c_str(), "", slow->owner + ": " + slow->source, {}}; });
  out.step->high =
      Seconds<N>(named(out.step->seconds.number() * end, "10 % of runs that fill the memory are slower", "s"));
}

}  // namespace

template <class N>
EstimateOf<N> bare_estimate(const Analysed& a, const Cluster& cluster) {
  EstimateOf<N> out;
  out.cluster = cluster;
  out.recipe = a.recipe;
  out.memory = memory_estimate<N>(a, cluster);
  out.compute = compute_estimate<N>(a, *find_convention("palm"));
  out.step = step_estimate<N>(a, cluster, out.compute);
  return out;
}

template <class N>
EstimateOf<N> estimate(const Analysed& a, const Cluster& cluster, SharedDraws* shared) {
  EstimateOf<N> out = bare_estimate<N>(a, cluster);
  out.model = summarise(*a.model);
  stretch_band(out, a);
  if (out.memory.verdict == Verdict::no) add_way_out(out, a);
  if (out.step && a.recipe.tokens) out.run = forecast(a, cluster, out, shared);
  if (out.run && !out.run->cost)
    out.warnings.push_back("no cost: no dated price of " + cluster.gpu.id + " is known; give --price");
  if (out.run && !out.run->energy_kwh)
    out.warnings.push_back("no energy: the power of " + cluster.gpu.id + " is not known; give --watts");
  out.sources = sources_of(a, cluster);
  if (out.step) assume_rates(out.cluster, a.recipe);
  if (!out.memory.capacity && !cluster.memory_only) {
    const std::string& why = cluster.datum("capacity_bytes").source;
    out.warnings.push_back("no verdict: the memory of " + cluster.gpu.id + " is not known" +
                           (why.empty() ? "" : ": " + why));
  }
  warn_of_sharding(out.warnings, a);
  for (std::string& idle : idle_switches(*a.stack, a.recipe)) out.warnings.push_back(std::move(idle));
  if (const std::optional<double> more = recompute_keeps_more(a); more && *more >= 0)
    out.warnings.push_back("this recomputation frees nothing: a micro-batch keeps " +
                           (*more > 0 ? text::bytes_iec(*more) + " more than without it" : std::string("as much")));
  if (a.recipe.recompute.some() && recomputes_all(a))
    out.warnings.push_back(recompute_text(a.recipe.recompute) + ": no stage has more layers, so all are recomputed");
  if (const std::optional<double> more = units_hold_more(a, cluster); more && *more >= 0)
    out.warnings.push_back(recompute_text(a.recipe.recompute) + " costs memory: the peak is " +
                           (*more > 0 ? text::bytes_iec(*more) + " above that of full" : std::string("that of full")) +
                           ", as a unit is alive whole while it is recomputed");
  warn_of_host(out, a, cluster);
  for (const std::string& note : a.model->notes) out.warnings.push_back("the model: " + note);
  if (!out.step && !cluster.memory_only) out.warnings.push_back("no step time: " + missing_rates(a.recipe, cluster));
  return out;
}

template EstimateOf<double> bare_estimate<double>(const Analysed&, const Cluster&);
template EstimateOf<double> estimate<double>(const Analysed&, const Cluster&, SharedDraws*);
template EstimateOf<Traced> estimate<Traced>(const Analysed&, const Cluster&, SharedDraws*);

}  // namespace preflop
