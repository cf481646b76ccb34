#include "src/adapt/gpu_defaults.hpp"

#include <algorithm>
#include <optional>

#include "src/adapt/recipe_keys.hpp"
#include "src/base/text.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

// Compute capabilities times ten: bf16 from Ampere, fp8 from Ada and Hopper, block-scaled fp8 and fp4 from Blackwell.
constexpr int kAmpere = 80, kAda = 89, kBlackwell = 100;

// Compute capability times ten of an NVIDIA chip: sm90 -> 90. Nothing for other vendors.
std::optional<int> capability(const Gpu& gpu) {
  if (!gpu.arch.starts_with("sm")) return std::nullopt;
  int out = 0;
  for (const char c : std::string_view(gpu.arch).substr(2)) {
    if (c < '0' || c > '9') return std::nullopt;
    out = 10 * out + (c - '0');
  }
  return out;
}

bool runs(AttentionKernel kernel, const Gpu& gpu) {
  const std::optional<int> sm = capability(gpu);
  const bool amd = gpu.arch.starts_with("gfx"), tpu = gpu.arch == "tpu";
  if (!sm && !amd && !tpu) return true;  // chips of which we know nothing
  if (tpu) return kernel == AttentionKernel::unfused || kernel == AttentionKernel::splash;
  switch (kernel) {
    case AttentionKernel::unfused:
    case AttentionKernel::sdpa:  // takes whichever kernel there is
      return true;
    case AttentionKernel::fa1:
      return amd || *sm >= 75;
    case AttentionKernel::fa2:
      return amd || *sm >= 80;
    case AttentionKernel::cudnn:
      return !amd && *sm >= 80;
    case AttentionKernel::fa3:
      return !amd && *sm == 90;
    case AttentionKernel::splash:
      return false;
  }
  return true;
}

// Products in a precision: NVIDIA's tensor cores by their compute capability, other chips by the peaks that their
// sheets list: one of fp4 comes with block scaling in hardware. NVFP4 is NVIDIA's own format.
bool runs(const std::string& precision, const Gpu& gpu) {
  if (gpu.arch.empty()) return true;  // a chip of which we know nothing
  const std::optional<int> sm = capability(gpu);
  if (precision == "bf16") return !sm || *sm >= kAmpere;
  const bool fp8 = precision.starts_with("fp8"), blocks = precision == "mxfp8" || precision == "nvfp4";
  if (!fp8 && !blocks) return true;
  if (sm) return *sm >= (fp8 ? kAda : kBlackwell);
  const bool has_fp8 = gpu.datum("fp8_flops").value.has_value(), has_fp4 = gpu.datum("fp4_flops").value.has_value();
  return has_fp8 && (fp8 || (has_fp4 && precision == "mxfp8"));
}

}  // namespace

std::vector<std::string> precisions_here(const Stack& stack, const Gpu& gpu) {
  std::vector<std::string> out;
  for (const std::string& precision : stack.precision_names()) {
    if (runs(precision, gpu)) out.push_back(precision);
  }
  return out;
}

namespace {

// What the chip runs and the stack does not; an unknown name is refused where it is read.
Status precision_of_stack(const Request& request, const Stack& stack, const Gpu& gpu) {
  const std::string* precision = text_of(request, "precision");
  if (precision == nullptr) return Nothing{};
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), *precision) != names.end();
  };
  if (!has(known_precisions()) || has(stack.precision_names())) return Nothing{};
  return Error{"--precision", "stack " + stack.full_name() + " does not run " + *precision,
               text::list(precisions_here(stack, gpu))};
}

}  // namespace

Result<GpuDefaults> with_gpu_defaults(const Request& request, const Stack& stack, const Gpu& gpu) {
  GpuDefaults out{request, {}};
  if (text_of(request, "precision") == nullptr && !runs("bf16", gpu)) {
    out.request.keys["precision"] = "fp16";
    out.assumed.push_back("precision=fp16 (" + gpu.id + " has no bf16)");
  }
  if (const std::string* precision = text_of(request, "precision"); precision != nullptr && !runs(*precision, gpu))
    return Error{"--precision", *precision + " does not run on " + gpu.id + " (" + gpu.arch + ")",
                 text::list(precisions_here(stack, gpu))};
  if (Status s = precision_of_stack(request, stack, gpu); !s) return s.error();
  if (const std::string* text = text_of(request, "attention")) {
    const auto kernel = attention_kernel_of(*text);
    if (!kernel || runs(*kernel, gpu)) return out;  // an unknown name is refused where it is read
    std::vector<std::string> valid;
    for (const AttentionKernel k : stack.kernels) {
      if (runs(k, gpu)) valid.emplace_back(name(k));
    }
    return Error{"--attention", *text + " does not run on " + gpu.id + " (" + gpu.arch + ")", text::list(valid)};
  }
  if (runs(stack.kernels.front(), gpu)) return out;
  const auto first = std::find_if(stack.kernels.begin(), stack.kernels.end(),
                                  [&](AttentionKernel kernel) { return runs(kernel, gpu); });
  if (first == stack.kernels.end()) return out;
  out.request.keys["attention"] = name(*first);
  out.assumed.push_back("attention=" + std::string(name(*first)) + " (" + name(stack.kernels.front()) +
                        " does not run on " + gpu.id + ")");
  return out;
}

Result<std::string> dispatcher_here(const Request& request, const Stack& stack, const Gpu& gpu) {
  std::vector<std::string> valid;
  for (const std::string& dispatcher : stack.dispatchers) {
    const std::optional<int> sm = capability(gpu);
    if (dispatcher == "alltoall" || (sm && *sm >= 90)) valid.push_back(dispatcher);
  }
  if (valid.empty()) valid.emplace_back("alltoall");
  const std::string* given = text_of(request, "dispatcher");
  if (given == nullptr) return valid.front();
  if (std::find(valid.begin(), valid.end(), *given) != valid.end()) return *given;
  return Error{"--dispatcher", *given + " does not run on " + gpu.id + " under " + stack.name, text::list(valid)};
}

}  // namespace preflop
