// What a chip has of what a stack runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "preflop/machine.hpp"
#include "preflop/result.hpp"
#include "src/stack/stack.hpp"

namespace preflop {

// Compute capability times ten of an NVIDIA chip: sm90 -> 90. Nothing for other vendors.
std::optional<int> compute_capability(const Gpu& gpu);

// Products in a precision: NVIDIA's tensor cores by their compute capability, other chips by the peaks that their
// sheets list: one of fp4 comes with block scaling in hardware. NVFP4 is NVIDIA's own format.
bool runs_precision(const std::string& precision, const Gpu& gpu);

// What the stack runs of what the chip has products in.
std::vector<std::string> precisions_here(const Stack& stack, const Gpu& gpu);

// A stack's refusal, which knows no chip: of a precision it offers what runs here, too.
Error offered_here(Error refusal, const Stack& stack, const Gpu& gpu);

}  // namespace preflop
