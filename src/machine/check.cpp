#include <fmt/format.h>

#include <cmath>
#include <map>

#include "preflop/machine.hpp"
#include "src/base/text.hpp"
#include "src/machine/fields.hpp"

namespace preflop {
namespace {

using Lines = std::vector<std::string>;

template <class Thing>
void check_data(const Thing& thing, std::span<const MachineField> fields, Lines& out) {
  for (const auto& [name, datum] : thing.data) {
    const MachineField* field = find_field(fields, name);
    if (field == nullptr) {
      out.push_back(fmt::format("{}: {} is no field", thing.id, name));
      continue;
    }
    if (datum.source.empty()) out.push_back(fmt::format("{}: {} has no source", thing.id, name));
    if (datum.value.has_value() != (datum.rung != Rung::unknown)) {
      out.push_back(fmt::format("{}: {} has a value or a rung, not both", thing.id, name));
    }
    if (datum.value && !(*datum.value >= field->low && *datum.value <= field->high)) {
      out.push_back(fmt::format("{}: {} = {} is out of bounds", thing.id, name, display(*datum.value, field->kind)));
    }
    if (datum.value && field->kind == FieldKind::number && *datum.value != std::floor(*datum.value)) {
      out.push_back(fmt::format("{}: {} = {} is not whole", thing.id, name, *datum.value));
    }
  }
}

// `low` may not pass `high` by more than the factor `slack`; silent where one is unknown.
template <class Thing>
void check_order(const Thing& thing, const char* low, const char* high, double slack, Lines& out) {
  const Datum& a = thing.datum(low);
  const Datum& b = thing.datum(high);
  if (a.value && b.value && *a.value > slack * *b.value)
    out.push_back(fmt::format("{}: {} is above {}", thing.id, low, high));
}

void check_gpu(const Gpu& gpu, const MachineCatalogue& catalogue, Lines& out) {
  if (gpu.vendor.empty() || gpu.arch.empty()) out.push_back(gpu.id + ": no vendor or architecture");
  if (!catalogue.platform(gpu.default_platform)) out.push_back(gpu.id + ": its default platform is unknown");
  check_data(gpu, gpu_fields(), out);
  check_order(gpu, "capacity_bytes", "smi_bytes", 1, out);
  check_order(gpu, "smi_bytes", "nominal_bytes", 1.0738, out);  // a sticker's GB may be GiB
  check_order(gpu, "capacity_bytes", "nominal_bytes", 1.0738, out);
  check_order(gpu, "matmul_bf16_flops", "bf16_flops", 1.2, out);  // GeForce cards run above their boost clock
  check_order(gpu, "matmul_fp8_flops", "fp8_flops", 1.2, out);
  check_order(gpu, "matmul_fp4_flops", "fp4_flops", 1.2, out);
  check_order(gpu, "bf16_flops", "bf16_sparse_headline", 0.51, out);  // sparse is at least twice dense
}

void check_platform(const Platform& platform, const MachineCatalogue& catalogue, Lines& out) {
  if (!catalogue.gpu(platform.gpu)) out.push_back(platform.id + ": its GPU is unknown");
  check_data(platform, platform_fields(), out);
  const Datum& nics = platform.datum("nics_per_node");
  const Datum& rate = platform.datum("nic_bandwidth");
  const Datum& gpus = platform.datum("gpus_per_node");
  const Datum& each = platform.datum("scaleout_bandwidth");
  if (nics.value && rate.value && gpus.value && each.value &&
      std::fabs(*nics.value * *rate.value / *gpus.value / *each.value - 1) > 0.01) {
    out.push_back(platform.id + ": scaleout_bandwidth is not the NICs' sum over the GPUs");
  }
}

template <class Thing>
void check_names(const std::vector<Thing>& things, std::map<std::string, std::string>& owner, Lines& out) {
  for (const Thing& thing : things) {
    std::map<std::string, bool> own;  // a thing may spell one name twice
    own[thing.id] = own[text::normalise_name(thing.name)] = true;
    for (const std::string& alias : thing.aliases) own[text::normalise_name(alias)] = true;
    for (const auto& [name, unused] : own) {
      const auto [at, fresh] = owner.emplace(name, thing.id);
      if (!fresh) out.push_back(fmt::format("'{}' names {} and {}", name, at->second, thing.id));
    }
  }
}

}  // namespace

std::vector<std::string> check_catalogue(const MachineCatalogue& catalogue) {
  Lines out;
  for (const Gpu& gpu : catalogue.gpus()) check_gpu(gpu, catalogue, out);
  for (const Platform& platform : catalogue.platforms()) check_platform(platform, catalogue, out);
  std::map<std::string, std::string> owner;
  check_names(catalogue.gpus(), owner, out);
  check_names(catalogue.platforms(), owner, out);
  return out;
}

}  // namespace preflop
