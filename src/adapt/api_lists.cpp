// Calls of the API that look things up: catalogues, keys, formats; and those that read results and files.
#include "src/adapt/export/export.hpp"
#include "src/adapt/import/import.hpp"
#include "src/adapt/session.hpp"
#include "src/base/json_read.hpp"
#include "src/view/catalogue.hpp"
#include "src/view/compare.hpp"

namespace preflop {

namespace {

Result<Json> models_of(const ModelCatalogue& models, const std::string& name) {
  if (name.empty()) return models_json(models);
  const auto row = models.describe(name, "NAME");
  if (!row) return row.error();
  const auto architecture = models.find(name, "NAME");
  if (!architecture) return architecture.error();
  return model_json(*row, *architecture);
}

Result<Json> machines_of(const MachineCatalogue& machines, const std::string& kind, const std::string& name) {
  if (kind == "gpus") {
    if (name.empty()) return gpus_json(machines);
    const auto gpu = machines.gpu(name);
    if (!gpu) return gpu.error();
    return gpu_json(**gpu);
  }
  if (name.empty()) return platforms_json(machines);
  const auto platform = machines.platform(name);
  if (!platform) return platform.error();
  return platform_json(**platform);
}

// A config.json, told from the JSON of results and of DeepSpeed.
bool is_config(const Json& json) {
  return json.is_object() && !json.contains("schema") &&
         (json.contains("model_type") || json.contains("architectures") || json.contains("hidden_size") ||
          json.contains("n_embd") || json.contains("text_config"));
}

}  // namespace

Result<Json> Session::State::catalogue(const Json& call) {
  const auto loaded = load();
  if (!loaded) return loaded.error();
  const std::string kind = text_member(call, "call"), name = text_member(call, "name");
  if (kind == "models") return models_of((*loaded)->models, name);
  if (kind == "gpus" || kind == "platforms") return machines_of((*loaded)->machines, kind, name);
  if (kind == "stacks") {
    if (name.empty()) return stacks_json((*loaded)->stacks);
    const auto stack = (*loaded)->stacks.find(name);
    if (!stack) return stack.error();
    return stack_json(**stack);
  }
  if (name.empty()) return optimizers_json();
  const auto optimizer = find_optimizer(name);
  if (!optimizer) return optimizer.error();
  return optimizer_json(**optimizer);
}

Result<Json> compare_call(const Json& call) {
  if (!call.contains("a") || !call.contains("b")) return Error{"compare", "two results are compared", "a and b"};
  const auto found = compare_json(call["a"], call["b"]);
  if (!found) return found.error();
  return compare_json_value(*found);
}

Result<Json> keys_call() {
  Json out = Json::array();
  for (const Key& key : request_keys())
    out.push_back({{"name", key.name},
                   {"value", key.value},
                   {"group", key.group},
                   {"help", key.help},
                   {"not_built", *key.not_built == '\0' ? Json(nullptr) : Json(key.not_built)}});
  return Json{{"keys", std::move(out)}};
}

Result<Json> formats_call() { return Json{{"formats", export_formats()}}; }

Result<Json> read_call(const Json& call) {
  const std::string text = text_member(call, "text"), name = text_member(call, "name");
  const auto json = read_json(text, name);
  if (json && is_config(*json)) return Json{{"request", {{"config", *json}}}};
  const auto found = import_file(text, name);
  if (!found) return found.error();
  Json request = Json::object();
  for (const auto& [key, value] : found->keys) request[key] = value;
  if (!found->model.empty()) request["model"] = found->model;
  if (!found->on.empty()) request["on"] = found->on;
  Json out = {{"request", std::move(request)}};
  if (!found->not_read.empty()) out["not_read"] = found->not_read;  // options that only the file knows
  return out;
}

}  // namespace preflop
