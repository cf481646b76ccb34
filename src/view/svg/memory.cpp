// Memory of each stage against the capacity line.
#include <algorithm>

#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/view/memory_text.hpp"
#include "src/view/svg/pictures.hpp"

namespace preflop {

namespace {

constexpr double kLeft = 56, kTop = 64, kPlot = 260, kBars = 500;
constexpr const char* kTermWords[kTerms] = {"weights",         "gradients", "optimizer states", "activations",
                                            "logits and loss", "buffers",   "transients"};

// From the bottom up: the terms, then what the allocator and CUDA hold beside them.
std::vector<std::pair<std::string, double>> parts_of(const StageMemory<double>& s) {
  std::vector<std::pair<std::string, double>> out;
  for (int i = 0; i < kTerms; ++i) out.emplace_back(kTermWords[i], s.terms[i].number());
  out.emplace_back("allocator and CUDA", s.device.number() - s.allocated.number());
  return out;
}

void legend(svg::Canvas& c, const StageMemory<double>& peak) {
  const auto parts = parts_of(peak);
  double y = kTop + 8;
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (parts[i].second <= 0) continue;
    c.rect(kLeft + kBars + 16, y - 10, 12, 12, svg::kPalette[i]);
    c.text(kLeft + kBars + 34, y, parts[i].first + " " + text::fixed(parts[i].second / kGiB, 2));
    y += 20;
  }
  c.text(kLeft + kBars + 16, y + 6, "GiB on stage " + std::to_string(peak.stage),
         {11, svg::Anchor::start, svg::kFaint});
}

}  // namespace

svg::Picture memory_picture(const Estimate& e) {
  const MemoryEstimate<double>& m = e.memory;
  if (m.stages.empty()) return {};
  const std::vector<StageGroup> groups = stage_groups(m);
  double most = m.capacity ? m.capacity->number() : 0;
  for (const auto& s : m.stages) most = std::max(most, s.device.number());
  const std::vector<double> axis = svg::ticks(most / kGiB * 1.05, 6);
  const double scale = kPlot / (axis.back() * kGiB);
  const auto y_of = [&](double bytes) { return kTop + kPlot - bytes * scale; };
  svg::Canvas c;
  c.text(12, 24, "Memory of one GPU at the fullest moment of each stage", {16, svg::Anchor::start, svg::kInk, true});
  const std::string verdict = m.verdict == Verdict::unknown ? "" : std::string(name(m.verdict)) + ": ";
  c.text(12, 44,
         verdict + (m.margin ? text::gib(m.margin->number()) + " to spare on the fullest" : "capacity not known"),
         {12, svg::Anchor::start, svg::kInk});
  for (const double gib : axis) {
    c.line(kLeft, y_of(gib * kGiB), kLeft + kBars, y_of(gib * kGiB), svg::kGrid);
    c.text(kLeft - 6, y_of(gib * kGiB) + 4, text::fixed(gib, gib == static_cast<long long>(gib) ? 0 : 1),
           {11, svg::Anchor::end});
  }
  const double each = kBars / static_cast<double>(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const StageMemory<double>& s = m.stages[groups[g].first];
    const double x = kLeft + each * static_cast<double>(g) + each * 0.15, width = std::min(each * 0.7, 90.0);
    double from = 0;
    const auto parts = parts_of(s);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      c.rect(x, y_of(from + parts[i].second), width, parts[i].second * scale, svg::kPalette[i],
             parts[i].first + " " + text::gib(parts[i].second, 2));
      from += parts[i].second;
    }
    if (each >= 34)
      c.text(x + width / 2, y_of(from) - 5, text::fixed(from / kGiB, 1), {11, svg::Anchor::middle, svg::kInk, true});
    if (each >= 20) c.text(x + width / 2, kTop + kPlot + 16, stage_range(m, groups[g]), {11, svg::Anchor::middle});
  }
  if (m.capacity) {
    const double y = y_of(m.capacity->number());
    c.line(kLeft, y, kLeft + kBars, y, svg::kInk, 2, true);
    c.text(kLeft + kBars, y - 5, "capacity " + text::gib(m.capacity->number(), 2),
           {12, svg::Anchor::end, svg::kInk, true});
  }
  c.text(kLeft + kBars / 2, kTop + kPlot + 34, m.stages.size() > 1 ? "pipeline stage" : "one stage",
         {12, svg::Anchor::middle});
  legend(c, m.stages[m.peak_stage]);
  return {"memory", "Memory of each pipeline stage against the capacity", c.take(), kPictureWidth, kTop + kPlot + 46};
}

}  // namespace preflop
