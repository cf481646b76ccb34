#include "src/step/memory.hpp"

#include <algorithm>

namespace preflop {

const Scalar& reserved_factor_of(const Stack& stack, const Recipe& recipe) {
  const bool compiled = recipe.compile && stack.reserved_factor_compiled.value > 0;
  return compiled ? stack.reserved_factor_compiled : stack.reserved_factor;
}

bool reserved_beside_peak(const Stack& stack, Moment moment) {
  const auto& summed = stack.reserved_sums;
  return std::find(summed.begin(), summed.end(), name(moment)) != summed.end();
}

// What the caching allocator holds: the peak and, where blocks of one moment do not serve another, the working
// sets of the other moments that the stack names and what is kept for the backward pass where the peak is not
// in it; times the stack's factor.
template <class N>
Bytes<N> reserved_bytes(const Stack& stack, const Recipe& recipe, const Bytes<N>& allocated, Moment peak,
                        const std::vector<MomentParts<N>>& moments) {
  const Scalar& factor = reserved_factor_of(stack, recipe);
  const N reserved_factor =
      leaf<N>(factor.value, [&] { return Origin{"reserved / allocated", "", factor.source, {}}; });
  Bytes<N> base = allocated;
  Bytes<N> kept_at_peak;
  for (const MomentParts<N>& m : moments) {
    if (m.moment == peak) kept_at_peak = m.kept;
  }
  std::vector<N> kept = {kept_at_peak.number()};
  for (const MomentParts<N>& m : moments) {
    if (m.moment == peak || !reserved_beside_peak(stack, m.moment)) continue;
    kept.push_back(m.kept.number());
    base += named(m.working, "working set of another moment", "B");
  }
  if (peak == Moment::optimizer_step)
    base += named(Bytes<N>(largest(kept)) - kept_at_peak, "kept before the peak", "B");
  return named(base * reserved_factor, "reserved", "B");
}
template Bytes<double> reserved_bytes<double>(const Stack&, const Recipe&, const Bytes<double>&, Moment,
                                              const std::vector<MomentParts<double>>&);
template Bytes<Traced> reserved_bytes<Traced>(const Stack&, const Recipe&, const Bytes<Traced>&, Moment,
                                              const std::vector<MomentParts<Traced>>&);

namespace {

// What an all-to-all of rows holds beyond a communicator that only goes round a ring: NCCL keeps channels to every
// peer. Those of other nodes have fewer, and are not counted.
template <class N>
Bytes<N> exchange_bytes(const Stack& stack, const Recipe& recipe, const Cluster& cluster, const Bytes<N>& ring) {
  const Layout& l = recipe.layout;
  const Scalar each = stack.exchange_peer_bytes.at(cluster.gpu.arch);
  const std::int64_t peers = std::min(l.ep, std::max<std::int64_t>(cluster.gpus_per_node / l.etp, 1)) - 1;
  if (recipe.dispatcher != "alltoall" || peers < 1 || each.value <= 0) return Bytes<N>(N(0.0));
  const N bytes = leaf<N>(each.value, [&] { return Origin{"channels to one peer", "B", each.source, {}}; });
  const N count = leaf<N>(static_cast<double>(peers), [] { return Origin{"peers in the node", "", "ep and etp", {}}; });
  return named(Bytes<N>(largest(std::vector<N>{ring.number(), bytes * count})) - ring, "all-to-all", "B");
}

}  // namespace

template <class N>
Bytes<N> outside_allocator(const Stack& stack, const Recipe& recipe, const Cluster& cluster) {
  const std::string& arch = cluster.gpu.arch;
  const Scalar context = stack.context_bytes.at(arch);
  const Scalar communicator = stack.communicator_bytes.at(arch);
  const Scalar& more = stack.more_communicators;
  const Bytes<N> own(leaf<N>(context.value, [&] { return Origin{"CUDA context", "B", context.source, {}}; }));
  const Bytes<N> each(
      leaf<N>(communicator.value, [&] { return Origin{"one communicator", "B", communicator.source, {}}; }));
  const int sizes = communicators(recipe.layout);
  N count = leaf<N>(sizes, [] { return Origin{"communicators", "", "parallel sizes above 1", {}}; });
  if (more.value > 0 && sizes > 0)
    count = count + leaf<N>(more.value, [&] { return Origin{"further communicators", "", more.source, {}}; });
  return named(own + each * count + exchange_bytes<N>(stack, recipe, cluster, each), "outside the allocator", "B");
}
template Bytes<double> outside_allocator<double>(const Stack&, const Recipe&, const Cluster&);
template Bytes<Traced> outside_allocator<Traced>(const Stack&, const Recipe&, const Cluster&);

namespace {

// What equal stages have in common: states and buffers, and sums of the moments at which no micro-batch is alive.
template <class N>
struct Rest {
  const Stage* of = nullptr;
  std::vector<Line> lines;
  std::optional<Ledger<N>> sums[kMoments];

