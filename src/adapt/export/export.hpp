// A recipe as the file that a framework reads. What a format cannot carry stands in one comment line that
// src/adapt/import reads back ("# preflop: key=value ..."), so that export and import are the identity; JSON has
// no comments, there it is only said. A recipe that a framework cannot run is refused by name.
//
// Options and units: facts of the frameworks' sources, data/launch_options.csv, one row per option written.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "preflop/result.hpp"
#include "src/adapt/request.hpp"

namespace preflop {

struct Exported {
  std::string text;
  std::vector<std::pair<std::string, std::string>> options;  // as written: "--seq-length" "8192"; switches have ""
  std::vector<std::string> left_out;                         // recipe keys that the format cannot carry
  bool comments = true;                                      // the file's comment line says these
};

std::vector<std::string> export_formats();
// `request` is the one that the problem was posed from: what it says the file must say again.
Result<Exported> export_to(const std::string& format, const Problem& problem, const Request& request);

// One per framework.
Result<Exported> export_megatron(const Problem& problem, const Request& request);
Result<Exported> export_megatron_bridge(const Problem& problem, const Request& request);
Result<Exported> export_torchtitan(const Problem& problem, const Request& request);
Result<Exported> export_deepspeed(const Problem& problem, const Request& request);
Result<Exported> export_accelerate(const Problem& problem, const Request& request);
Result<Exported> export_nanotron(const Problem& problem, const Request& request);
Result<Exported> export_slurm(const Problem& problem, const Request& request);

// "# preflop: model=llama3-70b on=64xh100-sxm ..." of everything but the keys that the file carries itself.
std::string rest_line(const Problem& problem, const Request& request, const std::vector<std::string>& carried,
                      std::vector<std::string>& left_out);
// A comment that names the constants of formulas that are not known of the model (of those that it has), and what then
// holds: "Megatron-LM's defaults"; empty where all are.
std::string unknown_constants(const Architecture& a, const std::string& then);
// Megatron's layout string of the virtual stages, "Et*4|t*4|tmL", where they follow no rule that has options; else "".
std::string stage_layout(const Problem& problem);
// Moments or master weights below fp32 that Megatron's precision-aware optimizer keeps: it needs sharded states.
bool keeps_narrow_states(const Recipe& recipe);
// "8" for nodes of 8 GPUs.
std::int64_t processes_per_node(const Problem& problem);
// "preflop_llama3_70b_64gpu"
std::string function_name(const Problem& problem);

}  // namespace preflop
