#include "src/model/model.hpp"

#include <numeric>
#include <utility>

#include "src/model/blocks/blocks.hpp"

namespace preflop {

namespace {

Count elements(const Weight& weight, const Extents& extents) {
  Count n = 1;
  for (Axis axis : weight.axes) n *= extents[axis];
  return n;
}

// The blocks of a further token's prediction where it has no weights of its own; where they begin. One set is enough.
int add_shared(std::vector<Block>& blocks, int join) {
  constexpr int kParts = 3;
  if (static_cast<int>(blocks.size()) == join + kParts) {
    for (int part = 0; part < kParts; ++part) {
      Block again = blocks[static_cast<std::size_t>(join) + static_cast<std::size_t>(part)];
      for (Op& op : again.ops) {
        for (Weight& weight : op.weights) {
          weight.owned = false;
          weight.with_head = true;  // the stage has it already
        }
      }
      blocks.push_back(std::move(again));
    }
  }
  return join + kParts;
}

}  // namespace

Model build_model(const Architecture& a) {
  Model model;
  model.name = a.name;
  model.tied = a.tied;
  model.counted = a.counted;
  if (a.vision) model.vision = a.vision->tower + a.vision->projector;
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
  if (a.mtp_layers > 0 && !a.layers.empty()) {
    const int join = static_cast<int>(model.blocks.size());
    model.blocks.push_back(mtp_join_block(a));
    model.blocks.push_back(layer_block(a, a.mtp_kind ? *a.mtp_kind : a.layers.back().kind));
    model.blocks.push_back(mtp_head_block(a));
    for (std::int64_t i = 0; i < a.mtp_layers; ++i) {
      const int first = i > 0 && a.mtp_shared ? add_shared(model.blocks, join) : join;
      for (int part = 0; part < 3; ++part) model.mtp.push_back({first + part, 1});
    }
  }
  model.blocks.push_back(head_block(a));
  model.head = static_cast<int>(model.blocks.size()) - 1;
  return model;
}

bool Model::at_end(int block_or_twin) const {
  const int block = kind(block_or_twin);
  return block == head || (!mtp.empty() && block >= mtp.front().block);
}

bool Model::is_layer(int block_or_twin) const {
  const int block = kind(block_or_twin);
  if (block == embedding || block == head) return false;
  if (mtp.empty() || block < mtp.front().block) return true;
  for (std::size_t i = 1; i < mtp.size(); i += 3) {
    if (block == mtp[i].block) return true;
  }
  return false;
}

const char* name(Counted counted) {
  static constexpr const char* kNames[] = {"main", "main+mtp", "main+mtp+copies"};
  return kNames[static_cast<int>(counted)];
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

namespace {

const Block& block_of(const Model& model, int index) { return model.blocks[static_cast<std::size_t>(index)]; }

// Of a block's weights those that work on one token: of each expert's, top-k out of all.
Count active_parameters(const Block& block) {
  Count total = 0;
  for (const Op& op : block.ops) {
    for (const Weight& weight : op.weights) {
      if (!weight.owned) continue;
      const Count n = elements(weight, block.extents);
      total += weight.axes.has(Axis::experts) ? n / block.extents[Axis::experts] * block.routing.top_k : n;
    }
  }
  return total;
}

Count over_main(const Model& model, Count (*count)(const Block&)) {
  Count total = count(block_of(model, model.embedding)) + count(block_of(model, model.head));
  for (const BlockRun& run : model.layers) total += count(block_of(model, run.block)) * Count(run.count);
  return total;
}

Count table_parameters(const Model& model) {
  const Block& embedding = block_of(model, model.embedding);
  Count tables = 0;
  for (const Op& op : embedding.ops) {
    for (const Weight& weight : op.weights) {
      if (weight.role == Role::table) tables += elements(weight, embedding.extents);
    }
  }
  return tables;
}

}  // namespace

std::vector<std::pair<std::string, Count>> active_conventions(const Model& model) {
  const Count all = over_main(model, active_parameters);
  const Count tables = table_parameters(model);
  Count head = 0;
  for (const Op& op : block_of(model, model.head).ops) {
    for (const Weight& weight : op.weights) {
      if (op.tag == Tag::head_out && weight.owned) head += elements(weight, block_of(model, model.head).extents);
    }
  }
  return {{"every_weight", all},
          {"without_input_embedding", model.tied ? all : all - tables},
          {"without_embedding_and_head", all - tables - head}};
}

std::int64_t layer_count(const Model& model) {
  std::int64_t n = 0;
  for (const BlockRun& run : model.layers) n += run.count;
  return n;
}

std::int64_t expert_count(const Model& model) {
  std::int64_t out = 0;
  for (const Block& block : model.blocks) out = std::gcd(out, block.extents[Axis::experts].get());
  return out;
}

Count expert_parameters(const Model& model) {
  return over_main(model, [](const Block& block) {
    Count total = 0;
    for (const Op& op : block.ops) {
      for (const Weight& weight : op.weights) {
        if (weight.axes.has(Axis::experts)) total += elements(weight, block.extents);
      }
    }
    return total;
  });
}

Count counted_parameters(const Model& model, Counted counted) {
  Count total = over_main(model, parameters);
  if (counted == Counted::main) return total;
  for (const BlockRun& run : model.mtp) total += parameters(block_of(model, run.block)) * Count(run.count);
  if (counted == Counted::main_mtp) return total;
  // The weights that multi-token prediction shares with embedding and head, stored once more each.
  for (const BlockRun& run : model.mtp) {
    const Block& block = block_of(model, run.block);
    for (const Op& op : block.ops) {
      for (const Weight& weight : op.weights) {
        if (!weight.owned) total += elements(weight, block.extents) * Count(run.count);
      }
    }
  }
  return total;
}

ModelSummary summarise(const Model& model) {
  ModelSummary out;
  out.name = model.name;
  out.params_total = counted_parameters(model, model.counted);
  out.params_active = over_main(model, active_parameters);
  out.params_embedding = table_parameters(model);
  out.params_vision = model.vision;
  return out;
}

}  // namespace preflop
