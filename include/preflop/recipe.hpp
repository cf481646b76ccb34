// How a model is trained: numerics (precision, dtypes, optimizer, batch, sequence) and layout
// (parallel sizes, sharding, schedule, micro-batch, recomputation, kernels).
//
// A Recipe is complete: every value is set. `given` says which values the user set; all others were
// chosen by the documented defaults and are listed in `assumed` as "key=value".
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/count.hpp"
#include "preflop/forecast.hpp"

namespace preflop {

// Storage types. Block-scaled types carry their scales in the width.
enum class Dtype : std::uint8_t { fp32, tf32, bf16, fp16, fp8, int8, fp4, none };
double width(Dtype dtype);  // bytes per element; 0 for none
const char* name(Dtype dtype);

enum class AttentionKernel : std::uint8_t { unfused, sdpa, fa1, fa2, fa3, cudnn, splash };
enum class LossKind : std::uint8_t { plain, inplace, fused, chunked, fused_linear, vocab_parallel };
enum class RecomputeKind : std::uint8_t { none, selective, full, modules };

// Which layers are recomputed in full, where it is not each by itself; with `first` and `every` the others keep all.
enum class RecomputeLayers : std::uint8_t {
  all,
  first,  // full:N: the first N of every (virtual) stage
  every,  // selective-layer[:N]: every Nth of a stage
  units   // full:uniform:N: all, N neighbours together: the input of the first is kept
};

struct Recompute {
  RecomputeKind kind = RecomputeKind::none;
  std::int64_t layers = 0;           // N; 0 where all layers are recomputed
  std::vector<std::string> modules;  // modules: names that the stack defines
  RecomputeLayers which = RecomputeLayers::all;

  bool some() const { return which == RecomputeLayers::first || which == RecomputeLayers::every; }
  bool units() const { return which == RecomputeLayers::units; }
};

// What is kept in the host's memory instead of the GPU's.
struct Offload {
  static constexpr std::int64_t kAllLayers = std::int64_t{1} << 40;

  double optimizer = 0;          // share of the master weights and optimizer states; updated by the host
  bool params = false;           // the sharded weights and gradients too
  std::int64_t activations = 0;  // what the first so many layers of every (virtual) stage keep for the backward pass

  bool any() const { return optimizer > 0 || params || activations > 0; }
  bool some_layers() const { return activations > 0 && activations < kAllLayers; }
};

// Parallel sizes. Dense operands live on tp * cp * dp * pp, expert operands on etp * ep * edp * pp.
struct Layout {
  std::int64_t tp = 1, cp = 1, dp = 1, pp = 1, vpp = 1;
  std::int64_t ep = 1, etp = 1;
  bool sp = false;        // sequence parallelism; silent at tp 1
  int zero = 0;           // 0 nothing, 1 optimizer, 2 + gradients, 3 + weights
  std::int64_t hsdp = 0;  // shard group size; 0 = the whole data-parallel group
  std::string schedule = "1f1b";
  std::vector<std::int64_t> layers_per_stage;  // explicit split; empty = the stack's rule

  std::int64_t model_parallel() const { return tp * cp * pp; }
  std::int64_t world() const { return tp * cp * pp * dp; }
  // The order of passes that is run: of one stage every schedule is the same, a backward after each forward.
  std::string_view order() const { return pp > 1 ? std::string_view(schedule) : "1f1b"; }
  // Ranks that hold the same experts: ep x etp x edp = tp x cp x dp.
  std::int64_t edp() const { return tp * cp * dp / (ep * etp); }
};

struct Recipe {
  std::string stack;             // "megatron"
  std::string stack_generation;  // newest when not given
  Layout layout;

  std::int64_t seq = 0;           // tokens
  std::int64_t micro_batch = 1;   // sequences
  std::int64_t global_batch = 0;  // sequences

  std::string precision = "bf16";
  std::string optimizer = "adamw";
  std::string optimizer_implementation = "fused";  // or foreach, for-loop: what a step holds beside its states
  Dtype weight_dtype = Dtype::bf16;
  Dtype grad_dtype = Dtype::fp32;
  Dtype master_dtype = Dtype::fp32;  // none: the weights are their own master
  Dtype moment_dtype = Dtype::fp32;
  Recompute recompute;
  Offload offload;
  AttentionKernel attention = AttentionKernel::cudnn;
  LossKind loss = LossKind::plain;

  // Mixture of experts: rows of the fullest GPU over the mean, and the capacity that drops and pads rows.
  double imbalance = 1;
  double capacity_factor = 0;  // 0: dropless
  std::int64_t mtp = 0;        // multi-token prediction layers that are trained
  bool compile = false;        // torch.compile of the layers

  // How the software runs what it runs.
  std::string cp_comm = "p2p";          // context parallelism: keys round a ring (p2p) or heads for tokens (a2a)
  std::string dispatcher = "alltoall";  // rows of experts: alltoall, deepep, hybridep
  std::string cuda_graph = "none";      // none, transformer_engine or local (parts of a layer), full_iteration
  // Of transformer_engine and local graphs, what they hold: attn, mamba, mlp, moe_router, moe_preprocess.
  std::vector<std::string> cuda_graph_scope = {"attn", "mamba", "mlp", "moe_router", "moe_preprocess"};
  bool dp_overlap = true;      // gradients reduced and weights gathered beside compute, where the stack can
  bool tp_overlap = false;     // tensor-parallel exchange beside the product it feeds (async TP)
  bool ep_overlap = false;     // exchange of rows beside the other micro-batch's compute
  bool fused_experts = false;  // grouped products with activation and quantisation in one kernel
  bool fp8_attention = false;
  // Packed samples attend within themselves: tokens of a sample on average; 0: a sample fills the sequence.
  double sample_tokens = 0;

  std::optional<double> mfu;  // --mfu X, a fraction: use instead of predicting
  std::string mfu_convention = "6n";
  std::optional<double> tokens;  // --tokens, of the whole run
  RunSettings run;               // of the whole run; read where there are tokens

  std::set<std::string> given;       // keys the user set
  std::vector<std::string> assumed;  // "key=value (why)" for the rest

  // Bytes per element of an activation: what the precision computes in, whatever the weights are stored as.
  double activation_width() const { return width(precision == "fp32" ? Dtype::fp32 : Dtype::bf16); }
  std::int64_t micro_batches() const { return global_batch / (micro_batch * layout.dp); }
};

}  // namespace preflop
