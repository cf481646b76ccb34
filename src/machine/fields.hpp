// The fields that a GPU or a platform may have, their dimensions and sane bounds, and the units that
// data files write them in.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "preflop/result.hpp"

namespace preflop {

enum class FieldKind : std::uint8_t { flops, bytes, bandwidth, watts, hertz, number };

struct MachineField {
  std::string_view name;
  FieldKind kind;
  double low, high;  // bounds of any real machine, SI; a value outside is a slip of the pen
};

std::span<const MachineField> gpu_fields();
std::span<const MachineField> platform_fields();
const MachineField* find_field(std::span<const MachineField> fields, std::string_view name);  // null: none

// A number and its unit as data files write them ("989", "TFLOP/s") in SI, correctly rounded; bytes are
// whole. Errors (`where` empty): not a number, unknown unit, a unit of another dimension.
Result<double> to_si(std::string_view number, std::string_view unit, FieldKind kind);

// "79.15 GiB", "312 TFLOP/s", "2039 GB/s", "8".
std::string display(double si, FieldKind kind);

}  // namespace preflop