  void serve(const Analysed& a, const Stage& stage) {
    if (of != nullptr && same_work(*of, stage)) return;
    *this = Rest{&stage, resting_lines(a, stage), {}};
  }
  Ledger<N> at(const Analysed& a, const Stage& stage, Moment moment, double flights) {
    std::optional<Ledger<N>>& known = sums[static_cast<int>(moment)];
    if (known) return *known;
    const Ledger<N> sum = add_up<N>(lines_at(a, stage, moment, flights, lines), name(moment));
    if (at_rest(moment)) known = sum;
    return sum;
  }
};

template <class N>
StageMemory<N> stage_memory(const Analysed& a, const Stage& stage, const Cluster& cluster, Rest<N>& rest) {
  StageMemory<N> out;
  out.stage = stage.index;
  out.layers = stage.layer_count();
  std::vector<MomentParts<N>> parts;
  std::vector<N> candidates;
  double most = -1;
  const double flights = in_flight(a.recipe.layout, stage.index, a.recipe.micro_batches());
  rest.serve(a, stage);
  for (int m = 0; m < kMoments; ++m) {
    const Moment moment = static_cast<Moment>(m);
    if (!has_moment(a, stage, moment)) continue;
    const Ledger<N> ledger = rest.at(a, stage, moment, flights);
    parts.push_back({moment, ledger.terms[static_cast<int>(Term::activations)],
                     ledger.terms[static_cast<int>(Term::logits)] + ledger.terms[static_cast<int>(Term::transients)]});
    out.moments[m] = ledger.allocated;
    candidates.push_back(ledger.allocated.number());
    const double bytes = plain(ledger.allocated.number());
    if (bytes <= most) continue;
    most = bytes;
    out.moment = moment;
    for (int t = 0; t < kTerms; ++t) out.terms[t] = ledger.terms[t];
  }
  out.allocated = Bytes<N>(named(largest(candidates), "allocated", "B"));
  out.reserved = reserved_bytes<N>(*a.stack, a.recipe, out.allocated, out.moment, parts);
  out.context = outside_allocator<N>(*a.stack, a.recipe, cluster);
  out.device = named(out.reserved + out.context, "device", "B");
  return out;
}

template <class N>
std::optional<Bytes<N>> checkpoint_bytes(const Analysed& a) {
  const Count params = summarise(*a.model).params_total;
  const Recipe& r = a.recipe;
  const N n = leaf<N>(params.real(), [] { return Origin{"parameters", "", "", {}}; });
  const double per = width(r.weight_dtype) + width(r.master_dtype);
  const N each = leaf<N>(per, [] { return Origin{"weight and master weight", "B", "recipe dtypes", {}}; });
  std::vector<N> parts = {named(n * each, "weights", "B")};
  if (const Result<const Optimizer*> optimizer = find_optimizer(r.optimizer); optimizer) {
    for (const OptimizerSlot& slot : (*optimizer)->slots) {
      const double bytes = state_elements(a, slot) * slot.bytes(r.moment_dtype);
      parts.push_back(leaf<N>(bytes, [&] { return Origin{slot.name.c_str(), "B", slot.source, {}}; }));
    }
  }
  return Bytes<N>(named(total(parts), "checkpoint", "B"));
}

template <class N>
std::optional<Bytes<N>> host_bytes(const Analysed& a, const Cluster& cluster) {
  if (!a.recipe.offload.any()) return std::nullopt;
  std::vector<Bytes<N>> each;
  std::vector<double> plain_each;
  for (const Stage& stage : a.stages) {
    each.push_back(add_up<N>(host_lines(a, stage), "one rank").allocated);
    plain_each.push_back(plain(each.back().number()));
  }
  std::vector<N> parts;
  for (const auto& [stage, ranks] : fullest_node(a.recipe.layout, cluster.gpus_per_node, plain_each)) {
    const N count = leaf<N>(ranks, [] { return Origin{"ranks of the stage in the node", "", "rank order", {}}; });
    parts.push_back((each[stage] * count).number());
  }
  return Bytes<N>(named(total(parts), "host memory of a node", "B"));
}

}  // namespace

std::vector<std::pair<std::size_t, double>> fullest_node(const Layout& l, std::int64_t gpus_per_node,
                                                         const std::vector<double>& by_stage) {
  const std::int64_t ranks = l.tp * l.cp * l.dp, world = ranks * l.pp;
  std::vector<std::pair<std::size_t, double>> out;
  double most = -1;
  // Nodes are filled in the order of the ranks: the stages of a node are neighbours.
  for (std::int64_t first = 0; first < world; first += gpus_per_node) {
    std::vector<std::pair<std::size_t, double>> node;
    double bytes = 0;
    for (std::int64_t at = first; at < std::min(first + gpus_per_node, world);) {
      const std::int64_t stage = at / ranks;
      const std::int64_t end = std::min({(stage + 1) * ranks, first + gpus_per_node, world});
      node.emplace_back(static_cast<std::size_t>(stage), static_cast<double>(end - at));
      bytes += by_stage[static_cast<std::size_t>(stage)] * static_cast<double>(end - at);
      at = end;
    }
    if (bytes <= most) continue;
    most = bytes;
    out = std::move(node);
  }
  return out;
}

template <class N>
Bytes<N> upper_end(const Bytes<N>& bytes, const Scalar& band, const char* name) {
  if (band.value <= 0) return bytes;
  const N half = leaf<N>(band.value, [&] { return Origin{"half-width of the band", "", band.source, {}}; });
  return named(bytes + bytes * half, name, "B");
}

Verdict verdict_of(double capacity, double needed, double reserved, bool host_short) {
  if (capacity < needed || host_short) return Verdict::no;
  return capacity < reserved ? Verdict::tight : Verdict::fits;
}

namespace {

// The ends of a band around what is predicted.
template <class N>
void set_band(std::optional<Bytes<N>>& low, std::optional<Bytes<N>>& high, const Bytes<N>& x, const Scalar& band,
              const char* low_end, const char* high_end) {
  if (band.value <= 0) return;
  const N half = leaf<N>(band.value, [&] { return Origin{"half-width of the band", "", band.source, {}}; });
  low = named(x - x * half, low_end, "B");
  high = upper_end(x, band, high_end);
}

template <class N>
void set_bands(MemoryEstimate<N>& out, const Stack& stack, const std::string& arch) {
  const StageMemory<N>& peak = out.stages[out.peak_stage];
  const Scalar allocated = stack.allocated_band.at(arch);
  const Scalar reserved = stack.reserved_band.at(arch);
  const Scalar device = stack.device_band.at(arch);
  set_band<N>(out.low_allocated, out.high_allocated, peak.allocated, allocated, "allocated, lower end",
              "allocated, upper end");
  set_band<N>(out.low_reserved, out.high_reserved, peak.reserved, reserved, "reserved, lower end",
              "reserved, upper end");
  set_band<N>(out.low_device, out.high_device, peak.device, device, "device, lower end", "device, upper end");
  out.allocated_band = allocated.value;
  out.reserved_band = reserved.value;
  out.device_band = device.value;
  out.tight_band = stack.tight_band(arch);
}

}  // namespace

template <class N>
MemoryEstimate<N> memory_estimate(const Analysed& a, const Cluster& cluster) {
  MemoryEstimate<N> out;
  Rest<N> rest;
  for (const Stage& stage : a.stages) out.stages.push_back(stage_memory<N>(a, stage, cluster, rest));
  for (std::size_t i = 1; i < out.stages.size(); ++i) {
    if (out.stages[out.peak_stage].allocated < out.stages[i].allocated) out.peak_stage = i;
  }
  out.checkpoint = checkpoint_bytes<N>(a);
  out.host = host_bytes<N>(a, cluster);
  if (const Datum& host = cluster.datum("host_bytes"); out.host && host.value)
    out.host_capacity = Bytes<N>(leaf<N>(*host.value, [&] { return Origin{"host memory", "B", host.source, {}}; }));
  set_bands(out, *a.stack, cluster.gpu.arch);
  const Datum& capacity = cluster.datum("capacity_bytes");
  if (!capacity.value) return out;
  const StageMemory<N>& peak = out.stages[out.peak_stage];
  out.capacity = Bytes<N>(leaf<N>(*capacity.value, [&] { return Origin{"capacity", "B", capacity.source, {}}; }));
  const Bytes<N> needed = needed_at_most(out);
  const Bytes<N> reserved = (out.tight_band > 0 ? *out.high_reserved : peak.reserved) + peak.context;
  out.margin = named(*out.capacity - needed, "margin", "B");
  out.verdict = verdict_of(*capacity.value, plain(needed.number()), plain(reserved.number()), host_short(out));
  return out;
}
template MemoryEstimate<double> memory_estimate<double>(const Analysed&, const Cluster&);
template MemoryEstimate<Traced> memory_estimate<Traced>(const Analysed&, const Cluster&);

std::int64_t shard_group(const Layout& l, bool expert) {
  const std::int64_t whole = expert ? l.edp() : l.dp * l.cp;
  return l.hsdp > 0 ? std::min(l.hsdp, whole) : whole;
}

bool can_shard(const Model& model, const Layout& l) {
  return shard_group(l, false) > 1 || (has_experts(model) && shard_group(l, true) > 1);
}

int communicators(const Layout& l) {
  return (l.tp > 1 ? 1 : 0) + (l.cp > 1 ? 1 : 0) + (l.dp * l.cp > 1 ? 1 : 0) + (l.pp > 1 ? 1 : 0) + (l.ep > 1 ? 1 : 0) +
         (l.etp > 1 ? 1 : 0);
}

}  // namespace preflop
