// How a block's operators hang together: who makes and reads a tensor, who needs a gradient, which
// results are partial sums over tp and where they are reduced.
#pragma once

#include <vector>

#include "src/cost/mesh.hpp"
#include "src/model/operators.hpp"

namespace preflop {

struct Link {
  std::vector<int> producer;              // per tensor: index of the op that makes it, -1 for the input
  std::vector<std::vector<int>> readers;  // per tensor
  std::vector<bool> gradient;             // per tensor: does backward compute its gradient?
  std::vector<bool> partial;              // per tensor: a partial sum over tp as it is produced
  std::vector<bool> reduced;              // per tensor: partial, and reduced before its first reader
};

Link link(const Block& block, const Mesh& mesh);

// Axes summed over by a product: in the input and the weight, not in the result.
Axes contracted(const Block& block, const Op& op);
// Does a product with this input all-gather it first (sequence parallel input, column-parallel weight)?
bool gathers_input(const Block& block, const Op& op, const Mesh& mesh);
// What a move does to the rows of experts, read off the row axes before and after: t to t is an exchange
// among the ranks of ep, t to r a gather over etp, r to t the sum and scatter of its partial results.
enum class Movement : std::uint8_t { none, exchange, gather, scatter };
// `none` where the group has one rank: the move hands its tensor through.
Movement movement(const Block& block, const Op& op, const Mesh& mesh);
const Axes& result_axes(const Block& block, const Op& op);

}  // namespace preflop
