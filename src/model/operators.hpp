// A layer is a list of operators over named axes. Parameters, FLOPs, GEMM shapes, bytes moved, what
// lives for the backward pass and collectives are all read off this list; no predictor knows a block
// by name.
//
// The base form is unfused mathematics. A stack only rewrites it (src/stack/rules): merge products
// of one input into one GEMM, fuse attention, copy strided views. Adapters, quantised weights,
// experts and scans are operators and rewrites of the same kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "preflop/architecture.hpp"
#include "src/model/axes.hpp"
#include "src/model/tags.hpp"

namespace preflop {

// FLOPs: a product costs 2 x the volume of all axes met, a scan 7 or 8 x that of its states, everything else 0
// (its cost is the bytes it moves). What backward needs by default is in the stack's save table, by kind.
enum class Kind : std::uint8_t {
  product,     // input times weight; an axis only on the weight is an index and multiplies nothing
  product2,    // two tensors
  norm,        // `statistics` fp32 numbers per row are kept by most implementations
  activation,  // one input: act(x); two after fusing: act(gate) * up
  multiply,
  softmax,
  dropout,
  add,  // transparent to gradients and to partial sums
  rope,
  copy,
  lookup,     // a table indexed by ids
  attention,  // fused core; `inner` keeps its parts for FLOPs
  loss,       // cross-entropy over the vocabulary
  route,      // logits of a router (or scores of an indexer) become a choice
  permute,    // rows gathered by, or added back by, a choice
  conv,       // depthwise over the last tokens, with its activation
  scan,       // a state carried along the tokens: what enters it, what it forgets, what is read from it
  move        // rows change GPUs; collective and group follow from the row axes before and after (src/cost/link)
};
inline constexpr int kKinds = 18;
const char* name(Kind kind);

// What an element of a tensor is stored as. `activation` follows the recipe's precision.
enum class Element : std::uint8_t { activation, ids };

using TensorId = std::int16_t;
inline std::size_t slot(TensorId id) { return static_cast<std::size_t>(id); }
using StoreId = std::int16_t;

// A view of a storage. Slices of one allocation share a store and keep all of it alive: a block's
// store is as large as its tensors together when they are slices, as one of them otherwise.
struct Tensor {
  Axes axes;
  Element element = Element::activation;
  StoreId store = 0;
};

// A router is a matrix that stacks multiply outside their GEMM modules.
enum class Role : std::uint8_t { matrix, bias, norm, table, router };

struct Weight {
  Axes axes;
  Role role = Role::matrix;
  bool owned = true;  // false: tied, its parameters are counted elsewhere
  bool trains = true;
  bool with_head = false;  // not owned: shared with the head of the same stage, not with the embedding
};

struct Operand {
  TensorId tensor = 0;
  Axes axes;  // as this operator reads it
};

struct Op {
  Kind kind = Kind::add;
  Tag tag = Tag::block_add;
  std::vector<Operand> in;
  TensorId out = 0;
  std::vector<Weight> weights;
  Axes reduced;        // result axes over which the row statistics are reduced
  int statistics = 1;  // fp32 numbers per row: RMSNorm 1, LayerNorm 2, attention 1 (log-sum-exp)
  int merge = -1;      // products with one merge id are one GEMM
  std::vector<Op> inner;
};

// How a block's experts are chosen.
struct Routing {
  Count top_k;               // 0: the block has no experts
  Count groups, top_groups;  // of experts: all, and those that a token's lie in at most; 0: any
};

struct Block {
  std::string name;
  Extents extents;       // of everything but b, s, u and routed rows
  Count window;          // sliding window in tokens; 0 = full causal
  bool chunked = false;  // the window is a fixed chunk
  Routing routing;
  std::optional<ScanKind> scan;              // of its state space
  Activation activation = Activation::silu;  // of its MLP or experts
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  TensorId input = 0;  // read from the previous block (or the ids)
  TensorId output = 0;
  StoreId stores = 0;
};

}  // namespace preflop
