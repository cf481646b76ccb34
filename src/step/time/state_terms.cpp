// What sharding makes data-parallel ranks exchange, and what the optimizer moves.
#include "src/cost/mesh.hpp"
#include "src/stack/optimizer.hpp"
#include "src/step/time/compose.hpp"

namespace preflop {

namespace {

// Bytes of the optimizer's states per parameter, of almost every weight: what only norms and biases have, or rows and
// columns in place of elements, is little.
double state_width(const Recipe& r) {
  const Result<const Optimizer*> optimizer = find_optimizer(r.optimizer);
  if (!optimizer) return 2 * width(r.moment_dtype);
  double out = 0;
  for (const OptimizerSlot& slot : (*optimizer)->slots) {
    using Over = OptimizerSlot::Over;
    if (slot.over == Over::all || slot.over == Over::large || slot.over == Over::hidden)
      out += slot.bytes(r.moment_dtype);
  }
  return out;
}

}  // namespace

template <class N>
StateTerms<N> state_terms(const Recipe& r, const Prices<N>& prices) {
  const Layout& l = r.layout;
  const auto real = [](std::int64_t v) { return static_cast<double>(v); };
  StateTerms<N> out;
  // A pipeline gathers sharded weights and reduces gradients once a step, not for every micro-batch.
  out.zero = l.zero == 3 && l.pp > 1 ? 2 : l.zero;
  out.data_ranks = real(l.dp * l.cp);
  const double shard = l.hsdp > 0 && l.zero > 0 ? real(l.hsdp) : out.data_ranks;
  out.replicas = out.data_ranks / shard;
  const RankGroup dense{shard, real(l.tp)};
  const RankGroup expert{real(l.edp()), real(l.etp * l.ep)};
  const RankGroup replicas{out.replicas, real(l.tp) * shard};
  out.dense_ranks = dense.size;
  out.expert_ranks = expert.size;
  out.dense_bandwidth = prices.bandwidth(dense);
  out.expert_bandwidth = prices.bandwidth(expert);
  out.replica_bandwidth = prices.bandwidth(replicas);
  out.dense_latency = prices.latency(dense);
  out.expert_latency = prices.latency(expert);
  out.reduce_width = prices.reduce_width > 0 ? prices.reduce_width : width(r.grad_dtype);
  out.gather_width = prices.gather_width;
  const double gradient = width(r.grad_dtype);
  const bool own = r.master_dtype == Dtype::none;
  const double master = width(own ? r.weight_dtype : r.master_dtype);
  // Written as zeros; read and written by the average over the ranks.
  out.held_bytes = 3 * gradient;
  // Read for the norm, read and written by clipping, read by the update; master and states read and written; weights
  // written.
  const double offloaded = r.offload.optimizer;
  const double states = 2 * (master + state_width(r));
  out.update_bytes = 4 * gradient + (own ? 0 : width(r.weight_dtype)) + states * (1 - offloaded);
  if (offloaded > 0) out.host_update = offloaded * (gradient + width(r.weight_dtype) + states);
  if (r.offload.params) {
    out.host_weight = width(r.weight_dtype);
    out.host_gradient = gradient;
  } else if (offloaded > 0) {
    out.host_down = offloaded * gradient;
    out.host_up = offloaded * width(r.weight_dtype);
  }
  return out;
}

template StateTerms<double> state_terms(const Recipe&, const Prices<double>&);
template StateTerms<Traced> state_terms(const Recipe&, const Prices<Traced>&);

}  // namespace preflop
