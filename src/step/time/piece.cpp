#include "src/step/time/piece.hpp"

#include <algorithm>
#include <vector>

#include "src/model/tags.hpp"

namespace preflop {

template <class N>
Seconds<N> sum_of(const Parts<N>& parts) {
  if constexpr (is_traced<N>) {
    std::vector<N> terms;
    for (const Seconds<N>& s : parts) {
      if (plain(s.number()) != 0) terms.push_back(s.number());
    }
    return Seconds<N>(total(terms));
  } else {
    double sum = 0;
    for (const Seconds<N>& s : parts) sum += s.number();
    return Seconds<N>(sum);
  }
}

template <class N>
Seconds<N> waiting_for_host(const Seconds<N>& gpu, const Seconds<N>& host) {
  constexpr double kCorner = 4;
  const double corner = corner_factor(plain(gpu.number()), plain(host.number()), kCorner);
  const N together = larger(gpu.number(), host.number()) * leaf<N>(corner, [] {
                       return Origin{"host and GPU wait for each other", "", "src/cost/kernels", {}};
                     });
  return Seconds<N>(named(together - gpu.number(), "waiting for the host", "s"));
}

template <class N>
void add_to(Parts<N>& sum, const Parts<N>& more, const N& times) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (is_traced<N> && plain(more[i].number()) == 0) continue;
    sum[i] = is_traced<N> && plain(sum[i].number()) == 0 ? more[i] * times : sum[i] + more[i] * times;
  }
}

double local_parameters(const BlockCost& block, bool expert) {
  double out = 0;
  for (const WeightItem& w : block.weights) {
    if (w.owned && w.expert() == expert) out += w.volume.elements.real();
  }
  return out;
}

double local_tensors(const BlockCost& block) {
  double out = 0;
  std::vector<int> merged;
  for (const WeightItem& w : block.weights) {
    if (!w.owned || std::find(merged.begin(), merged.end(), w.merge) != merged.end()) continue;
    if (w.merge >= 0) merged.push_back(w.merge);
    out += 1;
  }
  return out;
}

namespace {

template <class N>
class Pricer {
 public:
  Pricer(const BlockCost& block, const Recipe& recipe, bool is_layer, const Prices<N>& prices)
      : block_(block), recipe_(recipe), is_layer_(is_layer), prices_(prices) {}

  Piece<N> run() {
    for (std::size_t i = 0; i < block_.work.size(); ++i) add_work(i);
    for (const CollectiveItem& c : block_.collectives) add_collective(c);
    if (is_layer_) add_launch();
    if (is_layer_) add_host();
    if (block_.hosted > 0 && plain(prices_.host_link.number()) > 0) {
      wait_for_transfer(out_.forward);
      wait_for_transfer(out_.backward);
    }
    out_.dense = local_parameters(block_, false);
    out_.expert = local_parameters(block_, true);
    out_.tensors = local_tensors(block_);
    out_.forward_sum = sum_of(out_.forward);
    out_.backward_sum = sum_of(out_.backward);
    return out_;
  }

 private:
  static void put(Parts<N>& parts, Lost lost, const Seconds<N>& s) {
    Seconds<N>& at = parts[static_cast<std::size_t>(lost)];
    at = is_traced<N> && plain(at.number()) == 0 ? s : at + s;
  }
  void put(const WorkItem& w, Lost lost, const Seconds<N>& forward, const Seconds<N>& backward) {
    const char* label = preflop::name(w.tag).data();
    put(out_.forward, lost, named(forward, label, "s"));
    put(out_.backward, lost, named(backward, label, "s"));
    if (w.replayed) put(out_.backward, Lost::recompute, named(forward, label, "s"));
  }

  void add_work(std::size_t i) {
    const WorkItem& w = block_.work[i];
    const Lost elsewhere = w.logits ? Lost::logits : Lost::memory_bound;
    if (w.kind == Kind::product) return add_product(i);
    if (w.kind == Kind::attention) return add_attention(w);
    if (w.kind == Kind::product2) return add_unfused(w);
    if (w.kind == Kind::loss) return add_loss(w);
    if (w.kind == Kind::scan) return add_scan(w);
    const Lost lost = w.kind == Kind::softmax || group(w.tag) == "core" ? Lost::attention : elsewhere;
    const N share = times_of_pass(w);
    put(w, lost, prices_.pass(w.forward_bytes, "bytes moved") * share,
        prices_.pass(w.backward_bytes, "bytes moved") * share);
  }

