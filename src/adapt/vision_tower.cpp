#include "src/adapt/vision_tower.hpp"

#include "src/adapt/hf_config_reader.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

// Sizes that most towers name alike.
struct Tower {
  Count hidden;
  Count layers;
  Count inner;  // of the MLP
  Count patch;  // pixels a side
  Count channels;
};

Count linear(Count from, Count to, bool bias) { return from * to + (bias ? to : Count(0)); }
Count layer_norm(Count width) { return width * Count(2); }

Tower read_sizes(ConfigReader& c) {
  Tower t;
  t.hidden = c.size({"hidden_size"});
  t.layers = Count(c.layers({"num_hidden_layers", "depth"}));
  t.inner = c.size({"intermediate_size"});
  t.patch = c.size({"patch_size"});
  t.channels = c.size_or({"num_channels", "in_channels"}, 3);
  return t;
}

// Attention and a plain MLP, all with biases, behind two LayerNorms: Siglip, Llama 4, Qwen.
Count biased_layer(const Tower& t) {
  return Count(4) * linear(t.hidden, t.hidden, true) + linear(t.hidden, t.inner, true) +
         linear(t.inner, t.hidden, true) + Count(2) * layer_norm(t.hidden);
}

// Patches of an image of `image` pixels a side.
Count patches(Count image, Count patch) {
  const std::int64_t side = image.get() / patch.get();
  return Count(side) * Count(side);
}

// Siglip with Gemma 3's projector: one matrix behind a norm.
VisionTower siglip(ConfigReader& c, Count text) {
  const Tower t = read_sizes(c);
  const Count image = c.size_or({"image_size"}, 896);
  if (!c.ok()) return {};
  const Count rows = patches(image, t.patch);
  return {"siglip",
          linear(t.channels * t.patch * t.patch, t.hidden, true) + rows * t.hidden + t.layers * biased_layer(t) +
              layer_norm(t.hidden),
          t.hidden * text + t.hidden};
}

// Pixtral: no biases, a gated MLP; Mistral 3's projector merges merge x merge patches.
VisionTower pixtral(ConfigReader& c, ConfigReader& root, Count text) {
  const Tower t = read_sizes(c);
  const Count merge = root.size_or({"spatial_merge_size"}, 2);
  const bool bias = root.flag_or({"multimodal_projector_bias"}, false);
  if (!c.ok() || !root.ok()) return {};
  const Count layer = Count(4) * t.hidden * t.hidden + Count(3) * t.hidden * t.inner + Count(2) * t.hidden;
  return {"pixtral", t.channels * t.patch * t.patch * t.hidden + t.hidden + t.layers * layer,
          t.hidden + linear(merge * merge * t.hidden, t.hidden, false) + linear(t.hidden, text, bias) +
              linear(text, text, bias)};
}

// Llama 4: a class token, a norm before and after, an adapter that shuffles pixels into the MLP's width.
VisionTower llama4(ConfigReader& c, Count text) {
  const Tower t = read_sizes(c);
  const Count image = c.size({"image_size"});
  const Count in = c.size_or({"projector_input_dim"}, 4096);
  const Count out = c.size_or({"projector_output_dim"}, 4096);
  const Count handed = c.size_or({"vision_output_dim"}, 4096);
  if (!c.ok()) return {};
  const Count rows = patches(image, t.patch) + Count(1);
  const Count adapter = linear(t.inner, in, false) + linear(in, out, false);
  return {"llama4_vision_model",
          t.channels * t.patch * t.patch * t.hidden + t.hidden + rows * t.hidden + Count(2) * layer_norm(t.hidden) +
              t.layers * biased_layer(t) + adapter,
          linear(handed, text, false)};
}

// Qwen 3.5: patches over time too; mergers of merge x merge patches, one at the end and one per deepstack index.
VisionTower qwen(ConfigReader& c) {
  const Tower t = read_sizes(c);
  const Count time = c.size_or({"temporal_patch_size"}, 2);
  const Count rows = c.size({"num_position_embeddings"});
  const Count merge = c.size_or({"spatial_merge_size"}, 2);
  const Count out = c.size({"out_hidden_size"});
  const auto deep =
      static_cast<std::int64_t>(c.list_if_given("deepstack_visual_indexes", ConfigReader::kMaxLayers).size());
  if (!c.ok()) return {};
  const Count wide = t.hidden * merge * merge;
  const Count merger = linear(wide, wide, true) + linear(wide, out, true);
  return {"qwen3_5",
          linear(t.channels * time * t.patch * t.patch, t.hidden, true) + rows * t.hidden + t.layers * biased_layer(t),
          layer_norm(t.hidden) + merger + Count(deep) * (layer_norm(wide) + merger)};
}

}  // namespace

void read_vision_tower(const nlohmann::json& config, Architecture& architecture) {
  const auto it = config.find("vision_config");
  const bool stated = it != config.end() && !it->is_null();
  if (!stated && architecture.family != "Llama4ForConditionalGeneration") return;  // the others exist without one
  const std::string beside = "the language model alone: the vision tower (vision_config) and its projector ";
  std::string kind;
  if (stated && it->is_object()) {
    if (const auto type = it->find("model_type"); type != it->end() && type->is_string())
      kind = type->get<std::string>();
  }
  if (kind.empty()) {
    architecture.notes.push_back(beside + "are not counted");
    return;
  }
  // --assume speaks of the language model, whose keys have the same names.
  const Assume nothing;
  ConfigReader c(*it, "vision_config", nothing);
  ConfigReader root(config, "", nothing);
  VisionTower tower;
  if (kind == "siglip_vision_model") {
    tower = siglip(c, architecture.hidden);
  } else if (kind == "pixtral") {
    tower = pixtral(c, root, architecture.hidden);
  } else if (kind == "llama4_vision_model") {
    tower = llama4(c, architecture.hidden);
  } else if (kind == "qwen3_5" || kind == "qwen3_5_moe") {
    tower = qwen(c);
  } else {
    architecture.notes.push_back(beside + "are not counted");
    return;
  }
  if (!c.ok() || !root.ok()) {
    const Error& why = c.ok() ? root.error() : c.error();
    architecture.notes.push_back(beside + "are not counted: " + why.where + " " + why.what);
    return;
  }
  if (!tower.tower.valid() || !tower.projector.valid()) {
    architecture.notes.push_back(beside + "are not counted: more than 2^53 parameters");
    return;
  }
  architecture.notes.push_back(beside + "are counted apart: " + text::grouped(tower.tower.get()) + " and " +
                               text::grouped(tower.projector.get()) + " parameters");
  architecture.vision = std::move(tower);
}

}  // namespace preflop
