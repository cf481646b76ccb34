// What has an option of its own in an exported file is said by it, not by the remark alone.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/adapt/export/export.hpp"
#include "src/adapt/import/import.hpp"
#include "src/adapt/shape_string.hpp"
#include "tests/support/request.hpp"

namespace preflop {
namespace {

using test::request;

const Catalogues& catalogues() {
  static const Catalogues kLoaded = std::move(Catalogues::load()).value();
  return kLoaded;
}

// Launchers that leave the model to a training script say by options of their own what those have a word for.
TEST(Export, RecomputationIsAnOptionWhereTheFormatHasOne) {
  const auto read = [](const char* format, const std::string& file, const std::string& recompute) {
    const Request r = request("llama3-8b", "8xh100-sxm", {{"stack", "fsdp1"}, {"recompute", recompute}});
    const auto problem = pose(r, catalogues());
    EXPECT_TRUE(problem.ok());
    const auto out = export_to(format, *problem, r);
    EXPECT_TRUE(out.ok()) << (out ? "" : out.error().text());
    EXPECT_EQ(out->text.find("recompute="), std::string::npos) << out->text;
    const auto left = std::find(out->left_out.begin(), out->left_out.end(), "recompute");
    const auto back = import_file(out->text.substr(out->text.starts_with('#') ? out->text.find('\n') : 0), file);
    EXPECT_TRUE(back.ok());
    if (left != out->left_out.end()) return std::string("left out");
    return back->keys.contains("recompute") ? back->keys.at("recompute") : "lost";
  };
  EXPECT_EQ(read("accelerate", "fsdp.yaml", "full"), "full");
  EXPECT_EQ(read("accelerate", "fsdp.yaml", "none"), "none");
  EXPECT_EQ(read("deepspeed", "ds.json", "full"), "full");
  EXPECT_EQ(read("deepspeed", "ds.json", "none"), "left out");  // JSON has no comment for it
}

// Constants of formulas: what a config.json, a catalogue row or a shape string states is said by option and read back;
// what none states is said not to be known, and no default is made up.
TEST(Export, ConstantsOfFormulasAreOptionsOrNotKnown) {
  const auto written = [](const char* format, Request r, const char* stack) {
    r.on = "8xh100-sxm";
    r.keys["stack"] = stack;
    const auto problem = pose(r, catalogues());
    EXPECT_TRUE(problem.ok()) << (problem ? "" : problem.error().text());
    const auto out = problem ? export_to(format, *problem, r) : Result<Exported>(problem.error());
    EXPECT_TRUE(out.ok()) << (out ? "" : out.error().text());
    return out ? out->text : "";
  };
  const auto has = [](const std::string& text, const char* what) { return text.find(what) != std::string::npos; };
  const std::string config = R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "intermediate_size": 4096,
    "num_attention_heads": 16, "num_hidden_layers": 8, "vocab_size": 32000, "max_position_embeddings": 4096)";
  Request stated;
  stated.config = ConfigText{
      config + R"(, "rope_theta": 750000.0, "rms_norm_eps": 2e-06, "partial_rotary_factor": 0.5})", "config.json"};
  const std::string script = written("megatron", stated, "megatron");
  for (const char* option : {"--rotary-base 750000", "--rotary-percent 0.5", "--norm-epsilon 2e-06"})
    EXPECT_TRUE(has(script, option)) << option << "\n" << script;
  EXPECT_FALSE(has(script, "Not known"));
  const std::string yaml = written("nanotron", stated, "nanotron");
  EXPECT_TRUE(has(yaml, "rope_theta: 750000.0") && has(yaml, "rms_norm_eps: 2.0e-06")) << yaml;
  for (const auto& [text, file] : {std::pair(script, "run.sh"), std::pair(yaml, "config.yaml")}) {
    std::string bare = text;  // without the remark, which names the model
    const std::size_t at = bare.find("# preflop:");
    bare.erase(at, bare.find('\n', at) - at);
    const auto back = import_file(bare, file);
    ASSERT_TRUE(back.ok()) << back.error().text();
    const auto again = read_shape(back->model, "MODEL");
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(again->rope_theta, 750000.0) << file;
    EXPECT_EQ(again->norm_eps, 2e-06) << file;
  }
  Request open;
  open.config = ConfigText{config + "}", "config.json"};
  for (const auto& [format, stack] : {std::pair("megatron", "megatron"), std::pair("nanotron", "nanotron")}) {
    const std::string text = written(format, open, stack);
    EXPECT_TRUE(has(text, "# Not known of this model: rope_theta and norm_eps")) << text;
    EXPECT_FALSE(has(text, "--rotary-base") || has(text, "rope_theta:") || has(text, "--norm-epsilon")) << text;
  }
  Request named;
  named.model = "llama3-8b";
  EXPECT_TRUE(has(written("megatron", named, "megatron"), "--rotary-base 500000 --norm-epsilon 1e-05"));
}

}  // namespace
}  // namespace preflop