  // Experts with biases: the bias, the clamps, the gate and the weighting are kernels of their own, each a pass.
  N times_of_pass(const WorkItem& w) const {
    // A dispatcher that sends one copy of a row to a rank takes it as it is and sorts there; the plain one makes a copy
    // for each expert first, and sorts what arrives where a rank has several experts.
    const bool before = w.tag == Tag::moe_permute || w.tag == Tag::moe_unpermute;
    const bool after = w.tag == Tag::moe_sort || w.tag == Tag::moe_unsort;
    if (before && prices_.deduplicated) return N(0.0);
    if (after && !prices_.deduplicated && block_.local_experts <= 1) return N(0.0);
    if (w.tag == Tag::mlp_act && block_.activation == Activation::relu2) return prices_.squared_relu_passes;
    if (w.tag != Tag::exp_act) return N(1.0);
    const bool biased = std::any_of(block_.weights.begin(), block_.weights.end(),
                                    [](const WeightItem& v) { return v.expert() && v.role == Role::bias; });
    return biased ? prices_.biased_expert_passes : prices_.expert_passes;
  }

  // All products of one launch at their first member.
  void add_product(std::size_t i) {
    const WorkItem& w = block_.work[i];
    GemmShape shape{w.shape.m, w.shape.n, w.shape.k, w.shape.groups};
    if (w.shape.merge >= 0) {
      for (std::size_t j = 0; j < block_.work.size(); ++j) {
        const WorkItem& other = block_.work[j];
        if (j == i || other.kind != Kind::product || other.shape.merge != w.shape.merge) continue;
        if (j < i) return;
        shape.n += other.shape.n;
      }
    }
    const bool half =
        w.logits || w.tag == Tag::moe_router || w.tag == Tag::shared_scale_logit || group(w.tag) == "index";
    const ProductPrice<N>& how = half ? prices_.head : prices_.layers;
    constexpr double kResult = 2;
    Seconds<N> forward = prices_.product(how, shape, kResult);
    Seconds<N> backward(N(0.0)), weights(N(0.0));
    if (w.backward_passes > 0) backward = prices_.product(how, {shape.m, shape.k, shape.n, shape.groups}, kResult);
    if (w.backward_passes > 1) {
      weights = Seconds<N>(prices_.product(how, {shape.k, shape.n, shape.m, shape.groups}, kResult).number() /
                           prices_.weight_gradient_rate);
      backward = backward + weights;
    }
    if (group(w.tag) == "exp") {  // unfused: a launch per expert
      const N launch = leaf<N>(shape.groups, [] { return Origin{"experts on this GPU", "", "experts / ep", {}}; }) *
                       prices_.expert_launch;
      forward = forward + Seconds<N>(launch);
      backward = backward + Seconds<N>(launch * N(static_cast<double>(w.backward_passes)));
    }
    put(w, w.logits ? Lost::logits : Lost::gemm, forward, backward);
    if (w.backward_passes > 1) {  // the weight's gradient is added to a buffer
      const Seconds<N> added =
          prices_.pass(shape.n * shape.k * shape.groups, "weights of the product") * prices_.accumulate_bytes;
      put(out_.backward, w.logits ? Lost::logits : Lost::memory_bound, named(added, "gradient accumulation", "s"));
      out_.weights_sum = out_.weights_sum + weights + added;
    }
    if (!half && plain(prices_.cast_bytes) > 0) add_casts(i);
  }

  // The cross-entropy's passes over the logits, two of three parts forward.
  void add_loss(const WorkItem& w) {
    constexpr double kForward = 2.0 / 3;
    const Seconds<N> all = prices_.loss(w.forward_bytes / recipe_.activation_width());
    put(w, Lost::logits, all * N(kForward), all * N(1 - kForward));
  }

