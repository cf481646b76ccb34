#include "src/view/svg/schedule.hpp"

#include <algorithm>

#include "src/base/text.hpp"
#include "src/view/svg/pictures.hpp"

namespace preflop {

namespace {

struct Pass {
  std::int64_t micro_batch, chunk;
  bool backward;
};

// The k-th pass of a rank whose chunks take turns by pp micro-batches, as Megatron-LM orders them.
Pass pass_of(std::int64_t k, std::int64_t pp, std::int64_t vpp, bool backward) {
  const std::int64_t round = k / (pp * vpp), chunk = k % (pp * vpp) / pp;
  return {round * pp + k % pp, backward ? vpp - 1 - chunk : chunk, backward};
}

// Passes of one stage in order: warm-up, one forward one backward, the rest.
std::vector<Pass> order_of(std::string_view schedule, std::int64_t pp, std::int64_t vpp, std::int64_t m,
                           std::int64_t stage) {
  const std::int64_t all = m * vpp;
  std::int64_t warm_up = std::min(all, pp - stage - 1);
  if (schedule == "gpipe") warm_up = all;
  if (schedule == "interleaved") warm_up = std::min(all, 2 * (pp - stage - 1) + (vpp - 1) * pp);
  std::vector<Pass> out;
  for (std::int64_t k = 0; k < warm_up; ++k) out.push_back(pass_of(k, pp, vpp, false));
  for (std::int64_t k = warm_up; k < all; ++k) {
    out.push_back(pass_of(k, pp, vpp, false));
    out.push_back(pass_of(k - warm_up, pp, vpp, true));
  }
  for (std::int64_t k = all - warm_up; k < all; ++k) out.push_back(pass_of(k, pp, vpp, true));
  return out;
}

// Ends of passes that have run, by virtual stage and micro-batch.
class Ends {
 public:
  Ends(std::int64_t pp, std::int64_t vpp, std::int64_t m)
      : pp_(pp), last_(pp * vpp - 1), m_(m), ends_(static_cast<std::size_t>(2 * pp * vpp * m), -1) {}

  double& at(std::int64_t stage, const Pass& p) {
    return ends_[index(p.chunk * pp_ + stage, p.micro_batch, p.backward)];
  }
  // When what a pass needs is there; negative: not yet.
  double ready(std::int64_t stage, const Pass& p) const {
    const std::int64_t v = p.chunk * pp_ + stage;
    if (!p.backward) return v == 0 ? 0 : ends_[index(v - 1, p.micro_batch, false)];
    const double own = ends_[index(v, p.micro_batch, false)];
    if (v == last_) return own;
    const double next = ends_[index(v + 1, p.micro_batch, true)];
    return next < 0 || own < 0 ? -1 : std::max(own, next);
  }

 private:
  std::size_t index(std::int64_t v, std::int64_t mb, bool backward) const {
    return static_cast<std::size_t>(((backward ? last_ + 1 : 0) + v) * m_ + mb);
  }
  std::int64_t pp_, last_, m_;
  std::vector<double> ends_;
};

}  // namespace

Timeline pipeline_timeline(std::string_view schedule, std::int64_t pp, std::int64_t vpp, std::int64_t m) {
  Timeline out;
  const bool interleaved = schedule == "interleaved";
  if (schedule != "gpipe" && schedule != "1f1b" && !interleaved) return out;
  if (pp < 1 || m < 1 || (interleaved ? m % pp != 0 : vpp != 1)) return out;
  std::vector<std::vector<Pass>> orders;
  for (std::int64_t s = 0; s < pp; ++s) orders.push_back(order_of(schedule, pp, vpp, m, s));
  std::vector<std::size_t> next(static_cast<std::size_t>(pp), 0);
  std::vector<double> free(static_cast<std::size_t>(pp), 0);
  std::vector<std::vector<Slot>> slots(static_cast<std::size_t>(pp));
  Ends ends(pp, vpp, m);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::int64_t s = 0; s < pp; ++s) {
      const auto i = static_cast<std::size_t>(s);
      while (next[i] < orders[i].size()) {
        const Pass& p = orders[i][next[i]];
        const double ready = ends.ready(s, p);
        if (ready < 0) break;
        const double start = std::max(ready, free[i]);
        free[i] = ends.at(s, p) = start + (p.backward ? 2.0 : 1.0) / static_cast<double>(vpp);
        slots[i].push_back({s, p.micro_batch, p.chunk, p.backward, start, free[i]});
        out.length = std::max(out.length, free[i]);
        ++next[i];
        moved = true;
      }
    }
  }
  for (const auto& of_stage : slots) out.slots.insert(out.slots.end(), of_stage.begin(), of_stage.end());
  return out;
}

