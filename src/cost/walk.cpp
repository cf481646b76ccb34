#include "src/cost/walk.hpp"

#include <utility>

namespace preflop {

namespace {

class Walker {
 public:
  Walker(const Block& block, const Link& link, const SavedSet& saved, const Extents& extents, const Setting& setting)
      : block_(block), link_(link), saved_(saved), extents_(extents), setting_(setting) {
    alive_.assign(saved.kept.size(), true);
    replay_.assign(saved.dropped.size(), -1);
    gradient_of_.assign(block.tensors.size(), -1);
    buffers_.reserve(2 * block.ops.size());
    find_reached();
  }

  Walk run() {
    // The loss starts the walk of a head; every other block receives the gradient of its output.
    if (block_.ops.back().kind != Kind::loss) {
      gradient_of_[slot(block_.output)] =
          allocate(block_.ops.back().tag, "gradient", block_.tensors[slot(block_.output)].axes);
    }
    for (std::size_t i = block_.ops.size(); i-- > 0;) step(static_cast<int>(i));
    return std::move(best_);
  }

 private:
  struct Buffer {
    TransientItem item;
    int owners = 1;
  };

  double width() const { return setting_.activation_width; }

  // No gradient arrives at a result that leads neither to the block's output nor to a loss: an indexer's choice.
  void find_reached() {
    reached_.assign(block_.tensors.size(), false);
    reached_[slot(block_.output)] = true;
    for (std::size_t i = block_.ops.size(); i-- > 0;) {
      const Op& op = block_.ops[i];
      if (op.kind == Kind::loss) reached_[slot(op.out)] = true;
      if (!reached_[slot(op.out)]) continue;
      for (const Operand& in : op.in) reached_[slot(in.tensor)] = true;
    }
  }

  int add(TransientItem item) {
    buffers_.push_back({std::move(item), 1});
    return static_cast<int>(buffers_.size() - 1);
  }
  int allocate(Tag tag, const char* what, const Axes& axes) {
    return add({tag, what, volume(axes, extents_, setting_.mesh), width()});
  }
  int allocate_gathered(Tag tag, const char* what, const Axes& axes) {
    return add({tag, what, gathered_volume(axes, extents_, setting_.mesh), width()});
  }
  void release(int buffer) {
    if (buffer >= 0) --buffers_[static_cast<std::size_t>(buffer)].owners;
  }

  // Adds a contribution to a tensor's gradient: the first one is the buffer, later ones are summed
  // into it and freed after this operator.
  void contribute(TensorId id, int buffer) {
    int& known = gradient_of_[slot(id)];
    if (known < 0) {
      known = buffer;
    } else {
      temporaries_.push_back(buffer);
    }
  }

  // What was dropped comes back: a whole segment when its first operator runs backward, a result that
  // is made again for others just before the first of them reads it.
  void replay(int index, const Op& op) {
    const int segment = segment_of(op, setting_);
    for (std::size_t i = 0; i < saved_.dropped.size(); ++i) {
      if (replay_[i] >= 0) continue;
      const int by = saved_.dropped_segment[i];
      const bool alone = by >= 0 && setting_.segments[static_cast<std::size_t>(by)]->drops_output;
      if (alone ? saved_.dropped_needed[i] != index : segment != by) continue;
      const SavedItem& item = saved_.dropped[i];
      replay_[i] = add({item.tag, "recomputed", item.volume, item.width});
    }
  }

  // Products of one merge id share the gathered input and the input gradient; the first of them (the
  // last one that the walk meets) stands for all.
  bool stands_for_group(int index) const {
    const Op& op = block_.ops[static_cast<std::size_t>(index)];
    if (op.merge < 0) return true;
    for (int i = 0; i < index; ++i) {
      if (block_.ops[static_cast<std::size_t>(i)].merge == op.merge) return false;
    }
    return true;
  }

  void product_gradients(const Op& op) {
    const Axes& in = op.in[0].axes;
    const Axes& out = result_axes(block_, op);
    // A row-parallel result was reduce-scattered: its gradient is gathered first.
    if (link_.partial[slot(op.out)] && cut_by_sp(out, setting_.mesh)) {
      temporaries_.push_back(allocate_gathered(op.tag, "gathered output gradient", out));
    }
    const bool gathers = gathers_input(block_, op, setting_.mesh);
    const bool kept =
        op.tag == Tag::head_out && setting_.stack->gathered_input_kept.value > 0;  // a process-wide buffer
    if (gathers && op.weights[0].trains && !kept)
      temporaries_.push_back(allocate_gathered(op.tag, "gathered input", in));
    if (link_.gradient[slot(op.in[0].tensor)]) {
      if (gathers) temporaries_.push_back(allocate_gathered(op.tag, "input gradient before the reduce-scatter", in));
      contribute(op.in[0].tensor, allocate(op.tag, "input gradient", in));
    }
    const double head = setting_.stack->head_wgrad_width.value;
    if (op.tag == Tag::head_out && head > 0 && op.weights[0].trains) {
      temporaries_.push_back(
          add({op.tag, "weight gradient", volume(op.weights[0].axes, extents_, setting_.mesh), head}));
    }
  }

