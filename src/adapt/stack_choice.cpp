#include "src/adapt/stack_choice.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "src/adapt/gpu_defaults.hpp"
#include "src/adapt/recipe_keys.hpp"
#include "src/base/text.hpp"
#include "src/model/plain_decoder.hpp"
#include "src/stack/chip.hpp"
#include "src/stack/optimizer.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

constexpr const char* kNearestStack = "megatron";
constexpr const char* kFsdpStack = "torchtitan";
constexpr const char* kLastStack = "megatron-fsdp";  // every stage of sharding
constexpr const char* kTpuStack = "maxtext";

bool any_given(const Request& request, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view k) { return text_of(request, k) != nullptr; });
}

// Does a stack have what the model is made of, and everything that was asked for by name? A default stack that has not
// gives way.
bool serves(const Stack& stack, const Request& request, const Architecture& model, const Gpu& gpu) {
  const bool experts = std::any_of(model.layers.begin(), model.layers.end(),
                                   [](const LayerRun& run) { return run.kind.experts.has_value(); });
  if (experts && !stack.experts) return false;
  const auto has = [](const auto& all, const auto& one) { return std::find(all.begin(), all.end(), one) != all.end(); };
  const bool scans = std::all_of(model.layers.begin(), model.layers.end(), [&](const LayerRun& run) {
    return !run.kind.state_space || has(stack.scans, name(run.kind.state_space->kind));
  });
  if (!scans) return false;
  const std::string* precision = text_of(request, "precision");
  // What this chip does not run is refused for that, and what it does run is offered.
  const bool given = precision != nullptr && runs_precision(*precision, gpu);
  const std::string used = given ? *precision : default_precision(gpu);
  if (has(unscaled_precision_names(), used) && !has(stack.unscaled, used)) return false;
  const std::string* zero = text_of(request, "zero");
  if (zero != nullptr && zero->size() == 1 && !has(stack.zero_allowed, (*zero)[0] - '0')) return false;
  const std::string* kernel = text_of(request, "attention");
  const auto known_kernel = kernel == nullptr ? std::nullopt : attention_kernel_of(*kernel);
  if (known_kernel && !has(stack.kernels, *known_kernel)) return false;
  const std::string* optimizer = text_of(request, "optimizer");
  const auto known_optimizer = find_optimizer(optimizer == nullptr ? "adamw" : *optimizer);
  if (known_optimizer && !stack.optimizers.empty() && !has(stack.optimizers, (*known_optimizer)->name)) return false;
  const std::string* loss = text_of(request, "loss");
  const auto known_loss = loss == nullptr ? std::nullopt : loss_kind_of(*loss);
  return !known_loss || stack.loss(*known_loss) != nullptr;
}

}  // namespace

Result<const Stack*> pick_stack(const Request& request, const StackCatalogue& stacks, const Architecture& model,
                                const Cluster& cluster, Recipe& recipe) {
  const std::string& arch = cluster.gpu.arch;
  if (const std::string* text = text_of(request, "stack")) {
    const auto given = stacks.find(*text);
    if (!given || cluster.memory_only || (*given)->runs_on(arch)) return given;
    std::vector<std::string> valid;
    for (const Stack& s : stacks.all()) {
      if (s.runs_on(arch) && (valid.empty() || valid.back() != s.name)) valid.push_back(s.name);
    }
    return Error{"--stack", "stack " + (*given)->name + " does not run on " + cluster.gpu.id, text::list(valid)};
  }
  if (!request.default_stack.empty()) {
    const auto shared = stacks.find(request.default_stack);
    if (shared && !cluster.memory_only && !(*shared)->runs_on(arch))
      return Error{"--stack", "stack " + (*shared)->name + " does not run on " + cluster.gpu.id, ""};
    if (shared) recipe.assumed.push_back("stack=" + (*shared)->full_name() + " (one for all that is compared)");
    return shared;
  }
  if (arch == "tpu") {
    recipe.assumed.push_back(std::string("stack=") + kTpuStack + " (what runs on TPUs)");
    return stacks.find(kTpuStack);
  }
  const bool one_gpu = cluster.gpus == 1;
  const bool small = cluster.gpus <= 64 && !any_given(request, {"tp", "pp", "cp", "ep"});
  const std::string wanted = one_gpu ? "transformers" : small ? kFsdpStack : kNearestStack;
  const auto found = stacks.find(wanted);
  auto stack = stacks.find(kNearestStack);
  for (const std::string& name :
       {wanted, std::string(kNearestStack), std::string(kFsdpStack), std::string(kLastStack)}) {
    const auto one = stacks.find(name);
    if (!one || !serves(**one, request, model, cluster.gpu)) continue;
    stack = one;
    break;
  }
  if (stack) {
    const bool taken = found.ok() && *stack == *found;
    const std::string why = found.ok() ? "does not run this yet" : "is not built yet";
    recipe.assumed.push_back("stack=" + (*stack)->full_name() +
                             (taken ? "" : " (" + wanted + ", the default here, " + why + ")"));
  }
  return stack;
}

Status runs_layers(const Stack& stack, const Architecture& model) {
  if (!stack.plain_decoders || plain_decoder(model)) return Nothing{};
  const bool experts = std::any_of(model.layers.begin(), model.layers.end(),
                                   [](const LayerRun& run) { return run.kind.experts.has_value(); });
  if (experts && !stack.experts) return Nothing{};  // said where a layout is checked
  return Error{"--stack", stack.full_name() + " does not run the layers of " + model.name,
               "a model of LLaMA's or Qwen2's layers, or another stack"};
}

}  // namespace preflop
