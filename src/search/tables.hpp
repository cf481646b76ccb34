// Tables of the search, filled on demand by the functions that `estimate` calls: a row per block and what the
// block can see (tp, cp, sp, micro-batch; layers: recomputation; the head: the loss; experts: ep, etp), a
// structure per pipeline, forms per kind of stage. pp, vpp, dp, zero and micro-batches only combine rows.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "src/search/forms.hpp"
#include "src/search/space.hpp"
#include "src/step/time.hpp"
#include "src/step/time/compose.hpp"

namespace preflop {

// Of a block's weights, for what is decided by states.
struct BlockWeights {
  double elements = 0;              // of all meshes
  std::array<double, 2> largest{};  // elements of the largest weight: dense, an expert's
  BlockCost block;                  // extents and weights; the rest has been read off
};

// Small, and in the order of the search: what limits it is how fast these are read.
struct BlockRow {
  std::array<PieceSums<double>, 2> pieces;  // by `accumulates`, where the space has such layouts
  bool legal = true;                        // false: more than 2^53 of something
  bool timed = false;                       // its pieces are there
  Items items{};                            // of a row without memory: weights alone
  std::unique_ptr<BlockWeights> weights;    // where nothing else is: Tables::weights()

  // Bytes that the block keeps for its backward pass.
  double kept() const {
    double out = 0;
    for (const Item item : {Item::kept, Item::kept_logits, Item::early, Item::early_logits})
      out += items[static_cast<std::size_t>(item)];
    return out;
  }
};

// Forms of stages of the same blocks, as many of each, in pipelines or not; filled on demand.
struct FormFamily {
  bool pipeline = false;
  Stage stage;                                     // one of them
  std::vector<std::unique_ptr<StageForms>> forms;  // by how states are sharded
  std::vector<const Linear*> activations;          // the distinct ones of all forms: most moments of most share them
  std::vector<std::vector<std::size_t>> above;     // of each the others that are never less
};

// Stages of one pipeline split; equal neighbours are one class.
struct StageClass {
  Stage stage;     // the first of them
  Stage together;  // the same with equal layers together
  std::int64_t count = 1;
  std::vector<int> blocks;                         // embedding, layers, multi-token prediction, head
  std::size_t family = 0, block_set = 0;           // of classes of the same blocks, as many of each or not
  std::vector<std::pair<int, std::int64_t>> runs;  // the same with how often each occurs
  FormFamily* forms = nullptr;
};
struct Structure {
  std::optional<Error> refused;
  std::vector<std::int64_t> layers_per_stage;  // explicit; empty = the stack's rule
  bool exists = true;                          // false: another choice is the same split
  std::vector<StageClass> classes;
};

class Tables {
 public:
  Tables(const Question& question, const Space& space);

  // With or without what it keeps: most layouts are too slow whatever that is.
  const BlockRow& row(int block, const Position& at, bool memory = true);
  // Its weights alone, for what is decided by states: no pieces, nothing kept, extents of another micro-batch.
  const BlockRow& weights(int block, const Position& at);
  const Structure& structure(const Position& at);
  // `rows` by block index, under which the largest layer of a stage is looked for.
  const StageForms& forms(const StageClass& kind, int zero, bool dense_sharded, bool expert_sharded,
                          const std::vector<const BlockRow*>& rows);
  // Bytes that the forms leave out: caches and workspaces of a stage, and states that only some weights have.
  // `recipe` is the one of `at`; `rows` are weights.
  double residue(const StageClass& kind, const Recipe& recipe, const Position& at,
                 const std::vector<const BlockRow*>& rows);
  // Does the residue depend on how states are sharded?
  bool residue_by_shards() const { return residue_by_shards_; }
  // Prices depend on the layout by these alone: are stages interleaved, do gradients accumulate whole (below
  // zero 3), and the loss. Only where the machine's rates are known.
  const Prices<double>& prices(bool interleaved, bool accumulates, std::size_t loss = 0) const {
    return prices_[loss * 4 + (interleaved ? 2 : 0) + (accumulates ? 1 : 0)];
  }
  static bool accumulates(const Recipe& recipe) { return accumulates_gradients(recipe.layout); }

