#include "src/adapt/export/export.hpp"

#include <algorithm>
#include <cmath>

#include "src/adapt/import/import.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/adapt/recipe_words.hpp"
#include "src/base/text.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

struct Format {
  const char* name;
  Result<Exported> (*write)(const Problem&, const Request&);
  const char* PrecisionWords::* scaled;  // its word for a scaled precision; null: it has none
  const char* stacks;                    // beginnings of the stacks that stand for it, each with a blank after it
  const char* file;                      // a name that says what it is
  bool some_layers = false;              // it can recompute the first layers of a stage, and several at a time
  bool starts = false;                   // it starts another file, which says how the model runs
};
constexpr Format kFormats[] = {
    {"megatron", export_megatron, &PrecisionWords::megatron_recipe, "megatron megatron-fsdp ", "run.sh", true},
    {"megatron-bridge", export_megatron_bridge, &PrecisionWords::bridge, "megatron megatron-fsdp ", "config.py", true},
    {"torchtitan", export_torchtitan, &PrecisionWords::titan, "torchtitan ", "config.py"},
    {"deepspeed", export_deepspeed, nullptr, "megatron-deepspeed ", "ds.json"},
    {"accelerate", export_accelerate, &PrecisionWords::accelerate, "fsdp1 ", "fsdp.yaml"},
    {"nanotron", export_nanotron, nullptr, "nanotron ", "config.yaml"},
    {"slurm", export_slurm, nullptr, "", "job.sbatch", true, true}};

const Format* format_called(const std::string& name) {
  for (const Format& f : kFormats) {
    if (name == f.name) return &f;
  }
  return nullptr;
}

// A scaled precision that the format has no word for would run in bf16.
Status has_precision(const Format& f, const std::string& precision) {
  const PrecisionWords* words = words_of_precision(precision);
  if (words == nullptr || f.starts || (f.scaled != nullptr && *(words->*f.scaled) != '\0')) return Nothing{};
  std::vector<std::string> has = {"bf16"};
  for (const PrecisionWords& w : precision_words()) {
    if (f.scaled != nullptr && *(w.*f.scaled) != '\0') has.emplace_back(w.precision);
  }
  return Error{"--to", std::string(f.name) + " has no " + precision, "--precision " + text::list(has)};
}

}  // namespace

std::vector<std::string> export_formats() {
  std::vector<std::string> out;
  for (const Format& f : kFormats) out.emplace_back(f.name);
  return out;
}

Result<Exported> export_to(const std::string& format, const Problem& problem, const Request& request) {
  const Format* f = format_called(format);
  if (f == nullptr) return text::unknown_name("--to", "format", format, export_formats());
  if (problem.analysed.recipe.stack == "maxtext")
    return Error{"--to", format + " does not run a plan of stack maxtext", "a plan of --stack megatron or torchtitan"};
  const Recompute& recompute = problem.analysed.recipe.recompute;
  if (recompute.which == RecomputeLayers::every || (recompute.which != RecomputeLayers::all && !f->some_layers))
    return Error{"--to", format + " cannot say " + recompute_text(recompute), "--recompute none or full"};
  if (Status s = has_precision(*f, problem.analysed.recipe.precision); !s) return s.error();
  return f->write(problem, request);
}

bool is_foreign(const std::string& format, const std::string& stack) {
  const Format* f = format_called(format);
  return f != nullptr && !f->starts && (" " + std::string(f->stacks)).find(" " + stack + " ") == std::string::npos;
}

