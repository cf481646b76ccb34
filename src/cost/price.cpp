#include "src/cost/price.hpp"

#include <algorithm>

#include "src/base/math.hpp"
#include "src/cost/field_names.hpp"

namespace preflop {

std::string_view peak_field(std::string_view precision) {
  if (precision == "fp16") return "fp16_flops";
  if (precision == "fp32") return "fp32_flops";
  if (precision.starts_with("fp8") || precision == "mxfp8") return "fp8_flops";
  if (precision == "nvfp4") return "fp4_flops";
  return "bf16_flops";
}

namespace {

template <class N>
N read_off(double value, const char* label, const char* unit) {
  return leaf<N>(value, [&] { return Origin{label, unit, "read off the operator's axes", {}}; });
}

// Looks parameters up for one machine and one stack.
template <class N>
class Reader {
 public:
  Reader(const Cluster& cluster, const Stack& stack, const TimeParameters& parameters)
      : cluster_(cluster),
        parameters_(parameters),
        gpu_(gpu_owners(cluster.gpu)),
        stack_(stack_owners(stack, cluster.gpu)) {}

  N gpu(std::string_view field) const { return number(parameters_.find(gpu_, field), field); }
  N stack(std::string_view field) const { return number(parameters_.find(stack_, field), field); }
  double gpu_plain(std::string_view field) const { return plain_value(parameters_.find(gpu_, field)); }
  double stack_plain(std::string_view field) const { return plain_value(parameters_.find(stack_, field)); }
  bool gpu_has(std::string_view field) const { return parameters_.find(gpu_, field) != nullptr; }

  N datum(std::string_view field, const char* label, const char* unit) const {
    const Datum& d = cluster_.datum(field);
    return leaf<N>(d.value.value_or(0), [&] { return Origin{label, unit, d.source, {}}; });
  }
  std::optional<double> value(std::string_view field) const { return cluster_.datum(field).value; }

 private:
  static double plain_value(const Parameter* p) { return p == nullptr ? 0.0 : p->value; }
  static const char* unit_of(std::string_view unit) {
    for (const char* known : {"s", "B", "B/s"}) {
      if (unit == known) return known;
    }
    return "";
  }
  static N number(const Parameter* p, std::string_view field) {
    return leaf<N>(plain_value(p), [&] {
      if (p == nullptr) return Origin{"none", "", "not in this stack", std::string(field)};
      return Origin{p->field.c_str(), unit_of(p->unit), p->owner + ": " + p->source, {}};
    });
  }

