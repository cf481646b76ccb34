#include "src/explain/explain.hpp"

#include <optional>

#include "src/base/text.hpp"
#include "src/explain/parameters.hpp"
#include "src/explain/paths.hpp"
#include "src/explain/terms.hpp"
#include "src/run/estimate.hpp"

namespace preflop {

namespace {

std::string stage_prefix(std::size_t stage) { return "memory.stages[" + std::to_string(stage) + "]."; }

// "memory.activations" for the path of the stage with the peak; other paths as they are; empty for
// other stages.
std::string short_form(const std::string& path, std::size_t peak) {
  constexpr std::string_view kStages = "memory.stages[";
  if (!path.starts_with(kStages)) return path;
  const std::string mine = stage_prefix(peak);
  return path.starts_with(mine) ? "memory." + path.substr(mine.size()) : "";
}

std::string words(std::string text) {
  for (char& c : text) {
    if (c == '_') c = ' ';
  }
  return text;
}

std::string about_stage(const MemoryEstimate<Traced>& memory, const std::string& path) {
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    if (!path.starts_with(stage_prefix(i))) continue;
    const StageMemory<Traced>& s = memory.stages[i];
    std::string out = "stage " + std::to_string(s.stage);
    if (memory.stages.size() > 1 && i == memory.peak_stage)
      out += ", the fullest of " + std::to_string(memory.stages.size());
    if (path.find(".moments.") == std::string::npos) out += "; its fullest moment is " + words(name(s.moment));
    return out;
  }
  return "";
}

// Why a run has no such number.
std::string absent_in_run(const std::string& path) {
  if (path == "run.cost_usd") return "no dated price of this GPU is known; give --price";
  if (path == "run.mtbf_seconds") return "nothing ever fails with --mtbf none";
  if (path == "run.checkpoint_interval_seconds") return "nothing is saved with --checkpoint none";
  return "the power of this GPU is not known; give --watts";
}

Error unknown_term(std::string_view term, const std::vector<std::string>& terms) {
  Error error = text::unknown_name("TERM", "term", term, terms);
  error.valid += (error.valid.empty() ? "" : " or ") + std::string("see preflop explain --list");
  return error;
}

}  // namespace

Result<Explanation> explain(std::string_view term, const Analysed& analysed, const Cluster& cluster) {
  const EstimateOf<Traced> e = estimate<Traced>(analysed, cluster);
  Explanation out;
  out.term = term;
  bool found = false;
  std::optional<Traced> number;
  std::vector<std::string> terms;
  for_each_number(e, [&](const std::string& path, const std::optional<Traced>& value, const char* unit) {
    const std::string brief = short_form(path, e.memory.peak_stage);
    if (path == term || brief == term) {
      found = true;
      number = value;
      out.path = path;
      out.unit = unit;
    }
    terms.push_back(brief.empty() ? path : brief);
  });
  if (!found) return unknown_term(term, terms);
  if (!number) {
    const bool lacks_rates = !e.step && out.path.starts_with("step.");
    const bool lacks_tokens = !analysed.recipe.tokens && out.path.starts_with("run.");
    std::string why = "this version does not predict it";
    if (out.path.starts_with("memory.") && !e.memory.capacity) why = "the memory of this GPU is not known";
    if (analysed.recipe.tokens && out.path.starts_with("run."))
      why = !e.step ? missing_rates(analysed.recipe, cluster) : absent_in_run(out.path);
    if (out.path == "memory.host_bytes_per_node") why = "nothing is kept on the hosts (--offload)";
    if (lacks_rates) why = missing_rates(analysed.recipe, cluster);
    if (lacks_tokens) why = "no --tokens are given";
    return Error{"TERM", std::string(term) + " is not known here: " + (why.empty() ? "the cluster has no rates" : why),
                 ""};
  }
  constexpr std::string_view kParameters = "model.params_";
  if (out.path.starts_with(kParameters))
    number = traced_parameters(*analysed.model, std::string_view(out.path).substr(kParameters.size()));
  out.about = about_stage(e.memory, out.path);
  out.value = number->value();
  out.tree = number->node();
  return out;
}

std::vector<TermLine> explainable(const Analysed& analysed, const Cluster& cluster) {
  const Estimate e = estimate<double>(analysed, cluster);
  std::vector<TermLine> out;
  for_each_number(e, [&](const std::string& path, const std::optional<double>& value, const char* unit) {
    const std::string brief = short_form(path, e.memory.peak_stage);
    if (!brief.empty()) out.push_back({brief, unit, term_says(brief), value});
  });
  return out;
}

}  // namespace preflop