  // Inputs and gradients are quantised before they are gathered: each rank its own shard.
  void add_casts(std::size_t i) {
    const WorkItem& w = block_.work[i];
    const bool expert = group(w.tag) == "exp";
    const N times = expert ? prices_.expert_passes : N(1.0);
    double results = w.shape.results;
    for (std::size_t j = i + 1; j < block_.work.size(); ++j) {
      const WorkItem& other = block_.work[j];
      const bool together = w.shape.merge >= 0 && other.kind == Kind::product && other.shape.merge == w.shape.merge;
      if (together) results += other.shape.results;
    }
    const Seconds<N> each =
        expert
            ? Seconds<N>(leaf<N>(w.shape.groups, [] { return Origin{"experts on this GPU", "", "experts / ep", {}}; }) *
                         prices_.expert_cast_launch)
            : Seconds<N>(N(0.0));
    put(w, Lost::memory_bound, prices_.cast(w.shape.inputs) * times + each, prices_.cast(results) * times + each);
  }

  double visible(const WorkItem& w, Visible rule) const {
    return visible_keys(rule, recipe_.seq, w.all_keys ? Count(0) : block_.window, block_.chunked && !w.all_keys);
  }

  // Fused: half of the scores, forward and 2.5 times that backward (recomputed scores are within it).
  void add_attention(const WorkItem& w) {
    constexpr double kBackwardWork = 2.5;
    constexpr double kTailOfBackward = 0.5;  // backward runs over keys, too: idle neighbours matter less
    double keys = visible(w, Visible::causal);
    // A packed sample is a sequence of its own.
    if (recipe_.sample_tokens > 0 && !w.all_keys) keys = std::min(keys, recipe_.sample_tokens / 2);
    const double cp = static_cast<double>(recipe_.layout.cp);
    const double own = static_cast<double>(recipe_.seq) / (prices_.ring_attention ? cp : 1);
    const double seq = std::min(own, 2 * keys);
    const AttentionPrice<N> how = prices_.attention(w.head_dim, w.latent);
    const Flops<N> flops(leaf<N>(w.per_key * keys, [] {
      return Origin{"FLOPs of the causal half", "FLOP", "read off the operator's axes", {}};
    }));
    AttentionLaw behind = how.law;
    behind.tail *= kTailOfBackward;
    const auto factor = [](double value) {
      return leaf<N>(value,
                     [] { return Origin{"diagonal, prologue and tail of this shape", "", "src/cost/kernels", {}}; });
    };
    const N kept = sinks() ? prices_.attention_sinks : N(1.0);
    const Seconds<N> forward = flops / (how.forward * kept) * factor(attention_factor(how.law, seq, w.query_tiles));
    const Seconds<N> backward =
        flops / (how.backward * kept) * factor(kBackwardWork * attention_factor(behind, seq, w.query_tiles));
    put(w, Lost::attention, forward, backward);
    if (recipe_.layout.cp > 1) add_context(w, forward, backward);
  }

  // Keys and values round the ring, hidden behind attention; or heads for tokens, all to all.
  void add_context(const WorkItem& w, const Seconds<N>& forward, const Seconds<N>& backward) {
    const double cp = static_cast<double>(recipe_.layout.cp);
    const RankGroup group{cp, static_cast<double>(recipe_.layout.tp)};
    if (!prices_.ring_attention) {
      const Seconds<N> each =
          prices_.collective(CollectiveKind::all_to_all, w.query_bytes + w.key_bytes, group) * prices_.cp_exposed;
      put(w, Lost::cp_comm, each, each);
      return;
    }
    constexpr double kHidden = 0.9;
    const Seconds<N> there = prices_.send(w.key_bytes, group.stride * (cp - 1)) * N(cp - 1);
    const Seconds<N> back = prices_.send(2 * w.key_bytes, group.stride * (cp - 1)) * N(cp - 1);
    const auto exposed = [&](const Seconds<N>& comm, const Seconds<N>& compute) {
      const Seconds<N> rest(larger((comm - compute * N(kHidden)).number(), N(0.0)));
      return rest + prices_.scaleup_latency * N(cp - 1);
    };
    put(w, Lost::cp_comm, exposed(there, forward), exposed(back, backward));
  }