  const Cluster& cluster_;
  const TimeParameters& parameters_;
  std::vector<std::string> gpu_, stack_;
};

// What a GPU of which no product was measured keeps of its peak: the less power a FLOP has, the less.
template <class N>
N sheet_share(const Reader<N>& r) {
  constexpr double kTera = 1e12;
  const double watts = r.value("tdp_watts").value_or(0), peak = r.value("bf16_flops").value_or(0);
  const double half = peak > 0 ? peak : r.value("fp16_flops").value_or(0);
  if (watts <= 0 || half <= 0) return r.gpu("sheet_share");
  const double ratio = math::pow(watts * kTera / half, r.gpu_plain("sheet_power"));
  const N powered =
      r.gpu("sheet_share") * leaf<N>(ratio, [] {
        return Origin{"watts per TFLOP/s of 16 bits, to a power", "", "data sheet; gpu *: sheet_power", {}};
      });
  return smaller(powered, r.gpu("sheet_most"));
}

// The sustained rate: the best measured product times the share of it that long training steps keep; else the peak
// times what its power lets it keep.
template <class N>
ProductPrice<N> product_price(const Reader<N>& r, std::string_view precision, const Cluster& cluster) {
  ProductPrice<N> out;
  const Operands kind = operands(precision);
  static constexpr double kWidths[] = {4, 2, 1, 0.5625};
  static constexpr const char* kShares[] = {"gemm_share", "gemm_share", "gemm8_share", "gemm4_share"};
  static constexpr const char* kBest[] = {"", "matmul_bf16_flops", "matmul_fp8_flops", "matmul_fp4_flops"};
  const int at = static_cast<int>(kind);
  out.width = kWidths[at];
  static constexpr const char* kSustained[] = {"", "sustained_bf16_flops", "sustained_fp8_flops", ""};
  const N share = r.gpu(kShares[at]);
  if (*kSustained[at] != '\0' && r.value(kSustained[at])) {
    out.rate = FlopsPerSecond<N>(r.datum(kSustained[at], "rate that large products keep", "FLOP/s"));
  } else if (kind != Operands::full && r.value(kBest[at])) {
    const N kept = kind == Operands::four ? share * r.gpu("gemm_share") : share;
    out.rate = FlopsPerSecond<N>(r.datum(kBest[at], "best measured matmul rate", "FLOP/s") * kept);
  } else {
    const N peak = r.datum(peak_field(precision), "dense peak", "FLOP/s");
    const N kept = sheet_share(r) * r.gpu("sheet_gemm");
    out.rate = FlopsPerSecond<N>(peak * (kind == Operands::four ? kept * r.gpu("sheet_gemm4") : kept));
  }
  if (precision == "mxfp8" || precision == "fp8-blockwise")
    out.rate = FlopsPerSecond<N>(out.rate.number() * r.gpu("block_scaled"));
  out.rate = FlopsPerSecond<N>(out.rate.number() * r.stack("gemm_use"));
  out.memory = BytesPerSecond<N>(r.datum("memory_bandwidth", "memory bandwidth", "B/s") * r.gpu("gemm_memory_share"));
  out.law.prologue = r.gpu_plain("gemm_prologue");
  out.law.wave = r.gpu_plain("gemm_wave");
  out.law.small_tile = r.gpu_plain("gemm_small_tile");
  out.law.corner = r.gpu_plain("gemm_corner");
  out.law.sms = cluster.datum("sm_count").value.value_or(r.gpu_plain("sm_count"));
  return out;
}

template <class N>
void set_attention(Prices<N>& out, const Reader<N>& r, const Recipe& recipe, const Cluster& cluster) {
  const std::string kernel = kernel_prefix(recipe.attention);
  out.attention_peak = out.half_peak;
  // Of latent attention only one kernel was measured; the others run it as their widest.
  const bool measured = kernel == "cudnn";
  const char* const widths[] = {"_64", "_128", "_256", measured ? "_mla" : "_256"};
  for (int i = 0; i < 4; ++i) {
    out.attention_share[i] = r.gpu(kernel + widths[i]) * r.gpu("attention_clock");
    if (recipe.fp8_attention) out.attention_share[i] = out.attention_share[i] * r.gpu("fp8_attention");
    out.attention_law[i].diagonal = r.gpu_plain(kernel + (i == 3 && measured ? "_mla_diagonal" : "_diagonal"));
    out.attention_law[i].tail = r.gpu_plain(kernel + "_tail");
    out.attention_law[i].sms = cluster.datum("sm_count").value.value_or(r.gpu_plain("sm_count"));
  }
  out.attention_backward = r.gpu(kernel == "fa1" ? "fa1_backward" : "attention_backward");
  out.attention_backward_latent = r.gpu("attention_backward_mla");
  out.attention_sinks = r.gpu("attention_sinks");
}

template <class N>
void set_links(Prices<N>& out, const Reader<N>& r, const Cluster& cluster) {
  out.domain = cluster.datum("scaleup_domain").value.value_or(static_cast<double>(cluster.gpus_per_node));
  out.torus = cluster.datum("torus_axes").value.value_or(0);
  out.slice = std::min(out.domain, static_cast<double>(cluster.gpus));
  out.has_scaleout = cluster.datum("scaleout_bandwidth").value.has_value();
  out.scaleup = BytesPerSecond<N>(r.datum("scaleup_bandwidth", "scale-up bandwidth", "B/s") * r.gpu("scaleup_share") *
                                  r.stack("scaleup_use"));
  out.scaleout = BytesPerSecond<N>(r.datum("scaleout_bandwidth", "scale-out bandwidth", "B/s") *
                                   r.gpu("scaleout_share") * r.stack("network_share"));
  out.scaleout_pairs = BytesPerSecond<N>(r.datum("scaleout_bandwidth", "scale-out bandwidth", "B/s") *
                                         r.gpu("scaleout_pairs_share") * r.stack("network_share"));
  out.crossing_share = r.stack("crossing_share");
  out.scaleup_latency = Seconds<N>(r.gpu("scaleup_latency") + r.stack("collective_launch"));
  out.scaleout_latency = Seconds<N>(r.gpu("scaleout_latency") + r.stack("collective_launch"));
}

// Sixteen lanes of PCI Express where the platform does not say what joins GPU and host.
template <class N>
void set_host(Prices<N>& out, const Reader<N>& r) {
  constexpr double kLanes = 16, kThirdGeneration = 0.985e9;  // bytes/s of a lane, each direction; doubles since
  const std::optional<double> generation = r.value("pcie_generation");
  N link = r.datum("host_link_bandwidth", "link to the host", "B/s");
  if (!r.value("host_link_bandwidth") && generation) {
    const double doubled = math::pow(2, *generation - 3);
    link = leaf<N>(kLanes * kThirdGeneration * doubled, [] {
      return Origin{"link to the host", "B/s", "PCI Express, sixteen lanes of its generation", {}};
    });
  }
  out.host_link = BytesPerSecond<N>(link);
  out.host_memory = BytesPerSecond<N>(r.gpu("host_memory_bandwidth"));
}

template <class N>
void set_experts(Prices<N>& out, const Reader<N>& r, const Recipe& recipe) {
  out.expert_launch = recipe.fused_experts ? N(0.0) : r.stack("expert_launch");
  out.expert_cast_launch = recipe.fused_experts ? N(0.0) : r.stack("expert_cast_launch");
  out.expert_passes = recipe.fused_experts ? r.stack("fused_share") : r.stack("expert_passes");
  out.biased_expert_passes = recipe.fused_experts ? r.stack("fused_share") : r.stack("biased_expert_passes");
  out.deduplicated = recipe.dispatcher != "alltoall";
  out.host_runs_ahead = recipe.dispatcher == "hybridep";
  out.ep_exposed = r.stack(recipe.ep_overlap                 ? "ep_exposed_overlapping"
                           : recipe.dispatcher == "alltoall" ? "ep_exposed_alltoall"
                                                             : "ep_exposed");
  out.etp_exposed = r.stack("etp_exposed");
}

template <class N>
void set_habits(Prices<N>& out, const Reader<N>& r, const Recipe& recipe) {
  out.weight_gradient_rate = r.gpu("weight_gradient_rate");
  // fp16 alone is accumulated in 16 bits; bf16, whose sums would lose their small parts, has an fp32 buffer somewhere.
  const bool short_sums =
      recipe.precision == "fp16" && width(recipe.grad_dtype) < 4 && r.stack_plain("accumulate_bytes_fp16") > 0;
  out.accumulate_bytes = !accumulates_gradients(recipe.layout) ? N(0.0)
                         : short_sums                          ? r.stack("accumulate_bytes_fp16")
                                                               : r.stack("accumulate_bytes");
  out.cast_bytes = recipe.precision == "fp8-rowwise"               ? r.stack("cast_rowwise_bytes")
                   : operands(recipe.precision) == Operands::eight ? r.stack("cast8_bytes")
                   : operands(recipe.precision) == Operands::four  ? r.stack("cast4_bytes")
                                                                   : N(0.0);
  // A graph of the whole iteration is launched once, those of parts each time.
  const bool whole = recipe.cuda_graph == "full_iteration";
  out.graphed = graphed(recipe);
  out.gap_in_graphs = whole ? N(0.0) : r.stack("gap_in_graphs");
  out.host_in_graphs = whole ? N(0.0) : r.stack("host_in_graphs");
  out.gap = Seconds<N>(r.stack("gap"));
  const bool in_place = recipe.loss == LossKind::fused || recipe.loss == LossKind::fused_linear;
  out.loss_bytes = r.stack(in_place ? "loss_bytes_fused" : recipe.compile ? "loss_bytes_compiled" : "loss_bytes");
  const bool quantised_gather = recipe.precision == "fp8-tensorwise" && r.stack_plain("gather8_width") > 0;
  out.gather_width = quantised_gather ? r.stack_plain("gather8_width") : recipe.activation_width();
  out.reduce_width = r.stack_plain("reduce_width");
  const N host = r.gpu("host_speed") * (recipe.ep_overlap ? r.stack("host_overlapping") : N(1.0)) *
                 (recipe.capacity_factor > 0 ? r.stack("host_static") : N(1.0));
  out.host_block = r.stack("host_block") * host;
  out.host_expert = whole ? N(0.0) : r.stack("host_expert") * host;
  out.host_mlp = r.stack("host_mlp");
  out.host_latent = r.stack("host_latent");
  out.host_scan = r.stack("host_scan");
  out.scan_passes = r.stack("scan_passes");
  out.squared_relu_passes = r.stack("squared_relu_passes");
  out.scatter_gather = r.stack_plain("scatter_gather") > 0;
  const N async = recipe.tp_overlap ? r.stack("tp_async") : N(1.0);
  out.tp_exposed = r.stack("tp_exposed") * async;
  out.cp_exposed = r.stack("cp_exposed");
  out.pp_exposed = recipe.layout.vpp > 1 ? r.stack("pp_exposed_interleaved") : r.stack("pp_exposed");
  out.tp_exposed_experts = r.stack("tp_exposed_experts") * async;
  out.tp_exposed_gradients = r.stack("tp_exposed_gradients");
  out.dp_hidden = recipe.dp_overlap ? r.stack("dp_hidden") : N(0.0);
  out.contention = r.stack("contention");
  out.gather_copies = r.stack("gather_copies");
  out.tensor_hop = r.stack("tensor_hop");
  out.tail_elements = r.stack("tail_elements");
  out.tail_per_rank = r.stack("tail_per_rank");
  out.jitter = r.stack("jitter");
  out.slice_jitter = r.stack("slice_jitter");
  out.unfused_rate = r.gpu("unfused_rate");
  out.step_fixed = Seconds<N>(r.stack("step_fixed"));
  out.hop_wait = Seconds<N>(r.stack("hop_wait"));
  out.ring_attention = recipe.cp_comm == "p2p";
}

}  // namespace

template <class N>
Prices<N> prices(const Cluster& cluster, const Stack& stack, const Recipe& recipe, const TimeParameters& parameters) {
  const Reader<N> r(cluster, stack, parameters);
  Prices<N> out;
  const std::string half = recipe.precision == "fp16" || recipe.precision == "fp32" ? recipe.precision : "bf16";
  out.peak = FlopsPerSecond<N>(r.datum(peak_field(recipe.precision), "dense peak", "FLOP/s"));
  out.half_peak = FlopsPerSecond<N>(r.datum(peak_field(half), "dense peak of unquantised products", "FLOP/s"));
  out.layers = product_price(r, recipe.precision, cluster);
  out.head = product_price(r, half, cluster);
  const N software = recipe.compile ? r.stack("passes_compiled") : r.stack("passes");
  out.kernels = BytesPerSecond<N>(r.datum("memory_bandwidth", "memory bandwidth", "B/s") * r.gpu("pass_share"));
  out.passes = BytesPerSecond<N>(out.kernels.number() / software);
  set_attention(out, r, recipe, cluster);
  set_links(out, r, cluster);
  set_habits(out, r, recipe);
  set_experts(out, r, recipe);
  set_host(out, r);
  return out;
}

template <class N>
AttentionPrice<N> Prices<N>::attention(double head_dim, bool latent) const {
  const int at = latent ? 3 : head_dim <= 96 ? 0 : head_dim <= 160 ? 1 : 2;
  AttentionPrice<N> out;
  out.law = attention_law[at];
  out.forward = attention_peak * attention_share[at];
  out.backward = out.forward * (latent ? attention_backward_latent : attention_backward);
  return out;
}

template <class N>
Seconds<N> Prices<N>::product(const ProductPrice<N>& how, const GemmShape& s, double out_width) const {
  const double flops = 2 * s.m * s.n * s.k * s.groups;
  const double bytes = s.groups * (how.width * (s.m * s.k + s.k * s.n) + out_width * s.m * s.n);
  const N tiled = leaf<N>(gemm_factor(how.law, s),
                          [&] { return Origin{"tiles and waves of this shape", "", "src/cost/kernels", {}}; });
  const N computing = (Flops<N>(read_off<N>(flops, "FLOPs", "FLOP")) / how.rate).number() * tiled;
  const N moving = (Bytes<N>(read_off<N>(bytes, "bytes moved", "B")) / how.memory).number();
  const double corner = corner_factor(plain(computing), plain(moving), how.law.corner);
  const N rounded =
      leaf<N>(corner, [] { return Origin{"arithmetic and memory overlap imperfectly", "", "src/cost/kernels", {}}; });
  return Seconds<N>(larger(computing, moving) * rounded);
}

template <class N>
Seconds<N> Prices<N>::pass(double bytes, const char* what) const {
  return Bytes<N>(read_off<N>(bytes, what, "B")) / passes;
}

template <class N>
Seconds<N> Prices<N>::cast(double elements) const {
  return Bytes<N>(read_off<N>(elements, "elements quantised", "")) / kernels * cast_bytes;
}

template <class N>
Seconds<N> Prices<N>::loss(double logits) const {
  return Bytes<N>(read_off<N>(logits, "logits", "")) / kernels * loss_bytes;
}

namespace {

// Ranks of a group inside one scale-up domain.
double inside(const RankGroup& group, double domain) {
  if (group.size * group.stride <= domain) return group.size;
  return std::clamp(domain / group.stride, 1.0, group.size);
}

}  // namespace

template <class N>
BytesPerSecond<N> Prices<N>::bandwidth(const RankGroup& group) const {
  const double members = inside(group, domain);
  if (members >= group.size || !has_scaleout) {
    if (torus <= 0 || group.size >= slice || group.size <= 1) return scaleup;
    // A group lies along some of the torus' axes: the share that the logarithm of its size has in the slice's, and
    // never less than one axis.
    const double share = std::max(math::log2(group.size) / math::log2(slice), 1 / torus);
    return scaleup *
           leaf<N>(share, [] { return Origin{"axes of the torus that the group lies along", "", "rank order", {}}; });
  }
  const N links = leaf<N>(
      members, [] { return Origin{"ranks of the group in a node, each with its link out", "", "rank order", {}}; });
  const bool crosses = members > 1 && members < domain;
  const BytesPerSecond<N> out = crosses ? scaleout * links * crossing_share : scaleout * links;
  return members > 1 ? BytesPerSecond<N>(smaller(out.number(), scaleup.number())) : out;
}

template <class N>
Seconds<N> Prices<N>::latency(const RankGroup& group) const {
  if (group.size <= 1) return Seconds<N>(N(0.0));
  if (inside(group, domain) >= group.size || !has_scaleout) return scaleup_latency;
  const N hops =
      leaf<N>(math::log2(group.size), [] { return Origin{"hops", "", "log2 of the ranks across nodes", {}}; });
  return scaleout_latency * hops;
}

template <class N>
Seconds<N> Prices<N>::collective(CollectiveKind kind, double bytes, const RankGroup& group) const {
  if (group.size <= 1) return Seconds<N>(N(0.0));
  const double n = group.size;
  const double rounds = kind == CollectiveKind::all_reduce ? 2.0 : 1.0;
  const double members = inside(group, domain);
  const bool stays = members >= n || !has_scaleout;
  const Seconds<N> start = latency(group) * N(rounds);
  if (kind == CollectiveKind::all_to_all && !stays) {
    const Bytes<N> near(read_off<N>(bytes * (members - 1) / n, "bytes to ranks of this node", "B"));
    const Bytes<N> far(read_off<N>(bytes * (n - members) / n, "bytes to ranks of other nodes", "B"));
    return near / scaleup + far / scaleout_pairs + start;
  }
  const Bytes<N> sent(read_off<N>(bytes * rounds * (n - 1) / n, name(kind), "B"));
  return sent / bandwidth(group) + start;
}

// A dispatcher that knows the nodes (DeepEP, HybridEP) sends one copy of a row over the network to each node that
// needs it; there, while more arrives, one goes over the node's links to each rank that does. A plain all-to-all sends
// one for each expert.
template <class N>
Seconds<N> Prices<N>::exchange_rows(double bytes, const ExpertChoice& choice, const RankGroup& group) const {
  if (!deduplicated || group.size <= 1) return collective(CollectiveKind::all_to_all, bytes, group);
  const double one = bytes / choice.top_k;
  const double members = inside(group, domain);
  const double nodes = group.size / members;
  const double local = one * places_reached(choice, group.size) * (members - 1) / members;
  const Bytes<N> near(read_off<N>(local, "one copy per rank, from within its node", "B"));
  const Seconds<N> inner = near / scaleup;
  if (nodes <= 1 || !has_scaleout) return inner + latency(group);
  const Bytes<N> far(
      read_off<N>(one * places_reached(choice, nodes) * (nodes - 1) / nodes, "one copy per other node", "B"));
  return Seconds<N>(larger(inner.number(), (far / scaleout_pairs).number())) + latency(group);
}

template <class N>
Seconds<N> Prices<N>::send(double bytes, double distance) const {
  const Bytes<N> sent(read_off<N>(bytes, "bytes sent to a neighbour", "B"));
  const bool stays = distance < domain || !has_scaleout;
  return sent / (stays ? scaleup : scaleout) + (stays ? scaleup_latency : scaleout_latency);
}

template <class N>
Band<N> prices_band(const Cluster& cluster, const Stack& stack, bool experts, const TimeParameters& parameters) {
  const Reader<N> r(cluster, stack, parameters);
  const std::string kind = experts ? "_moe" : "_dense";
  return {r.stack("band_low" + kind), r.stack("band_high" + kind)};
}

template Band<double> prices_band(const Cluster&, const Stack&, bool, const TimeParameters&);
template Band<Traced> prices_band(const Cluster&, const Stack&, bool, const TimeParameters&);
template struct Prices<double>;
template struct Prices<Traced>;
template Prices<double> prices<double>(const Cluster&, const Stack&, const Recipe&, const TimeParameters&);
template Prices<Traced> prices<Traced>(const Cluster&, const Stack&, const Recipe&, const TimeParameters&);

}  // namespace preflop
