// The text of recipe keys -> values of a Recipe. Grammar only; legality comes later.
#pragma once

#include "preflop/recipe.hpp"
#include "src/adapt/request.hpp"

namespace preflop {

// Refuses unknown keys (did you mean) and keys that are not built yet, by name.
Status check_keys(const Request& request);

// A parallel size or other small whole number >= 1, or nothing when the key was not given.
Result<std::optional<std::int64_t>> size_key(const Request& request, std::string_view key);

// The keys that a recipe takes over as they are; those with defaults that depend on the model or the
// cluster (layout, seq, batch, recompute) are left to pose().
Status read_numerics(const Request& request, const Stack& stack, Recipe& recipe);
Result<std::optional<Recompute>> recompute_key(const Request& request);
Result<std::optional<bool>> switch_key(const Request& request, std::string_view key);
Result<std::vector<std::int64_t>> list_key(const Request& request, std::string_view key);

// What stands between the commas of a list, empty parts too.
std::vector<std::string> parts_of(const std::string& list);

// "--micro-batch" of "micro_batch".
std::string flag_of(std::string_view key);
const std::string* text_of(const Request& request, std::string_view key);

}  // namespace preflop