  // A scan moves bytes. Over context parallelism heads are exchanged for tokens: each rank runs whole sequences.
  void add_scan(const WorkItem& w) {
    put(w, Lost::memory_bound, prices_.pass(w.forward_bytes, "bytes of the scan") * prices_.scan_passes,
        prices_.pass(w.backward_bytes, "bytes of the scan") * prices_.scan_passes);
    if (recipe_.layout.cp == 1) return;
    const RankGroup group{static_cast<double>(recipe_.layout.cp), static_cast<double>(recipe_.layout.tp)};
    const Seconds<N> each =
        prices_.collective(CollectiveKind::all_to_all, w.query_bytes + w.key_bytes, group) * prices_.cp_exposed;
    put(w, Lost::cp_comm, each, each);
  }

  // A product of two tensors that is a kernel of its own; with scores of every pair of tokens.
  void add_unfused(const WorkItem& w) {
    constexpr double kMisaligned = 12.2;  // head widths that are no multiple of 8: no tensor cores (BLOOM, d 108, 150)
    constexpr double kHalfAligned = 1.05;
    const auto width = static_cast<std::int64_t>(w.head_dim);
    const double slower = width % 8 != 0 ? kMisaligned : width % 16 != 0 ? kHalfAligned : 1;
    const double flops = w.per_key * visible(w, Visible::full) * slower;
    const Seconds<N> computing =
        Flops<N>(leaf<N>(flops, [] { return Origin{"FLOPs", "FLOP", "read off the operator's axes", {}}; })) /
        (prices_.half_peak * prices_.unfused_rate);
    const N passes = N(static_cast<double>(w.backward_passes));
    put(w, Lost::attention, computing + prices_.pass(w.forward_bytes, "bytes moved"),
        computing * passes + prices_.pass(w.backward_bytes, "bytes moved"));
  }

  void add_collective(const CollectiveItem& c) {
    const Layout& l = recipe_.layout;
    const double tp = static_cast<double>(l.tp), ep = static_cast<double>(l.ep), etp = static_cast<double>(l.etp);
    const RankGroup group = c.group == Group::tp   ? RankGroup{tp, 1}
                            : c.group == Group::ep ? RankGroup{ep, etp}
                                                   : RankGroup{etp, 1};
    const Lost lost = c.group == Group::tp ? Lost::tp_comm : Lost::ep_comm;
    // Products hide what ranks write into each other's memory (user buffers), which scale-up links alone let them.
    const N whole(1.0);
    const N& sharded = tp > prices_.domain     ? whole
                       : block_.beside_experts ? prices_.tp_exposed_experts
                                               : prices_.tp_exposed;
    const N& exposed = c.group == Group::ep ? prices_.ep_exposed : c.group == Group::tp ? sharded : prices_.etp_exposed;
    const Seconds<N> alone = c.group == Group::ep ? prices_.exchange_rows(c.bytes(), block_.choice, group)
                                                  : prices_.collective(c.kind, c.bytes(), group);
    const Seconds<N> time = named(alone * (c.beside_product ? exposed * prices_.tp_exposed_gradients : exposed),
                                  preflop::name(c.tag).data(), "s");
    put(c.backward ? out_.backward : out_.forward, lost, time);
    if (c.replayed) put(out_.backward, Lost::recompute, time);
  }

  // The host keeps the GPU waiting once a layer forward, twice backward, once more where all is recomputed.
  void add_launch() {
    if (plain(prices_.gap.number()) == 0) return;
    bool all = true;
    for (const WorkItem& w : block_.work) all = all && (w.kind != Kind::product || w.replayed);
    constexpr double kOfTwo = 0.5;  // a layer is two sublayers
    const N mixing = block_.mixes ? ungraphed(mixer(), prices_.gap_in_graphs) : N(0.0);
    const N feeding = block_.feeds_forward ? ungraphed(feeder(), prices_.gap_in_graphs) : N(0.0);
    const Seconds<N> gap = prices_.gap * ((mixing + feeding) * N(kOfTwo));
    put(out_.forward, Lost::launch, gap);
    put(out_.backward, Lost::launch, gap * N(all ? 3.0 : 2.0));
  }

