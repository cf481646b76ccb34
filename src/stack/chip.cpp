#include "src/stack/chip.hpp"

#include "src/base/text.hpp"

namespace preflop {

namespace {

// Compute capabilities times ten: bf16 from Ampere, fp8 from Ada and Hopper, block-scaled fp8 and fp4 from Blackwell.
constexpr int kAmpere = 80, kAda = 89, kBlackwell = 100;

}  // namespace

std::optional<int> compute_capability(const Gpu& gpu) {
  if (!gpu.arch.starts_with("sm")) return std::nullopt;
  int out = 0;
  for (const char c : std::string_view(gpu.arch).substr(2)) {
    if (c < '0' || c > '9') return std::nullopt;
    out = 10 * out + (c - '0');
  }
  return out;
}

bool runs_precision(const std::string& precision, const Gpu& gpu) {
  if (gpu.arch.empty()) return true;  // a chip of which we know nothing
  const std::optional<int> sm = compute_capability(gpu);
  if (precision == "bf16") return !sm || *sm >= kAmpere;
  const bool fp8 = precision.starts_with("fp8"), blocks = precision == "mxfp8" || precision == "nvfp4";
  if (!fp8 && !blocks) return true;
  if (sm) return *sm >= (fp8 ? kAda : kBlackwell);
  const bool has_fp8 = gpu.datum("fp8_flops").value.has_value(), has_fp4 = gpu.datum("fp4_flops").value.has_value();
  return has_fp8 && (fp8 || (has_fp4 && precision == "mxfp8"));
}

std::vector<std::string> precisions_here(const Stack& stack, const Gpu& gpu) {
  std::vector<std::string> out;
  for (const std::string& precision : stack.precision_names()) {
    if (runs_precision(precision, gpu)) out.push_back(precision);
  }
  return out;
}

Error offered_here(Error refusal, const Stack& stack, const Gpu& gpu) {
  if (refusal.where == "--precision") refusal.valid = text::list(precisions_here(stack, gpu));
  return refusal;
}

}  // namespace preflop
