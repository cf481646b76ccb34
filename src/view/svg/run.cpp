// Pictures of the whole run: where the days go, when it ends, how often to save.
#include <algorithm>
#include <cmath>

#include "src/base/math.hpp"
#include "src/base/text.hpp"
#include "src/run/simulate.hpp"
#include "src/view/run_text.hpp"
#include "src/view/svg/pictures.hpp"

namespace preflop {

namespace {

struct Part {
  std::string what, term;
  double seconds;
};
std::vector<Part> losses_of(const RunEstimate<double>& r) {
  std::vector<Part> out;
  for (int i = 0; i < kRunLosses; ++i) {
    if (r.losses[i].number() > 0)
      out.push_back({words(static_cast<RunLoss>(i)), std::string("run.losses.") + name(static_cast<RunLoss>(i)),
                     r.losses[i].number()});
  }
  std::stable_sort(out.begin(), out.end(), [](const Part& a, const Part& b) { return a.seconds > b.seconds; });
  return out;
}

}  // namespace

svg::Picture days_picture(const Estimate& e, const Drawing& how) {
  if (!e.run || !std::isfinite(e.run->expected.number())) return {};
  const RunEstimate<double>& r = *e.run;
  constexpr double kRow = 24;
  const double left = how.narrow() ? 148 : 190, bars = how.width - left - (how.narrow() ? 104 : 170);
  const double whole = how.width - 24;
  const std::vector<Part> parts = losses_of(r);
  svg::Canvas c;
  const double top = svg::heading(c, how.width, "Where the days go",
                                  text::seconds(r.ideal.number()) + " of training with nothing ever failing, " +
                                      text::seconds(r.expected.number()) + " expected");
  const double share = r.ideal.number() / r.expected.number();
  c.rect(12, top, whole * share, 22, svg::kPalette[0], "training " + text::seconds(r.ideal.number()),
         "run.ideal_seconds");
  c.rect(12 + whole * share, top, whole * (1 - share), 22, svg::kPalette[3], "losses", "run.expected_seconds");
  c.text(18, top + 15, "training " + text::percent(share), {12, svg::Anchor::start, "#ffffff", true});
  double y = top + 40;
  const double most = parts.empty() ? 1 : parts.front().seconds;
  for (const Part& p : parts) {
    c.text(left - 8, y + 14, p.what, {12, svg::Anchor::end});
    c.rect(left, y + 3, std::max(1.0, p.seconds / most * bars), kRow - 8, svg::kPalette[3],
           p.what + " " + text::seconds(p.seconds), p.term);
    c.text(left + p.seconds / most * bars + 6, y + 14,
           text::seconds(p.seconds) + ", " + text::percent(p.seconds / r.expected.number()));
    y += kRow;
  }
  return {"days", "Where the days of the run go", c.take(), how.width, y + 12};
}

svg::Picture finish_picture(const Estimate& e, const Drawing& how) {
  if (!e.run || e.run->finish.size() < 99 || !std::isfinite(e.run->finish.back())) return {};
  const RunEstimate<double>& r = *e.run;
  constexpr double kLeft = 30, kPlot = 180;
  const double plot = how.width - 2 * kLeft;
  constexpr int kBins = 28;
  const double low = std::min(r.ideal.number(), r.finish.front()), high = r.finish.back();
  const double span = std::max(high - low, high * 1e-6);
  const auto x_of = [&](double s) { return kLeft + (s - low) / span * plot; };
  // The share of runs below a time, by line between the percentiles.
  const auto below = [&](double s) {
    double share = 0;
    for (std::size_t i = 0; i < r.finish.size(); ++i) {
      if (r.finish[i] <= s) share = static_cast<double>(i + 1);
    }
    const auto i = static_cast<std::size_t>(share);
    if (i >= 1 && i < r.finish.size() && r.finish[i] > r.finish[i - 1])
      share += (s - r.finish[i - 1]) / (r.finish[i] - r.finish[i - 1]);
    return share;
  };
  double heights[kBins], most = 0;
  for (int i = 0; i < kBins; ++i) {
    heights[i] = below(low + span * (i + 1) / kBins) - below(low + span * i / kBins);
    most = std::max(most, heights[i]);
  }
  svg::Canvas c;
  const double top =
      svg::heading(
          c, how.width, "When it ends",
          "simulated runs: step time from its band and from practice, failures from the spread between fleets") +
      20;
  for (int i = 0; i < kBins; ++i) {
    const double height = most > 0 ? heights[i] / most * kPlot : 0;
    c.rect(kLeft + plot * i / kBins + 1, top + kPlot - height, plot / kBins - 2, height, svg::kPalette[4]);
  }
  c.line(kLeft, top + kPlot, kLeft + plot, top + kPlot, svg::kInk);
  const auto mark = [&](double seconds, const char* what, std::string_view colour, double drop) {
    c.line(x_of(seconds), top - 10, x_of(seconds), top + kPlot, colour, 2, what[0] == 'i');
    const double x = std::clamp(x_of(seconds), kLeft + 40, kLeft + plot - 40);
    c.text(x, top + kPlot + drop, std::string(what) + " " + text::seconds(seconds), {12, svg::Anchor::middle});
  };
  mark(r.ideal.number(), "ideal", svg::kFaint, 66);
  mark(r.p10.number(), "P10", svg::kPalette[2], 18);
  mark(r.p50.number(), "P50", svg::kInk, 34);
  mark(r.p90.number(), "P90", svg::kPalette[3], 50);
  return {"finish", "Distribution of the end of the run", c.take(), how.width, top + kPlot + 78};
}

svg::Picture interval_picture(const IntervalCurve& curve, const Drawing& how) {
  if (curve.points.empty()) return {};
  constexpr double kLeft = 60, kPlot = 200, kMostShown = 3;
  const double plot = how.width - kLeft - 40;
  svg::Canvas c;
  const double top = svg::heading(c, how.width, "How often to save",
                                  "time added by saves and failures, by training between saves; a save stops training "
                                  "for " +
                                      text::seconds(curve.save));
  double least = curve.points.front().stretch;
  for (const CurvePoint& p : curve.points) least = std::min(least, p.stretch);
  // Up to three times the least loss, so that the bottom can be read.
  const std::vector<double> axis = svg::ticks((least - 1) * kMostShown * 100, 5);
  const double first = math::log(curve.points.front().interval);
  const double span = math::log(curve.points.back().interval) - first;
  const auto x_of = [&](double interval) { return kLeft + (math::log(interval) - first) / span * plot; };
  const auto y_of = [&](double stretched) {
    return top + kPlot - std::min(1.0, (stretched - 1) * 100 / axis.back()) * kPlot;
  };
  for (const double percent : axis) {
    const double y = y_of(1 + percent / 100);
    c.line(kLeft, y, kLeft + plot, y, svg::kGrid);
    c.text(kLeft - 6, y + 4, text::fixed(percent, percent == std::floor(percent) ? 0 : 1) + " %",
           {11, svg::Anchor::end});
  }
  std::vector<std::pair<double, double>> line;
  for (const CurvePoint& p : curve.points) {
    if ((p.stretch - 1) * 100 <= axis.back()) line.emplace_back(x_of(p.interval), y_of(p.stretch));
  }
  c.polyline(line, svg::kPalette[0], 2.5);
  for (std::size_t i = 0; i < curve.points.size(); i += how.narrow() ? 30 : 15)
    c.text(x_of(curve.points[i].interval), top + kPlot + 18, text::seconds(curve.points[i].interval),
           {11, svg::Anchor::middle});
  const double at = std::clamp(x_of(curve.chosen), kLeft, kLeft + plot);
  const double added = stretch(curve.chosen, curve.save, std::min(curve.pending, curve.chosen), curve.hazard);
  c.line(at, top, at, top + kPlot, svg::kPalette[3], 2, true);
  c.circle(at, y_of(added), 5, svg::kPalette[3]);
  c.text(12, top + kPlot + 38, "chosen " + text::seconds(curve.chosen) + ": " + text::percent(added - 1),
         {12, svg::Anchor::start, svg::kInk, true});
  const double last = top + kPlot + (how.narrow() ? 56 : 38);
  c.text(how.narrow() ? 12 : kLeft + plot, last,
         "best " + text::seconds(curve.best) + ", Young " + text::seconds(curve.young) + ", Daly " +
             text::seconds(curve.daly),
         {12, how.narrow() ? svg::Anchor::start : svg::Anchor::end});
  return {"interval", "Time added by saves and failures over the interval between saves", c.take(), how.width,
          last + 10};
}

std::vector<svg::Picture> estimate_pictures(const Estimate& e, const IntervalCurve& curve, const Drawing& how) {
  std::vector<svg::Picture> out;
  svg::Picture all[] = {memory_picture(e, how),      moments_picture(e, how), mfu_picture(e, how),
                        schedule_picture(e, how),    days_picture(e, how),    finish_picture(e, how),
                        interval_picture(curve, how)};
  for (svg::Picture& p : all) {
    if (!p.empty()) out.push_back(std::move(p));
  }
  return out;
}

}  // namespace preflop