  // A trained logit of every head beside its scores.
  bool sinks() const {
    return std::any_of(block_.weights.begin(), block_.weights.end(),
                       [](const WeightItem& v) { return v.role == Role::bias && group(v.tag) == "core"; });
  }
  bool has_experts() const { return block_.choice.top_k > 0; }
  // Of the sublayer that mixes tokens, and of the other, what graphs hold.
  double mixer() const { return block_.scans ? prices_.graphed.scan : prices_.graphed.attention; }
  double feeder() const { return has_experts() ? prices_.graphed.experts : prices_.graphed.mlp; }
  static N ungraphed(double share, const N& in_graphs) {
    const auto part = [](double x) {
      return leaf<N>(x, [] { return Origin{"parts in CUDA graphs", "", "recipe", {}}; });
    };
    return share <= 0 ? N(1.0) : share >= 1 ? in_graphs : part(1 - share) + part(share) * in_graphs;
  }

  // The host issues the kernels of a block, a third of them forward. Each direction waits by itself, for a shorter one
  // must not lengthen the other.
  void add_host() {
    const N experts =
        leaf<N>(block_.local_experts, [] { return Origin{"experts on this GPU", "", "experts / ep", {}}; });
    const bool latent = std::any_of(block_.work.begin(), block_.work.end(), [](const WorkItem& w) { return w.latent; });
    const N first = ungraphed(mixer(), prices_.host_in_graphs) * (block_.scans ? prices_.host_scan
                                                                  : latent     ? prices_.host_latent
                                                                               : N(1.0));
    const N second = ungraphed(feeder(), prices_.host_in_graphs) * (has_experts() ? N(1.0) : prices_.host_mlp);
    const N sublayers = !block_.mixes ? second : !block_.feeds_forward ? first : first + second;
    const N host = prices_.host_block * sublayers + prices_.host_expert * experts;
    if (plain(host) <= 0) return;
    constexpr double kForwardShare = 1.0 / 3;
    const Seconds<N> forward(host * N(kForwardShare)), backward(host * N(1 - kForwardShare));
    if (prices_.host_runs_ahead) {  // over the other blocks of its stage, too
      out_.host_forward = forward;
      out_.host_backward = backward;
      return;
    }
    put(out_.forward, Lost::launch, waiting_for_host(sum_of(out_.forward), forward));
    put(out_.backward, Lost::launch, waiting_for_host(sum_of(out_.backward), backward));
  }

  // What a policy keeps on the host leaves beside the forward pass and comes back beside the backward pass.
  void wait_for_transfer(Parts<N>& busy) const {
    const Bytes<N> moved(leaf<N>(block_.hosted, [] {
      return Origin{"kept on the host by the recomputation policy", "B", "read off the operator's axes", {}};
    }));
    const Seconds<N> rest(larger((moved / prices_.host_link - sum_of(busy)).number(), N(0.0)));
    put(busy, Lost::offload, named(rest, "transfer that compute does not hide", "s"));
  }

  const BlockCost& block_;
  const Recipe& recipe_;
  bool is_layer_;
  const Prices<N>& prices_;
  Piece<N> out_;
};

}  // namespace

template <class N>
Piece<N> price_block(const BlockCost& block, const Recipe& recipe, bool is_layer, const Prices<N>& prices) {
  return Pricer<N>(block, recipe, is_layer, prices).run();
}

template Seconds<double> sum_of(const Parts<double>&);
template Seconds<Traced> sum_of(const Parts<Traced>&);
template Seconds<double> waiting_for_host(const Seconds<double>&, const Seconds<double>&);
template Seconds<Traced> waiting_for_host(const Seconds<Traced>&, const Seconds<Traced>&);
template void add_to(Parts<double>&, const Parts<double>&, const double&);
template void add_to(Parts<Traced>&, const Parts<Traced>&, const Traced&);
template Piece<double> price_block(const BlockCost&, const Recipe&, bool, const Prices<double>&);
template Piece<Traced> price_block(const BlockCost&, const Recipe&, bool, const Prices<Traced>&);

}  // namespace preflop
