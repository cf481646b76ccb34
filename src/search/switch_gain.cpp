#include "src/search/switch_gain.hpp"

#include <utility>

#include "src/base/text.hpp"
#include "src/run/estimate.hpp"
#include "src/search/why.hpp"

namespace preflop {

namespace {

struct FreeSwitch {
  const char* key;
  const char* words;
  void (*set)(Recipe&);
  bool dense = false;  // of models without experts only: how many rows an expert gets is not known to a graph
};
constexpr FreeSwitch kFreeSwitches[] = {
    {"compile", "--compile", [](Recipe& r) { r.compile = true; }},
    {"ep_overlap", "--ep-overlap", [](Recipe& r) { r.ep_overlap = true; }},
    {"tp_overlap", "--tp-overlap", [](Recipe& r) { r.tp_overlap = true; }},
    {"fused_experts", "--fused-experts", [](Recipe& r) { r.fused_experts = true; }},
    {"cuda_graph", "--cuda-graph full_iteration", [](Recipe& r) { r.cuda_graph = "full_iteration"; }, true},
    {"cuda_graph", "--cuda-graph transformer_engine", [](Recipe& r) { r.cuda_graph = "transformer_engine"; }},
    {"cuda_graph", "--cuda-graph local", [](Recipe& r) { r.cuda_graph = "local"; }}};

// Of a step within the limits; 0: none, or not known.
double seconds_within(const Question& q, const Recipe& recipe, const Limits& limits) {
  const auto analysed = analyse_recipe(*q.model, *q.stack, recipe);
  if (!analysed) return 0;
  const Estimate e = bare_estimate<double>(*analysed, q.cluster);
  const bool fits = e.memory.verdict != Verdict::no && broken_limits(e, limits).empty();
  return e.step && fits ? e.step->seconds.number() : 0;
}

}  // namespace

std::string gain_of_switches(const Question& question, const Recipe& best, const Limits& limits) {
  constexpr double kWorthSaying = 0.005;
  if (best.mfu) return "";
  const double now = seconds_within(question, best, limits);
  if (now <= 0) return "";
  Recipe with = best;
  double least = now;
  std::string words;
  // Whatever gains most of those left, until none does: at most as often as there are switches.
  for (bool more = true; more;) {
    more = false;
    Recipe next = with;
    const FreeSwitch* chosen = nullptr;
    for (const FreeSwitch& s : kFreeSwitches) {
      if (question.fixed(s.key) || (s.dense && has_experts(*question.model))) continue;
      Recipe tried = with;
      s.set(tried);
      const double seconds = seconds_within(question, tried, limits);
      if (!(seconds > 0 && seconds < least * (1 - kWorthSaying))) continue;
      least = seconds;
      next = std::move(tried);
      chosen = &s;
    }
    if (chosen == nullptr) continue;
    more = true;
    with = std::move(next);
    words += std::string(words.empty() ? "" : " ") + chosen->words;
  }
  if (words.empty()) return "";
  return "With " + words + " the best layout takes " + text::seconds(least) + " a step, " +
         text::percent(1 - least / now) + " less, and computes the same.";
}

}  // namespace preflop
