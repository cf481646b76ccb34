#include "src/adapt/layer_pattern.hpp"

#include <string>

#include "src/adapt/hf_config_family.hpp"

namespace preflop {

std::optional<LayerKind> kind_of_letter(char letter, const LayerKind& parts) {
  LayerKind kind = parts;
  const bool state = letter == 'M' || letter == 'm', attends = letter == '*' || letter == 'a';
  const bool both = letter == 'm' || letter == 'a';
  kind.mixes = state || attends;
  kind.feeds_forward = both || letter == '-' || letter == 'E';
  if (!kind.mixes && !kind.feeds_forward) return std::nullopt;
  if (!attends) {
    kind.attention = {};
    kind.attention.rope = false;
  }
  if (!state) kind.state_space.reset();
  if (!both && letter != 'E') kind.experts.reset();
  if (kind.experts || !kind.feeds_forward) kind.mlp = {};
  if (state && !kind.state_space) return std::nullopt;
  if (attends && kind.attention.heads.get() == 0) return std::nullopt;
  if (letter == 'E' && !kind.experts) return std::nullopt;
  if (kind.feeds_forward && !kind.experts && kind.mlp.width.get() == 0) return std::nullopt;
  return kind;
}

char append_pattern(Architecture& a, std::string_view pattern, const LayerKind& parts) {
  for (const char letter : pattern) {
    const std::optional<LayerKind> kind = kind_of_letter(letter, parts);
    if (!kind) return letter;
    append_layer(a, *kind);
  }
  return 0;
}

std::string pattern_of(const Architecture& a) {
  LayerKind parts;
  for (const LayerRun& run : a.layers) {
    const LayerKind& k = run.kind;
    parts.norm = k.norm;
    parts.placement = k.placement;
    parts.dropout = k.dropout;
    if (k.state_space) parts.state_space = k.state_space;
    if (k.mixes && !k.state_space) parts.attention = k.attention;
    if (k.feeds_forward && k.experts) parts.experts = k.experts;
    if (k.feeds_forward && !k.experts) parts.mlp = k.mlp;
  }
  std::string out;
  for (const LayerRun& run : a.layers) {
    char known = 0;
    for (const char letter : kLayerLetters) {
      const std::optional<LayerKind> kind = kind_of_letter(letter, parts);
      if (kind && *kind == run.kind) known = letter;
    }
    if (known == 0) return "";
    out.append(static_cast<std::size_t>(run.count), known);
  }
  return out;
}

}  // namespace preflop
