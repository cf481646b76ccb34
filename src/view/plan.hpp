// A plan as text and as preflop.plan/1.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "preflop/plan.hpp"

namespace preflop {

nlohmann::json plan_json_value(const Plan& plan);
// `brief`: the first line only; `everything`: all reasons.
std::string plan_text(const Plan& plan, bool brief, bool everything);

// A layout that was asked about, against the best one on the same stack. `tight`: it fits with less room than a plan
// wants, and no looser form of it does; as the verdict: and it is not slower for it.
struct WhyNot {
  enum class Verdict : std::uint8_t { illegal, short_of_memory, slower, best, tight } verdict = Verdict::best;
  std::string because;
  std::optional<Estimate> asked, best;
  bool tight = false;
  double slower = 0;   // 0.1: a token takes 10 % longer than with the best
  std::string misses;  // which limit of the run, and by how much; empty: none
};
// `flags`: "--tp", .. of what is asked about. Where none is legal, the reason that names one of them is it.
WhyNot why_not(const Plan& asked, const Plan& best, const std::vector<std::string>& flags);
nlohmann::json why_not_json_value(const WhyNot& answer);
std::string why_not_text(const WhyNot& answer);

// "tp 8, pp 2, dp 4, zero 1": the sizes above 1 of a layout, in one line.
std::string layout_line(const Recipe& recipe);

}  // namespace preflop
