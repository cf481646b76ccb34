// The parameters of the image encoder that stands beside a language model, counted apart.
#pragma once

#include <nlohmann/json.hpp>

#include "preflop/architecture.hpp"

namespace preflop {

// Reads `vision_config` of a nested config.json into architecture.vision and says so in a note; where it is
// not one of the known towers, or a size is missing, the note says why it is not counted: nothing else
// depends on it. architecture.hidden must be known. Towers and projectors are those of Hugging Face's classes
// Siglip (Gemma 3), Pixtral (Mistral 3), Llama4Vision and Qwen3_5Vision; the sums are checked against published
// totals of whole checkpoints (tests/unit/vision_tower_test.cpp).
void read_vision_tower(const nlohmann::json& config, Architecture& architecture);

}  // namespace preflop