svg::Picture schedule_picture(const Estimate& e, const Drawing& how) {
  const Layout& l = e.recipe.layout;
  constexpr std::int64_t kMostStages = 16;
  const std::int64_t most_shown = how.narrow() ? 12 : 24;
  if (!e.step || l.pp < 2 || l.pp > kMostStages) return {};
  const std::int64_t all = e.recipe.micro_batches();
  const std::int64_t few = std::min(all, std::max(most_shown / l.vpp, l.pp));
  const std::int64_t shown = l.vpp > 1 ? std::max<std::int64_t>(1, few / l.pp) * l.pp : few;
  const Timeline line = pipeline_timeline(l.schedule, l.pp, l.vpp, std::min(all, shown));
  if (line.slots.empty()) return {};
  constexpr double kLeft = 60, kRow = 20, kNumber = 15;
  const double plot = how.width - kLeft - 20;
  svg::Canvas c;
  const auto& bubble = e.step->breakdown[static_cast<int>(Lost::bubble)];
  const double top = svg::heading(
      c, how.width, "The pipeline's schedule: " + l.schedule,
      (shown < all ? std::to_string(shown) + " of " : "") + text::grouped(all) + " micro-batches, equal stages" +
          (bubble ? "; bubbles take " + text::percent(bubble->number() / e.step->seconds.number()) +
                        " of the estimate's step"
                  : ""));
  const double scale = plot / line.length;
  for (std::int64_t s = 0; s < l.pp; ++s) {
    const double y = top + kRow * static_cast<double>(s);
    c.text(kLeft - 8, y + 14, "stage " + std::to_string(s), {11, svg::Anchor::end});
    c.rect(kLeft, y + 1, plot, kRow - 2, svg::kEmpty, "bubble", "step.breakdown.bubble");
  }
  for (const Slot& s : line.slots) {
    const double x = kLeft + s.start * scale, y = top + kRow * static_cast<double>(s.stage);
    const double width = (s.end - s.start) * scale;
    const std::string_view colour = s.backward ? svg::kPalette[1] : svg::kPalette[s.chunk % 2 == 0 ? 4 : 2];
    c.rect(x + 0.5, y + 1, width - 1, kRow - 2, colour,
           std::string(s.backward ? "backward " : "forward ") + std::to_string(s.micro_batch));
    if (width >= kNumber)
      c.text(x + width / 2, y + 14, std::to_string(s.micro_batch), {11, svg::Anchor::middle, svg::kInk});
  }
  const double y = top + kRow * static_cast<double>(l.pp) + 18, gap = how.narrow() ? 12 : 0;
  c.rect(12, y - 10, 12, 12, svg::kPalette[4]);
  c.text(30, y, "forward");
  c.rect(98 - gap, y - 10, 12, 12, svg::kPalette[1]);
  c.text(116 - gap, y, how.narrow() ? "backward" : "backward, twice as long");
  c.rect((how.narrow() ? 164 : 280) + gap, y - 10, 12, 12, svg::kEmpty, "bubble", "step.breakdown.bubble");
  c.text((how.narrow() ? 182 : 298) + gap, y, "bubble");
  return {"schedule", "Pipeline schedule, stage by time", c.take(), how.width, y + 14};
}

}  // namespace preflop
