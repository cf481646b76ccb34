// A model as blocks: one embedding, a run-length list of layer kinds, one head (final norm, output
// projection, loss). Stages are slices of the slot list: embedding | layers | head.
#pragma once

#include <cstdint>
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
  int embedding = 0;             // indices into blocks
  int head = 0;
};

// Turns an architecture into blocks of operators in their unfused base form. The architecture's
// sizes have been checked by its reader.
Model build_model(const Architecture& architecture);

// Parameters, read off the operators' weights. Invalid counts mean more than 2^53.
Count parameters(const Block& block);
ModelSummary summarise(const Model& model);

}  // namespace preflop
