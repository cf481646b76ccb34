// Switches of a stack: kernels, overlaps and graphs that it has or lacks, and types it can keep moments in.
// A switch that is on where the stack lacks it is refused; one that cannot matter under its layout is said.
#pragma once

#include <string>
#include <vector>

#include "preflop/recipe.hpp"
#include "preflop/result.hpp"
#include "src/base/toml_read.hpp"
#include "src/model/model.hpp"
#include "src/stack/stack.hpp"

namespace preflop {

// `software`, `refuses`, `not_told_apart`, `chips`, `scans`, `optimizers`, `optimizer_implementations` and `moments` of
// a [legal] table.
Status read_software(const TomlTable& legal, Stack& stack);

// Errors: a switch, an optimizer or a moment type that the stack lacks, a switch of experts for a model without them,
// or a combination that the stack refuses.
Status check_software(const Model& model, const Stack& stack, const Recipe& recipe);

// Does the stack recompute so beside the recipe's switches and precision?
bool may_recompute(const Stack& stack, const Recipe& recipe);

// Does the stack refuse a pipeline of one chunk a stage beside the recipe's switches?
bool needs_virtual_stages(const Stack& stack, const Recipe& recipe);

// Switches that the user set and that change nothing, at these parallel sizes or on this stack: a sentence each.
std::vector<std::string> idle_switches(const Stack& stack, const Recipe& recipe);

}  // namespace preflop
