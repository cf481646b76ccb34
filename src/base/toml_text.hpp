// What a TOML text must hold before toml++ may see it.
#pragma once

#include <string_view>

#include "preflop/result.hpp"

namespace preflop {

// TOML 1.0 lets characters beyond ASCII stand in strings and comments only. toml++ 3.3 walks into
// undefined behaviour at most of them elsewhere, and after a backslash in a """string""" (its
// is_non_ascii_horizontal_whitespace ends in __builtin_unreachable). Error: the first such character,
// with its place.
Status only_ascii_outside_strings(std::string_view text, std::string_view file);

}  // namespace preflop
