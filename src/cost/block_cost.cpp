#include "src/cost/block_cost.hpp"

#include <algorithm>
#include <cmath>

#include "src/cost/link.hpp"
#include "src/cost/saved.hpp"
#include "src/cost/walk.hpp"
#include "src/cost/work.hpp"

namespace preflop {

const char* name(CollectiveKind kind) {
  static constexpr const char* kNames[] = {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"};
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
      out.weights.push_back({op.tag, w.role, w.axes, v, w.owned, op.merge, w.with_head});
    }
  }
}

// Rows by which the tokens of a micro-batch enter the experts. The extents are global, the rounding is one
// GPU's: a capacity is a whole number of rows of each expert.
void set_routed_rows(Extents& extents, const Block& block, const Setting& setting) {
  const Mesh& mesh = setting.mesh;
  const Count ranks = mesh.cp * (mesh.sp ? mesh.tp : 1);
  const Count tokens = extents[Axis::batch] * extents[Axis::seq] / ranks;
  const Count chosen = tokens * block.routing.top_k;
  const Count experts = extents[Axis::experts];
  const auto scaled = [](Count rows, double factor) {
    const double wanted = std::ceil(rows.real() * factor);
    return wanted <= static_cast<double>(Count::kMax) ? Count(static_cast<std::int64_t>(wanted)) : Count(-1);
  };
  Count rows = scaled(chosen, setting.imbalance);
  if (setting.capacity_factor > 0) rows = ceil_div(scaled(chosen, setting.capacity_factor), experts) * experts;
  if (!tokens.valid()) rows = Count(-1);
  extents[Axis::routed] = rows * ranks;
  extents[Axis::gathered] = extents[Axis::routed] * Count(mesh.etp);
}

// What a layer holds while others of its unit run backward: all that it would keep without recomputation.
std::vector<SavedItem> unit_set(const Block& block, const Link& l, const SavedSet& saved, const Extents& extents,
                                const Setting& setting) {
  Setting whole = setting;
  std::erase_if(whole.segments, [](const Segment* s) { return !s->compiled; });
  std::vector<SavedItem> out = saved_set(block, l, extents, whole).kept;
  std::erase_if(out, [&](const SavedItem& item) {
    return item.store >= 0 && std::any_of(saved.kept.begin(), saved.kept.end(),
                                          [&](const SavedItem& kept) { return kept.store == item.store; });
  });
  return out;
}

}  // namespace

BlockCost analyse_weights(const Block& block, const Setting& setting) {
  BlockCost out;
  out.extents = block.extents;
  out.extents[Axis::batch] = setting.micro_batch;
  out.extents[Axis::seq] = setting.seq;
  out.extents[Axis::key_seq] = setting.seq;
  out.window = block.window;
  out.chunked = block.chunked;
  if (block.routing.top_k.get() > 0) {
    const double experts = block.extents[Axis::experts].real();
    out.choice = {experts, block.routing.top_k.real(), block.routing.groups.real(), block.routing.top_groups.real()};
    out.local_experts = experts / static_cast<double>(setting.mesh.ep);
  }
  out.activation = block.activation;
  out.scans = block.scan.has_value();
  out.beside_experts = setting.beside_experts;
  out.mixes = out.scans || block.extents[Axis::heads].get() > 0;
  out.feeds_forward = block.routing.top_k.get() > 0 || block.extents[Axis::ffn].get() > 0;
  if (block.routing.top_k.get() > 0) set_routed_rows(out.extents, block, setting);
  if (block.extents[Axis::vocab].get() > 0) {
    const Count multiple = std::max<std::int64_t>(1, static_cast<std::int64_t>(setting.stack->vocab_multiple.value));
    out.extents[Axis::vocab] = round_up(block.extents[Axis::vocab], multiple * Count(setting.mesh.tp));
  }
  collect_weights(out, block, setting.mesh);
  return out;
}

namespace {

void add_memory(BlockCost& out, const Block& block, const Link& l, const Setting& setting) {
  SavedSet saved = saved_set(block, l, out.extents, setting);
  for (const SavedItem& item : saved.kept) out.legal = out.legal && item.volume.elements.valid();
  out.walk = walk_backward(block, l, saved, out.extents, setting);
  if (setting.in_units) out.unit = unit_set(block, l, saved, out.extents, setting);
  if (setting.defers) out.deferred = deferred_set(block, l, out.extents, setting);
  out.saved = std::move(saved.kept);
}

void add_work(BlockCost& out, const Block& block, const Link& l, const Setting& setting) {
  collect_work(out, block, l, setting);
  collect_collectives(out, block, l, setting);
}

}  // namespace

BlockCost analyse_memory(const Block& block, const Setting& setting) {
  BlockCost out = analyse_weights(block, setting);
  add_memory(out, block, link(block, setting.mesh), setting);
  return out;
}

BlockCost analyse_work(const Block& block, const Setting& setting) {
  BlockCost out = analyse_weights(block, setting);
  add_work(out, block, link(block, setting.mesh), setting);
  return out;
}

BlockCost analyse(const Block& block, const Setting& setting) {
  BlockCost out = analyse_weights(block, setting);
  const Link l = link(block, setting.mesh);
  add_memory(out, block, l, setting);
  add_work(out, block, l, setting);
  return out;
}

double visible_keys(Visible rule, Count seq, Count window, bool chunked) {
  const bool limited = window.get() > 0 && window < seq;
  const double s = seq.real();
  const double w = limited ? window.real() : s;
  if (rule == Visible::full) return w;
  // Causal: the mean over all queries of the keys they see. A window of w sees w keys but for the
  // first w queries: w - w(w-1)/(2s). Without a window the field's convention is s/2; a chunk is a
  // sequence of its own.
  return limited && !chunked ? w - w * (w - 1) / (2 * s) : w / 2;
}

}  // namespace preflop
