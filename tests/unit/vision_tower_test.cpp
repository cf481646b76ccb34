#include "src/adapt/vision_tower.hpp"

#include <gtest/gtest.h>

#include "src/adapt/hf_config.hpp"

namespace preflop {
namespace {

using Json = nlohmann::json;

Architecture beside(std::int64_t hidden, const Json& vision, const Json& root = Json::object()) {
  Architecture a;
  a.family = "Gemma3ForConditionalGeneration";
  a.hidden = hidden;
  Json config = root;
  config["vision_config"] = vision;
  read_vision_tower(config, a);
  return a;
}

std::int64_t total(const Architecture& a) { return a.vision ? (a.vision->tower + a.vision->projector).get() : -1; }

const Json& siglip() {
  static const Json config = Json::parse(
      R"({"hidden_size":1152,"image_size":896,"intermediate_size":4304,"model_type":"siglip_vision_model",
          "num_attention_heads":16,"num_hidden_layers":27,"patch_size":14,"vision_use_head":false})");
  return config;
}

// Totals of the published checkpoints less their language models.
TEST(VisionTower, PublishedTotals) {
  EXPECT_EQ(total(beside(2560, siglip())), 4'300'079'472 - 3'880'263'168);    // gemma-3-4b
  EXPECT_EQ(total(beside(3840, siglip())), 12'187'325'040 - 11'766'034'176);  // gemma-3-12b
  EXPECT_EQ(total(beside(5376, siglip())), 27'432'406'640 - 27'009'346'304);  // gemma-3-27b
  const Json llama4 = Json::parse(
      R"({"hidden_size":1408,"image_size":336,"intermediate_size":5632,"model_type":"llama4_vision_model",
          "num_attention_heads":16,"num_channels":3,"num_hidden_layers":34,"patch_size":14,"pixel_shuffle_ratio":0.5,
          "projector_input_dim":4096,"projector_output_dim":4096,"vision_output_dim":4096})");
  EXPECT_EQ(total(beside(5120, llama4)), 108'641'793'536 - 107'769'861'120);  // llama-4-scout
  const Json pixtral = Json::parse(
      R"({"head_dim":64,"hidden_act":"silu","hidden_size":1024,"image_size":1540,"intermediate_size":4096,
          "model_type":"pixtral","num_attention_heads":16,"num_channels":3,"num_hidden_layers":24,"patch_size":14})");
  EXPECT_EQ(total(beside(5120, pixtral)), 24'011'361'280 - 23'572'403'200);  // mistral-small-3.1
  const Json qwen = Json::parse(
      R"({"deepstack_visual_indexes":[],"depth":27,"hidden_size":1152,"in_channels":3,"intermediate_size":4304,
          "model_type":"qwen3_5","num_heads":16,"num_position_embeddings":2304,"out_hidden_size":5120,"patch_size":16,
          "spatial_merge_size":2,"temporal_patch_size":2})");
  EXPECT_EQ(total(beside(5120, qwen)), 27'781'427'952 - 27'320'697'856);  // qwen3.5-27b, less text and MTP
}

TEST(VisionTower, NeverInTheModelsOwnCounts) {
  const std::string text =
      R"({"architectures":["Gemma3ForConditionalGeneration"],"text_config":{"hidden_size":256,"intermediate_size":512,
          "num_hidden_layers":6,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":64,"vocab_size":1000)";
  const auto alone = read_hf_config(text + "}}", "config.json");
  const auto both = read_hf_config(text + "},\"vision_config\":" + siglip().dump() + "}", "config.json");
  ASSERT_TRUE(alone.ok()) << alone.error().text();
  ASSERT_TRUE(both.ok()) << both.error().text();
  EXPECT_FALSE(alone->vision);
  ASSERT_TRUE(both->vision);
  EXPECT_EQ(both->vision->projector.get(), 1152 * 256 + 1152);
  ASSERT_FALSE(both->notes.empty());
  EXPECT_NE(both->notes.front().find("are counted apart: 416,866,032 and 296,064 parameters"), std::string::npos)
      << both->notes.front();
  EXPECT_EQ(both->layer_count(), alone->layer_count());
}

// What cannot be counted is said, and stands in nobody's way.
TEST(VisionTower, NotCounted) {
  for (
      const char* config :
      {R"({"model_type":"gemma4_vision","hidden_size":1152})", R"({})", "5", "[]", R"({"model_type":3})",
       R"({"model_type":"pixtral"})", R"({"model_type":"siglip_vision_model","hidden_size":-1})",
       R"({"model_type":"qwen3_5","depth":27,"hidden_size":2147483647,"intermediate_size":2147483647,"patch_size":2147483647,
            "num_position_embeddings":1,"out_hidden_size":1})",
       R"({"model_type":"llama4_vision_model","hidden_size":1408,"intermediate_size":5632,"num_hidden_layers":34,
            "patch_size":0,"image_size":336})"}) {
    const Architecture a = beside(1024, Json::parse(config));
    EXPECT_FALSE(a.vision) << config;
    ASSERT_EQ(a.notes.size(), 1U) << config;
    EXPECT_NE(a.notes[0].find("are not counted"), std::string::npos) << a.notes[0];
  }
}

}  // namespace
}  // namespace preflop
