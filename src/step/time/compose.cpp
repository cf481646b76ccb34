#include "src/step/time/compose.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "src/base/math.hpp"
#include "src/cost/mesh.hpp"
#include "src/step/replay.hpp"
#include "src/step/time/pipeline.hpp"

namespace preflop {

namespace {

template <class N>
Seconds<N> zero() {
  return Seconds<N>(N(0.0));
}

// Bytes per rank and round of a ring over n ranks.
double ring_share(double n) { return n > 1 ? (n - 1) / n : 0; }

template <class N>
N read_off(double value, const char* label, const char* unit) {
  return leaf<N>(value, [&] { return Origin{label, unit, "parameters of the stage on this GPU", {}}; });
}

// bytes each of `parameters` over a group.
template <class N>
Seconds<N> exchange(double parameters, double width, double ranks, const BytesPerSecond<N>& bandwidth,
                    const Seconds<N>& latency, const char* what) {
  if (ranks <= 1 || parameters <= 0) return zero<N>();
  return Bytes<N>(read_off<N>(parameters * width * ring_share(ranks), what, "B")) / bandwidth + latency;
}

// Weights gathered, or gradients reduced, of dense and expert parameters, one after the other.
template <class N>
Seconds<N> both(double dense, double expert, double width, const StateTerms<N>& s, const char* what) {
  return exchange(dense, width, s.dense_ranks, s.dense_bandwidth, s.dense_latency, what) +
         exchange(expert, width, s.expert_ranks, s.expert_bandwidth, s.expert_latency, what);
}

// An exchange beside compute: what sticks out, and the compute that sharing the GPU costs.
template <class N>
Seconds<N> beside(const Seconds<N>& comm, const Seconds<N>& compute, const N& contention) {
  const Seconds<N> out(larger((comm - compute).number(), N(0.0)));
  return out + Seconds<N>(smaller(comm.number(), compute.number())) * contention;
}

// Seconds that gathers and reductions beside compute stick out, and take from it.
template <class N>
struct Beside {
  Seconds<N> forward, backward;
};

// What a piece adds to the passes; empty where weights are whole.
template <class N>
std::optional<Beside<N>> passes(StageTime<N>& stage, const PieceSums<N>& piece, const N& times, double count,
                                const StateTerms<N>& states, const Prices<N>& prices) {
  stage.forward = stage.forward + piece.forward_sum * times;
  stage.backward = stage.backward + piece.backward_sum * times;
  stage.weights = stage.weights + piece.weights_sum * times;
  if (plain(piece.host_forward.number()) > 0) {
    stage.host_forward = stage.host_forward + piece.host_forward * times;
    stage.host_backward = stage.host_backward + piece.host_backward * times;
  }
  stage.dense += piece.dense * count;
  stage.expert += piece.expert * count;
  stage.tensors += piece.tensors * count;
  if (states.zero < 3 || states.dense_ranks <= 1) return std::nullopt;
  constexpr double kGradient = 2;  // bytes of a gradient as the backward pass makes it
  const Seconds<N> gather = both(piece.dense, piece.expert, states.gather_width, states, "weights gathered");
  const Seconds<N> reduce = both(piece.dense, piece.expert, states.reduce_width, states, "gradients reduced");
  // Copied out of what was gathered; gradients copied (and cast) into what is reduced.
  const double weights = piece.dense + piece.expert;
  const double cast = states.reduce_width > states.gather_width ? states.reduce_width + kGradient : 0;
  const Seconds<N> copies = prices.pass(weights * 2 * states.gather_width, "gathered weights") * prices.gather_copies;
  const Seconds<N> casts = prices.pass(weights * cast, "gradients cast for their reduction");
  Beside<N> out{(beside(gather, piece.forward_sum, prices.contention) + copies) * times,
                (beside(gather + reduce, piece.backward_sum, prices.contention) + copies + casts) * times};
  stage.forward = stage.forward + out.forward;
  stage.backward = stage.backward + out.backward;
  return out;
}

template <class N>
N equal_blocks(double count) {
  return leaf<N>(count, [] { return Origin{"equal blocks", "", "the stage's slice of the model", {}}; });
}

}  // namespace

template <class N>
void add_piece(StageTime<N>& stage, const Piece<N>& piece, double count, const StateTerms<N>& states,
               const Prices<N>& prices) {
  const N times = equal_blocks<N>(count);
  add_to(stage.parts, piece.forward, times);
  add_to(stage.parts, piece.backward, times);
  const auto more = passes(stage, piece, times, count, states, prices);
  if (!more) return;
  Seconds<N>& dp = stage.parts[static_cast<std::size_t>(Lost::dp_comm)];
  dp = dp + named(more->forward, "gathers beside the forward pass", "s") +
       named(more->backward, "gathers and reductions beside the backward pass", "s");
}

template <class N>
void add_passes(StageTime<N>& stage, const PieceSums<N>& piece, double count, const StateTerms<N>& states,
                const Prices<N>& prices) {
  passes(stage, piece, equal_blocks<N>(count), count, states, prices);
}

template <class N>
void wait_for_host(StageTime<N>& stage) {
  if (plain(stage.host_forward.number()) <= 0) return;
  const Seconds<N> forward = waiting_for_host(stage.forward, stage.host_forward);
  const Seconds<N> backward = waiting_for_host(stage.backward, stage.host_backward);
  stage.forward = stage.forward + forward;
  stage.backward = stage.backward + backward;
  Seconds<N>& launch = stage.parts[static_cast<std::size_t>(Lost::launch)];
  launch = launch + forward + backward;
}

namespace {

template <class N>
double owned(double dense, double expert, const StateTerms<N>& s) {
  const bool sharded = s.zero >= 1;
  return dense / (sharded ? s.dense_ranks : 1.0) + expert / (sharded ? s.expert_ranks : 1.0);
}

template <class N>
Seconds<N> over_host_link(double bytes, const char* what, const Prices<N>& p) {
  return Bytes<N>(read_off<N>(bytes, what, "B")) / p.host_link;
}

// Gradients to the host, the update there, weights back: one after the other.
template <class N>
Seconds<N> host_update_seconds(double dense, double expert, const StateTerms<N>& s, const Prices<N>& p) {
  if (s.host_update <= 0 || plain(p.host_link.number()) <= 0) return zero<N>();
  const double n = owned(dense, expert, s);
  const Seconds<N> update =
      Bytes<N>(read_off<N>(n * s.host_update, "read and written by the host's update", "B")) / p.host_memory;
  if (s.host_down <= 0 && s.host_up <= 0) return update;  // what lives there moves in the passes: add_offload()
  return over_host_link(n * s.host_down, "gradients to the host", p) +
         over_host_link(n * s.host_up, "weights from the host", p) + update;
}

}  // namespace

template <class N>
void add_offload(StageTime<N>& stage, double kept, const StateTerms<N>& s, const Prices<N>& p) {
  const double n = owned(stage.dense, stage.expert, s);
  if (plain(p.host_link.number()) <= 0 || (kept <= 0 && s.host_weight <= 0)) return;
  // Both directions of the link work at once: in each pass the fuller one counts.
  const double forward = std::max(kept, n * s.host_weight);
  const double backward = std::max(kept + n * s.host_weight, n * s.host_gradient);
  const auto exposed = [&](double bytes, const char* what, const Seconds<N>& compute) {
    return Seconds<N>(larger((over_host_link(bytes, what, p) - compute).number(), N(0.0)));
  };
  const Seconds<N> ahead = exposed(forward, "between GPU and host in the forward pass", stage.forward);
  const Seconds<N> back = exposed(backward, "between GPU and host in the backward pass", stage.backward);
  Seconds<N>& at = stage.parts[static_cast<std::size_t>(Lost::offload)];
  at = at + ahead + back;
  stage.forward = stage.forward + ahead;
  stage.backward = stage.backward + back;
}

template <class N>
Schedule<N> schedule_of(const Recipe& recipe, const BlockCost& layer, double nodes, const Prices<N>& prices) {
  const Layout& l = recipe.layout;
  Schedule<N> out;
  out.pp = static_cast<double>(l.pp);
  out.vpp = static_cast<double>(l.vpp);
  out.micro_batches = static_cast<double>(recipe.micro_batches());
  out.doublings = math::log2(std::max(nodes, 1.0));
  out.slices = math::log2(std::max(static_cast<double>(l.world()) / prices.domain, 1.0));
  out.all_forward = l.order() == "gpipe";
  for (const char* name : {"zb-h1", "zb-1p", "zb-2p"}) {
    if (l.order() == name) out.played = name;
  }
  out.sent = out.hop = zero<N>();
  if (l.pp > 1) {
    const double share = prices.scatter_gather && !l.sp ? static_cast<double>(l.tp) : 1.0;
    const double bytes = volume("bsh", layer.extents, Mesh::of(l)).elements.real() * recipe.activation_width() / share;
    out.sent = prices.send(bytes, static_cast<double>(l.tp * l.cp * l.dp));
    out.hop = out.sent + prices.hop_wait;
  }
  return out;
}

namespace {

template <class N>
Seconds<N> optimizer_seconds(double dense, double expert, const StateTerms<N>& s, const Prices<N>& p) {
  const bool scattered = s.zero >= 2;
  const double held = dense / (scattered ? s.dense_ranks : 1.0) + expert / (scattered ? s.expert_ranks : 1.0);
  return p.pass(held * s.held_bytes, "gradients set to zero and averaged") +
         p.pass(owned(dense, expert, s) * s.update_bytes, "states read and written");
}

// Exchanges of gradients and weights once a step that no compute hides, of one stage.
template <class N>
Seconds<N> exposed_states(const StateSeconds<N>& own, const StageTime<N>& stage, const StateTerms<N>& s,
                          const Prices<N>& p) {
  if (s.dense_ranks <= 1) return own.replicas;
  // Beside the last backward pass, after the gathers and reductions within the shard group.
  const auto after = [&](const Seconds<N>& busy) {
    const Seconds<N> free(larger((stage.backward * p.dp_hidden - busy).number(), N(0.0)));
    return Seconds<N>(larger((own.replicas - free).number(), N(0.0)));
  };
  if (s.zero >= 3) return after(own.exchanges);
  if (plain(p.dp_hidden) == 0) return own.exchanges + own.replicas;
  const Seconds<N> beside_backward(larger((own.reduce - stage.backward * p.dp_hidden).number(), N(0.0)));
  const Seconds<N> beside_forward =
      s.zero == 0 ? own.gather : Seconds<N>(larger((own.gather - stage.forward * p.dp_hidden).number(), N(0.0)));
  return Seconds<N>(smaller(own.exchanges.number(), (beside_backward + beside_forward + own.tail).number())) +
         after(own.reduce);
}

// Seconds beyond micro_batches x slowest of a schedule that is played, exchanges between stages within them.
template <class N>
Seconds<N> played_idle(const StageRun<N>* stages, std::size_t n, const Schedule<N>& q, const Seconds<N>& slowest) {
  ReplayWork work;
  for (std::size_t i = 0; i < n; ++i) {
    const StageTime<N>& t = stages[i].time;
    const auto copies = static_cast<std::size_t>(stages[i].count);
    work.forward.insert(work.forward.end(), copies, {plain(t.forward.number())});
    work.backward.insert(work.backward.end(), copies, {plain(t.backward.number())});
    work.weights.insert(work.weights.end(), copies, {plain(t.weights.number())});
  }
  work.hop = plain(q.sent.number());
  const auto m = static_cast<std::int64_t>(q.micro_batches);
  const bool searched = std::string_view(q.played) == "zb-2p";
  const double all = searched ? zero_bubble_least(work, m) : zero_bubble_seconds(work, m);
  const double idle = std::max(all - plain(slowest.number()) * q.micro_batches, 0.0);
  return Seconds<N>(leaf<N>(idle, [searched] {
    return Origin{"gaps", "s", searched ? "the longest chain of passes" : "the schedule, played event by event", {}};
  }));
}

template <class N>
Seconds<N> longest(const std::array<Seconds<N>, 2>& two) {
  return Seconds<N>(larger(two[0].number(), two[1].number()));
}

// Of the micro-batches: the work of the mean stage, and what comes to it.
template <class N>
struct Lane {
  Seconds<N> all, imbalance, bubble, hops, jitter;  // all: of one micro-batch, summed over the stages
};
// `idle`: fill_and_drain() or its seconds alone.
template <class N, class Idle>
Lane<N> lane_of(const StageRun<N>* stages, std::size_t n, const Schedule<N>& q, const Prices<N>& p, const N& m,
                const Idle& idle) {
  Lane<N> out{zero<N>(), zero<N>(), zero<N>(), zero<N>(), zero<N>()};
  Seconds<N> slowest = zero<N>();
  for (std::size_t i = 0; i < n; ++i) {
    const StageTime<N>& t = stages[i].time;
    const N count = leaf<N>(stages[i].count, [] { return Origin{"equal stages", "", "the pipeline split", {}}; });
    const Seconds<N> work = named(t.forward + t.backward, "one micro-batch of a stage", "s");
    slowest = longest<N>({slowest, work});
    out.all = out.all + work * count;
  }
  out.jitter = slowest * m * p.jitter * N(q.doublings);
  if (plain(p.slice_jitter) > 0) out.jitter = out.jitter + slowest * m * p.slice_jitter * N(q.slices);
  if (q.pp <= 1) return out;
  out.imbalance = Seconds<N>(larger(((slowest - out.all / N(q.pp)) * m).number(), N(0.0)));
  out.bubble = q.played != nullptr ? played_idle(stages, n, q, slowest) : idle(stages, n, q, slowest);
  if (q.played == nullptr) out.hops = q.hop * N(2 * (q.pp - 1)) + q.hop * N(2 * q.vpp) * m * p.pp_exposed;
  return out;
}

// Of the stages that take longest for each.
template <class N>
struct OnceAStep {
  Seconds<N> dp, update, host;
  void add(const StateSeconds<N>& own, const StageTime<N>& stage, const StateTerms<N>& states, const Prices<N>& p) {
    dp = longest<N>({dp, exposed_states(own, stage, states, p)});
    update = longest<N>({update, own.update});
    if (states.host_update > 0) host = longest<N>({host, own.host});
  }
};

}  // namespace

template <class N>
StateSeconds<N> state_seconds(const StageTime<N>& stage, const StateTerms<N>& s, const Prices<N>& p) {
  const double dense = stage.dense, expert = stage.expert;
  StateSeconds<N> out{zero<N>(), zero<N>(), zero<N>(), zero<N>(), zero<N>(), zero<N>(), zero<N>()};
  out.update = optimizer_seconds(dense, expert, s, p);
  if (s.host_update > 0) out.host = host_update_seconds(dense, expert, s, p);
  if (s.replicas > 1) {
    const double bytes = 2 * dense / s.dense_ranks * s.reduce_width * ring_share(s.replicas);
    out.replicas = Bytes<N>(read_off<N>(bytes, "gradients averaged over the shard groups", "B")) / s.replica_bandwidth;
  }
  if (s.dense_ranks <= 1) return out;
  out.reduce = both(dense, expert, s.reduce_width, s, "gradients reduced");
  // Unsharded states: the other half of the all-reduce takes the place of the gather.
  out.gather = s.zero == 0 ? both(dense, expert, s.reduce_width, s, "gradients handed on")
                           : both(dense, expert, s.gather_width, s, "weights gathered");
  out.exchanges = out.reduce + out.gather;
  if (s.zero >= 3 || plain(p.dp_hidden) == 0) return out;
  const N smallest =
      leaf<N>(s.data_ranks, [] { return Origin{"data-parallel ranks", "", "dp x cp", {}}; }) * p.tail_per_rank;
  const N parameters = read_off<N>(dense + expert, "parameters", "");
  out.tail = out.exchanges * (smaller(parameters, larger(p.tail_elements, smallest)) / parameters);
  if (s.zero == 0 || plain(p.tensor_hop) == 0) return out;
  // Gathered and reduced tensor by tensor: each goes once round the ring of ranks, and the host is not ahead.
  const N hops = read_off<N>(2 * stage.tensors * s.dense_ranks, "tensors gathered and reduced, times ranks", "");
  const Seconds<N> rounds(hops * p.tensor_hop);
  out.exchanges = out.exchanges + rounds;
  out.tail = out.tail + rounds;
  return out;
}

template <class N>
StepParts<N> compose(const StageRun<N>* stages, std::size_t n, const Schedule<N>& q, const StateTerms<N>& states,
                     const Prices<N>& p) {
  StepParts<N> out;
  const N m =
      leaf<N>(q.micro_batches, [] { return Origin{"micro-batches", "", "global batch / (micro-batch x dp)", {}}; });
  for (std::size_t i = 0; i < n; ++i) {
    const N share = leaf<N>(q.micro_batches * stages[i].count / q.pp,
                            [] { return Origin{"micro-batches x share of the stages", "", "the pipeline split", {}}; });
    add_to(out.parts, stages[i].time.parts, share);
  }
  const Lane<N> lane = lane_of(stages, n, q, p, m, fill_and_drain<N>);
  OnceAStep<N> once{zero<N>(), zero<N>(), zero<N>()};
  for (std::size_t i = 0; i < n; ++i) {
    const StageTime<N>& stage = stages[i].time;
    once.add(state_seconds(stage, states, p), stage, states, p);
  }
  const auto put = [&](Lost lost, const Seconds<N>& s) {
    Seconds<N>& at = out.parts[static_cast<std::size_t>(lost)];
    at = at + s;
  };
  if (q.pp > 1) {
    put(Lost::imbalance, lane.imbalance);
    put(Lost::bubble, lane.bubble);
    if (q.played == nullptr) put(Lost::pp_comm, lane.hops);
  }
  put(Lost::dp_comm, once.dp);
  put(Lost::optimizer, once.update);
  if (states.host_update > 0) put(Lost::offload, once.host);
  put(Lost::launch, p.step_fixed);
  put(Lost::other, lane.jitter);
  out.seconds = sum_of(out.parts);
  return out;
}

namespace {

double seconds_of(const Lane<double>& lane, const Schedule<double>& q, const Prices<double>& p) {
  return (lane.all * (q.micro_batches / q.pp) + lane.imbalance + lane.bubble + lane.hops + lane.jitter + p.step_fixed)
      .number();
}

}  // namespace

double pipeline_seconds(const StageRun<double>* stages, std::size_t n, const Schedule<double>& q,
                        const Prices<double>& p) {
  return seconds_of(lane_of(stages, n, q, p, q.micro_batches, fill_and_drain_seconds), q, p);
}

double least_pipeline_seconds(const StageRun<double>* stages, std::size_t n, const Schedule<double>& schedule,
                              const Prices<double>& p) {
  Schedule<double> q = schedule;
  q.played = nullptr;
  q.hop = Seconds<double>(0);
  const auto no_idle = [](auto&&...) { return Seconds<double>(0); };
  return seconds_of(lane_of(stages, n, q, p, q.micro_batches, no_idle), q, p);
}

double once_a_step_seconds(const StageRun<double>* stages, const StateSeconds<double>* own, std::size_t n,
                           const StateTerms<double>& states, const Prices<double>& p) {
  OnceAStep<double> once{};
  for (std::size_t i = 0; i < n; ++i) once.add(own[i], stages[i].time, states, p);
  return (once.dp + once.update + once.host).number();
}

#define PREFLOP_INSTANTIATE(N)                                                                                  \
  template void add_piece(StageTime<N>&, const Piece<N>&, double, const StateTerms<N>&, const Prices<N>&);      \
  template void add_passes(StageTime<N>&, const PieceSums<N>&, double, const StateTerms<N>&, const Prices<N>&); \
  template void wait_for_host(StageTime<N>&);                                                                   \
  template void add_offload(StageTime<N>&, double, const StateTerms<N>&, const Prices<N>&);                     \
  template StateSeconds<N> state_seconds(const StageTime<N>&, const StateTerms<N>&, const Prices<N>&);          \
  template Schedule<N> schedule_of(const Recipe&, const BlockCost&, double, const Prices<N>&);                  \
  template StepParts<N> compose(const StageRun<N>*, std::size_t, const Schedule<N>&, const StateTerms<N>&,      \
                                const Prices<N>&);
PREFLOP_INSTANTIATE(double)
PREFLOP_INSTANTIATE(Traced)
#undef PREFLOP_INSTANTIATE

}  // namespace preflop
