#include "src/adapt/import/import.hpp"

#include <algorithm>

#include "src/base/decimal.hpp"
#include "src/base/json_read.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

const Json* member(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto at = json.find(key);
  return at == json.end() ? nullptr : &*at;
}

std::string scalar(const Json& value) {
  if (const auto* s = value.get_ptr<const std::string*>()) return *s;
  if (const auto* b = value.get_ptr<const bool*>()) return *b ? "true" : "false";
  if (const auto* u = value.get_ptr<const std::uint64_t*>()) return std::to_string(*u);
  if (const auto* i = value.get_ptr<const std::int64_t*>()) return std::to_string(*i);
  if (const auto* d = value.get_ptr<const double*>()) return shortest(*d);
  std::string out;
  for (const Json& item : value.is_array() ? value : Json::array()) out += (out.empty() ? "" : ",") + scalar(item);
  return out;
}

const Json* estimate_in(const Json& json, std::size_t rank) {
  const Json* schema = member(json, "schema");
  if (schema == nullptr) return nullptr;
  if (*schema == "preflop.estimate/1") return &json;
  const Json* plans = member(json, "plans");
  if (*schema != "preflop.plan/1" || plans == nullptr || !plans->is_array() || rank < 1 || plans->size() < rank)
    return nullptr;
  return &(*plans)[rank - 1];
}

// Keys of a recipe's JSON that are no flags, or say what others say.
bool derived(const std::string& key, const Json& recipe) {
  if (key == "assumed" || key == "mfu_convention" || key == "layers_per_stage") return true;
  const Json* tp = member(recipe, "tp");
  const Json* pp = member(recipe, "pp");
  if (key == "sp") return tp != nullptr && *tp == 1;
  if (key == "schedule") return pp != nullptr && *pp == 1;
  // Without experts these say nothing.
  const Json* value = member(recipe, key.c_str());
  if (key == "tokens") {
    const Json* samples = member(recipe, "samples");
    return samples != nullptr && !samples->is_null();  // they follow from the samples
  }
  if (key == "imbalance") return value != nullptr && value->is_number() && *value == 1;
  if (key == "capacity_factor" || key == "mtp") return value != nullptr && value->is_number() && *value == 0;
  return false;
}

// Layers per stage where stages differ; virtual stages are split by the stack's rule. A stage without layers (that has
// the head alone) is the stack's own doing, too: --layers-per-stage takes none.
std::string uneven_split(const Json& recipe) {
  const Json* split = member(recipe, "layers_per_stage");
  const Json* vpp = member(recipe, "vpp");
  if (split == nullptr || !split->is_array() || split->size() < 2 || vpp == nullptr || *vpp != 1) return "";
  std::string out;
  bool even = true, own = false;
  for (const Json& layers : *split) {
    out += (out.empty() ? "" : ",") + scalar(layers);
    even = even && layers == split->front();
    own = own || layers == 0;
  }
  return even || own ? "" : out;
}

}  // namespace

Result<Request> import_result(std::string_view text, const std::string& file, std::size_t rank) {
  const auto json = read_json(text, file);
  if (!json) return json.error();
  const Json* e = estimate_in(*json, rank);
  if (e == nullptr)
    return Error{file, "no estimate, and no plan of rank " + std::to_string(rank),
                 "what preflop plan or estimate prints with --json"};
  const Json* recipe = member(*e, "recipe");
  const Json* model = member(*e, "model");
  const Json* cluster = member(*e, "cluster");
  if (recipe == nullptr || model == nullptr || cluster == nullptr)
    return Error{file, "no recipe, model or cluster in it", "preflop.estimate/1"};
  Request out;
  if (const Json* name = member(*model, "name")) out.model = scalar(*name);
  const Json* gpus = member(*cluster, "gpus");
  const Json* gpu = member(*cluster, "gpu");
  const Json* platform = member(*cluster, "platform");
  const Json* node = member(*cluster, "gpus_per_node");
  if (gpus != nullptr && gpu != nullptr) {
    out.on = scalar(*gpus) + "x" + (platform != nullptr && !platform->is_null() ? scalar(*platform) : scalar(*gpu));
    if (node != nullptr && !node->is_null()) out.on += "/" + scalar(*node);
  }
  for (const auto& [key, value] : recipe->items()) {
    if (value.is_null() || derived(key, *recipe)) continue;
    const std::string word = scalar(value);
    if (!word.empty()) out.keys[key] = word;
  }
  if (const std::string split = uneven_split(*recipe); !split.empty()) out.keys["layers_per_stage"] = split;
  if (const Json* mfu = member(*recipe, "mfu"); mfu != nullptr && mfu->is_number()) {
    const Json* convention = member(*recipe, "mfu_convention");
    out.keys["mfu"] =
        scalar(*mfu) + (convention != nullptr && convention->is_string() ? "@" + scalar(*convention) : "");
  }
  return out;
}

