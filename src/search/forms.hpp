// The memory of a stage as linear forms. Which storages are alive at a moment, how many layers and
// micro-batches of them, and which states are sharded, is asked of `lines_at` once per kind of stage, with
// marked blocks whose every item has size one: a line that comes back says which item of which block it is
// and how often it counts. With the real sizes of the items (a BlockRow) a form is a few multiplications,
// and no formula of memory is written twice.
//
// What does not scale with the items of a block alone (caches per distinct GEMM, workspaces: the term
// `buffers`) is not in the forms: it is tabulated from the real blocks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/step/memory.hpp"

namespace preflop {

// What a block adds to a stage: bytes of tensors, elements of weights.
enum class Item : std::uint8_t {
  kept,         // saved, and alive at the fullest instant of the block's own backward pass
  kept_logits,  // the same, where they are logits
  early,        // saved, and freed before that instant
  early_logits,
  transients,
  unit,       // held while another layer of its unit runs backward (BlockCost::unit)
  deferred,   // held until the gradients of weights are made
  dense,      // weights on the dense mesh
  tied,       // not owned: the embedding of the same stage has it
  with_head,  // not owned: the head of the same stage has it
  expert      // weights on the expert mesh
};
inline constexpr int kItems = 11;
using Items = std::array<double, kItems>;
Items items_of(const BlockCost& block);

struct FormTerm {
  std::uint16_t block = 0;
  std::uint8_t item = 0;
  double fixed = 0;       // times the item's size
  double per_flight = 0;  // the same, times the micro-batches in flight
  bool operator==(const FormTerm&) const = default;
};

// A sum of items, and of what follows the parameters of a whole stage.
struct Linear {
  std::vector<FormTerm> terms;
  double dense_shard = 0, expert_shard = 0;     // bytes per element of ceil(parameters / shard group)
  double dense_whole = 0, expert_whole = 0;     // bytes per parameter
  double largest_shard = 0, largest_whole = 0;  // bytes per element of the largest tensor, and of its shard
  double constant = 0;
  bool operator==(const Linear&) const = default;
};

// One moment of one kind of stage. Where several blocks of a stage may be the fullest, each has its form and
// the largest counts. `activations` is what operators keep and need, `states` what follows weights; `kept` and
// `working` are the parts of both that are activations, and logits and transients.
struct StageForm {
  Moment moment = Moment::init;
  Linear activations, states;
  Linear kept, working;
  std::size_t activation = 0;  // which of its stage's distinct activations (StageClass)
  std::size_t states_of = 0;   // the first form of its stage with the same states
};

// What the forms of a stage depend on beside its blocks.
struct FormKey {
  bool embedding = false, head = false, pipeline = false;
  int zero = 0;
  bool dense_sharded = false, expert_sharded = false;
  int largest = -1;  // the layer kind with most weights on a GPU, where a stack gathers the largest layer
  std::vector<BlockRun> layers;
  bool operator==(const FormKey&) const = default;
};

struct StageForms {
  std::vector<StageForm> forms;
  Linear host;                       // what a rank keeps on the host
  std::vector<FormTerm> parameters;  // of the stage on one GPU; item `expert` or a dense one
};

// The stage with equal layers together, for what does not depend on their order: states and buffers.
Stage together(const Stage& stage);

// `base` carries the recipe's dtypes, precision and schedule.
StageForms stage_forms(const Model& model, const Stack& stack, const Recipe& base, const FormKey& key);

}  // namespace preflop
