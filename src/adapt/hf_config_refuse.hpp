// What a config.json describes that is not built yet, by its true reason.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace preflop {

// The reasons, read off the keys first and the class name where the keys do not tell:
// "mixture of experts", "latent attention", ... Empty: nothing speaks against it.
// What a family reads is no reason: experts with latent attention and an indexer, state spaces.
struct FamilyReads {
  bool experts = false, states = false;
};
std::vector<std::string> unbuilt_parts(const nlohmann::json& config, std::string_view model_class, FamilyReads reads);

}  // namespace preflop
