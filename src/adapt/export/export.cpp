#include "src/adapt/export/export.hpp"

#include <algorithm>

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
  bool some_layers = false;              // it can recompute the first layers of a stage, and several at a time
  bool starts = false;                   // it starts another file, which says how the model runs
};
constexpr Format kFormats[] = {{"megatron", export_megatron, &PrecisionWords::megatron_recipe, true},
                               {"megatron-bridge", export_megatron_bridge, &PrecisionWords::bridge, true},
                               {"torchtitan", export_torchtitan, &PrecisionWords::titan},
                               {"deepspeed", export_deepspeed, nullptr},
                               {"accelerate", export_accelerate, &PrecisionWords::accelerate},
                               {"nanotron", export_nanotron, nullptr},
                               {"slurm", export_slurm, nullptr, true, true}};

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
  for (const Format& f : kFormats) {
    if (format != f.name) continue;
    if (problem.analysed.recipe.stack == "maxtext")
      return Error{"--to", format + " does not run a plan of stack maxtext",
                   "a plan of --stack megatron or torchtitan"};
    const Recompute& recompute = problem.analysed.recipe.recompute;
    if (recompute.which == RecomputeLayers::every || (recompute.which != RecomputeLayers::all && !f.some_layers))
      return Error{"--to", format + " cannot say " + recompute_text(recompute), "--recompute none or full"};
    if (Status s = has_precision(f, problem.analysed.recipe.precision); !s) return s.error();
    return f.write(problem, request);
  }
  return text::unknown_name("--to", "format", format, export_formats());
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

std::string stage_layout(const Problem& problem) {
  const Analysed& a = problem.analysed;
  if (!a.split_how.starts_with("equal chunks")) return "";
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

std::string function_name(const Problem& problem) {
  std::string out = "preflop_" + problem.architecture.name + "_" + std::to_string(problem.cluster.gpus) + "gpu";
  for (char& c : out) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!word) c = '_';
  }
  return out;
}

}  // namespace preflop
