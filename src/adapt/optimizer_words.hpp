// How Megatron-LM's --optimizer calls the optimizers of data/optimizers.csv (data/launch_options.csv has its source):
// what an export writes and an import reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace preflop {

// "adam" of "adamw"; empty: it has none. "sgd" is that with momentum 0 (--sgd-momentum), too.
std::string megatron_optimizer(std::string_view optimizer);
// "adamw" of "adam"; empty: not in data/optimizers.csv.
std::string optimizer_of_megatron(std::string_view name);
// The optimizers that it has a name for.
std::vector<std::string> megatron_optimizers();

}  // namespace preflop