  std::size_t kinds() const { return rewritten_.size(); }  // block_kinds() of the question
  std::uint64_t rows_filled() const { return filled_; }

 private:
  std::uint32_t recompute_seen(int block, std::uint32_t option) const;
  void fill(BlockRow& row, int block, const Position& at, bool memory) const;
  FormFamily& family_of(const Stage& stage, bool pipeline);
  std::uint32_t size(PlanAxis axis) const { return sizes_[index(axis)]; }
  void add_index(int block);
  double state_residue(const StageClass& kind, const Recipe& recipe, const Position& at,
                       const std::vector<const BlockRow*>& rows);
  double buffer_residue(const StageClass& kind, const Recipe& recipe, const Position& at,
                        const std::vector<const BlockRow*>& rows);
  const Analysed& analysed(const Recipe& recipe, const std::vector<const BlockRow*>& rows);

  const Question& question_;
  const Space& space_;
  std::array<std::uint32_t, kPlanAxes> sizes_{};
  std::array<bool, 2> accumulates_ = {false, false};   // what the space asks for
  bool largest_matters_ = false;                       // the stack gathers the largest layer
  std::vector<std::vector<Segment>> segments_;         // per recomputation option
  std::vector<std::array<Block, 2>> rewritten_;        // per block; [1]: with context parallelism
  std::vector<std::vector<std::uint32_t>> canonical_;  // per block and option: the first one that does the same to it
  std::vector<std::array<std::size_t, kPlanAxes>> strides_;  // per block, of the axes that it sees; else 0
  // Per block, at the sum of strides: twice the number of the row, and one more where it has memory; -1: no row.
  std::vector<std::vector<std::int32_t>> index_;
  static constexpr std::uint32_t kChunk = 256;
  std::vector<std::unique_ptr<std::array<BlockRow, kChunk>>> rows_;
  std::uint32_t filled_ = 0;
  BlockRow& row_of(std::int32_t entry) const {
    const auto n = static_cast<std::uint32_t>(entry) / 2;
    return (*rows_[n / kChunk])[n % kChunk];
  }
  std::vector<std::vector<std::unique_ptr<BlockRow>>> weights_;  // per block: by tp, cp > 1, ep, etp
  std::vector<std::unique_ptr<Structure>> structures_;           // by pp, vpp, split
  std::vector<std::vector<std::pair<int, std::int64_t>>> families_;
  std::vector<std::vector<int>> block_sets_;
  std::vector<std::unique_ptr<FormFamily>> form_families_;
  // Do states depend on more than how many weights there are, and does that depend on how they are sharded?
  bool states_differ_ = false, residue_by_shards_ = false;
  std::map<std::array<std::int64_t, 8>, double> state_residues_;
  std::vector<std::vector<double>> buffer_residues_;  // by block set and what its blocks see; -1: not yet
  Analysed scratch_;                                  // of `scratch_rows_`
  std::vector<const BlockRow*> scratch_rows_;
  std::vector<Prices<double>> prices_;
};

// What a form needs beside rows: micro-batches in flight, the stage's parameters on one GPU, and how many ranks
// share each.
struct StageSizes {
  double flights = 1, dense = 0, expert = 0;
  std::int64_t dense_group = 1, expert_group = 1;
  std::array<double, 2> largest{};  // elements of the largest weight: dense, an expert's
};
double evaluate(const Linear& form, const std::vector<const BlockRow*>& rows, const StageSizes& sizes);
std::array<double, 2> largest_of(const StageClass& kind, const std::vector<const BlockRow*>& rows);
double parameters_of(const StageForms& forms, const std::vector<const BlockRow*>& rows, bool expert);

}  // namespace preflop
