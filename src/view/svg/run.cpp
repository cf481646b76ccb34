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

const svg::TextStyle kTitle{16, svg::Anchor::start, svg::kInk, true};

struct Part {
  std::string what;
  double seconds;
};
std::vector<Part> losses_of(const RunEstimate<double>& r) {
  std::vector<Part> out;
  for (int i = 0; i < kRunLosses; ++i) {
    if (r.losses[i].number() > 0) out.push_back({words(static_cast<RunLoss>(i)), r.losses[i].number()});
  }
  std::stable_sort(out.begin(), out.end(), [](const Part& a, const Part& b) { return a.seconds > b.seconds; });
  return out;
}

}  // namespace

svg::Picture days_picture(const Estimate& e) {
  if (!e.run || !std::isfinite(e.run->expected.number())) return {};
  const RunEstimate<double>& r = *e.run;
  constexpr double kLeft = 190, kBars = 400, kTop = 64, kRow = 24, kWhole = 700;
  const std::vector<Part> parts = losses_of(r);
  svg::Canvas c;
  c.text(12, 24, "Where the days go", kTitle);
  c.text(12, 44,
         text::seconds(r.ideal.number()) + " of training with nothing ever failing, " +
             text::seconds(r.expected.number()) + " expected");
  const double share = r.ideal.number() / r.expected.number();
  c.rect(12, kTop, kWhole * share, 22, svg::kPalette[0], "training " + text::seconds(r.ideal.number()));
  c.rect(12 + kWhole * share, kTop, kWhole * (1 - share), 22, svg::kPalette[3], "losses");
  c.text(18, kTop + 15, "training " + text::percent(share), {12, svg::Anchor::start, "#ffffff", true});
  double y = kTop + 40;
  const double most = parts.empty() ? 1 : parts.front().seconds;
  for (const Part& p : parts) {
    c.text(kLeft - 8, y + 14, p.what, {12, svg::Anchor::end});
    c.rect(kLeft, y + 3, std::max(1.0, p.seconds / most * kBars), kRow - 8, svg::kPalette[3]);
    c.text(kLeft + p.seconds / most * kBars + 6, y + 14,
           text::seconds(p.seconds) + ", " + text::percent(p.seconds / r.expected.number()));
    y += kRow;
  }
  return {"days", "Where the days of the run go", c.take(), kPictureWidth, y + 12};
}

svg::Picture finish_picture(const Estimate& e) {
  if (!e.run || e.run->finish.size() < 99 || !std::isfinite(e.run->finish.back())) return {};
  const RunEstimate<double>& r = *e.run;
  constexpr double kLeft = 30, kPlotWidth = 700, kTop = 84, kPlot = 180;
  constexpr int kBins = 28;
  const double low = std::min(r.ideal.number(), r.finish.front()), high = r.finish.back();
  const double span = std::max(high - low, high * 1e-6);
  const auto x_of = [&](double s) { return kLeft + (s - low) / span * kPlotWidth; };
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
  c.text(12, 24, "When it ends", kTitle);
  c.text(12, 44, "simulated runs: step time from its band, rate of failures from the spread between fleets");
  for (int i = 0; i < kBins; ++i) {
    const double height = most > 0 ? heights[i] / most * kPlot : 0;
    c.rect(kLeft + kPlotWidth * i / kBins + 1, kTop + kPlot - height, kPlotWidth / kBins - 2, height, svg::kPalette[4]);
  }
  c.line(kLeft, kTop + kPlot, kLeft + kPlotWidth, kTop + kPlot, svg::kInk);
  const auto mark = [&](double seconds, const char* what, std::string_view colour, double drop) {
    c.line(x_of(seconds), kTop - 10, x_of(seconds), kTop + kPlot, colour, 2, what[0] == 'i');
    const double x = std::clamp(x_of(seconds), kLeft + 40, kLeft + kPlotWidth - 40);
    c.text(x, kTop + kPlot + drop, std::string(what) + " " + text::seconds(seconds), {12, svg::Anchor::middle});
  };
  mark(r.ideal.number(), "ideal", svg::kFaint, 66);
  mark(r.p10.number(), "P10", svg::kPalette[2], 18);
  mark(r.p50.number(), "P50", svg::kInk, 34);
  mark(r.p90.number(), "P90", svg::kPalette[3], 50);
  return {"finish", "Distribution of the end of the run", c.take(), kPictureWidth, kTop + kPlot + 78};
}

