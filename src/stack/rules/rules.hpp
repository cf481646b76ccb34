// Rewrites of a layer: each a named function Block -> Block, applied in the order of the stack's data.
#pragma once

#include <string>
#include <vector>

#include "src/model/operators.hpp"
#include "src/stack/stack.hpp"

namespace preflop {

// Products of the given tags that read one tensor become one GEMM; their results become slices of
// one allocation. Fewer than two such products: no change.
void merge_products(Block& block, const std::vector<std::string>& tags);

// Operators of the given tags become one of `kind`: outside inputs and the last result stay tensors,
// the parts go to `inner`. No such operators: no change.
void fuse(Block& block, const std::vector<std::string>& tags, Tag into, Kind kind);

// Inputs of operators of the given tags that are slices of a larger allocation are copied first, so
// that the allocation itself need not stay alive.
void copy_slices(Block& block, const std::vector<std::string>& tags);

// Results of operators of the given tags are copied for whoever reads them: what the operator keeps of
// its own result is then a storage apart.
void copy_result(Block& block, const std::vector<std::string>& tags);

// Keys and values that operators of the given tags read for more query heads than they have are copied, once
// for each query head, before they are read.
void repeat_heads(Block& block, const std::vector<std::string>& tags);

// All rewrites of a stack that apply to this recipe: its attention kernel, context-parallel size and
// compilation.
Block rewrite(Block block, const Stack& stack, const Recipe& recipe);

}  // namespace preflop
