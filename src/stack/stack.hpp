// A stack: the software that runs the model, with a generation. It decides which tensors live, what
// is fused, merged, padded and buffered, and what is legal. All of it is data (data/stacks/*.toml)
// over a few named rules; a generation inherits from the one before it and changes single values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/estimate.hpp"
#include "preflop/recipe.hpp"
#include "preflop/result.hpp"
#include "src/model/model.hpp"
#include "src/model/operators.hpp"

namespace preflop {

// What an operator keeps for its backward pass.
struct Save {
  enum class What : std::uint8_t {
    in,        // its inputs' stores, shared with whoever else saves them
    out,       // its result's store
    element,   // a private copy: `width` bytes per element of the result (a mask) or of the input (fp32 logits)
    row,       // `width` bytes per row statistic of a norm, softmax or attention
    quantised  // a copy of an input in a scaled precision (ScaledPrecision), instead of the input itself
  };
  What what = What::in;
  double width = 0;
  std::string source;
};

struct Rewrite {
  enum class Rule : std::uint8_t { merge, fuse, copy_slices, copy_result, repeat_heads };
  enum class When : std::uint8_t { always, fused_attention, unfused_attention, context_parallel, compiled };
  Rule rule = Rule::merge;
  When when = When::always;
  std::vector<std::string> tags;  // tags or groups
  Tag into = Tag::block_add;      // fuse: the new operator's tag
  Kind kind = Kind::attention;    // fuse: its kind
  std::string source;
};

struct LossRule {
  LossKind kind = LossKind::plain;
  std::vector<Save> saves;    // of the loss operator
  bool in_place = false;      // the gradient overwrites what was saved
  double gradient_width = 0;  // bytes per logit that the backward adds while it runs (0 when in place)
  bool compiled = false;      // what the loss of this kind becomes where the layers are compiled
  std::string source;
};

// What a scaled precision (fp8, mxfp8, nvfp4) changes in the products of layers.
struct ScaledPrecision {
  std::vector<std::string> names;      // "fp8-delayed", ...
  std::vector<std::string> quantised;  // tags or groups of products that keep a quantised copy of their input
  double width = 0;                    // bytes per element of that copy, scales included
  double weight_copies = 0;            // bytes per element of a layer's matrices, kept beside the weights
  bool replaces_weights = false;       // or in their place
  std::string source;
};

// A recomputation policy: the operators whose saves are dropped and replayed in the backward pass.
struct Segment {
  std::string name;               // "core_attn", "full"
  std::vector<std::string> tags;  // tags or groups; "*" = the whole layer
  std::vector<std::string> keep;  // operators inside whose results (and row statistics) stay all the same
  bool keeps_on_host = false;     // those results wait in the host's memory and come back for the backward pass
  // Only what the backward pass reads is made again: a compiler that sees the whole step leaves the rest out, such as
  // the last product of a layer.
  bool only_read = false;
  // Results that operators outside keep are dropped too, and made again just before they are needed
  // (checkpoint without output; what a compiler recomputes from its kept inputs).
  bool drops_output = false;
  bool compiled = false;  // not a policy to choose: what the compiler does by itself
  // Only in blocks that have an operator of this tag or group; empty = in all. Segments of one name are one policy.
  std::string beside;
  std::string source;

