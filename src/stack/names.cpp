// The names of enumerations that recipes and stack data share.
#include <array>
#include <utility>

#include "preflop/recipe.hpp"
#include "src/base/decimal.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

struct DtypeRow {
  Dtype dtype;
  const char* name;
  double width;
};
constexpr DtypeRow kDtypes[] = {{Dtype::fp32, "fp32", 4}, {Dtype::tf32, "tf32", 4}, {Dtype::bf16, "bf16", 2},
                                {Dtype::fp16, "fp16", 2}, {Dtype::fp8, "fp8", 1},   {Dtype::int8, "int8", 1},
                                {Dtype::fp4, "fp4", 0.5}, {Dtype::none, "none", 0}};
constexpr std::pair<AttentionKernel, const char*> kKernels[] = {
    {AttentionKernel::unfused, "unfused"}, {AttentionKernel::sdpa, "sdpa"}, {AttentionKernel::fa1, "fa1"},
    {AttentionKernel::fa2, "fa2"},         {AttentionKernel::fa3, "fa3"},   {AttentionKernel::cudnn, "cudnn"},
    {AttentionKernel::splash, "splash"}};
constexpr std::pair<LossKind, const char*> kLosses[] = {{LossKind::plain, "plain"},
                                                        {LossKind::inplace, "inplace"},
                                                        {LossKind::fused, "fused"},
                                                        {LossKind::chunked, "chunked"},
                                                        {LossKind::fused_linear, "fused-linear"},
                                                        {LossKind::vocab_parallel, "vocab-parallel"}};

constexpr std::pair<RecomputeLayers, const char*> kLayers[] = {{RecomputeLayers::first, "full:N"},
                                                               {RecomputeLayers::every, "selective-layer:N"},
                                                               {RecomputeLayers::units, "full:uniform:N"}};

template <class E, std::size_t N>
std::optional<E> find(const std::pair<E, const char*> (&table)[N], std::string_view text) {
  for (const auto& [value, label] : table) {
    if (text == label) return value;
  }
  return std::nullopt;
}
template <class E, std::size_t N>
const char* label_of(const std::pair<E, const char*> (&table)[N], E value) {
  for (const auto& [v, label] : table) {
    if (v == value) return label;
  }
  return "";
}
template <class E, std::size_t N>
std::vector<std::string> labels(const std::pair<E, const char*> (&table)[N]) {
  std::vector<std::string> out;
  for (const auto& row : table) out.emplace_back(row.second);
  return out;
}

}  // namespace

double width(Dtype dtype) {
  for (const DtypeRow& row : kDtypes) {
    if (row.dtype == dtype) return row.width;
  }
  return 0;
}
const char* name(Dtype dtype) {
  for (const DtypeRow& row : kDtypes) {
    if (row.dtype == dtype) return row.name;
  }
  return "";
}
std::optional<Dtype> dtype_of(std::string_view text) {
  for (const DtypeRow& row : kDtypes) {
    if (text == row.name) return row.dtype;
  }
  return std::nullopt;
}
std::vector<std::string> dtype_names() {
  std::vector<std::string> out;
  for (const DtypeRow& row : kDtypes) out.emplace_back(row.name);
  return out;
}
std::optional<AttentionKernel> attention_kernel_of(std::string_view text) { return find(kKernels, text); }
std::optional<LossKind> loss_kind_of(std::string_view text) { return find(kLosses, text); }
const char* name(AttentionKernel kernel) { return label_of(kKernels, kernel); }
const char* name(LossKind kind) { return label_of(kLosses, kind); }
std::vector<std::string> attention_kernel_names() { return labels(kKernels); }
std::vector<std::string> loss_kind_names() { return labels(kLosses); }
std::vector<std::string> unscaled_precision_names() { return {"bf16", "fp16", "fp32"}; }
std::vector<std::string> scaled_precision_names() {
  return {"fp8-tensorwise", "fp8-delayed", "fp8-rowwise", "fp8-blockwise", "mxfp8", "nvfp4"};
}
std::vector<std::string> optimizer_implementation_names() {
  return {"fused", "foreach", "for-loop"};
}  // src/step/state_lines: add_optimizer_temporary
std::vector<std::string> dispatcher_names() { return {"alltoall", "deepep", "hybridep"}; }  // src/cost/price
std::vector<std::string> cuda_graph_parts() {
  return {"attn", "mamba", "mlp", "moe_router", "moe_preprocess"};
}  // src/cost/graphs
std::vector<std::string> schedule_names() {
  return {"1f1b", "gpipe", "interleaved", "zb-1p", "zb-2p", "zb-h1"};
}  // src/step/stages: in_flight

const char* name(RecomputeLayers layers) { return label_of(kLayers, layers); }
std::optional<RecomputeLayers> recompute_layers_of(std::string_view text) { return find(kLayers, text); }
std::vector<std::string> recompute_layers_names() { return labels(kLayers); }

std::string recompute_text(const Recompute& recompute) {
  const std::string some = std::to_string(recompute.layers);
  if (recompute.which == RecomputeLayers::first) return "full:" + some;
  if (recompute.which == RecomputeLayers::every) return "selective-layer:" + some;
  if (recompute.which == RecomputeLayers::units) return "full:uniform:" + some;
  std::string out;
  switch (recompute.kind) {
    case RecomputeKind::none:
      return "none";
    case RecomputeKind::selective:
      return "selective";
    case RecomputeKind::full:
      return "full";
    case RecomputeKind::modules:
      break;
  }
  for (const std::string& module : recompute.modules) out += (out.empty() ? "" : ",") + module;
  return out;
}

std::string offload_text(const Offload& o) {
  std::string out;
  const auto add = [&](const std::string& word) { out += (out.empty() ? "" : ",") + word; };
  if (o.optimizer > 0) add("optimizer=" + (o.optimizer < 1 ? shortest(o.optimizer) : "cpu"));
  if (o.params) add("params=cpu");
  if (o.activations > 0) add(o.some_layers() ? "activations=" + std::to_string(o.activations) : "activations");
  return out.empty() ? "none" : out;
}

std::string stack_text(const Recipe& r) {
  return r.stack_generation.empty() ? r.stack : r.stack + "@" + r.stack_generation;
}

}  // namespace preflop
