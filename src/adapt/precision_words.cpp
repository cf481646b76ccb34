#include "src/adapt/precision_words.hpp"

#include <algorithm>

namespace preflop {

const std::vector<PrecisionWords>& precision_words() {
  static const std::vector<PrecisionWords> kTable = {
      {"fp8-tensorwise", "fp8", "hybrid", "tensorwise", "bf16_with_fp8_current_scaling_mixed", "ao", "", "", "", false},
      {"fp8-delayed", "fp8", "hybrid", "delayed", "bf16_with_fp8_delayed_scaling_mixed", "te", "", "", "", false},
      {"fp8-rowwise", "", "", "", "", "", "Float8", "float8", "rowwise", true},
      {"fp8-blockwise", "fp8", "e4m3", "blockwise", "bf16_with_fp8_subchannel_scaling_mixed", "", "", "", "", false},
      {"mxfp8", "fp8", "e4m3", "mxfp8", "bf16_with_mxfp8_mixed", "", "MXFP8", "mx", "", true},
      {"nvfp4", "fp4", "e2m1", "nvfp4", "bf16_with_nvfp4_mixed", "", "NVFP4", "nvfp4", "", false}};
  return kTable;
}

const PrecisionWords* words_of_precision(std::string_view precision) {
  for (const PrecisionWords& w : precision_words()) {
    if (precision == w.precision) return &w;
  }
  return nullptr;
}

const PrecisionWords* precision_called(const char* PrecisionWords::* word, std::string_view text) {
  for (const PrecisionWords& w : precision_words()) {
    if (!text.empty() && text == w.*word) return &w;
  }
  return nullptr;
}

std::vector<std::string> all_words(const char* PrecisionWords::* word) {
  std::vector<std::string> out;
  for (const PrecisionWords& w : precision_words()) {
    if (*(w.*word) != '\0') out.emplace_back(w.*word);
  }
  return out;
}

}  // namespace preflop
