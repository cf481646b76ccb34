// Memory of each stage against the capacity line, and of the fullest stage through a step.
#include <algorithm>

#include "src/base/text.hpp"
#include "src/view/memory_text.hpp"
#include "src/view/svg/pictures.hpp"

namespace preflop {

std::string Drawing::memory(double bytes, int decimals) const {
  return gb ? text::fixed(bytes / unit(), decimals) + " GB" : text::gib(bytes, decimals);
}

namespace {

constexpr double kPlot = 260, kLegend = 20, kMomentLine = 17;
constexpr const char* kTermWords[kTerms] = {"weights",         "gradients", "optimizer states", "activations",
                                            "logits and loss", "buffers",   "transients"};
constexpr const char* kTermKeys[kTerms] = {"weights", "gradients", "optimizer", "activations",
                                           "logits",  "buffers",   "transients"};

struct Layer {
  std::string what, key;
  double bytes;
};
// From the bottom up: the terms, then what the allocator and CUDA hold beside them.
std::vector<Layer> layers_of(const StageMemory<double>& s) {
  std::vector<Layer> out;
  for (int i = 0; i < kTerms; ++i) out.push_back({kTermWords[i], kTermKeys[i], s.terms[i].number()});
  out.push_back({"allocator and CUDA", "device", s.device.number() - s.allocated.number()});
  return out;
}

// The plot's frame: where bars stand, and how bytes become heights.
struct Frame {
  double left, right, top, scale;
  double y(double bytes) const { return top + kPlot - bytes * scale; }
};

Frame frame(svg::Canvas& c, const Drawing& how, double top, double most, double right) {
  const std::vector<double> axis = svg::ticks(most / how.unit() * 1.05, 6);
  const Frame out{how.narrow() ? 40.0 : 56.0, right, top, kPlot / (axis.back() * how.unit())};
  for (const double value : axis) {
    const double y = out.y(value * how.unit());
    c.line(out.left, y, out.right, y, svg::kGrid);
    c.text(out.left - 6, y + 4, text::fixed(value, value == static_cast<long long>(value) ? 0 : 1),
           {11, svg::Anchor::end});
  }
  return out;
}

void capacity_line(svg::Canvas& c, const Drawing& how, const Frame& f, const std::optional<Bytes<double>>& capacity) {
  if (!capacity) return;
  const double y = f.y(capacity->number());
  c.line(f.left, y, f.right, y, svg::kInk, 2, true);
  c.text(f.right, y - 5, "capacity " + how.memory(capacity->number(), 2), {12, svg::Anchor::end, svg::kInk, true});
}

std::string term_of(const StageMemory<double>& s, const std::string& key) {
  return "memory.stages[" + std::to_string(s.stage) + "]." + key;
}

// Beside the bars, from the top of the stack down; below them on a narrow picture. Returns where it ends.
double legend(svg::Canvas& c, const Drawing& how, const StageMemory<double>& peak, double x, double y) {
  const std::vector<Layer> parts = layers_of(peak);
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (parts[i].bytes <= 0) continue;
    const std::string words = parts[i].what + " " + text::fixed(parts[i].bytes / how.unit(), 2);
    c.rect(x, y - 10, 12, 12, svg::kPalette[i], words, term_of(peak, parts[i].key));
    c.text(x + 18, y, words);
    y += kLegend;
  }
  c.text(x, y + 2, (how.gb ? "GB on stage " : "GiB on stage ") + std::to_string(peak.stage),
         {11, svg::Anchor::start, svg::kFaint});
  return y + 2;
}

void stack_of(svg::Canvas& c, const Drawing& how, const Frame& f, const StageMemory<double>& s, double x,
              double width) {
  double from = 0;
  const std::vector<Layer> parts = layers_of(s);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    c.rect(x, f.y(from + parts[i].bytes), width, parts[i].bytes * f.scale, svg::kPalette[i],
           parts[i].what + " " + how.memory(parts[i].bytes, 2), term_of(s, parts[i].key));
    from += parts[i].bytes;
  }
}

double most_of(const MemoryEstimate<double>& m) {
  double most = m.capacity ? m.capacity->number() : 0;
  for (const auto& s : m.stages) most = std::max(most, s.device.number());
  return most;
}

std::string verdict_words(const MemoryEstimate<double>& m, const Drawing& how) {
  const std::string verdict = m.verdict == Verdict::unknown ? "" : std::string(name(m.verdict)) + ": ";
  if (!m.margin) return verdict + "capacity not known";
  const double margin = m.margin->number();
  return verdict + how.memory(margin < 0 ? -margin : margin) +
         (margin < 0 ? " short on the fullest" : " to spare on the fullest");
}

}  // namespace

