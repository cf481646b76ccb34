// The pipelines of a cell: how many chunks, and how layers are dealt to them.
#include <algorithm>

#include "src/search/cell.hpp"
#include "src/stack/legality.hpp"

namespace preflop {

Cells::Pipelines& Cells::pipelines_of_pp() {
  pipelines_.resize(space_.pp.size());
  Pipelines& out = pipelines_[at_[index(PlanAxis::pp)]];
  if (out.ready && !only_) return out;
  out = Pipelines{};
  out.ready = true;
  Position at = at_;
  for (std::uint32_t v = 0; v < space_.vpp.size(); ++v) {
    for (std::uint32_t s = 0; s < space_.split.size(); ++s) {
      if (!wanted(PlanAxis::vpp, v) || !wanted(PlanAxis::split, s)) continue;
      at[index(PlanAxis::vpp)] = v;
      at[index(PlanAxis::split)] = s;
      const Structure& found = tables_.structure(at);
      if (found.exists && !found.refused) {
        out.open.push_back({v, s, &found, std::nullopt, 0});
        continue;
      }
      std::optional<std::size_t> reason;
      if (found.exists) reason = reason_of(*found.refused, space_.ordinal(at));
      const auto same =
          std::find_if(out.closed.begin(), out.closed.end(), [&](const auto& c) { return c.reason == reason; });
      if (same != out.closed.end())
        ++same->splits;
      else
        out.closed.push_back({v, s, 1, reason});
    }
  }
  return out;
}

void Cells::set_pipeline(std::uint32_t vpp, std::uint32_t split) {
  set(PlanAxis::vpp, vpp);
  set(PlanAxis::split, split);
  recipe_.layout.vpp = space_.vpp[vpp];
  set_schedule();
}

// Counts splits that cannot be, `count` ordinals each.
void Cells::close(const Pipelines::Closed& closed, std::uint64_t count) {
  pruned_ += count * closed.splits;
  if (closed.reason) {
    reasons_[*closed.reason].count += count * closed.splits;
    return;
  }
  set_pipeline(closed.vpp, closed.split);
  reject(Quick::same, ordinal(), count * closed.splits);
}

// Can this split run? Of the cell's other axes only the micro-batches matter: the rest was found legal before.
bool Cells::open(Pipelines::Open& o, std::uint64_t count) {
  set_pipeline(o.vpp, o.split);
  Layout& l = recipe_.layout;
  if (l.vpp > 1 && l.pp > 1 && recipe_.micro_batches() % l.pp != 0) {
    pruned_ += count;
    reject(Quick::interleave, ordinal(), count);
    return false;
  }
  if (!o.legal) {
    l.zero = space_.zero[variants_.front().zero];
    l.hsdp = space_.hsdp[variants_.front().hsdp];
    const Status s = check_legal(*question_.model, *question_.stack, recipe_);
    o.legal = s.ok();
    if (!s) o.reason = reason_of(s.error(), ordinal());
  }
  if (*o.legal) return true;
  reasons_[o.reason].count += count;
  pruned_ += count;
  return false;
}

void Cells::structures() {
  const std::uint64_t count =
      below({PlanAxis::micro_batch, PlanAxis::ep, PlanAxis::etp, PlanAxis::vpp, PlanAxis::split});
  Pipelines& all = pipelines_of_pp();
  for (const Pipelines::Closed& c : all.closed) close(c, count);
  for (Pipelines::Open& o : all.open) {
    if (open(o, count)) structure(*o.structure);
  }
  set_pipeline(0, 0);
}

}  // namespace preflop
