#include "src/step/time.hpp"

#include <algorithm>

namespace preflop {

std::string_view peak_field(std::string_view precision) {
  if (precision == "fp16") return "fp16_flops";
  if (precision == "fp32") return "fp32_flops";
  return "bf16_flops";
}

std::string missing_rates(const Analysed& a, const Cluster& cluster) {
  const auto lacks = [&](std::string_view field) { return !cluster.datum(field).value; };
  if (lacks(peak_field(a.recipe.precision)))
    return cluster.gpu.id + " has no known dense " + a.recipe.precision + " peak";
  if (a.recipe.mfu) return "";
  if (lacks("memory_bandwidth")) return cluster.gpu.id + " has no known memory bandwidth";
  // Every group of more than one rank exchanges over the link that it reaches.
  const Layout& l = a.recipe.layout;
  const double domain = cluster.datum("scaleup_domain").value.value_or(static_cast<double>(cluster.gpus_per_node));
  const std::int64_t reaches[] = {l.tp, l.dp * l.cp > 1 ? l.tp * l.cp * l.dp : 1, l.pp > 1 ? l.world() : 1};
  for (const std::int64_t reach : reaches) {
    const bool inside = static_cast<double>(reach) <= domain || lacks("scaleout_bandwidth");
    if (reach > 1 && inside && lacks("scaleup_bandwidth")) return cluster.gpu.id + " has no known scale-up bandwidth";
  }
  return "";
}

namespace {

// A rate of the machine as a leaf.
template <class N, class Q>
Q rate(const Cluster& cluster, std::string_view field, const char* label, const char* unit) {
  const Datum& d = cluster.datum(field);
  return Q(leaf<N>(d.value.value_or(0), [&] { return Origin{label, unit, d.source, {}}; }));
}

template <class N>
struct Rates {
  FlopsPerSecond<N> peak;
  FlopsPerSecond<N> matmul;
  BytesPerSecond<N> memory;
  BytesPerSecond<N> scaleup;
  BytesPerSecond<N> scaleout;

