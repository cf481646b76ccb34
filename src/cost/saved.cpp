#include "src/cost/saved.hpp"

#include <algorithm>

namespace preflop {

namespace {

// Collects saves; a store is listed once, freed by its first saver in forward order.
class Collector {
 public:
  Collector(const Block& block, const Extents& extents, const Setting& setting)
      : block_(block),
        extents_(extents),
        setting_(setting),
        seen_(static_cast<std::size_t>(block.stores), false),
        quantised_(static_cast<std::size_t>(block.stores), false) {}

  // The whole storage behind a tensor: all its slices stay alive.
  void store(int saver, const Op& op, Save::What what, TensorId id, std::string_view source) {
    const StoreId store = block_.tensors[slot(id)].store;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].store == store) last_savers[i] = saver;
    }
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
  // A copy in the scaled precision of one tensor, shared by the products that read it.
  void quantise(int saver, const Op& op, TensorId id) {
    const Tensor& t = block_.tensors[slot(id)];
    if (quantised_[static_cast<std::size_t>(t.store)]) return;
    quantised_[static_cast<std::size_t>(t.store)] = true;
    push(saver, {op.tag, Save::What::quantised, volume(t.axes, extents_, setting_.mesh), setting_.scaled->width, -1,
                 false, setting_.scaled->source});
  }
  bool has_quantised(const SavedItem& item) const {
    return std::any_of(items.begin(), items.end(),
                       [&](const SavedItem& i) { return i.what == Save::What::quantised && i.tag == item.tag; });
  }
  bool seen(StoreId store) const { return seen_[static_cast<std::size_t>(store)]; }

  std::vector<SavedItem> items;
  std::vector<int> savers;       // first saver: its backward frees the item
  std::vector<int> last_savers;  // last saver: its backward reads the item first

 private:
  void push(int saver, SavedItem item) {
    items.push_back(std::move(item));
    savers.push_back(saver);
    last_savers.push_back(saver);
  }
  const Block& block_;
  const Extents& extents_;
  const Setting& setting_;
  std::vector<bool> seen_;
  std::vector<bool> quantised_;
};

// Must backward read this input? A product needs it for the weight's gradient, a product of two
// tensors or a multiplication for the other operand's.
bool input_needed(const Op& op, std::size_t i, const Link& link) {
  switch (op.kind) {
    case Kind::product:
      return op.weights[0].trains;
    case Kind::product2:
    case Kind::multiply:
      return link.gradient[slot(op.in[1 - i].tensor)];
    case Kind::lookup:
      return op.weights[0].trains;
    default:
      return link.gradient[slot(op.in[i].tensor)];
  }
}

const std::vector<Save>& rules_of(const Op& op, const Setting& setting) {
  if (op.kind == Kind::loss && setting.loss != nullptr) return setting.loss->saves;
  return setting.stack->saves[static_cast<std::size_t>(op.kind)];
}

bool any_match(Tag tag, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return matches(tag, p); });
}

// Does this product keep its input in the scaled precision of its layer?
bool quantises(const Op& op, const Setting& setting) {
  return op.kind == Kind::product && setting.scaled != nullptr && any_match(op.tag, setting.scaled->quantised);
}

// What of an operator is kept: everything, or only what a recomputed segment keeps of it.
enum class Part : std::uint8_t { all, result };

// `dropped(tensor)`: a result that its segment makes again, so that nobody outside keeps it.
template <class Dropped>
void save_op(Collector& out, int index, const Op& op, const Block& block, const Link& link, const Setting& setting,
             Part part, const Dropped& dropped) {
  if (!link.gradient[slot(op.out)]) return;
  if (part == Part::result) out.store(index, op, Save::What::out, op.out, "kept by the recomputation policy");
  for (const Save& rule : rules_of(op, setting)) {
    switch (rule.what) {
      case Save::What::in:
        for (std::size_t i = 0; i < op.in.size(); ++i) {
          if (part == Part::all && input_needed(op, i, link) && !dropped(op.in[i].tensor)) {
            if (quantises(op, setting))
              out.quantise(index, op, op.in[i].tensor);
            else
              out.store(index, op, rule.what, op.in[i].tensor, rule.source);
          }
        }
        break;
      case Save::What::out:
        if (part == Part::all) out.store(index, op, rule.what, op.out, rule.source);
        break;
      case Save::What::element:
        if (part == Part::all) {
          out.copy(index, op, rule.what, op.kind == Kind::loss ? op.in[0].axes : result_axes(block, op), rule.width,
                   rule.source);
        }
        break;
      case Save::What::quantised:
        break;
      case Save::What::row:
        out.copy(index, op, rule.what, result_axes(block, op).without(op.reduced), rule.width * op.statistics,
                 rule.source);
        break;
    }
  }
}

}  // namespace

int segment_of(const Op& op, const Setting& setting) {
  for (std::size_t i = 0; i < setting.segments.size(); ++i) {
    if (any_match(op.tag, setting.segments[i]->tags)) return static_cast<int>(i);
  }
  return -1;
}

bool replayed(const Op& op, const Setting& setting) {
  const int segment = segment_of(op, setting);
  return segment >= 0 && !any_match(op.tag, setting.segments[static_cast<std::size_t>(segment)]->keep);
}