void make_way(Request& file, const Request& given) {
  const auto has = [](const Request& r, const char* key) { return r.keys.contains(key); };
  const auto is = [](const Request& r, const char* key, std::string_view value) {
    const auto at = r.keys.find(key);
    return at != r.keys.end() && at->second == value;
  };
  const bool mesh = has(given, "tp") || has(given, "pp") || has(given, "cp");
  // Without a cluster of its own, dp says how many GPUs there are.
  if (!file.on.empty() && (mesh || !given.on.empty())) file.keys.erase("dp");
  // A result's split is its model's.
  const bool another = !given.model.empty() && !file.on.empty() && given.model != file.model;
  if (has(given, "pp") || has(given, "vpp") || another) file.keys.erase("layers_per_stage");
  const bool no_pipeline = is(given, "pp", "1");
  if (no_pipeline) file.keys.erase("vpp");
  const bool chunks = has(given, "vpp") && !is(given, "vpp", "1");
  if (no_pipeline || (chunks && is(file, "schedule", "1f1b")) ||
      (is(given, "vpp", "1") && is(file, "schedule", "interleaved")))
    file.keys.erase("schedule");
  if (is(given, "tp", "1")) file.keys.erase("sp");
  if (is(given, "cuda_graph", "none") || is(given, "cuda_graph", "full_iteration")) file.keys.erase("cuda_graph_scope");
  if (has(given, "samples")) file.keys.erase("tokens");
  // Another stack may not tell the two apart.
  if (has(given, "stack") && !is(file, "stack", given.keys.at("stack"))) file.keys.erase("dp_overlap");
  // Experts that are cut as the rest stay so.
  if (has(given, "tp") && has(file, "tp") && is(file, "etp", file.keys.at("tp"))) file.keys.erase("etp");
}

std::string whole_layers(const std::string& method, const std::string& layers) {
  if (method == "block") return "full:" + layers;
  return layers.empty() || layers == "1" ? "full" : "full:uniform:" + layers;
}

void read_rest_line(std::string_view text, Request& out) {
  constexpr std::string_view kMark = "# preflop:";
  const std::size_t at = text.find(kMark);
  if (at == std::string_view::npos) return;
  std::string_view line = text.substr(at + kMark.size());
  line = line.substr(0, line.find('\n'));
  while (!line.empty()) {
    const std::size_t begin = line.find_first_not_of(" \r\t");
    if (begin == std::string_view::npos) return;
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    line.remove_prefix(end);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string key(word.substr(0, equals)), value(word.substr(equals + 1));
    if (key == "model")
      out.model = value;
    else if (key == "on")
      out.on = value;
    else
      out.keys[key] = value;
  }
}

Result<Request> import_file(std::string_view text, const std::string& file) {
  if (file.ends_with(".toml")) return import_torchtitan(text, file);
  if (file.ends_with(".yaml") || file.ends_with(".yml")) return import_yaml(text, file);
  if (file.ends_with(".py")) return import_python(text, file);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    const auto json = read_json(text, file);
    if (!json) return json.error();
    return member(*json, "schema") != nullptr ? import_result(text, file) : import_deepspeed(text, file);
  }
  if (text.find("--") != std::string_view::npos) return import_megatron(text, file);
  return Error{"--from", text::quoted(file) + " is none of the formats that are read",
               "a result of preflop, a Megatron launch script, torchtitan .toml or .py, DeepSpeed .json, accelerate or "
               "nanotron .yaml"};
}

}  // namespace preflop
