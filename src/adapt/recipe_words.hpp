// A complete recipe as the texts of its keys: what flags would have to say for the same recipe again.
#pragma once

#include <map>
#include <string>

#include "preflop/recipe.hpp"

namespace preflop {

std::map<std::string, std::string> recipe_words(const Recipe& recipe);

}  // namespace preflop
