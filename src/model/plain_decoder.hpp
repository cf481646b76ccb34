// The decoder of LLaMA and Qwen2: RMSNorm, attention with rotary positions, a gated SiLU MLP. Frameworks with one
// generic model run this one.
#pragma once

#include <optional>

#include "preflop/architecture.hpp"

namespace preflop {

struct PlainDecoder {
  std::int64_t no_rope_every = 0;  // every so manyth layer has no rotary positions (SmolLM3); 0: all have
};
// Nothing: it is another.
std::optional<PlainDecoder> plain_decoder(const Architecture& a);

}  // namespace preflop
