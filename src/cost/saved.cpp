#include "src/cost/saved.hpp"

#include <algorithm>

namespace preflop {

namespace {

std::size_t at(TensorId id) { return static_cast<std::size_t>(id); }

// Collects saves; a store is listed once, freed by its first saver in forward order.
class Collector {
 public:
  Collector(const Block& block, const Extents& extents, const Setting& setting)
      : block_(block), extents_(extents), setting_(setting), seen_(static_cast<std::size_t>(block.stores), false) {}

  // The whole storage behind a tensor: all its slices stay alive.
  void store(int saver, const Op& op, Save::What what, TensorId id, std::string_view source) {
    const StoreId store = block_.tensors[at(id)].store;
    if (seen_[static_cast<std::size_t>(store)]) return;
    seen_[static_cast<std::size_t>(store)] = true;
    for (const Tensor& t : block_.tensors) {
      if (t.store != store) continue;
      // Token ids come whole to every rank of tp.
      const bool ids = t.element == Element::ids;
      push(saver, {op.tag, what,
                   ids ? gathered_volume(t.axes, extents_, setting_.mesh) : volume(t.axes, extents_, setting_.mesh),
                   element_width(t.element, setting_), store, op.kind == Kind::loss, source});
    }
  }
  void copy(int saver, const Op& op, Save::What what, const Axes& axes, double width, std::string_view source) {
    push(saver, {op.tag, what, volume(axes, extents_, setting_.mesh), width, -1, op.kind == Kind::loss, source});
  }
  bool seen(StoreId store) const { return seen_[static_cast<std::size_t>(store)]; }

  std::vector<SavedItem> items;
  std::vector<int> savers;

 private:
  void push(int saver, SavedItem item) {
    items.push_back(std::move(item));
    savers.push_back(saver);
  }
  const Block& block_;
  const Extents& extents_;
  const Setting& setting_;
  std::vector<bool> seen_;
};

// Must backward read this input? A product needs it for the weight's gradient, a product of two
// tensors or a multiplication for the other operand's.
bool input_needed(const Op& op, std::size_t i, const Link& link) {
  switch (op.kind) {
    case Kind::product:
      return op.weights[0].trains;
    case Kind::product2:
    case Kind::multiply:
      return link.gradient[at(op.in[1 - i].tensor)];
    case Kind::lookup:
      return op.weights[0].trains;
    default:
      return link.gradient[at(op.in[i].tensor)];
  }
}

const std::vector<Save>& rules_of(const Op& op, const Setting& setting) {
  if (op.kind == Kind::loss && setting.loss != nullptr) return setting.loss->saves;
  return setting.stack->saves[static_cast<std::size_t>(op.kind)];
}

void save_op(Collector& out, int index, const Op& op, const Block& block, const Link& link, const Setting& setting) {
  if (!link.gradient[at(op.out)]) return;
  for (const Save& rule : rules_of(op, setting)) {
    switch (rule.what) {
      case Save::What::in:
        for (std::size_t i = 0; i < op.in.size(); ++i) {
          if (input_needed(op, i, link)) out.store(index, op, rule.what, op.in[i].tensor, rule.source);
        }
        break;
      case Save::What::out:
        out.store(index, op, rule.what, op.out, rule.source);
        break;
      case Save::What::element:
        out.copy(index, op, rule.what, op.kind == Kind::loss ? op.in[0].axes : result_axes(block, op), rule.width,
                 rule.source);
        break;
      case Save::What::row:
        out.copy(index, op, rule.what, result_axes(block, op).without(op.reduced), rule.width * op.statistics,
                 rule.source);
        break;
    }
  }
}

}  // namespace

bool in_segment(const Op& op, const Segment* segment) {
  if (segment == nullptr) return false;
  return std::any_of(segment->tags.begin(), segment->tags.end(),
                     [&](const std::string& p) { return matches(op.tag, p); });
}

double element_width(Element element, const Setting& setting) {
  return element == Element::ids ? 8.0 : setting.activation_width;  // ids are int64
}

SavedSet saved_set(const Block& block, const Link& link, const Extents& extents, const Setting& setting) {
  Collector kept(block, extents, setting);
  Collector all(block, extents, setting);
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const Op& op = block.ops[i];
    const int index = static_cast<int>(i);
    if (!in_segment(op, setting.segment)) {
      save_op(kept, index, op, block, link, setting);
    } else {
      // The segment keeps what enters it, to replay its forward pass.
      for (const Operand& in : op.in) {
        const int made_by = link.producer[at(in.tensor)];
        const bool from_outside =
            made_by < 0 || !in_segment(block.ops[static_cast<std::size_t>(made_by)], setting.segment);
        if (from_outside) kept.store(index, op, Save::What::in, in.tensor, setting.segment->source);
      }
    }
    save_op(all, index, op, block, link, setting);
  }
  SavedSet out;
  for (std::size_t i = 0; i < all.items.size(); ++i) {
    const SavedItem& item = all.items[i];
    const bool inside = in_segment(block.ops[static_cast<std::size_t>(all.savers[i])], setting.segment);
    const bool is_kept = item.store >= 0 ? kept.seen(item.store) : !inside;
    if (is_kept) continue;
    out.dropped.push_back(item);
    out.dropped_saver.push_back(all.savers[i]);
  }
  out.kept = std::move(kept.items);
  out.kept_saver = std::move(kept.savers);
  return out;
}

}  // namespace preflop
