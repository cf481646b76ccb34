// How the fields of data/time.csv name what a recipe runs.
#pragma once

#include <cstdint>
#include <string_view>

#include "preflop/recipe.hpp"

namespace preflop {

// Operands of products, by their width.
enum class Operands : std::uint8_t { full, half, eight, four };
inline Operands operands(std::string_view precision) {
  if (precision == "fp32") return Operands::full;
  if (precision.starts_with("fp8") || precision == "mxfp8") return Operands::eight;
  return precision == "nvfp4" ? Operands::four : Operands::half;
}

// What the fields of an attention kernel start with.
inline const char* kernel_prefix(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::fa1:
      return "fa1";
    case AttentionKernel::fa2:
    case AttentionKernel::sdpa:
      return "fa2";
    case AttentionKernel::fa3:
      return "fa3";
    case AttentionKernel::splash:
      return "splash";
    default:
      return "cudnn";
  }
}

}  // namespace preflop
