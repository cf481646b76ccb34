// Layers as a string, one letter each: NVIDIA's hybrids (--hybrid-override-pattern) with one sublayer a letter, and
// small letters for layers of two sublayers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "preflop/architecture.hpp"

namespace preflop {

// M a state space, * attention, - an MLP, E experts; m a state space and a attention, each followed by what
// feeds forward.
inline constexpr std::string_view kLayerLetters = "M*-Ema";

// `parts` has everything that some layer has. Nothing: an unknown letter, or a part that `parts` lacks.
std::optional<LayerKind> kind_of_letter(char letter, const LayerKind& parts);

// The layers of a string, one of `kLayerLetters` each. Returns the first letter that is not to be read; 0: none.
char append_pattern(Architecture& a, std::string_view pattern, const LayerKind& parts);

// The pattern of an architecture in these letters; empty: other kinds of layers than one state space, one attention,
// one MLP and one set of experts.
std::string pattern_of(const Architecture& a);

}  // namespace preflop
