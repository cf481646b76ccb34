// What work costs on one GPU of a machine under a stack's software: seconds of matrix products, attention
// kernels, passes over memory and collectives. Built once per recipe; nothing here knows a model.
//
// Every rate is data (machine catalogue, data/time.csv) and stays visible when N is Traced; what depends
// on a shape only (src/cost/kernels) enters as a plain factor.
#pragma once

#include "preflop/estimate.hpp"
#include "src/cost/block_cost.hpp"
#include "src/cost/graphs.hpp"
#include "src/cost/kernels.hpp"
#include "src/cost/parameters.hpp"

namespace preflop {

// The field of the machine's data that holds the dense peak of a precision: "bf16_flops".
std::string_view peak_field(std::string_view precision);

// A group of ranks that exchange: how many, and how far neighbours stand apart in the numbering tp, cp,
// dp, pp (experts: etp, ep, edp, pp).
struct RankGroup {
  double size = 1;
  double stride = 1;
};

// Matrix products of one operand width.
template <class N>
struct ProductPrice {
  FlopsPerSecond<N> rate;    // sustained, endless products
  BytesPerSecond<N> memory;  // of its operands
  GemmLaw law;
  double width = 2;  // bytes of an operand's element
};

template <class N>
struct AttentionPrice {
  FlopsPerSecond<N> forward, backward;  // asymptotic, this head width
  AttentionLaw law;
};

template <class N>
struct Prices {
  FlopsPerSecond<N> peak;                        // dense, the recipe's precision
  FlopsPerSecond<N> half_peak;                   // dense, bf16 or fp16: what unquantised products run in
  ProductPrice<N> layers;                        // products of layers, in the recipe's precision
  ProductPrice<N> head;                          // products that stay in 16 bits: output layer, routers
  BytesPerSecond<N> passes;                      // memory-bound passes, as this software makes them
  BytesPerSecond<N> kernels;                     // kernels whose bytes are counted one by one: casts, the loss
  BytesPerSecond<N> scaleup, scaleout;           // what a link delivers, per GPU and direction
  BytesPerSecond<N> scaleout_pairs;              // the same to each rank by itself: exchanges of rows
  N crossing_share;                              // of the links that some, not all, ranks of a node share: rings that
                                                 // come in by one and leave by another cross the network's rails
  Seconds<N> scaleup_latency, scaleout_latency;  // per collective; times log2(ranks) across nodes
  double domain = 1;                             // GPUs that scale-up links join
  double torus = 0;                              // axes of the torus that they form; 0: they meet in switches
  double slice = 1;                              // GPUs of this cluster in one domain
  bool has_scaleout = false;
  BytesPerSecond<N> host_link;    // per GPU and direction; 0: not known
  BytesPerSecond<N> host_memory;  // of a GPU's share of the host, while the host updates parameters

  // Habits of the stack's software.
  N weight_gradient_rate;   // share of a product's rate that products of weight gradients keep
  N accumulate_bytes;       // per weight and micro-batch: gradients added into a buffer outside the product
  N cast_bytes;             // per element that enters a quantised product, each direction; 0 unquantised
  N loss_bytes;             // per logit, forward and backward, besides the products
  double gather_width = 2;  // bytes of a sharded weight on its way
  double reduce_width = 0;  // bytes of a gradient on its way; 0: those of its type
  Seconds<N> gap;           // per layer and pass that the GPU waits for the host
  N tp_exposed, cp_exposed, ep_exposed, pp_exposed;  // shares of those exchanges that nothing hides
  N tp_exposed_gradients;  // share of tp exchanges beside which a product of the same layer's gradients runs
  N dp_hidden;             // share of the compute beside which data-parallel exchanges run; 0: nothing hides them
  N gather_copies;         // times a gathered weight is copied before its use
  N contention;            // compute lost per second of an exchange that runs beside it
  N tensor_hop;            // seconds per rank where each tensor of sharded states is exchanged by itself
  N tail_elements, tail_per_rank;  // gradients of the last bucket: at least / per data-parallel rank
  N jitter;                        // per doubling of the nodes, of one micro-batch's compute
  N slice_jitter;                  // the same per doubling of the scale-up domains
  N unfused_rate;                  // share of the 16-bit peak of unfused attention products
  Seconds<N> step_fixed;           // once a step: host work of clipping, scaling, logging
  Seconds<N> hop_wait;             // the host waits for each exchange between stages, and the GPU for the host
  bool ring_attention = false;     // context parallelism passes keys round a ring; else all-to-all of heads
  bool scatter_gather = false;     // without sequence parallelism tp ranks send a share each to the next stage