  // Collectives over `members` neighbouring ranks leave the scale-up domain when they do not fit in it.
  const BytesPerSecond<N>& link(double reach, const Cluster& cluster) const {
    const double domain = cluster.datum("scaleup_domain").value.value_or(static_cast<double>(cluster.gpus_per_node));
    const bool inside = reach <= domain || !cluster.datum("scaleout_bandwidth").value;
    return inside ? scaleup : scaleout;
  }
};

template <class N>
Rates<N> rates_of(const Analysed& a, const Cluster& cluster) {
  Rates<N> r;
  r.peak = rate<N, FlopsPerSecond<N>>(cluster, peak_field(a.recipe.precision), "dense peak", "FLOP/s");
  const bool measured = a.recipe.precision != "fp32" && cluster.datum("matmul_bf16_flops").value;
  r.matmul = measured ? rate<N, FlopsPerSecond<N>>(cluster, "matmul_bf16_flops", "best measured matmul rate", "FLOP/s")
                      : r.peak;
  r.memory = rate<N, BytesPerSecond<N>>(cluster, "memory_bandwidth", "memory bandwidth", "B/s");
  r.scaleup = rate<N, BytesPerSecond<N>>(cluster, "scaleup_bandwidth", "scale-up bandwidth", "B/s");
  r.scaleout = rate<N, BytesPerSecond<N>>(cluster, "scaleout_bandwidth", "scale-out bandwidth", "B/s");
  return r;
}

template <class N>
N number(double value, const char* label, const char* unit) {
  return leaf<N>(value, [&] { return Origin{label, unit, "read off the operator's axes", {}}; });
}

template <class N>
N given(double value, const char* label, const char* unit, const char* source) {
  return leaf<N>(value, [&] { return Origin{label, unit, source, {}}; });
}

// max(compute, memory traffic) of one operator, one direction.
template <class N>
Seconds<N> roofline(double flops, double bytes, const Rates<N>& r) {
  const Seconds<N> moving = Bytes<N>(number<N>(bytes, "bytes moved", "B")) / r.memory;
  if (flops == 0) return moving;
  const Seconds<N> computing = Flops<N>(number<N>(flops, "FLOPs", "FLOP")) / r.matmul;
  return Seconds<N>(larger(computing.number(), moving.number()));
}

// The seconds of one micro-batch on one stage, by what they go to.
template <class N>
struct StageTime {
  std::vector<N> parts[kLost];
  void add(Lost lost, const Seconds<N>& s) { parts[static_cast<int>(lost)].push_back(s.number()); }
  Seconds<N> sum() const {
    std::vector<N> all;
    for (const auto& part : parts) all.push_back(total(part));
    return Seconds<N>(total(all));
  }
};

Lost category(const WorkItem& w) {
  if (w.logits) return Lost::logits;
  if (w.kind == Kind::product) return Lost::gemm;
  if (w.attention || w.kind == Kind::softmax) return Lost::attention;
  return Lost::memory_bound;
}

template <class N>
void add_block(StageTime<N>& out, const Analysed& a, const BlockRun& run, const Rates<N>& r, const Cluster& cluster) {
  const BlockCost& block = a.blocks[static_cast<std::size_t>(run.block)];
  const bool fused = a.recipe.attention != AttentionKernel::unfused;
  const Visible rule = fused ? Visible::causal : Visible::full;
  const N layers = number<N>(static_cast<double>(run.count), "layers", "");
  for (const WorkItem& w : block.work) {
    if (w.kind == Kind::lookup) continue;
    const double visible =
        visible_keys(rule, a.recipe.seq, w.all_keys ? Count(0) : block.window, block.chunked && !w.all_keys);
    const double forward = w.attention ? w.per_key * visible : w.forward_flops;
    const Seconds<N> f = roofline<N>(forward, w.forward_bytes, r);
    const Seconds<N> b = roofline<N>(forward * w.backward_passes, w.backward_bytes, r);
    out.add(category(w), named(f + b, name(w.tag).data(), "s") * layers);
    if (w.replayed) out.add(Lost::recompute, f * layers);
  }
  const Layout& l = a.recipe.layout;
  for (const CollectiveItem& c : block.collectives) {
    const double members = static_cast<double>(c.group == Group::tp ? l.tp : c.group == Group::ep ? l.ep : l.etp);
    // Ranks of an etp group are neighbours, those of ep stand etp apart.
    const double reach = c.group == Group::ep ? members * static_cast<double>(l.etp) : members;
    const double rounds =
        (c.kind == CollectiveKind::all_reduce ? 2.0 : 1.0) * (members - 1) / members;  // bytes each GPU sends
    const Bytes<N> sent(number<N>(c.bytes() * rounds, name(c.kind), "B"));
    const Seconds<N> exchange = sent / r.link(reach, cluster) * layers;
    out.add(c.group == Group::tp ? Lost::tp_comm : Lost::ep_comm, exchange);
    if (c.replayed) out.add(Lost::recompute, exchange);
  }
}

template <class N>
StageTime<N> stage_time(const Analysed& a, const Stage& stage, const Rates<N>& r, const Cluster& cluster) {
  StageTime<N> out;
  if (stage.embedding) add_block(out, a, {a.model->embedding, 1}, r, cluster);
  for (const BlockRun& run : stage.layers) add_block(out, a, run, r, cluster);
  if (stage.head) {
    for (const BlockRun& run : a.model->mtp) add_block(out, a, run, r, cluster);
    add_block(out, a, {a.model->head, 1}, r, cluster);
  }
  const Layout& l = a.recipe.layout;
  if (l.pp > 1) {  // activations to the next stage, gradients to the one before, per virtual stage
    const BlockCost& first = a.blocks[static_cast<std::size_t>(stage.layers.front().block)];
    const double bytes = volume("bsh", first.extents, Mesh::of(l)).elements.real() * a.recipe.activation_width();
    const Bytes<N> sent(
        number<N>(2 * bytes * static_cast<double>(l.vpp), "activations and gradients sent to neighbours", "B"));
    out.add(Lost::pp_comm, sent / r.link(static_cast<double>(l.tp * l.cp * l.dp + 1), cluster));
  }
  return out;
}

// Reading gradients and reading and writing states once, sharded by zero.
template <class N>
Seconds<N> optimizer_seconds(const Analysed& a, const Stage& stage, const Rates<N>& r) {
  const Recipe& q = a.recipe;
  const bool sharded = q.layout.zero >= 1;
  const double dense = stage_parameters(a, stage, Which::dense).real() /
                       (sharded ? static_cast<double>(q.layout.dp * q.layout.cp) : 1.0);
  const double expert =
      stage_parameters(a, stage, Which::expert).real() / (sharded ? static_cast<double>(q.layout.edp()) : 1.0);
  const double bytes =
      width(q.grad_dtype) + width(q.weight_dtype) + 2 * (width(q.master_dtype) + 2 * width(q.moment_dtype));
  const Bytes<N> moved(number<N>((dense + expert) * bytes, "states read and written", "B"));
  return moved / r.memory;
}

// Gradients reduced and weights gathered over the data-parallel group; what one micro-batch's backward
// can hide is hidden (about two thirds of its work).
template <class N>
Seconds<N> exposed_dp(const Analysed& a, const Stage& stage, const StageTime<N>& time, const Rates<N>& r,
                      const Cluster& cluster) {
  const Layout& l = a.recipe.layout;
  const double g = width(a.recipe.grad_dtype);
  const double each = l.zero == 0 ? 2 * g : g + width(a.recipe.weight_dtype);
  // Dense weights over dp x cp, experts over what ep and etp leave of the stage's ranks.
  const auto exchange = [&](Which which, std::int64_t members, double reach) {
    const double n = static_cast<double>(members);
    const double bytes = stage_parameters(a, stage, which).real() * each * (n - 1) / n;
    return Bytes<N>(number<N>(bytes, "gradients and weights exchanged", "B")) / r.link(reach, cluster);
  };
  const double stage_ranks = static_cast<double>(l.tp * l.cp * l.dp);
  std::vector<N> parts;
  if (l.dp * l.cp > 1) parts.push_back(exchange(Which::dense, l.dp * l.cp, stage_ranks).number());
  if (l.edp() > 1 && stage_parameters(a, stage, Which::expert).get() > 0)
    parts.push_back(exchange(Which::expert, l.edp(), stage_ranks).number());
  if (parts.empty()) return Seconds<N>(N(0.0));
  const Seconds<N> comm(total(parts));
  const N hidden_share =
      leaf<N>(2.0 / 3.0, [] { return Origin{"share of a step that is backward", "", "two of three passes", {}}; });
  const Seconds<N> hidden = time.sum() * hidden_share;
  return Seconds<N>(larger((comm - hidden).number(), N(0.0)));
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
StepEstimate<N> from_given_mfu(const Analysed& a, const Cluster& cluster) {
  const Recipe& r = a.recipe;
  StepEstimate<N> out;
  out.method = "given mfu";
  out.peak = rates_of<N>(a, cluster).peak;
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
StepEstimate<N> first_order(const Analysed& a, const Cluster& cluster) {
  const Rates<N> r = rates_of<N>(a, cluster);
  std::vector<StageTime<N>> times;
  std::size_t slowest = 0;
  for (const Stage& stage : a.stages) {
    times.push_back(stage_time(a, stage, r, cluster));
    if (times[slowest].sum() < times.back().sum()) slowest = times.size() - 1;
  }
  const StageTime<N>& worst = times[slowest];
  const N m = number<N>(static_cast<double>(a.recipe.micro_batches()), "micro-batches", "");
  StepEstimate<N> out;
  out.method = "first-order roofline";
  out.peak = r.peak;
  Seconds<N> parts[kLost];
  for (int i = 0; i < kLost; ++i) {
    parts[i] = Seconds<N>(total(worst.parts[i])) * m;
  }
  // The slowest stage works without pause; filling and draining costs one micro-batch of every other.
  std::vector<N> others;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (i != slowest) others.push_back(times[i].sum().number());
  }
  const N chunks = number<N>(static_cast<double>(a.recipe.layout.vpp), "virtual stages", "");
  parts[static_cast<int>(Lost::bubble)] = Seconds<N>(total(others)) / chunks;
  parts[static_cast<int>(Lost::dp_comm)] = exposed_dp(a, a.stages[slowest], worst, r, cluster);
  parts[static_cast<int>(Lost::optimizer)] = optimizer_seconds(a, a.stages[slowest], r);
  std::vector<N> all;
  for (int i = 0; i < kLost; ++i) {
    parts[i] = named(parts[i], name(static_cast<Lost>(i)), "s");
    all.push_back(parts[i].number());
    out.breakdown[i] = parts[i];
  }
  out.seconds = Seconds<N>(named(total(all), "step", "s"));
  return out;
}

}  // namespace

template <class N>
std::optional<StepEstimate<N>> step_estimate(const Analysed& a, const Cluster& cluster,
                                             const ComputeEstimate<N>& compute) {
  if (cluster.memory_only || !missing_rates(a, cluster).empty()) return std::nullopt;
  StepEstimate<N> out = a.recipe.mfu ? from_given_mfu<N>(a, cluster) : first_order<N>(a, cluster);
  finish(out, a, cluster, compute);
  return out;
}

template std::optional<StepEstimate<double>> step_estimate<double>(const Analysed&, const Cluster&,
                                                                   const ComputeEstimate<double>&);
template std::optional<StepEstimate<Traced>> step_estimate<Traced>(const Analysed&, const Cluster&,
                                                                   const ComputeEstimate<Traced>&);

}  // namespace preflop
