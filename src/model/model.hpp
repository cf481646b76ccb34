// A model as blocks: one embedding, a run-length list of layer kinds, multi-token prediction, one head
// (final norm, output projection, loss). Stages are slices of the slot list: embedding | layers | mtp, head.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "preflop/architecture.hpp"
#include "preflop/estimate.hpp"
#include "src/model/operators.hpp"

namespace preflop {

struct BlockRun {
  int block = 0;           // index into Model::blocks
  std::int64_t count = 1;  // equal layers in a row
};

struct Model {
  std::string name;
  bool tied = false;
  std::vector<Block> blocks;     // distinct kinds
  std::vector<BlockRun> layers;  // the sequence of layers
  std::vector<BlockRun> mtp;     // join, layer, head of each multi-token prediction; runs before the head
  int embedding = 0;             // indices into blocks; the head is the last one
  int head = 0;
  Counted counted = Counted::main;
  std::vector<std::string> notes;  // what the reader of the user's own config.json left out
  std::optional<Count> vision;     // parameters of an image encoder and its projector beside it: never in the blocks

  std::int64_t mtp_layers() const { return static_cast<std::int64_t>(mtp.size()) / 3; }
  // Does the block belong to the end of the model: heads and multi-token prediction?
  bool at_end(int block_or_twin) const;
  // Is it an ordinary layer, also one of multi-token prediction: what recomputation policies speak of?
  bool is_layer(int block_or_twin) const;
  // A layer that a recomputation policy leaves alone is the twin of its kind: the same block, so many further on.
  int twin(int block) const { return block + static_cast<int>(blocks.size()); }
  int kind(int block_or_twin) const { return block_or_twin % static_cast<int>(blocks.size()); }
};

// Turns an architecture into blocks of operators in their unfused base form. The architecture's
// sizes have been checked by its reader.
Model build_model(const Architecture& architecture);

// Parameters, read off the operators' weights. Invalid counts mean more than 2^53.
Count parameters(const Block& block);
// params_total is what `counted` says; params_active counts every parameter of the main model that works on
// a token, embedding and head too.
ModelSummary summarise(const Model& model);
// How sources count active parameters, each by a name: "every_weight" (params_active), "without_input_embedding"
// (GPT-OSS; a tied table works as the head and stays), "without_embedding_and_head".
std::vector<std::pair<std::string, Count>> active_conventions(const Model& model);
std::int64_t layer_count(const Model& model);  // without multi-token prediction
// Experts of a layer; 0: the model has none. Several counts: their greatest common divisor.
std::int64_t expert_count(const Model& model);
inline bool has_experts(const Model& model) { return expert_count(model) > 0; }
// Parameters of the main model's experts.
Count expert_parameters(const Model& model);
// Parameters under every reading: main, main+mtp, main+mtp+copies.
Count counted_parameters(const Model& model, Counted counted);

}  // namespace preflop