  void loss_gradient(const Op& op) {
    const bool in_place = setting_.loss != nullptr && setting_.loss->in_place;
    if (in_place) return;  // the gradient is the saved storage itself
    const double extra = setting_.loss != nullptr ? setting_.loss->gradient_width : 0;
    if (extra > 0) {
      contribute(op.in[0].tensor, add({op.tag, "gradient", volume(op.in[0].axes, extents_, setting_.mesh), extra}));
    }
  }

  bool hands_through(const Op& op) const {
    return op.kind == Kind::add || (op.kind == Kind::move && movement(block_, op, setting_.mesh) == Movement::none);
  }

  // Some stacks free the gradient of a result late: with the operator that the stack's data names.
  const Hold* hold_of(Tag tag) const {
    for (const Hold& hold : setting_.stack->holds) {
      for (const std::string& pattern : hold.tags) {
        if (matches(tag, pattern)) return &hold;
      }
    }
    return nullptr;
  }
  void release_or_hold(const Op& op, int buffer) {
    if (const Hold* hold = hold_of(op.tag)) {
      held_.push_back({buffer, hold->until});
    } else {
      release(buffer);
    }
  }
  void release_held(Tag tag) {
    for (auto& [buffer, until] : held_) {
      if (until != tag) continue;
      release(buffer);
      buffer = -1;
    }
  }

  void gradients_of_inputs(int index, const Op& op, int out_gradient) {
    if (op.kind == Kind::product) {
      if (stands_for_group(index)) product_gradients(op);
      return;
    }
    if (op.kind == Kind::loss) return loss_gradient(op);
    for (const Operand& in : op.in) {
      if (!link_.gradient[slot(in.tensor)]) continue;
      if (hands_through(op) && gradient_of_[slot(in.tensor)] < 0 && out_gradient >= 0) {
        ++buffers_[static_cast<std::size_t>(out_gradient)].owners;  // handed through, not copied
        gradient_of_[slot(in.tensor)] = out_gradient;
      } else if (!hands_through(op)) {
        contribute(in.tensor, allocate(op.tag, "gradient", block_.tensors[slot(in.tensor)].axes));
      }
    }
  }

  void step(int index) {
    const Op& op = block_.ops[static_cast<std::size_t>(index)];
    replay(index, op);
    const int out_gradient = gradient_of_[slot(op.out)];
    if (reached_[slot(op.out)]) gradients_of_inputs(index, op, out_gradient);
    note(op.tag);
    for (int t : temporaries_) release(t);
    temporaries_.clear();
    // The outputs of merged products are read together by the one that stands for them.
    if (op.kind != Kind::product || op.merge < 0) {
      release_or_hold(op, out_gradient);
    } else if (stands_for_group(index)) {
      for (const Op& other : block_.ops) {
        if (other.merge == op.merge) release(gradient_of_[slot(other.out)]);
      }
    }
    release_held(op.tag);
    for (std::size_t i = 0; i < saved_.kept.size(); ++i) {
      if (saved_.kept_saver[i] == index && !(op.kind == Kind::loss && in_place_loss(i))) alive_[i] = false;
    }
    if (op.kind == Kind::product && op.tag == Tag::head_out) free_in_place_logits();
    for (std::size_t i = 0; i < saved_.dropped.size(); ++i) {
      if (replay_[i] >= 0 && saved_.dropped_saver[i] == index) release(replay_[i]);
    }
  }

  // Logits overwritten by their gradient live until the head's product has read it.
  bool in_place_loss(std::size_t item) const {
    return saved_.kept[item].is_logits && setting_.loss != nullptr && setting_.loss->in_place;
  }
  void free_in_place_logits() {
    for (std::size_t i = 0; i < saved_.kept.size(); ++i) {
      if (in_place_loss(i)) alive_[i] = false;
    }
  }

  void note(Tag tag) {
    double bytes = 0;
    for (std::size_t i = 0; i < saved_.kept.size(); ++i) {
      if (alive_[i]) bytes += saved_.kept[i].bytes();
    }
    for (const Buffer& b : buffers_) {
      if (b.owners > 0) bytes += b.item.bytes();
    }
    if (bytes <= best_.bytes) return;
    best_.bytes = bytes;
    best_.at = tag;
    best_.alive = alive_;
    best_.transients.clear();
    for (const Buffer& b : buffers_) {
      if (b.owners > 0) best_.transients.push_back(b.item);
    }
  }

  const Block& block_;
  const Link& link_;
  const SavedSet& saved_;
  const Extents& extents_;
  const Setting& setting_;
  std::vector<bool> alive_;
  std::vector<Buffer> buffers_;
  std::vector<int> gradient_of_;  // per tensor: its buffer, -1 = none yet
  std::vector<bool> reached_;     // per tensor: does a gradient arrive?
  std::vector<int> temporaries_;
  std::vector<int> replay_;                // per dropped item: its buffer, -1 = not made again yet
  std::vector<std::pair<int, Tag>> held_;  // gradients that wait, and for which operator
  Walk best_;
};

}  // namespace

Walk walk_backward(const Block& block, const Link& link, const SavedSet& saved, const Extents& extents,
                   const Setting& setting) {
  if (block.ops.empty()) return {};
  return Walker(block, link, saved, extents, setting).run();
}

}  // namespace preflop