std::vector<bool> run_again(const Block& block, const Link& link, const Extents& extents, const Setting& setting) {
  std::vector<bool> out;
  for (const Op& op : block.ops) out.push_back(replayed(op, setting));
  if (std::none_of(setting.segments.begin(), setting.segments.end(), [](const Segment* s) { return s->only_read; }))
    return out;
  Collector read(block, extents, setting);  // by the backward pass; then by what is run again for it
  for (std::size_t i = 0; i < block.ops.size(); ++i)
    save_op(read, static_cast<int>(i), block.ops[i], block, link, setting, Part::all, [](TensorId) { return false; });
  for (std::size_t i = block.ops.size(); i-- > 0;) {
    const Op& op = block.ops[i];
    if (!out[i] || !setting.segments[static_cast<std::size_t>(segment_of(op, setting))]->only_read) continue;
    const bool result = read.seen(block.tensors[slot(op.out)].store);
    for (std::size_t k = 0; result && k < op.in.size(); ++k)
      read.store(static_cast<int>(i), op, Save::What::in, op.in[k].tensor, "made again");
    // A mask is read, too, and needs no input to be made.
    out[i] = result || op.kind == Kind::dropout;
  }
  return out;
}

bool waits_on_host(const Op& op, const Setting& setting) {
  const int segment = segment_of(op, setting);
  if (segment < 0) return false;
  const Segment& s = *setting.segments[static_cast<std::size_t>(segment)];
  return s.keeps_on_host && any_match(op.tag, s.keep);
}

double element_width(Element element, const Setting& setting) {
  return element == Element::ids ? 8.0 : setting.activation_width;  // ids are int64
}

std::vector<SavedItem> deferred_set(const Block& block, const Link& link, const Extents& extents,
                                    const Setting& setting) {
  static constexpr std::string_view kWhy = "a product's gradient of its weight is input times gradient of the result";
  Collector out(block, extents, setting);
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const Op& op = block.ops[i];
    if (op.kind != Kind::product || !op.weights[0].trains) continue;
    const int index = static_cast<int>(i);
    if (quantises(op, setting))
      out.quantise(index, op, op.in[0].tensor);
    else
      out.store(index, op, Save::What::in, op.in[0].tensor, kWhy);
    if (!link.gradient[slot(op.out)]) continue;
    out.copy(index, op, Save::What::element, result_axes(block, op), setting.activation_width, kWhy);
  }
  return std::move(out.items);
}

SavedSet saved_set(const Block& block, const Link& link, const Extents& extents, const Setting& setting) {
  std::vector<int> segment(block.ops.size());
  for (std::size_t i = 0; i < block.ops.size(); ++i) segment[i] = segment_of(block.ops[i], setting);
  const auto maker = [&](TensorId t) {
    const int op = link.producer[slot(t)];
    return op < 0 ? -1 : segment[static_cast<std::size_t>(op)];
  };
  const auto kept_result = [&](TensorId t) {
    const int op = link.producer[slot(t)];
    return op < 0 || !replayed(block.ops[static_cast<std::size_t>(op)], setting);
  };
  Collector kept(block, extents, setting);
  Collector all(block, extents, setting);
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const Op& op = block.ops[i];
    const int index = static_cast<int>(i);
    const auto dropped_outside = [&](TensorId t) {
      const int by = maker(t);
      return by >= 0 && by != segment[i] && setting.segments[static_cast<std::size_t>(by)]->drops_output &&
             !kept_result(t);
    };
    if (segment[i] < 0) {
      save_op(kept, index, op, block, link, setting, Part::all, dropped_outside);
    } else {
      const Segment& s = *setting.segments[static_cast<std::size_t>(segment[i])];
      // The segment keeps what enters it, to replay its forward pass; an operator whose result is kept
      // is not replayed and needs no inputs for that.
      for (const Operand& in : op.in) {
        const bool enters = maker(in.tensor) != segment[i];
        if (enters && !dropped_outside(in.tensor)) kept.store(index, op, Save::What::in, in.tensor, s.source);
      }
      if (any_match(op.tag, s.keep) && !s.keeps_on_host)
        save_op(kept, index, op, block, link, setting, Part::result, dropped_outside);
    }
    save_op(all, index, op, block, link, setting, Part::all, [](TensorId) { return false; });
  }
  SavedSet out;
  for (std::size_t i = 0; i < all.items.size(); ++i) {
    const SavedItem& item = all.items[i];
    const Op& saver = block.ops[static_cast<std::size_t>(all.savers[i])];
    const bool is_kept = item.what == Save::What::quantised ? kept.has_quantised(item)
                         : item.store >= 0                  ? kept.seen(item.store)
                                                            : !replayed(saver, setting);
    if (is_kept) continue;
    int by = segment[static_cast<std::size_t>(all.savers[i])];
    for (std::size_t op = 0; op < block.ops.size(); ++op) {
      if (item.store >= 0 && block.tensors[slot(block.ops[op].out)].store == item.store) by = segment[op];
    }
    out.dropped.push_back(item);
    out.dropped_saver.push_back(all.savers[i]);
    out.dropped_needed.push_back(all.last_savers[i]);
    out.dropped_segment.push_back(by);
  }
  out.kept = std::move(kept.items);
  out.kept_saver = std::move(kept.savers);
  return out;
}

}  // namespace preflop
