#include "src/cost/block_cost.hpp"

#include <algorithm>

#include "src/cost/link.hpp"
#include "src/cost/saved.hpp"
#include "src/cost/walk.hpp"
#include "src/cost/work.hpp"

namespace preflop {

const char* name(CollectiveKind kind) {
  static constexpr const char* kNames[] = {"all-reduce", "all-gather", "reduce-scatter"};
  return kNames[static_cast<int>(kind)];
}

double BlockCost::saved_bytes() const {
  double bytes = 0;
  for (const SavedItem& item : saved) bytes += item.bytes();
  return bytes;
}

namespace {

void collect_weights(BlockCost& out, const Block& block, const Mesh& mesh) {
  for (const Op& op : block.ops) {
    for (const Weight& w : op.weights) {
      const Volume v = volume(w.axes, out.extents, mesh);
      out.legal = out.legal && v.elements.valid();
      out.weights.push_back({op.tag, w.role, w.axes, v, w.owned, op.merge});
    }
  }
}

}  // namespace

BlockCost analyse(const Block& block, const Setting& setting) {
  BlockCost out;
  out.extents = block.extents;
  out.extents[Axis::batch] = setting.micro_batch;
  out.extents[Axis::seq] = setting.seq;
  out.extents[Axis::key_seq] = setting.seq;
  out.window = block.window;
  if (block.extents[Axis::vocab].get() > 0) {
    const Count multiple = std::max<std::int64_t>(1, static_cast<std::int64_t>(setting.stack->vocab_multiple.value));
    out.extents[Axis::vocab] = round_up(block.extents[Axis::vocab], multiple * Count(setting.mesh.tp));
  }
  const Link l = link(block, setting.mesh);
  collect_weights(out, block, setting.mesh);
  SavedSet saved = saved_set(block, l, out.extents, setting);
  for (const SavedItem& item : saved.kept) out.legal = out.legal && item.volume.elements.valid();
  out.walk = walk_backward(block, l, saved, out.extents, setting);
  out.saved = std::move(saved.kept);
  collect_work(out, block, l, setting);
  collect_collectives(out, block, l, setting);
  return out;
}

double visible_keys(Visible rule, Count seq, Count window) {
  const double s = seq.real();
  const double w = window.get() > 0 && window < seq ? window.real() : s;
  if (rule == Visible::full) return w;
  // Causal: the mean over all queries of the keys they see. A window of w sees w keys but for the
  // first w queries: w - w(w-1)/(2s). Without a window the field's convention is s/2.
  return window.get() > 0 && window < seq ? w - w * (w - 1) / (2 * s) : s / 2;
}

}  // namespace preflop
