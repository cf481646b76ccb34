#include "src/explain/parameters.hpp"

#include "src/base/text.hpp"

namespace preflop {

namespace {

// One weight of a block: "h 8192 x f 28672".
Traced weight_leaf(const Op& op, const Weight& weight, const Extents& extents) {
  Count n = 1;
  std::string detail;
  for (Axis axis : weight.axes) {
    n *= extents[axis];
    detail += (detail.empty() ? "" : " x ") + std::string(name(axis)) + " " + text::grouped(extents[axis].get());
  }
  const std::string label(name(op.tag));
  return leaf<Traced>(n.real(), [&] { return Origin{label.c_str(), "", "", detail}; });
}

Traced block_parameters(const Model& model, const BlockRun& run, const char* what, bool tables_only) {
  const Block& block = model.blocks[static_cast<std::size_t>(run.block)];
  std::vector<Traced> weights;
  for (const Op& op : block.ops) {
    for (const Weight& weight : op.weights) {
      if (weight.owned && (!tables_only || weight.role == Role::table))
        weights.push_back(weight_leaf(op, weight, block.extents));
    }
  }
  const Traced one = named(total(weights), what, "");
  if (run.count == 1) return one;
  return one * leaf<Traced>(static_cast<double>(run.count),
                            [] { return Origin{"layers", "", "the model's layers of this kind", {}}; });
}

}  // namespace

Traced traced_parameters(const Model& model, std::string_view which) {
  const Traced embedding = block_parameters(model, {model.embedding, 1}, "embedding", which == "embedding");
  if (which == "embedding") return embedding;
  std::vector<Traced> parts = {embedding};
  for (const BlockRun& run : model.layers) parts.push_back(block_parameters(model, run, "one layer", false));
  parts.push_back(block_parameters(model, {model.head, 1}, "final norm and head", false));
  return named(total(parts), "parameters", "");
}

}  // namespace preflop
