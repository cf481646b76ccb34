#include "src/adapt/gpu_defaults.hpp"

#include <algorithm>
#include <optional>

#include "src/adapt/recipe_keys.hpp"
#include "src/base/text.hpp"
#include "src/stack/chip.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

bool runs(AttentionKernel kernel, const Gpu& gpu) {
  const std::optional<int> sm = compute_capability(gpu);
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

}  // namespace

const char* default_precision(const Gpu& gpu) { return runs_precision("bf16", gpu) ? "bf16" : "fp16"; }

Result<GpuDefaults> with_gpu_defaults(const Request& request, const Stack& stack, const Gpu& gpu) {
  GpuDefaults out{request, {}};
  if (text_of(request, "precision") == nullptr && !runs_precision("bf16", gpu)) {
    out.request.keys["precision"] = default_precision(gpu);
    out.assumed.push_back("precision=fp16 (" + gpu.id + " has no bf16)");
  }
  if (const std::string* precision = text_of(request, "precision");
      precision != nullptr && !runs_precision(*precision, gpu))
    return Error{"--precision", *precision + " does not run on " + gpu.id + " (" + gpu.arch + ")",
                 text::list(precisions_here(stack, gpu))};
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
    const std::optional<int> sm = compute_capability(gpu);
    if (dispatcher == "alltoall" || (sm && *sm >= 90)) valid.push_back(dispatcher);
  }
  if (valid.empty()) valid.emplace_back("alltoall");
  const std::string* given = text_of(request, "dispatcher");
  if (given == nullptr) return valid.front();
  if (std::find(valid.begin(), valid.end(), *given) != valid.end()) return *given;
  return Error{"--dispatcher", *given + " does not run on " + gpu.id + " under " + stack.name, text::list(valid)};
}

}  // namespace preflop
