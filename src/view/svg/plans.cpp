// Plans against one another: what is faster, and what it takes.
#include <algorithm>

#include "src/base/text.hpp"
#include "src/view/plan.hpp"
#include "src/view/svg/pictures.hpp"

namespace preflop {

namespace {

struct Point {
  double x = 0, y = 0;
  std::string label, tip, term;
  bool front = false;
};

// Plans of one cluster: memory that each needs against its step time; on the front is what nothing beats in both.
std::vector<Point> by_memory(const Plan& plan, const Drawing& how) {
  std::vector<Point> out;
  for (std::size_t i = 0; i < plan.plans.size(); ++i) {
    const Estimate& e = plan.plans[i];
    if (!e.step) continue;
    const double bytes = e.memory.stages[e.memory.peak_stage].device.number(), seconds = e.step->seconds.number();
    out.push_back({bytes / how.unit(), seconds, std::to_string(i + 1),
                   layout_line(e.recipe) + ": " + text::seconds(seconds) + " a step, " + how.memory(bytes),
                   "plans[" + std::to_string(i) + "]", false});
  }
  for (Point& p : out)
    p.front = std::none_of(out.begin(), out.end(),
                           [&](const Point& q) { return q.x <= p.x && q.y <= p.y && (q.x < p.x || q.y < p.y); });
  return out;
}

// The best of each cluster: GPUs against the run, or the step where there is no run.
std::vector<Point> by_gpus(const Plan& plan) {
  std::vector<Point> out;
  for (std::size_t i = 0; i < plan.clusters.size(); ++i) {
    const Estimate& e = plan.clusters[i];
    if (!e.step) continue;
    const double seconds = e.run ? e.run->expected.number() : e.step->seconds.number();
    out.push_back({static_cast<double>(e.cluster.gpus), seconds, text::grouped(e.cluster.gpus),
                   text::grouped(e.cluster.gpus) + " x " + e.cluster.gpu.id + ", " + layout_line(e.recipe) + ": " +
                       text::seconds(seconds),
                   "scaling[" + std::to_string(i) + "]",
                   std::find(plan.pareto.begin(), plan.pareto.end(), i) != plan.pareto.end()});
  }
  return out;
}

struct Scale {
  double low, high, from, to;
  double operator()(double v) const { return from + (v - low) / (high - low) * (to - from); }
};
// With a margin of a tenth around the values, from 0 up at most; a single value stands in the middle.
Scale scale_of(const std::vector<Point>& points, double Point::* member, double from, double to) {
  double low = points.front().*member, high = low;
  for (const Point& p : points) low = std::min(low, p.*member), high = std::max(high, p.*member);
  const double margin = high > low ? (high - low) / 10 : std::max(high, 1e-9) / 10;
  return {std::max(0.0, low - margin), high + margin, from, to};
}

// Labels of a time axis that differ from one another: one unit for all, and as many decimals as a step between them
// takes.
std::vector<std::string> time_labels(const std::vector<double>& seconds) {
  constexpr std::pair<double, const char*> kUnits[] = {
      {86400, " days"}, {3600, " h"}, {60, " min"}, {1, " s"}, {1e-3, " ms"}};
  constexpr double kTimes = 3;  // of a unit, before it is used
  const double most = *std::max_element(seconds.begin(), seconds.end());
  std::pair<double, const char*> unit = kUnits[4];
  for (const auto& u : kUnits) {
    if (most < kTimes * u.first) continue;
    unit = u;
    break;
  }
  int decimals = 0;
  double step = (seconds[1] - seconds[0]) / unit.first;
  for (; step < 1 && decimals < 3; step *= 10) ++decimals;
  std::vector<std::string> out;
  for (const double s : seconds) out.push_back(text::fixed(s / unit.first, decimals) + unit.second);
  return out;
}

}  // namespace

svg::Picture plans_picture(const Plan& plan, const Drawing& how) {
  const bool clusters = plan.clusters.size() > 1;
  std::vector<Point> points = clusters ? by_gpus(plan) : by_memory(plan, how);
  if (points.empty()) return {};
  constexpr double kLeft = 72, kPlot = 220;
  const bool run = clusters && plan.clusters.front().run.has_value();
  const std::string time = run ? "expected time of the run" : "time of a step";
  svg::Canvas c;
  const double top = svg::heading(c, how.width, clusters ? "Faster with more GPUs" : "Faster for more memory",
                                  "one point a plan, " + time + " upwards; joined: nothing is better in both");
  const Scale x = scale_of(points, &Point::x, kLeft, how.width - 32), y = scale_of(points, &Point::y, top + kPlot, top);
  constexpr int kLines = 5;
  std::vector<double> times;
  for (int i = 0; i < kLines; ++i) times.push_back(y.low + (y.high - y.low) * i / (kLines - 1));
  const std::vector<std::string> labels = time_labels(times);
  for (int i = 0; i < kLines; ++i) {
    const double v = times[static_cast<std::size_t>(i)], u = x.low + (x.high - x.low) * i / (kLines - 1);
    c.line(kLeft, y(v), how.width - 12, y(v), svg::kGrid);
    c.text(kLeft - 6, y(v) + 4, labels[static_cast<std::size_t>(i)], {11, svg::Anchor::end});
    if (i % 2 == 0)
      c.text(x(u), top + kPlot + 18, clusters ? text::grouped(static_cast<long long>(u)) : text::fixed(u, 1),
             {11, svg::Anchor::middle});
  }
  c.text((kLeft + how.width) / 2, top + kPlot + 36,
         clusters ? "GPUs"
         : how.gb ? "GB on the fullest GPU"
                  : "GiB on the fullest GPU",
         {12, svg::Anchor::middle});
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  std::vector<std::pair<double, double>> front;
  for (const Point& p : points) {
    if (p.front) front.emplace_back(x(p.x), y(p.y));
  }
  if (front.size() > 1) c.polyline(front, svg::kPalette[0], 1.5);
  for (const Point& p : points) {
    c.circle(x(p.x), y(p.y), p.front ? 7 : 5, svg::kPalette[p.front ? 0 : 7], p.tip, p.term);
    c.text(x(p.x) + 11, y(p.y) + 4, p.label, {12, svg::Anchor::start, svg::kInk, p.front});
  }
  return {"plans", "Plans by time and by what they take", c.take(), how.width, top + kPlot + 46};
}

}  // namespace preflop
