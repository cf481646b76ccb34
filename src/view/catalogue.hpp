// The catalogues for people and as JSON: models, GPUs, platforms, stacks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "preflop/architecture.hpp"
#include "preflop/machine.hpp"
#include "src/adapt/model_catalogue.hpp"
#include "src/stack/optimizer.hpp"
#include "src/stack/stack.hpp"

namespace preflop {

std::string models_text(const ModelCatalogue& catalogue, bool everything);  // everything: those not built too
nlohmann::json models_json(const ModelCatalogue& catalogue);
// {id, name, family, params_total, params_active, params_embedding, counts, config {..}, aliases, sources, notes}
std::string model_text(const CatalogueModel& row, const Architecture& architecture);
nlohmann::json model_json(const CatalogueModel& row, const Architecture& architecture);

std::string gpus_text(const MachineCatalogue& catalogue);
nlohmann::json gpus_json(const MachineCatalogue& catalogue);
std::string gpu_text(const Gpu& gpu);
nlohmann::json gpu_json(const Gpu& gpu);  // data {field: {value, rung, source}}; unknown values are null

std::string platforms_text(const MachineCatalogue& catalogue);
nlohmann::json platforms_json(const MachineCatalogue& catalogue);
std::string platform_text(const Platform& platform);
nlohmann::json platform_json(const Platform& platform);

std::string stacks_text(const StackCatalogue& catalogue);
nlohmann::json stacks_json(const StackCatalogue& catalogue);
std::string stack_card(const Stack& stack);
nlohmann::json stack_json(const Stack& stack);

std::string optimizers_text();
nlohmann::json optimizers_json();
std::string optimizer_card(const Optimizer& optimizer);
// {name, also, summary, states [{name, bytes (null: moment_dtype), of, source}], source}
nlohmann::json optimizer_json(const Optimizer& optimizer);

}  // namespace preflop
