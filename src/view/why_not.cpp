#include <algorithm>

#include "src/base/text.hpp"
#include "src/search/why.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/view/json.hpp"
#include "src/view/plan.hpp"

namespace preflop {

namespace {

constexpr std::size_t kShown = 4;

double seconds_of_token(const Estimate& e) {
  return e.step->seconds.number() / (static_cast<double>(e.recipe.global_batch) * static_cast<double>(e.recipe.seq));
}

std::string passage(const std::string& body) {
  std::string out;
  for (const std::string& line : text::wrapped(body, text::kColumns - 2)) out += line + "\n";
  return out;
}

}  // namespace

WhyNot why_not(const Plan& asked, const Plan& best, const std::vector<std::string>& flags) {
  WhyNot out;
  const auto usable = [](const Plan& plan) -> const Estimate* {
    if (!plan.plans.empty()) return &plan.plans.front();
    const bool tight =
        plan.nearest && plan.nearest_miss != Plan::Miss::limit && plan.nearest->memory.verdict == Verdict::tight;
    return tight ? &*plan.nearest : nullptr;
  };
  if (const Estimate* e = usable(best)) out.best = *e;
  if (const Estimate* e = usable(asked)) {
    out.asked = *e;
    out.tight = e->memory.verdict == Verdict::tight;
    const bool timed = out.best && out.best->step && e->step;
    if (timed) out.slower = seconds_of_token(*e) / seconds_of_token(*out.best) - 1;
    if (out.slower > 0) {
      out.verdict = WhyNot::Verdict::slower;
      out.because = difference_words(step_differences(*out.best, *e), kShown);
    } else if (out.tight && out.best && out.best->memory.verdict != Verdict::tight) {
      out.verdict = WhyNot::Verdict::tight;
      out.because = asked.nearest_why;
    }
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
          "; " + terms.front().name + ": " + text::gib(terms.front().b) + " against " + text::gib(terms.front().a);
    return out;
  }
  out.verdict = WhyNot::Verdict::illegal;
  for (const SpaceReport::Rejected& reason : asked.space.rejected) {
    if (out.because.empty()) out.because = reason.example;
    const bool of_these = std::any_of(flags.begin(), flags.end(),
                                      [&](const std::string& flag) { return reason.example.starts_with(flag + ":"); });
    if (!of_these) continue;
    out.because = reason.example;
    break;
  }
  return out;
}

nlohmann::json why_not_json_value(const WhyNot& a) {
  static constexpr const char* kVerdicts[] = {"illegal", "short of memory", "slower", "best", "tight"};
  return {{"schema", "preflop.why-not/1"},
          {"verdict", kVerdicts[static_cast<int>(a.verdict)]},
          {"because", a.because},
          {"tight", a.tight},
          {"misses", a.misses},
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
      out = passage("Slower by " + text::percent(a.slower) + " in its best form" +
                    (a.tight ? ", which fits only tightly" : "") + ": " + plan(*a.asked) + ".");
      out += passage("Because: " + a.because + ".");
      break;
    case WhyNot::Verdict::tight:
      out = passage("Fits only tightly, with less room to spare than plan wants (--allow-tight): " + plan(*a.asked) +
                    ".");
      break;
    case WhyNot::Verdict::best:
      if (!a.asked->step)
        return passage("It fits: " + plan(*a.asked) + ". How fast it is is not known, so nothing is compared.");
      return passage((a.misses.empty() ? "Nothing speaks against it: no layout is faster. " : "No layout is faster. ") +
                     plan(*a.asked) + ", on stack " + stack_text(a.asked->recipe) + ".") +
             (a.misses.empty() ? "" : passage("It misses what is asked of the run: " + a.misses + "."));
  }
  if (!a.misses.empty()) out += passage("It misses what is asked of the run: " + a.misses + ".");
  if (a.best) out += passage("The best: " + plan(*a.best) + ", on stack " + stack_text(a.best->recipe) + ".");
  return out;
}

}  // namespace preflop
