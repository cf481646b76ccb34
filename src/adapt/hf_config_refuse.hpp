// What a config.json describes that is not built yet, by its true reason.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace preflop {

// The reasons, read off the keys first and the class name where the keys do not tell:
// "mixture of experts", "latent attention", ... Empty: nothing speaks against it.
// `reads_experts`: the family reads experts, latent attention and an indexer, so they are no reason.
std::vector<std::string> unbuilt_parts(const nlohmann::json& config, std::string_view model_class, bool reads_experts);

}  // namespace preflop