std::vector<std::string> unsaid(const std::string& format, const Exported& file, const Problem& problem,
                                const Request& request, const Catalogues& catalogues) {
  const Format* f = format_called(format);
  if (f == nullptr || f->starts) return {};
  std::string body = file.text;
  if (const std::size_t at = body.find("# preflop:"); at != std::string::npos)
    body.replace(at, body.find('\n', at) - at, "# preflop: on=" + request.on);
  const auto back = import_file(body, f->file);
  if (!back) return file.left_out;
  Request alone = *back;
  alone.model = request.model;
  alone.config = request.config;
  alone.assume = request.assume;
  alone.on = request.on;
  alone.keys.emplace("stack", problem.analysed.recipe.stack);
  if (!settle(alone, catalogues)) return file.left_out;
  const auto wanted = recipe_words(problem.analysed.recipe);
  const auto differs = [&](const Request& asked, const std::string& key) {
    const auto again = pose(asked, catalogues);
    if (!again) return true;
    Recipe found = again->analysed.recipe;
    found.given = problem.analysed.recipe.given;  // the same keys stand in both
    const auto words = recipe_words(found);
    const auto at = words.find(key);
    return at == words.end() || at->second != wanted.at(key);
  };
  // Alone it may be no recipe at all: then each key that is left out is asked for beside the others.
  const bool whole = pose(alone, catalogues).ok();
  std::vector<std::string> out;
  for (const auto& [key, value] : wanted) {
    const bool left = std::find(file.left_out.begin(), file.left_out.end(), key) != file.left_out.end();
    if (key == "stack" || key == "tokens" || key == "mfu" || key == "imbalance" || (!whole && !left)) continue;
    Request asked = alone;
    for (const std::string& other : file.left_out) {
      if (!whole && other != key) asked.keys.emplace(other, wanted.at(other));
    }
    if (differs(asked, key)) out.push_back(key);
  }
  return out;
}

std::string rest_line(const Problem& problem, const Request& request, const std::vector<std::string>& carried,
                      std::vector<std::string>& left_out) {
  std::string out = "# preflop:";
  if (!request.model.empty()) out += " model=" + request.model;
  out += " on=" + request.on;
  for (const auto& [key, value] : recipe_words(problem.analysed.recipe)) {
    if (std::find(carried.begin(), carried.end(), key) != carried.end()) continue;
    out += " " + key + "=" + value;
    left_out.push_back(key);
  }
  return out + "\n";
}

std::string unknown_constants(const Architecture& a, const std::string& then) {
  const bool rotary = a.positions == Positions::rope && !a.rope_theta;
  const std::string names =
      std::string(rotary ? "rope_theta" : "") + (rotary && !a.norm_eps ? " and " : "") + (a.norm_eps ? "" : "norm_eps");
  return names.empty() ? "" : "# Not known of this model: " + names + "; " + then + " hold.\n";
}

std::string stage_layout(const Problem& problem, bool any) {
  const Analysed& a = problem.analysed;
  if (a.split_how.empty()) return "";
  bool middle = any;  // stages between the first and the last that differ
  for (std::size_t i = 2; i + 1 < a.stages.size(); ++i)
    middle = middle || a.stages[i].layer_count() != a.stages[1].layer_count();
  if (!a.split_how.starts_with("equal chunks") && !middle) return "";
  std::string out = "E";
  for (std::size_t i = 0; i < a.chunk_layers.size(); ++i) {
    const std::int64_t layers = a.chunk_layers[i];
    if (i > 0) out += '|';
    if (layers > 0) out += layers > 1 ? "t*" + std::to_string(layers) : "t";
  }
  for (std::int64_t i = 0; i < a.recipe.mtp; ++i) out += 'm';
  return out + 'L';
}

bool keeps_narrow_states(const Recipe& r) {
  const bool told = r.optimizer == "adamw" && r.layout.zero >= 1;
  const bool moments = r.moment_dtype == Dtype::bf16 || r.moment_dtype == Dtype::fp16 || r.moment_dtype == Dtype::fp8;
  return told && (moments || r.master_dtype == Dtype::fp16);
}

std::int64_t processes_per_node(const Problem& problem) {
  return std::min(problem.cluster.gpus, problem.cluster.gpus_per_node);
}

std::int64_t train_steps(const Recipe& r) {
  const double step = static_cast<double>(r.global_batch) * static_cast<double>(r.seq);
  return r.tokens ? static_cast<std::int64_t>(std::ceil(*r.tokens / step)) : 1000;
}

std::string file_name(const Problem& problem) {
  const std::string& model = problem.architecture.name;
  std::string out = model.substr(model.find_last_of('/') + 1).substr(0, 64);
  for (char& c : out) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!word && c != '.' && c != '_') c = '-';
  }
  return out.empty() || out.front() == '-' ? "preflop" + out : out;
}

std::string function_name(const Problem& problem) {
  std::string out = "preflop_" + problem.architecture.name + "_" + std::to_string(problem.cluster.gpus) + "gpu";
  for (char& c : out) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!word) c = '_';
  }
  return out;
}

}  // namespace preflop