  bool applies_to(const Block& block) const;
  bool touches(const Model& model) const;  // some layer has an operator of it
};

// Gradients of results that a stack frees late: with the backward of `until`.
struct Hold {
  std::vector<std::string> tags;  // of the operators whose results they are
  Tag until = Tag::block_add;
  std::string source;
};

// Storage that follows parameters instead of operators while the step runs: FSDP's gathered weights and
// gradients, buffers of their reduction, an optimizer's copies of the gradients.
struct LiveRule {
  enum class Unit : std::uint8_t { layer, head, embedding, stage };
  enum class When : std::uint8_t { always, without_pipeline, with_pipeline };
  Unit unit = Unit::layer;
  When when = When::always;
  Term term = Term::transients;
  std::string what;  // "gathered weight"
  double copies = 1;
  double width = 0;                 // bytes per parameter; 0 = the compute type's
  std::vector<std::string> during;  // names of moments; empty = at all of them
  int min_zero = 3;                 // the least and the last ZeRO stage that have it
  int max_zero = 3;
  std::vector<std::string> precision;  // only in these; empty = in all
  bool sharded = false;                // this rank's shard of the stage's parameters, not the whole unit
  bool alone = false;                  // also where no other rank holds the same parameters
  std::string source;
};

struct Scalar {
  double value = 0;
  std::string source;
  // Other values on some architectures (sm70, ...), where the number belongs to GPU and driver.
  struct OnArch {
    std::string arch;
    double value = 0;
    std::string source;
    std::string fitted;
  };
  std::vector<OnArch> on;
  std::string fitted;     // file of data/measured to whose rows it was fitted; empty: to none
  bool borrowed = false;  // another stack's, as no run of this one tells

  // The scalar on one architecture, without further alternatives.
  Scalar at(std::string_view arch) const {
    for (const OnArch& o : on) {
      if (o.arch == arch) return {o.value, o.source, {}, o.fitted, borrowed};
    }
    return {value, source, {}, fitted, borrowed};
  }
};

struct Stack {
  std::string name;
  std::string generation;
  std::string summary;
  std::vector<Rewrite> rewrites;
  std::array<std::vector<Save>, kKinds> saves;  // by kind
  std::vector<LossRule> losses;                 // the first one is the default
  std::vector<Segment> segments;
  std::vector<LiveRule> live;
  std::vector<Hold> holds;
  std::vector<ScaledPrecision> precisions;
  std::string selective;  // the segment that `--recompute selective` means; empty: it has none

  std::vector<int> zero_allowed;
  std::vector<int> hsdp_allowed = {1, 2, 3};  // stages that it can shard in groups, replicated beyond
  std::vector<std::string> unscaled = {"bf16", "fp16", "fp32"};  // precisions of products without scales
  int zero_default = 0;
  bool sp_default = false;  // sequence parallelism whenever tp > 1
  bool compile_default = false;
  // How reserved memory follows: `reserved_factor` x the peak, or x the sum of the peak and the working
  // sets of these other moments (blocks of one moment that do not serve another).
  std::vector<std::string> reserved_sums;
  std::string recompute_default = "none";
  // What it can keep on the host: "optimizer" (states), "optimizer-part" (a share of them), "all" (weights, gradients
  // and states together), "activations" (without recomputation or pipeline), "checkpoints" (with full recomputation).
  std::vector<std::string> offload;
  std::vector<std::string> software;           // switches that it has (src/stack/software.cpp)
  std::vector<std::string> refuses;            // combinations that it does not run (src/stack/software.cpp)
  std::vector<std::string> optimizers;         // those that it runs; empty: all
  std::vector<std::string> not_told_apart;     // of them those without a figure of their own in its step times
  std::vector<Dtype> moments = {Dtype::fp32};  // types it can keep the optimizer's moments in
  std::vector<std::string> optimizer_implementations = {"fused"};  // the first one is the default
  std::vector<RecomputeLayers> recompute_layers;  // which parts of its layers it can recompute in full, beside all
  std::vector<std::string> chips;                 // beginnings of architectures that it runs on; empty: all but TPUs
  bool experts = true;                            // false: what its expert layers keep is not built yet
  bool plain_decoders = false;                    // true: it runs plain decoders alone (src/model/plain_decoder.hpp)
  std::vector<std::string> scans;                 // of state spaces that it runs (name(ScanKind)); empty: not built
  bool sp_allowed = true;                         // false: it knows no sequence parallelism
  bool cp_allowed = true;                         // false: it knows no context parallelism
  bool tp_allowed = true, pp_allowed = true;      // false: no tensor parallelism, no pipelines
  bool own_etp = true;                            // false: it cuts experts as it cuts the rest, etp = tp
  // Of `segments` and `losses` those that this generation has, by name; empty: all. A generation without its
  // own list has that of the one before it. The catalogue's stacks hold no others.
  std::vector<std::string> recompute_allowed;
  std::vector<LossKind> losses_allowed;
  bool uneven_stages = false;          // embedding and loss may count as slots of the pipeline split
  bool stage_layouts = false;          // every virtual stage can be given (--pipeline-model-parallel-layout)
  bool split_by_cost = false;          // layers are dealt by the work of their matrices, the head's included
  std::vector<std::string> schedules;  // the first one is the default
  std::vector<AttentionKernel> kernels;
  std::vector<std::string> dispatchers = {
      "alltoall"};  // of rows to experts; the first one that a GPU runs is the default
  Dtype weight_dtype = Dtype::bf16, grad_dtype = Dtype::bf16, master_dtype = Dtype::fp32, moment_dtype = Dtype::fp32;

