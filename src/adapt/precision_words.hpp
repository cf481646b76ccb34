// How launchers call a scaled precision: what an export writes and an import reads. What a launcher has no word for
// stays in bf16 in its own options, and in the comment line of an export.
//
// Megatron-LM megatron/core/transformer/transformer_config.py, Megatron-Bridge training/mixed_precision.py, torchtitan
// components/quantization, accelerate commands/launch.py: the commits of data/launch_options.csv.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace preflop {

struct PrecisionWords {
  const char* precision;        // "fp8-tensorwise"
  const char* megatron_width;   // "fp8": --fp8-format, --fp8-recipe
  const char* megatron_format;  // "hybrid"
  const char* megatron_recipe;  // "tensorwise"
  const char* bridge;           // a name that mixed_precision takes
  const char* accelerate;       // fp8_config.fp8_backend under mixed_precision: fp8
  const char* titan;            // its converter of linear layers is this + "LinearConverter"
  const char* titan_module;     // of torchtitan.components.quantization
  const char* titan_recipe;     // its recipe_name; "": it has no choice
  bool titan_experts;           // + "GroupedExpertsConverter" is one, too
};
const std::vector<PrecisionWords>& precision_words();
// Null: no scaled precision.
const PrecisionWords* words_of_precision(std::string_view precision);
// The one whose `word` is `text`; null: none.
const PrecisionWords* precision_called(const char* PrecisionWords::* word, std::string_view text);
// "tensorwise, delayed, ..": all that are not empty.
std::vector<std::string> all_words(const char* PrecisionWords::* word);

}  // namespace preflop
