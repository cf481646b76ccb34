// data/stacks/*.toml -> Stack. Every fault is an Error with file, line and what would be valid.
#pragma once

#include "src/base/toml_read.hpp"
#include "src/stack/stack.hpp"

namespace preflop {

// Applies what the table states on top of `stack`: a file on top of its parent, a generation on top
// of the one before it.
Status apply_stack_table(const TomlTable& table, Stack& stack);

// The recognised names of enumerations in stack data and flags.
std::optional<Dtype> dtype_of(std::string_view name);
std::optional<AttentionKernel> attention_kernel_of(std::string_view name);
std::optional<LossKind> loss_kind_of(std::string_view name);
const char* name(AttentionKernel kernel);
const char* name(LossKind kind);
// Of stack data: "full:N", "selective-layer:N", "full:uniform:N".
std::optional<RecomputeLayers> recompute_layers_of(std::string_view name);
const char* name(RecomputeLayers layers);
std::vector<std::string> recompute_layers_names();
// The text of one value of a recipe as its flag takes it: "full:4", "megatron@core-0.14".
std::string recompute_text(const Recompute& recompute);
std::string offload_text(const Offload& offload);  // "optimizer=cpu,params=cpu"; "none"
std::string stack_text(const Recipe& recipe);
std::vector<std::string> dtype_names();
std::vector<std::string> attention_kernel_names();
std::vector<std::string> loss_kind_names();
std::vector<std::string> schedule_names();
std::vector<std::string> dispatcher_names();
std::vector<std::string> cuda_graph_parts();
std::vector<std::string> optimizer_implementation_names();
std::vector<std::string> unscaled_precision_names();
std::vector<std::string> scaled_precision_names();

}  // namespace preflop
