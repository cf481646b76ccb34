#include "src/machine/ladder.hpp"

#include <fmt/format.h>

#include <cmath>

#include "src/base/units.hpp"
#include "src/machine/fields.hpp"

namespace preflop::ladder {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

Datum no(std::string why) { return {std::nullopt, Rung::unknown, std::move(why)}; }

// 90 for sm90; 0 for what is not NVIDIA's.
int compute_capability(const Gpu& gpu) {
  if (!gpu.arch.starts_with("sm") || gpu.arch.size() > 6) return 0;
  int n = 0;
  for (const char c : std::string_view(gpu.arch).substr(2)) {
    if (c < '0' || c > '9') return 0;
    n = 10 * n + (c - '0');
  }
  return n;
}

double whole(double bytes) { return std::floor(bytes + 0.5); }

bool workstation_or_geforce(const Gpu& gpu) { return gpu.name.starts_with("GeForce") || gpu.name.starts_with("RTX"); }

}  // namespace

Datum r1_capacity_from_smi(const Gpu& gpu) {
  const Datum& smi = gpu.datum("smi_bytes");
  if (gpu.vendor != "NVIDIA" || !smi.value) return no("R1 needs nvidia-smi's total");
  const double bytes = *smi.value - 0.55 * kGiB;
  if (bytes <= 0) return no("R1: nvidia-smi's total is below 0.55 GiB");
  std::string text = fmt::format("R1: nvidia-smi's {:.0f} MiB less 0.55 GiB; ", *smi.value / kMiB);
  return {whole(bytes), Rung::class_rule, text + smi.source};
}

Datum r2_smi_from_sticker(const Gpu& gpu) {
  const Datum& sticker = gpu.datum("nominal_bytes");
  if (gpu.vendor != "NVIDIA" || !sticker.value) return no("R2 needs an NVIDIA card's sticker");
  const double gb = *sticker.value / 1e9;
  const int sm = compute_capability(gpu);
  double bytes = gb * kGiB;
  std::string how;
  if (sm == 80) {
    how = "all of it";
  } else if (sm == 90 && gb <= 96) {
    bytes *= 0.9956;
    how = "x 0.9956, as on the 80 GB H100";
  } else if (gpu.memory == "GDDR6" && !workstation_or_geforce(gpu)) {
    bytes *= 0.937;
    how = "x 0.937 for inline ECC";
  } else if ((gpu.memory == "GDDR6" || gpu.memory == "GDDR6X") && workstation_or_geforce(gpu)) {
    bytes -= 12 * kMiB;
    how = "less 12 MiB";
  } else {
    return no(fmt::format("R2 does not cover {}: its sticker does not tell what the driver shows", gpu.id));
  }
  return {whole(bytes), Rung::class_rule, fmt::format("R2: sticker of {:g} GiB, {}; {}", gb, how, sticker.source)};
}

Datum r2_capacity_amd(const Gpu& gpu) {
  const Datum& sticker = gpu.datum("nominal_bytes");
  if (gpu.vendor != "AMD" || !sticker.value) return no("R2 for AMD needs the sticker");
  const double gb = *sticker.value / 1e9;
  return {whole((gb - 0.02) * kGiB), Rung::class_rule,
          fmt::format("R2: sticker of {:g} GiB less 0.02 GiB; {}", gb, sticker.source)};
}

Datum r6_capacity_from_sheet(const Gpu& gpu) {
  const Datum& sticker = gpu.datum("nominal_bytes");
  if (gpu.vendor == "NVIDIA" || gpu.vendor == "AMD") return no("R6 is for vendors without a rule of their own");
  if (!sticker.value) return no("R6 needs a sheet");
  return {*sticker.value, Rung::class_rule,
          fmt::format("R6: the sheet's {:g} GB of 1e9 bytes; what {} leaves to a program is in no source read; {}",
                      *sticker.value / 1e9, gpu.arch == "tpu" ? "XLA" : "its runtime", sticker.source)};
}

Datum r3_same_chip(const Gpu& parent, std::string_view field, std::string_view why) {
  const Datum& of = parent.datum(field);
  if (!of.value) return no(fmt::format("R3: {} has none either", parent.id));
  std::string text = fmt::format("R3: as {}; ", parent.id);
  if (!why.empty()) text += std::string(why) + "; ";
  return {of.value, Rung::same_chip, text + of.source};
}

Datum r4_half_rate(const Gpu& gpu, std::string_view field) {
  if (!gpu.half_rate_accumulate) return no("R4 is for GeForce cards");
  const Datum& headline = gpu.datum(field == "fp8_flops" ? "fp8_sparse_headline" : "bf16_sparse_headline");
  if (!headline.value || headline.rung != Rung::exact) return no("R4 needs the card's sparse headline");
  return {*headline.value / 4, Rung::class_rule,
          fmt::format("R4: a quarter of the {} headline (sparse, fp16 accumulate); {}",
                      display(*headline.value, FieldKind::flops), headline.source)};
}

Datum r5_sparse_headline(const Gpu& gpu, std::string_view field) {
  const Datum& dense = gpu.datum(field == "fp8_sparse_headline" ? "fp8_flops" : "bf16_flops");
  if (compute_capability(gpu) < 80 || !dense.value) return no("R5 is for NVIDIA from sm80 with a dense rate");
  const int factor = gpu.half_rate_accumulate ? 4 : 2;
  return {factor * *dense.value, Rung::class_rule,
          fmt::format("R5: {} x the dense rate (2:4 sparsity{}); {}", factor, factor == 4 ? ", fp16 accumulate" : "",
                      dense.source)};
}

Datum unknown(const Gpu& gpu, std::string_view field) {
  const int sm = compute_capability(gpu);
  if (field == "bf16_flops" && sm > 0 && sm < 80) return no("the chip has no bf16 tensor rate; it has fp16_flops");
  if (field == "fp8_flops" && sm > 0 && sm < 89) return no("the chip has no fp8 tensor rate");
  if (field.starts_with("matmul_")) return no("no measured rate in the sources read, none of the same chip");
  if (field == "capacity_bytes") {
    return no(fmt::format("no driver total in the sources read, and no rule covers {} {}", gpu.vendor, gpu.name));
  }
  if (field == "smi_bytes") return r2_smi_from_sticker(gpu);
  return no("not in the sources read, and no rule covers it");
}

void complete(Gpu& gpu) {
  const auto fill = [&gpu](std::string_view field, auto&& rule) {
    if (gpu.data.find(field) != gpu.data.end()) return;
    Datum datum = rule();
    if (datum.value) gpu.data.emplace(field, std::move(datum));
  };
  fill("smi_bytes", [&] { return r2_smi_from_sticker(gpu); });
  fill("capacity_bytes", [&] { return r1_capacity_from_smi(gpu); });
  fill("capacity_bytes", [&] { return r2_capacity_amd(gpu); });
  fill("capacity_bytes", [&] { return r6_capacity_from_sheet(gpu); });
  for (const char* field : {"bf16_flops", "fp16_flops", "fp8_flops"}) {
    fill(field, [&] { return r4_half_rate(gpu, field); });
  }
  for (const char* field : {"bf16_sparse_headline", "fp8_sparse_headline"}) {
    fill(field, [&] { return r5_sparse_headline(gpu, field); });
  }
  for (const MachineField& field : gpu_fields()) {
    if (gpu.data.find(field.name) == gpu.data.end()) gpu.data.emplace(field.name, unknown(gpu, field.name));
  }
}

}  // namespace preflop::ladder
