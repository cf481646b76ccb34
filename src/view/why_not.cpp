#include "src/base/text.hpp"
#include "src/search/why.hpp"
#include "src/view/json.hpp"
#include "src/view/plan.hpp"

namespace preflop {

namespace {

constexpr std::size_t kShown = 4;

std::string passage(const std::string& body) {
  std::string out;
  for (const std::string& line : text::wrapped(body, text::kColumns - 2)) out += line + "\n";
  return out;
}

}  // namespace

WhyNot why_not(const Plan& asked, const Plan& best) {
  WhyNot out;
  if (!best.plans.empty()) out.best = best.plans.front();
  if (!asked.plans.empty()) {
    out.asked = asked.plans.front();
    const bool timed = out.best && out.best->step && out.asked->step;
    if (!timed || out.asked->step->seconds.number() <= out.best->step->seconds.number()) return out;
    out.verdict = WhyNot::Verdict::slower;
    const auto terms = step_differences(*out.best, *out.asked);
    out.because = difference_words(terms, kShown);
    return out;
  }
  if (asked.nearest) {
    out.verdict = WhyNot::Verdict::short_of_memory;
    out.asked = asked.nearest;
    out.because = asked.nearest_why;
    if (!out.best) return out;
    const auto terms = memory_differences(*out.best, *out.asked);
    if (!terms.empty())
      out.because +=
          "; " + terms.front().name + " take " + text::gib(terms.front().b) + " against " + text::gib(terms.front().a);
    return out;
  }
  out.verdict = WhyNot::Verdict::illegal;
  // What refuses most is what was asked about: everything else is open.
  if (!asked.space.rejected.empty()) out.because = asked.space.rejected.front().example;
  return out;
}

nlohmann::json why_not_json_value(const WhyNot& a) {
  static constexpr const char* kVerdicts[] = {"illegal", "short of memory", "slower", "best"};
  return {{"schema", "preflop.why-not/1"},
          {"verdict", kVerdicts[static_cast<int>(a.verdict)]},
          {"because", a.because},
          {"asked", a.asked ? estimate_json_value(*a.asked) : nlohmann::json(nullptr)},
          {"best", a.best ? estimate_json_value(*a.best) : nlohmann::json(nullptr)}};
}

std::string why_not_text(const WhyNot& a) {
  std::string out;
  const auto plan = [](const Estimate& e) {
    return layout_line(e.recipe) + (e.step ? ", " + text::seconds(e.step->seconds.number()) + " a step" : "");
  };
  switch (a.verdict) {
    case WhyNot::Verdict::illegal:
      out = passage("Illegal: " + a.because + ".");
      break;
    case WhyNot::Verdict::short_of_memory:
      out = passage("Does not fit, in its best form: " + plan(*a.asked) + ": " + a.because + ".");
      break;
    case WhyNot::Verdict::slower:
      out = passage("Slower by " + text::percent(a.asked->step->seconds.number() / a.best->step->seconds.number() - 1) +
                    " in its best form: " + plan(*a.asked) + ".");
      out += passage("Because: " + a.because + ".");
      break;
    case WhyNot::Verdict::best:
      out = passage("Nothing speaks against it: no layout is faster. " + (a.asked ? plan(*a.asked) : std::string()) +
                    ".");
      return out;
  }
  if (a.best) out += passage("The best: " + plan(*a.best) + ".");
  return out;
}

}  // namespace preflop
