// What one block costs on one GPU, read off its operators: weights, what it saves for backward, the
// transients of its backward walk, FLOPs, bytes moved, GEMM shapes, collectives. Nothing here knows a
// block by name, a GPU, a schedule or a pipeline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/cost/choice.hpp"
#include "src/cost/mesh.hpp"
#include "src/model/operators.hpp"
#include "src/stack/stack.hpp"

namespace preflop {

// Under what a block is analysed.
struct Setting {
  const Stack* stack = nullptr;
  const LossRule* loss = nullptr;
  const ScaledPrecision* scaled = nullptr;  // of the products of layers; null = none
  std::vector<const Segment*> segments;     // recomputation, the first that matches an operator counts; empty = none
  Mesh mesh;
  Count micro_batch = 1;  // sequences
  Count seq = 1;          // tokens
  double activation_width = 2;
  AttentionKernel kernel = AttentionKernel::cudnn;
  // Rows that a GPU's experts get: `imbalance` times the mean, or, with a capacity factor, exactly that
  // share for every expert, the rest dropped and the gaps padded.
  double imbalance = 1;
  double capacity_factor = 0;   // 0: dropless
  bool in_units = false;        // layers are recomputed several at a time
  bool defers = false;          // the gradients of weights wait for a pass of their own
  bool beside_experts = false;  // some block of the model has experts
};

struct WeightItem {
  Tag tag;
  Role role;
  Axes axes;
  Volume volume;  // on this GPU
  bool owned;
  int merge;
  bool with_head = false;                                  // not owned: the head of the same stage has it
  bool expert() const { return axes.has(Axis::experts); }  // lives on the expert mesh
};

// One tensor kept for the backward pass. `store` is -1 for a private copy.
struct SavedItem {
  Tag tag;  // who keeps it
  Save::What what;
  Volume volume;
  double width;
  StoreId store;
  bool is_logits;
  std::string_view source;
  double bytes() const { return volume.elements.real() * width; }
};

// Something alive only while the block runs backward.
struct TransientItem {
  Tag tag;
  const char* what;  // "gradient", "gathered input", ...
  Volume volume;
  double width;
  double bytes() const { return volume.elements.real() * width; }
};

// The fullest instant of a block's backward walk.
struct Walk {
  Tag at = Tag::block_add;
  std::vector<bool> alive;  // per SavedItem: not yet freed
  std::vector<TransientItem> transients;
  double bytes = 0;  // alive saved items + transients
};

enum class CollectiveKind : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all };
const char* name(CollectiveKind kind);
enum class Group : std::uint8_t { tp, ep, etp };

struct CollectiveItem {
  CollectiveKind kind;
  Tag tag;
  Volume volume;  // of the full (gathered) tensor; all-to-all: of what one GPU sends and keeps
  double width;
  bool backward;
  bool replayed;  // repeated by recomputation
  Group group = Group::tp;
  bool beside_product = false;  // nothing of the product that computes the other gradient waits for it
  double bytes() const { return volume.elements.real() * width; }
};

// A weight product as a matrix product (m, k) x (k, n) on one GPU, `groups` of them in one launch. Products
// with one `merge` id of a block are one launch: their n add up.
struct ProductShape {
  double m = 0, n = 0, k = 0, groups = 1;
  int merge = -1;
  double inputs = 0, results = 0;  // elements of the operand and the result as this GPU holds them
};

// The work of one operator on one GPU.
struct WorkItem {
  Kind kind;
  Tag tag;
  Volume volume;             // all axes met: forward FLOPs = 2 x volume (with keys at `visible`); a scan: its states
  bool attention = false;    // FLOPs scale with the visible context
  double per_key = 0;        // attention: forward FLOPs per visible key
  double forward_flops = 0;  // of weight products and scans
  ProductShape shape;        // of weight products
  double query_tiles = 0;    // fused attention: sequences x heads x tokens of this GPU / 128
  double head_dim = 0;       // attention: of the products over it
  bool latent = false;       // attention: values narrower than keys
  double key_bytes = 0;      // attention: of this GPU's keys and values; a scan: of all that it reads
  double query_bytes = 0;    // attention: of its queries and results; a scan: of its result
  int backward_passes = 0;   // gradients computed: inputs with gradient + trained weights
  double forward_bytes = 0, backward_bytes = 0;
  bool replayed = false;  // inside a recomputed segment
  bool logits = false;
  bool all_keys = false;  // reads every earlier key, whatever the window: an indexer's scores
};

struct BlockCost {
  Extents extents;
  std::vector<WeightItem> weights;
  std::vector<SavedItem> saved;
  // In units: what a layer holds beyond `saved` from when its unit is run forward again until its own backward pass.
  std::vector<SavedItem> unit;
  // Deferred: what is held between the backward pass of its input and that of its weights.
  std::vector<SavedItem> deferred;
  double hosted = 0;  // bytes that a policy of recomputation keeps on the host
  Walk walk;
  std::vector<WorkItem> work;
  std::vector<CollectiveItem> collectives;
  Count window;
  bool chunked = false;
  ExpertChoice choice;                      // of a token's experts; top_k 0: the block has none
  double local_experts = 0;                 // on this GPU
  bool mixes = true, feeds_forward = true;  // has attention or a scan, has an MLP or experts
  bool scans = false;
  bool beside_experts = false;  // Setting::beside_experts
  Activation activation = Activation::silu;
  bool legal = true;  // false: an axis does not divide (callers check legality first)

  double saved_bytes() const;
};

// `block` has been rewritten by the stack. The vocabulary is padded by the stack's rule.
BlockCost analyse(const Block& block, const Setting& setting);
// Parts of the same, all with extents and weights: nothing more; what runs; what is kept and the backward walk.
BlockCost analyse_weights(const Block& block, const Setting& setting);
BlockCost analyse_work(const Block& block, const Setting& setting);
BlockCost analyse_memory(const Block& block, const Setting& setting);

// Tokens a query sees on average: all of them, the causal half, or the causal window.
enum class Visible : std::uint8_t { full, causal };
double visible_keys(Visible rule, Count seq, Count window, bool chunked = false);

}  // namespace preflop
