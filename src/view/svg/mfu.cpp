// From the dense peak down to the MFU: every point of it that is lost, by what it is lost to.
#include <algorithm>
#include <cmath>

#include "src/base/text.hpp"
#include "src/view/svg/pictures.hpp"

namespace preflop {

namespace {

struct Loss {
  std::string what;
  double points = 0;  // of MFU, as a fraction
  std::string term;   // of the JSON
};

bool is_product(Lost lost) { return lost == Lost::gemm || lost == Lost::attention || lost == Lost::logits; }

std::string in_words(Lost lost) {
  std::string out = name(lost);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

// Shares of the step that are not products; products below their peak are what is left. They sum to 1 - MFU.
std::vector<Loss> losses_of(const StepEstimate<double>& s) {
  std::vector<Loss> out;
  double products = 0;
  for (int i = 0; i < kLost; ++i) {
    if (!s.breakdown[i]) continue;
    const double share = s.breakdown[i]->number() / s.seconds.number();
    if (is_product(static_cast<Lost>(i)))
      products += share;
    else if (share > 0)
      out.push_back(
          {in_words(static_cast<Lost>(i)), share, std::string("step.breakdown.") + name(static_cast<Lost>(i))});
  }
  std::stable_sort(out.begin(), out.end(), [](const Loss& a, const Loss& b) { return a.points > b.points; });
  const double below = products - s.mfu.number();
  out.push_back({below >= 0 ? "products below the peak" : "counted, not executed", below, "step.breakdown.gemm"});
  return out;
}

}  // namespace

svg::Picture mfu_picture(const Estimate& e, const Drawing& how) {
  if (!e.step || e.recipe.mfu) return {};
  const StepEstimate<double>& s = *e.step;
  const std::vector<Loss> losses = losses_of(s);
  constexpr double kRow = 24, kValue = 56;
  const double left = how.narrow() ? 160 : 190, bars = how.width - left - kValue;
  svg::Canvas c;
  const double top =
      svg::heading(c, how.width, "Where the FLOP/s go: from the dense peak to the MFU",
                   "step " + text::seconds(s.seconds.number()) + "; MFU by the convention " + s.mfu_convention);
  double y = top, from = 1;
  const auto row = [&](const std::string& what, double begin, double end, std::string_view colour,
                       const std::string& value, const std::string& term, bool bold) {
    c.text(left - 8, y + 14, what, {12, svg::Anchor::end, svg::kInk, bold});
    c.rect(left + begin * bars, y + 3, std::max((end - begin) * bars, 1.0), kRow - 8, colour, what + " " + value, term);
    c.text(left + std::max(begin, end) * bars + 6, y + 14, value, {12, svg::Anchor::start, svg::kInk, bold});
    y += kRow;
  };
  row("dense peak", 0, 1, svg::kPalette[7], "100 %", "step.peak_flops", false);
  for (const Loss& loss : losses) {
    const double to = from - loss.points;
    row(loss.what, std::min(from, to), std::max(from, to), loss.points >= 0 ? svg::kPalette[3] : svg::kPalette[2],
        (loss.points >= 0 ? "-" : "+") + text::percent(std::fabs(loss.points)), loss.term, false);
    from = to;
  }
  row("MFU", 0, s.mfu.number(), svg::kPalette[0], text::percent(s.mfu.number()), "step.mfu", true);
  c.line(left, top, left, y, svg::kFaint);
  return {"mfu", "Points of MFU lost, by cause", c.take(), how.width, y + 12};
}

}  // namespace preflop