svg::Picture memory_picture(const Estimate& e, const Drawing& how) {
  const MemoryEstimate<double>& m = e.memory;
  if (m.stages.empty()) return {};
  const std::vector<StageGroup> groups = stage_groups(m);
  svg::Canvas c;
  const double top =
      svg::heading(c, how.width, "Memory of one GPU at the fullest moment of each stage", verdict_words(m, how)) + 12;
  const double right = how.narrow() ? how.width - 12 : how.width - 204;
  const Frame f = frame(c, how, top, most_of(m), right);
  const double each = (f.right - f.left) / static_cast<double>(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const StageMemory<double>& s = m.stages[groups[g].first];
    const double width = std::min(each * 0.7, 90.0), x = f.left + each * (static_cast<double>(g) + 0.5) - width / 2;
    stack_of(c, how, f, s, x, width);
    if (each >= 34)
      c.text(x + width / 2, f.y(s.device.number()) - 5, text::fixed(s.device.number() / how.unit(), 1),
             {11, svg::Anchor::middle, svg::kInk, true});
    if (each >= 20) c.text(x + width / 2, f.top + kPlot + 16, stage_range(m, groups[g]), {11, svg::Anchor::middle});
  }
  capacity_line(c, how, f, m.capacity);
  const double bottom = f.top + kPlot + 34;
  c.text((f.left + f.right) / 2, bottom, m.stages.size() > 1 ? "pipeline stage" : "one stage",
         {12, svg::Anchor::middle});
  double end =
      legend(c, how, m.stages[m.peak_stage], how.narrow() ? 12 : f.right + 16, how.narrow() ? bottom + 28 : f.top + 8);
  end = std::max(bottom, end);
  return {"memory", "Memory of each pipeline stage against the capacity", c.take(), how.width, end + 12};
}

svg::Picture moments_picture(const Estimate& e, const Drawing& how) {
  const MemoryEstimate<double>& m = e.memory;
  if (m.stages.empty() || !e.step) return {};
  const StageMemory<double>& s = m.stages[m.peak_stage];
  std::vector<int> present;
  for (int i = 0; i < kMoments; ++i) {
    if (s.moments[i]) present.push_back(i);
  }
  svg::Canvas c;
  const double top = svg::heading(c, how.width, "Memory through a step",
                                  "allocated by tensors on stage " + std::to_string(s.stage) +
                                      ", the fullest; the peak is at " + moment_words(s.moment)) +
                     12;
  const Frame f = frame(c, how, top, most_of(m), how.width - 12);
  const double each = (f.right - f.left) / static_cast<double>(present.size());
  double end = f.top + kPlot + (how.narrow() ? 28 : 16);
  for (std::size_t i = 0; i < present.size(); ++i) {
    const auto moment = static_cast<Moment>(present[i]);
    const double bytes = s.moments[present[i]]->number(), x = f.left + each * static_cast<double>(i);
    const bool peak = moment == s.moment;
    c.rect(x + each * 0.08, f.y(bytes), each * 0.84, bytes * f.scale, svg::kPalette[peak ? 0 : 4],
           moment_words(moment) + " " + how.memory(bytes, 2), term_of(s, std::string("moments.") + name(moment)));
    c.text(x + each / 2, f.y(bytes) - 5, text::fixed(bytes / how.unit(), 1),
           {11, svg::Anchor::middle, svg::kInk, peak});
    std::string words = name(moment);
    std::replace(words.begin(), words.end(), '_', ' ');
    if (how.narrow()) {  // no room for words below the bars
      c.text(x + each / 2, f.top + kPlot + 14, std::to_string(i + 1), {11, svg::Anchor::middle, svg::kInk, peak});
      end += kMomentLine;
      c.text(12, end, std::to_string(i + 1) + "  " + words, {12, svg::Anchor::start, svg::kInk, peak});
    } else {
      constexpr double kLetter = 6.9, kLine = 14;  // bold
      double y = f.top + kPlot + 16;
      for (const std::string& line : text::wrapped(words, static_cast<std::size_t>(each / kLetter))) {
        c.text(x + each / 2, y, line, {11, svg::Anchor::middle, svg::kInk, peak});
        end = std::max(end, y);
        y += kLine;
      }
    }
  }
  capacity_line(c, how, f, m.capacity);
  return {"moments", "Memory of the fullest stage at each moment of a step", c.take(), how.width, end + 10};
}

}  // namespace preflop