  Scalar vocab_multiple;             // the padded vocabulary is a multiple of this x tp
  Scalar wgrad_dummy_width;          // bytes per element of one cached weight gradient per distinct GEMM shape
  Scalar head_wgrad_width;           // bytes per element of the head's transient weight gradient
  Scalar gathered_input_kept;        // 1: the head's gathered input stays in a process-wide buffer
  Scalar outputs_held;               // 1: the logits of a micro-batch stay until its backward pass is over
  Scalar workspace_bytes;            // allocated once per process
  Scalar grouped_workspace_bytes;    // the same, where a stage has experts
  Scalar optimizer_temporary_width;  // bytes per (sharded) parameter that the optimizer step allocates
  Scalar reserved_factor;            // reserved / allocated
  Scalar reserved_factor_compiled;   // the same with compiled layers; 0 = no difference
  // Half-widths of the 80 % bands, as fractions of the prediction: what tensors allocate, what the allocator
  // reserves, what nvidia-smi shows.
  Scalar allocated_band, reserved_band, device_band;
  // The half-width that makes a plan tight: of what the allocator reserves, where runs of this stack tell it.
  double tight_band(std::string_view arch) const {
    const Scalar band = reserved_band.at(arch);
    return band.borrowed ? 0 : band.value;
  }
  Scalar context_bytes;              // CUDA context and kernels, outside the allocator
  Scalar communicator_bytes;         // per communicator of more than one rank, outside the allocator
  Scalar more_communicators;         // beside one for each parallel size above 1
  Scalar exchange_peer_bytes;        // per rank of the same node that an all-to-all of rows sends to; 0: not known
  std::vector<std::string> sources;  // of the file as a whole

  std::string full_name() const { return generation.empty() ? name : name + "@" + generation; }
  bool runs_on(std::string_view arch) const;
  bool offloads(std::string_view what) const {
    return std::find(offload.begin(), offload.end(), what) != offload.end();
  }
  const LossRule* loss(LossKind kind, bool compiled = false) const;
  const Segment* segment(std::string_view segment_name) const;
  const ScaledPrecision* precision(std::string_view precision_name) const;  // null: not a scaled one that it runs
  std::vector<std::string> precision_names() const;                         // bf16, fp16, fp32 and the scaled ones
};

// The stacks of this build, from the embedded data. A fault in the data is an Error with file and line.
class StackCatalogue {
 public:
  // `overlays`: texts of further stack files (--data-dir), by file name.
  static Result<StackCatalogue> load(const std::map<std::string, std::string>& overlays = {});
  // "megatron" (newest generation) or "megatron@core-0.14".
  Result<const Stack*> find(std::string_view name) const;
  const std::vector<Stack>& all() const { return stacks_; }  // oldest generation first within a name

 private:
  std::vector<Stack> stacks_;
};

}  // namespace preflop
