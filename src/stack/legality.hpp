// What a stack can run: every refusal names the value, the reason and what would be valid.
#pragma once

#include "preflop/recipe.hpp"
#include "preflop/result.hpp"
#include "src/model/model.hpp"
#include "src/stack/stack.hpp"

namespace preflop {

// Does this layout fit the model's axes and the stack? The pipeline split is checked where it is made.
Status check_legal(const Model& model, const Stack& stack, const Recipe& recipe);

}  // namespace preflop