svg::Picture interval_picture(const IntervalCurve& curve) {
  if (curve.points.empty()) return {};
  constexpr double kLeft = 60, kPlotWidth = 660, kTop = 64, kPlot = 200, kMostShown = 3;
  double least = curve.points.front().stretch;
  for (const CurvePoint& p : curve.points) least = std::min(least, p.stretch);
  // Up to three times the least loss, so that the bottom can be read.
  const std::vector<double> axis = svg::ticks((least - 1) * kMostShown * 100, 5);
  const double first = math::log(curve.points.front().interval);
  const double span = math::log(curve.points.back().interval) - first;
  const auto x_of = [&](double interval) { return kLeft + (math::log(interval) - first) / span * kPlotWidth; };
  const auto y_of = [&](double stretched) {
    return kTop + kPlot - std::min(1.0, (stretched - 1) * 100 / axis.back()) * kPlot;
  };
  svg::Canvas c;
  c.text(12, 24, "How often to save", kTitle);
  c.text(12, 44,
         "time added by saves and failures, by training between saves; a save stops training for " +
             text::seconds(curve.save));
  for (const double percent : axis) {
    const double y = y_of(1 + percent / 100);
    c.line(kLeft, y, kLeft + kPlotWidth, y, svg::kGrid);
    c.text(kLeft - 6, y + 4, text::fixed(percent, percent == std::floor(percent) ? 0 : 1) + " %",
           {11, svg::Anchor::end});
  }
  std::vector<std::pair<double, double>> line;
  for (const CurvePoint& p : curve.points) {
    if ((p.stretch - 1) * 100 <= axis.back()) line.emplace_back(x_of(p.interval), y_of(p.stretch));
  }
  c.polyline(line, svg::kPalette[0], 2.5);
  for (std::size_t i = 0; i < curve.points.size(); i += 15)
    c.text(x_of(curve.points[i].interval), kTop + kPlot + 18, text::seconds(curve.points[i].interval),
           {11, svg::Anchor::middle});
  const double at = std::clamp(x_of(curve.chosen), kLeft, kLeft + kPlotWidth);
  const double added = stretch(curve.chosen, curve.save, std::min(curve.pending, curve.chosen), curve.hazard);
  c.line(at, kTop, at, kTop + kPlot, svg::kPalette[3], 2, true);
  c.circle(at, y_of(added), 5, svg::kPalette[3]);
  c.text(at + 8, kTop + 12, "chosen " + text::seconds(curve.chosen) + ": " + text::percent(added - 1), {12});
  c.text(kLeft + kPlotWidth, kTop + kPlot + 38,
         "best " + text::seconds(curve.best) + ", Young " + text::seconds(curve.young) + ", Daly " +
             text::seconds(curve.daly),
         {12, svg::Anchor::end});
  return {"interval", "Time added by saves and failures over the interval between saves", c.take(), kPictureWidth,
          kTop + kPlot + 48};
}

std::vector<svg::Picture> estimate_pictures(const Estimate& e, const IntervalCurve& curve) {
  std::vector<svg::Picture> out;
  svg::Picture all[] = {memory_picture(e), mfu_picture(e),    schedule_picture(e),
                        days_picture(e),   finish_picture(e), interval_picture(curve)};
  for (svg::Picture& p : all) {
    if (!p.empty()) out.push_back(std::move(p));
  }
  return out;
}

}  // namespace preflop
