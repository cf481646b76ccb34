#include "src/machine/fields.hpp"

#include <fmt/format.h>

#include <cmath>

#include "src/base/decimal.hpp"

namespace preflop {
namespace {

constexpr double kKi = 1024;
constexpr double kGi = kKi * kKi * kKi;

constexpr MachineField kGpuFields[] = {
    {"fp32_flops", FieldKind::flops, 1e12, 1e15},
    {"tf32_flops", FieldKind::flops, 1e12, 1e16},
    {"fp16_flops", FieldKind::flops, 1e12, 1e17},
    {"bf16_flops", FieldKind::flops, 1e12, 1e17},
    {"fp8_flops", FieldKind::flops, 1e12, 1e17},
    {"fp4_flops", FieldKind::flops, 1e12, 1e18},
    {"int8_ops", FieldKind::flops, 1e12, 1e17},
    {"matmul_bf16_flops", FieldKind::flops, 1e12, 1e17},
    {"matmul_fp8_flops", FieldKind::flops, 1e12, 1e17},
    {"matmul_fp4_flops", FieldKind::flops, 1e12, 1e18},
    {"sustained_bf16_flops", FieldKind::flops, 1e12, 1e17},
    {"sustained_fp8_flops", FieldKind::flops, 1e12, 1e17},
    {"bf16_sparse_headline", FieldKind::flops, 1e12, 1e18},
    {"fp8_sparse_headline", FieldKind::flops, 1e12, 1e18},
    {"fp4_sparse_headline", FieldKind::flops, 1e12, 1e18},
    {"nominal_bytes", FieldKind::bytes, 1e9, 1e13},
    {"smi_bytes", FieldKind::bytes, 1e9, 1e13},
    {"capacity_bytes", FieldKind::bytes, 1e9, 1e13},
    {"memory_bandwidth", FieldKind::bandwidth, 1e10, 1e14},
    {"l2_bytes", FieldKind::bytes, 1e6, 1e10},
    {"scaleup_bandwidth", FieldKind::bandwidth, 1e9, 1e13},
    {"scaleup_domain", FieldKind::number, 1, 1e5},
    {"scaleout_bandwidth", FieldKind::bandwidth, 1e8, 1e12},
    {"pcie_generation", FieldKind::number, 1, 10},
    {"tdp_watts", FieldKind::watts, 20, 1e4},
    {"sm_count", FieldKind::number, 1, 2000},
    {"boost_hz", FieldKind::hertz, 3e8, 1e10},
};

constexpr MachineField kPlatformFields[] = {
    {"gpus_per_node", FieldKind::number, 1, 1024},
    {"scaleup_domain", FieldKind::number, 1, 1e5},
    {"scaleup_bandwidth", FieldKind::bandwidth, 1e9, 1e13},
    {"torus_axes", FieldKind::number, 1, 3},
    {"nics_per_node", FieldKind::number, 1, 1024},
    {"nic_bandwidth", FieldKind::bandwidth, 1e8, 1e12},
    {"scaleout_bandwidth", FieldKind::bandwidth, 1e8, 1e12},
    {"host_bytes", FieldKind::bytes, 1e9, 1e15},
    {"host_link_bandwidth", FieldKind::bandwidth, 1e9, 1e13},
    {"node_watts", FieldKind::watts, 50, 1e6},
};

// A unit is 10^exponent times a factor that is exact in binary.
struct Unit {
  std::string_view name;
  FieldKind kind;
  const char* exponent;
  double factor;
};
constexpr Unit kUnits[] = {
    {"GFLOP/s", FieldKind::flops, "e9", 1},   {"TFLOP/s", FieldKind::flops, "e12", 1},
    {"PFLOP/s", FieldKind::flops, "e15", 1},  {"TOP/s", FieldKind::flops, "e12", 1},
    {"B", FieldKind::bytes, "", 1},           {"MB", FieldKind::bytes, "e6", 1},
    {"GB", FieldKind::bytes, "e9", 1},        {"TB", FieldKind::bytes, "e12", 1},
    {"MiB", FieldKind::bytes, "", kKi* kKi},  {"GiB", FieldKind::bytes, "", kGi},
    {"TiB", FieldKind::bytes, "", kKi* kGi},  {"GB/s", FieldKind::bandwidth, "e9", 1},
    {"TB/s", FieldKind::bandwidth, "e12", 1}, {"Gbit/s", FieldKind::bandwidth, "e9", 0.125},
    {"W", FieldKind::watts, "", 1},           {"kW", FieldKind::watts, "e3", 1},
    {"MHz", FieldKind::hertz, "e6", 1},       {"GHz", FieldKind::hertz, "e9", 1},
    {"1", FieldKind::number, "", 1},
};

std::string units_of(FieldKind kind) {
  std::string out;
  for (const Unit& unit : kUnits) {
    if (unit.kind == kind) out += (out.empty() ? "" : ", ") + std::string(unit.name);
  }
  return "units: " + out;
}

}  // namespace

std::span<const MachineField> gpu_fields() { return kGpuFields; }
std::span<const MachineField> platform_fields() { return kPlatformFields; }

const MachineField* find_field(std::span<const MachineField> fields, std::string_view name) {
  for (const MachineField& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

Result<double> to_si(std::string_view number, std::string_view unit, FieldKind kind) {
  for (const Unit& u : kUnits) {
    if (u.name != unit || u.kind != kind) continue;
    // The exponent is joined to the digits, so that 1307.4 TFLOP/s is the double nearest to 1307.4e12.
    std::string digits(number);
    const bool has_exponent = digits.find_first_of("eE") != std::string::npos;
    if (!has_exponent) digits += u.exponent;
    Result<double> parsed = parse_decimal(digits);
    if (!parsed) return Error{"", fmt::format("'{}' is not a number", number), "a decimal number such as 989 or 79.15"};
    double value = *parsed * u.factor;
    if (has_exponent && *u.exponent != '\0') value *= *parse_decimal("1" + std::string(u.exponent));
    if (!std::isfinite(value)) return Error{"", fmt::format("'{}' is too large", number), ""};
    return kind == FieldKind::bytes ? std::floor(value + 0.5) : value;
  }
  return Error{"", fmt::format("'{}' is not a unit of this value", unit), units_of(kind)};
}

std::string display(double si, FieldKind kind) {
  switch (kind) {
    case FieldKind::flops:
      return fmt::format("{:.6g} TFLOP/s", si / 1e12);
    case FieldKind::bytes:
      return fmt::format("{:.2f} GiB", si / kGi);
    case FieldKind::bandwidth:
      return fmt::format("{:.6g} GB/s", si / 1e9);
    case FieldKind::watts:
      return fmt::format("{:.6g} W", si);
    case FieldKind::hertz:
      return fmt::format("{:.6g} MHz", si / 1e6);
    case FieldKind::number:
      break;
  }
  return fmt::format("{:.6g}", si);
}

}  // namespace preflop
