#include "apps/preflop/input.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/preflop/io.hpp"
#include "src/adapt/import/import.hpp"
#include "src/adapt/shape_string.hpp"
#include "src/base/text.hpp"
#include "src/base/toml_read.hpp"

namespace preflop::cli {

namespace {

constexpr const char* kModel = "MODEL";

std::string flag_name(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}
std::string key_name(std::string flag) {
  std::replace(flag.begin(), flag.end(), '-', '_');
  return flag;
}

bool looks_like_path(const std::string& model) {
  return model.ends_with(".json") || model.starts_with("./") || model.starts_with("../") || model.starts_with("/") ||
         model.starts_with("~") || model == "." || model == "..";
}

Status read_on(const std::string& on, Request& out) {
  if (!on.ends_with(".toml")) {
    out.on = on;
    return Nothing{};
  }
  Result<std::string> text = read_text(on, "--on");
  if (!text) return text.error();
  out.cluster = ConfigText{std::move(text).value(), on};
  return Nothing{};
}

// A list in a recipe file is what the flag writes with commas.
Result<std::string> recipe_value(const TomlTable& table, const std::string& key) {
  if (auto numbers = table.get<std::vector<std::int64_t>>(key)) {
    std::string out;
    for (std::int64_t n : *numbers) out += (out.empty() ? "" : ",") + std::to_string(n);
    return out;
  }
  if (auto words = table.get<std::vector<std::string>>(key)) {
    std::string out;
    for (const std::string& word : *words) out += (out.empty() ? "" : ",") + word;
    return out;
  }
  return table.scalar(key);
}

// --recipe: what the flags do not say.
Status read_recipe(const std::string& path, Request& out, std::string& model, std::string& on) {
  Result<std::string> text = read_text(path, "--recipe");
  if (!text) return text.error();
  Result<TomlTable> table = TomlTable::parse(*text, path);
  if (!table) return table.error();
  std::vector<std::string> known = {"model", "on"};
  for (const Key& key : request_keys()) known.emplace_back(key.name);
  if (Status s = table->only_keys(known); !s) return s;
  for (const std::string& key : table->keys()) {
    Result<std::string> value = recipe_value(*table, key);
    if (!value) return value.error();
    if (key == "model") {
      if (model.empty()) model = *value;
    } else if (key == "on") {
      if (on.empty()) on = *value;
    } else if (out.keys.emplace(key, *value).second) {  // a flag of the same name stays
      out.places[key] = table->where(key) + ": " + key;
    }
  }
  return Nothing{};
}

// --from: a file of a framework, or an earlier result; what flags and --recipe do not say.
Status read_from(const std::string& path, Request& out, std::string& model, std::string& on) {
  Result<std::string> text = read_text(path, "--from");
  if (!text) return text.error();
  Result<Request> found = import_file(*text, path);
  if (!found) return found.error();
  std::string names;
  for (const std::string& name : found->not_read) names += (names.empty() ? "" : ", ") + name;
  if (!names.empty()) complain("warning: " + path + ": not read: " + names);
  Request given = out;
  given.model = model;
  given.on = on;
  make_way(*found, given);
  for (const auto& [key, value] : found->keys) {
    const auto place = found->places.find(key);
    if (out.keys.emplace(key, value).second && place != found->places.end()) out.places[key] = place->second;
  }
  if (const auto place = found->places.find("hsdp"); !out.keys.contains("hsdp") && place != found->places.end())
    out.places["hsdp"] = place->second;
  out.unsettled = found->unsettled;
  if (model.empty()) model = found->model;
  if (on.empty()) on = found->on;
  return Nothing{};
}

Status read_assumptions(const Args& args, Request& out) {
  const auto given = args.values.find("assume");
  if (given == args.values.end()) return Nothing{};
  for (const std::string& text : given->second) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
      return Error{"--assume", text::quoted(text) + " is not a key and its value", "key=value, e.g. vocab_size=32000"};
    if (!out.assume.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      return Error{"--assume", text.substr(0, equals) + " is given twice", "give it once"};
  }
  return Nothing{};
}

}  // namespace

Status read_model(const std::string& model, Request& out) {
  if (looks_like_shape(model) && !exists(model)) {
    out.model = model;
    return Nothing{};
  }
  std::string path = model;
  if (is_folder(model)) {
    path = (std::filesystem::path(model) / "config.json").string();
    // A folder that happens to be called like a model is no reason to refuse the name.
    if (!exists(path) && looks_like_path(model))
      return Error{kModel, "the folder " + text::quoted(model) + " has no config.json",
                   "a folder with config.json, or the file itself"};
    if (!exists(path)) path.clear();
  } else if (model != "-" && !exists(model)) {
    if (looks_like_path(model))
      return Error{kModel, "there is no file " + text::quoted(model), "the path of a config.json"};
    path.clear();
  }
  if (path.empty()) {
    out.model = model;
    return Nothing{};
  }
  Result<std::string> text = read_text(path, kModel);
  if (!text) return text.error();
  out.config = ConfigText{std::move(text).value(), model == "-" ? "stdin" : path};
  return Nothing{};
}

std::vector<Flag> recipe_flags() {
  std::vector<Flag> out;
  for (const Key& key : request_keys()) {
    const bool is_switch = *key.value == '\0';
    out.push_back({flag_name(key.name), key.value, key.help, key.group, false, is_switch, key.not_built});
  }
  return out;
}

Result<Request> read_request(const Args& args, const std::string& model_word) {
  Request out;
  for (const Flag& flag : recipe_flags()) {
    if (args.has(flag.name)) out.keys[key_name(flag.name)] = args.value(flag.name);
  }
  std::string model = model_word;
  std::string on = args.value("on");
  if (args.has("recipe")) {
    if (Status s = read_recipe(args.value("recipe"), out, model, on); !s) return s.error();
  }
  if (args.has("from")) {
    if (Status s = read_from(args.value("from"), out, model, on); !s) return s.error();
  }
  if (Status s = read_assumptions(args, out); !s) return s.error();
  if (model.empty())
    return Error{kModel, "no model is given",
                 "a name such as llama3-70b (preflop models), or the path of a config.json"};
  if (on.empty())
    return Error{"--on", "no cluster is given", "for example --on 64xh100-sxm (preflop gpus lists the GPUs)"};
  if (Status s = read_model(model, out); !s) return s.error();
  if (Status s = read_on(on, out); !s) return s.error();
  return out;
}

Result<std::map<std::string, std::string>> overlays_of(const Args& args) {
  if (!args.has("data-dir")) return std::map<std::string, std::string>();
  return read_data_dir(args.value("data-dir"));
}

Result<Catalogues> catalogues_of(const Args& args) {
  const auto overlays = overlays_of(args);
  if (!overlays) return overlays.error();
  return Catalogues::load(*overlays);
}

Result<Posed> pose_request(const Args& args, const std::string& model, Timing& timing) {
  Result<Request> request = read_request(args, model);
  if (!request) return request.error();
  const auto overlays = overlays_of(args);
  if (!overlays) return overlays.error();
  timing.lap("reading");
  Result<Catalogues> catalogues = Catalogues::load(*overlays);
  if (!catalogues) return catalogues.error();
  timing.lap("catalogues");
  Posed out{std::make_unique<Catalogues>(std::move(catalogues).value()), {}};
  if (Status s = settle(*request, *out.catalogues); !s) return s.error();
  Result<Problem> problem = pose(*request, *out.catalogues);
  if (!problem) return placed(problem.error(), *request);
  out.problem = std::move(problem).value();
  timing.lap("recipe");
  return out;
}

}  // namespace preflop::cli
