#include "src/model/model.hpp"

#include "src/model/blocks/blocks.hpp"

namespace preflop {

namespace {

Count elements(const Weight& weight, const Extents& extents) {
  Count n = 1;
  for (Axis axis : weight.axes) n *= extents[axis];
  return n;
}

}  // namespace

Model build_model(const Architecture& a) {
  Model model;
  model.name = a.name;
  model.tied = a.tied;
  model.blocks.push_back(embedding_block(a));
  model.embedding = 0;
  std::vector<const LayerKind*> kinds;  // blocks[i + 1] was built from kinds[i]
  for (const LayerRun& run : a.layers) {
    std::size_t at = 0;
    while (at < kinds.size() && !(*kinds[at] == run.kind)) ++at;
    if (at == kinds.size()) {
      kinds.push_back(&run.kind);
      model.blocks.push_back(layer_block(a, run.kind));
    }
    model.layers.push_back({static_cast<int>(at) + 1, run.count});
  }
  model.blocks.push_back(head_block(a));
  model.head = static_cast<int>(model.blocks.size()) - 1;
  return model;
}

Count parameters(const Block& block) {
  Count total = 0;
  for (const Op& op : block.ops) {
    for (const Weight& weight : op.weights) {
      if (weight.owned) total += elements(weight, block.extents);
    }
  }
  return total;
}

ModelSummary summarise(const Model& model) {
  ModelSummary out;
  out.name = model.name;
  const Block& embedding = model.blocks[static_cast<std::size_t>(model.embedding)];
  Count total = parameters(embedding) + parameters(model.blocks[static_cast<std::size_t>(model.head)]);
  for (const BlockRun& run : model.layers) {
    total += parameters(model.blocks[static_cast<std::size_t>(run.block)]) * Count(run.count);
  }
  out.params_total = total;
  out.params_active = total;  // dense: every parameter acts on every token
  Count tables = 0;
  for (const Op& op : embedding.ops) {
    for (const Weight& weight : op.weights) {
      if (weight.role == Role::table) tables += elements(weight, embedding.extents);
    }
  }
  out.params_embedding = tables;
  return out;
}

}  // namespace preflop