  // Experts.
  N tp_exposed_experts;    // tp_exposed in models with experts: their recipes have no user buffers
  N etp_exposed;           // share of gathers and reductions over etp that nothing hides
  N expert_launch;         // seconds per local expert and grouped product
  N expert_cast_launch;    // seconds per local expert and operand quantised by itself
  N squared_relu_passes;   // bytes of the kernels of a squared ReLU over those of a fused activation
  N expert_passes;         // bytes of activation and quantisation between grouped products over those counted
  N biased_expert_passes;  // the same of a chain of biases, clamps and gates
  Graphed graphed;
  N gap_in_graphs, host_in_graphs;  // shares that graphs leave of the gaps and of the host's work for what they hold
  N host_block;                     // seconds of the host per sublayer and micro-batch, forward and backward
  N host_mlp;                       // share of host_block that a sublayer without experts or attention takes
  N host_expert;                    // the same per local expert
  N host_latent;                    // share of host_block that latent attention takes
  N host_scan;                      // share of host_block that a state space takes
  N scan_passes;                    // bytes that the kernels of a scan move over those counted
  // The host issues ahead of the GPU over blocks of all kinds. A plain all-to-all and DeepEP make it wait until the
  // rows of every expert are counted (Megatron-LM core/transformer/moe/token_dispatcher.py, cuda_sync_point; DeepEP
  // README).
  bool host_runs_ahead = false;
  bool deduplicated = false;  // one copy of a row per rank (node) that needs it, not per expert

  AttentionPrice<N> attention(double head_dim, bool latent) const;
  // t(m, k, n): reads both factors, writes the result of `out_width` bytes.
  Seconds<N> product(const ProductPrice<N>& how, const GemmShape& shape, double out_width) const;
  Seconds<N> pass(double bytes, const char* what) const;
  Seconds<N> cast(double elements) const;  // to scaled operands: `cast_bytes` an element
  Seconds<N> loss(double logits) const;    // `loss_bytes` a logit
  // Bytes per second that one GPU of a group has for ring-like collectives: all ranks of the group in one
  // node share the node's links out of it.
  BytesPerSecond<N> bandwidth(const RankGroup& group) const;
  Seconds<N> latency(const RankGroup& group) const;  // of one ring-like collective
  // `bytes`: of the whole (gathered) tensor; all-to-all: of what one GPU holds.
  Seconds<N> collective(CollectiveKind kind, double bytes, const RankGroup& group) const;
  Seconds<N> send(double bytes, double distance) const;
  // Rows to their experts (or back): `bytes` of one copy for each chosen expert.
  Seconds<N> exchange_rows(double bytes, const ExpertChoice& choice, const RankGroup& group) const;

  // Constants by head width, for `attention`.
  FlopsPerSecond<N> attention_peak;
  N attention_share[4];  // head widths up to 64, 128, 256; latent attention, whose keys are wider than its values
  N attention_backward, attention_backward_latent;  // rate of backward over forward
  N attention_sinks;                                // share of the rate that kernels with one more logit per head keep
  AttentionLaw attention_law[4];
};

// Micro-batches add their gradients up in a buffer. With sharded weights and one stage each is reduced at once; a
// pipeline reduces once a step.
inline bool accumulates_gradients(const Layout& layout) { return layout.zero < 3 || layout.pp > 1; }

template <class N>
Prices<N> prices(const Cluster& cluster, const Stack& stack, const Recipe& recipe, const TimeParameters& parameters);

// Measured over predicted: 10 % and 90 % of runs that no parameter has seen, of the nearest group of runs.
template <class N>
struct Band {
  N low, high;  // 0: not known
};
template <class N>
Band<N> prices_band(const Cluster& cluster, const Stack& stack, bool experts, const TimeParameters& parameters);

}  // namespace preflop
