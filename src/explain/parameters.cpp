#include "src/explain/parameters.hpp"

#include "src/base/text.hpp"

namespace preflop {

namespace {

// Which weights of a block count.
enum class Of : std::uint8_t { owned, tables, active, copies };

// One weight of a block: "h 8192 x f 28672"; of experts those that work on a token: "experts 8 of 256 x ...".
Traced weight_leaf(const Op& op, const Weight& weight, const Block& block, Of of) {
  Count n = 1;
  std::string detail;
  for (Axis axis : weight.axes) {
    const bool chosen = of == Of::active && axis == Axis::experts;
    const Count extent = block.extents[axis];
    n *= chosen ? block.routing.top_k : extent;
    detail += (detail.empty() ? "" : " x ") + std::string(name(axis)) + " " +
              (chosen ? text::grouped(block.routing.top_k.get()) + " of " : "") + text::grouped(extent.get());
  }
  const std::string label(name(op.tag));
  return leaf<Traced>(n.real(), [&] { return Origin{label.c_str(), "", "", detail}; });
}

Traced block_parameters(const Model& model, const BlockRun& run, const char* what, Of of) {
  const Block& block = model.blocks[static_cast<std::size_t>(run.block)];
  std::vector<Traced> weights;
  for (const Op& op : block.ops) {
    for (const Weight& weight : op.weights) {
      const bool counts = of == Of::copies ? !weight.owned : weight.owned;
      if (counts && (of != Of::tables || weight.role == Role::table))
        weights.push_back(weight_leaf(op, weight, block, of));
    }
  }
  const Traced one = named(total(weights), what, "");
  if (run.count == 1) return one;
  return one * leaf<Traced>(static_cast<double>(run.count),
                            [] { return Origin{"layers", "", "the model's layers of this kind", {}}; });
}

}  // namespace

Traced traced_parameters(const Model& model, std::string_view which) {
  const Of of = which == "active" ? Of::active : Of::owned;
  if (which == "embedding") return block_parameters(model, {model.embedding, 1}, "embedding", Of::tables);
  std::vector<Traced> parts = {block_parameters(model, {model.embedding, 1}, "embedding", of)};
  for (const BlockRun& run : model.layers) parts.push_back(block_parameters(model, run, "one layer", of));
  parts.push_back(block_parameters(model, {model.head, 1}, "final norm and head", of));
  if (of == Of::owned && model.counted != Counted::main) {
    for (const BlockRun& run : model.mtp) parts.push_back(block_parameters(model, run, "multi-token prediction", of));
    if (model.counted == Counted::main_mtp_copies) {
      for (const BlockRun& run : model.mtp)
        parts.push_back(block_parameters(model, run, "copies of embedding and head", Of::copies));
    }
  }
  return named(total(parts), "parameters", "");
}

}  // namespace preflop
