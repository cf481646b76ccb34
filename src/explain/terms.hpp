// What each number of an estimate is, in one line.
#pragma once

#include <string>
#include <string_view>

namespace preflop {

// `path` without a stage's index: "memory.activations", "step.seconds". Empty for an unknown one.
std::string term_says(std::string_view path);

}  // namespace preflop
