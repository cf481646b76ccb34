// Exported files: every option is one that the framework has, with a valid value; what was exported is read back
// as the same recipe.
#include "src/adapt/export/export.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "src/adapt/import/import.hpp"
#include "src/adapt/layer_pattern.hpp"
#include "src/adapt/recipe_words.hpp"
#include "src/base/csv.hpp"
#include "src/base/embedded.hpp"
#include "src/run/estimate.hpp"
#include "src/view/json.hpp"
#include "tests/support/request.hpp"

namespace preflop {
namespace {

using test::request;

const Catalogues& catalogues() {
  static const Catalogues kLoaded = std::move(Catalogues::load()).value();
  return kLoaded;
}

struct Option {
  std::string choices, source;
};

// data/launch_options.csv: format + option -> what is known of it.
const std::map<std::string, Option>& options() {
  static const std::map<std::string, Option> kTable = [] {
    std::map<std::string, Option> out;
    const auto csv = Csv::parse(embedded("launch_options.csv"), "data/launch_options.csv");
    EXPECT_TRUE(csv.ok());
    for (std::size_t i = 0; csv && i < csv->rows(); ++i) {
      const auto cell = [&](const char* column) { return std::string(csv->at(i, std::string_view(column))); };
      out[cell("format") + " " + cell("option")] = {cell("choices"), cell("source")};
    }
    return out;
  }();
  return kTable;
}

struct Case {
  const char* format;
  const char* file;
  Request request;
};

// Uneven splits, virtual stages, context and expert parallelism, kinds of recomputation and of offloading, in every
// format that has them.
std::vector<Case> rare_cases() {
  return {
      {"megatron", "run.sh",
       request("llama3-70b", "64xh100-sxm", {{"tp", "4"}, {"pp", "4"}, {"layers_per_stage", "19,21,21,19"}})},
      {"megatron", "run.sh",
       request("llama3-8b", "32xh100-sxm", {{"pp", "2"}, {"vpp", "4"}, {"cp", "4"}, {"recompute", "core_attn,mlp"}})},
      {"megatron", "run.sh",
       request("qwen3-30b-a3b", "32xh100-sxm", {{"ep", "8"}, {"cp", "2"}, {"recompute", "moe_act,layernorm"}})},
      {"megatron", "run.sh", request("nemotron3-super", "64xb200", {{"ep", "64"}, {"precision", "bf16"}})},
      {"megatron", "run.sh", request("nemotron-h-56b", "64xh100-sxm", {{"tp", "8"}, {"pp", "2"}})},
      {"megatron-bridge", "config.py",
       request("llama3-70b", "64xh100-sxm",
               {{"tp", "4"}, {"pp", "4"}, {"cp", "2"}, {"layers_per_stage", "19,21,21,19"}})},
      {"megatron-bridge", "config.py",
       request("qwen3-30b-a3b", "32xh100-sxm", {{"ep", "8"}, {"cp", "2"}, {"recompute", "moe_act,layernorm"}})},
      {"megatron-bridge", "config.py",
       request("llama3-70b", "64xh100-sxm",
               {{"tp", "8"}, {"cuda_graph", "full_iteration"}, {"tp_overlap", "true"}, {"optimizer", "muon"}})},
      {"megatron-bridge", "config.py",
       request("llama3-70b", "64xh100-sxm",
               {{"tp", "2"},
                {"cp", "2"},
                {"cp_comm", "a2a"},
                {"cuda_graph", "local"},
                {"optimizer", "sgd"},
                {"hsdp", "8"},
                {"dp_overlap", "false"}})},
      {"megatron-bridge", "config.py",
       request("qwen3-30b-a3b", "32xh100-sxm",
               {{"ep", "8"},
                {"pp", "2"},
                {"vpp", "2"},
                {"ep_overlap", "true"},
                {"dispatcher", "deepep"},
                {"capacity_factor", "1.5"},
                {"optimizer", "sgd-momentum"},
                {"cuda_graph", "transformer_engine"},
                {"cuda_graph_scope", "attn,moe_router"}})},
      {"torchtitan", "config.py",
       request("llama3-70b", "64xh100-sxm",
               {{"stack", "torchtitan"}, {"tp", "4"}, {"pp", "4"}, {"vpp", "5"}, {"cp", "2"}, {"recompute", "none"}})},
      {"torchtitan", "config.py",
       request("llama3-8b", "64xh100-sxm",
               {{"stack", "torchtitan"}, {"hsdp", "8"}, {"compile", "on"}, {"recompute", "selective"}})},
      {"deepspeed", "ds.json", request("llama3-8b", "8xh100-sxm", {{"stack", "textbook"}, {"zero", "1"}})},
      {"deepspeed", "ds.json",
       request("llama3-8b", "8xh100-sxm", {{"stack", "textbook"}, {"zero", "2"}, {"recompute", "full"}})},
      {"accelerate", "fsdp.yaml",
       request("llama3-8b", "16xh100-sxm", {{"stack", "torchtitan"}, {"tp", "2"}, {"cp", "2"}, {"zero", "3"}})},
      {"accelerate", "fsdp.yaml",
       request("llama3-8b", "16xh100-sxm", {{"stack", "fsdp1"}, {"zero", "2"}, {"recompute", "none"}})},
      {"accelerate", "fsdp.yaml",
       request("llama3-8b", "16xh100-sxm",
               {{"stack", "fsdp1"}, {"offload", "optimizer,params"}, {"recompute", "selective"}})},
      {"deepspeed", "ds.json",
       request("llama3-8b", "16xh100-sxm",
               {{"stack", "megatron-deepspeed"}, {"offload", "activations"}, {"recompute", "full"}})},
      {"nanotron", "config.yaml",
       request("llama3-8b", "64xh100-sxm", {{"stack", "nanotron"}, {"tp", "2"}, {"pp", "4"}, {"zero", "1"}})},
      {"nanotron", "config.yaml", request("smollm3-3b", "64xh100-sxm", {{"stack", "nanotron"}, {"tp", "2"}})},
      {"megatron", "run.sh",
       request("llama3-8b", "64xh100-sxm", {{"stack", "megatron-fsdp"}, {"zero", "3"}, {"hsdp", "8"}})},
      {"deepspeed", "ds.json",
       request("llama3-8b", "64xh100-sxm", {{"stack", "megatron-deepspeed"}, {"tp", "4"}, {"pp", "2"}})},
  };
}

std::vector<Case> cases() {
  std::vector<Case> out = rare_cases();
  const std::vector<Case> usual = {
      {"megatron", "run.sh",
       request("llama3-70b", "64xh100-sxm", {{"tp", "8"}, {"pp", "4"}, {"vpp", "5"}, {"recompute", "selective"}})},
      {"megatron", "run.sh",
       request("llama3-405b", "1024xh100-sxm",
               {{"tp", "8"}, {"pp", "16"}, {"cp", "2"}, {"recompute", "mlp"}, {"loss", "plain"}, {"tokens", "1T"}})},
      {"megatron", "run.sh",
       request("mixtral-8x7b", "64xh100-sxm",
               {{"tp", "2"}, {"ep", "8"}, {"etp", "1"}, {"pp", "4"}, {"recompute", "full"}, {"zero", "0"}})},
      {"megatron", "run.sh", request("llama3-70b", "64xh100-sxm", {{"tp", "4"}, {"pp", "4"}, {"recompute", "full:3"}})},
      {"megatron", "run.sh",
       request("llama3-70b", "64xh100-sxm", {{"tp", "4"}, {"pp", "4"}, {"recompute", "full:uniform:5"}})},
      {"megatron-bridge", "config.py",
       request("llama3-70b", "64xh100-sxm", {{"tp", "4"}, {"pp", "4"}, {"recompute", "full:uniform:4"}})},
      {"megatron", "run.sh",
       request("llama3-70b", "64xh100-sxm",
               {{"tp", "8"}, {"offload", "optimizer=0.5,activations=10"}, {"recompute", "none"}})},
      {"megatron-bridge", "config.py",
       request("llama3-70b", "64xh100-sxm",
               {{"tp", "8"}, {"offload", "optimizer=0.5,activations=10"}, {"recompute", "none"}})},
      {"megatron", "run.sh", request("llama3-70b", "64xh100-sxm", {{"tp", "8"}, {"grad_dtype", "bf16"}})},
      {"megatron", "run.sh",
       request("llama3-70b", "64xh100-sxm", {{"tp", "8"}, {"moment_dtype", "bf16"}, {"grad_dtype", "fp32"}})},
      {"megatron", "run.sh", request("llama3-8b", "8xh100-sxm", {{"stack", "megatron-fsdp"}})},
      {"megatron", "run.sh",
       request("llama3-8b", "8xh100-sxm",
               {{"stack", "megatron-fsdp"}, {"grad_dtype", "fp32"}, {"moment_dtype", "bf16"}})},
      {"megatron-bridge", "config.py", request("llama3-70b", "64xh100-sxm", {{"tp", "8"}, {"moment_dtype", "bf16"}})},
      {"torchtitan", "config.py",
       request("llama3-8b", "8xh100-sxm",
               {{"stack", "torchtitan"}, {"tp", "1"}, {"offload", "optimizer=cpu,params=cpu"}})},
      {"megatron-bridge", "config.py",
       request("llama3-70b", "64xh100-sxm", {{"tp", "4"}, {"pp", "4"}, {"recompute", "full"}})},
      {"megatron-bridge", "config.py",
       request("llama3-70b", "64xh100-sxm", {{"tp", "4"}, {"pp", "4"}, {"recompute", "full:3"}})},
      {"megatron-bridge", "config.py",
       request("deepseek-v3", "1024xh100-sxm",
               {{"tp", "2"}, {"pp", "8"}, {"ep", "64"}, {"recompute", "mla_up_proj,mlp"}})},
      {"megatron-bridge", "config.py",
       request("deepseek-v3", "256xgb200", {{"pp", "4"}, {"vpp", "4"}, {"ep", "64"}, {"mtp", "1"}})},
      {"torchtitan", "config.py", request("llama3-8b", "8xh100-sxm", {{"stack", "torchtitan"}, {"recompute", "full"}})},
      {"torchtitan", "config.py",
       request("llama3-8b", "8xh100-sxm", {{"stack", "torchtitan"}, {"optimizer_implementation", "foreach"}})},
      {"torchtitan", "config.py",
       request("llama3-8b", "8xh100-sxm", {{"stack", "torchtitan"}, {"moment_dtype", "bf16"}})},
      {"torchtitan", "config.py",
       request("llama3-70b", "64xh100-sxm",
               {{"stack", "torchtitan"}, {"tp", "8"}, {"pp", "4"}, {"recompute", "selective"}})},
      {"deepspeed", "ds.json", request("llama3-8b", "8xh100-sxm", {{"stack", "textbook"}, {"zero", "3"}})},
      {"accelerate", "fsdp.yaml",
       request("llama3-8b", "16xh100-sxm", {{"stack", "torchtitan"}, {"recompute", "full"}, {"hsdp", "8"}})},
      {"nanotron", "config.yaml",
       request("llama3-8b", "64xh100-sxm", {{"stack", "nanotron"}, {"tp", "4"}, {"pp", "2"}, {"recompute", "full"}})},
      {"slurm", "job.sbatch", request("llama3-70b", "64xh100-sxm", {{"tp", "8"}, {"pp", "2"}})},
  };
  out.insert(out.end(), usual.begin(), usual.end());
  return out;
}

bool valid(const std::string& choices, std::string value) {
  if (choices.empty() || value.empty()) return true;
  if (value.front() == '"' || value.front() == '\'') value = value.substr(1, value.size() - 2);
  std::set<std::string> words;
  std::string word;
  for (const char c : choices + "|") {
    if (c == '|' || c == ' ' || c == ';' || c == '(') {
      if (!word.empty()) words.insert(word);
      word.clear();
    } else {
      word += c;
    }
  }
  std::string part;
  for (const char c : value + " ") {
    if (c == ' ' || c == ',' || c == '[' || c == ']' || c == '"') {
      if (!part.empty() && !words.contains(part)) return false;
      part.clear();
    } else {
      part += c;
    }
  }
  return true;
}

TEST(Export, EveryOptionIsOneOfTheFramework) {
  for (const Case& c : cases()) {
    const auto problem = pose(c.request, catalogues());
    ASSERT_TRUE(problem.ok()) << c.format << ": " << problem.error().text();
    const auto out = export_to(c.format, *problem, c.request);
    ASSERT_TRUE(out.ok()) << c.format << ": " << out.error().text();
    for (const auto& [option, value] : out->options) {
      const auto known = options().find(std::string(c.format) + " " + option);
      ASSERT_NE(known, options().end()) << c.format << ": " << option;
      EXPECT_FALSE(known->second.source.empty()) << option;
      EXPECT_TRUE(valid(known->second.choices, value)) << option << " = " << value << " of " << known->second.choices;
    }
  }
}

// What gradients and moments are kept in decides what fits: a launch that leaves it to a remark is another run.
TEST(Export, TypesOfStatesAreOptionsOfMegatron) {
  const auto written = [](const std::map<std::string, std::string, std::less<>>& keys) {
    const Request r = request("llama3-70b", "64xh100-sxm", keys);
    const auto problem = pose(r, catalogues());
    const auto out = problem ? export_to("megatron", *problem, r) : Result<Exported>(problem.error());
    EXPECT_TRUE(out.ok()) << (out ? "" : out.error().text());
    return out ? out->text : "";
  };
  struct {
    std::map<std::string, std::string, std::less<>> keys;
    const char* option;
    const char* key;
  } cases[] = {
      {{{"stack", "megatron"}, {"grad_dtype", "bf16"}}, "--grad-reduce-in-bf16", "grad_dtype="},
      {{{"stack", "megatron"}, {"moment_dtype", "bf16"}},
       "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16",
       "moment_dtype="},
      {{{"stack", "megatron-fsdp"}, {"grad_dtype", "fp32"}}, "--megatron-fsdp-main-grads-dtype fp32", "grad_dtype="},
  };
  for (const auto& c : cases) {
    const std::string text = written(c.keys);
    EXPECT_NE(text.find(c.option), std::string::npos) << text;
    EXPECT_EQ(text.find(c.key), std::string::npos) << text;
    EXPECT_EQ(written({{"stack", c.keys.at("stack")}}).find(c.option), std::string::npos);
  }
}

TEST(Export, IsReadBackAsTheSameRecipe) {
  for (const Case& c : cases()) {
    const std::string format = c.format;
    const auto problem = pose(c.request, catalogues());
    ASSERT_TRUE(problem.ok()) << format;
    const auto out = export_to(format, *problem, c.request);
    ASSERT_TRUE(out.ok()) << format;
    auto back = import_file(out->text, c.file);
    ASSERT_TRUE(back.ok()) << format << ": " << back.error().text() << out->text;
    const auto wanted = recipe_words(problem->analysed.recipe);
    if (format == "deepspeed") {  // JSON has no comment to carry the rest
      for (const auto& [key, value] : back->keys) EXPECT_EQ(value, wanted.at(key)) << key;
      continue;
    }
    EXPECT_EQ(back->model, c.request.model) << format;
    EXPECT_EQ(back->on, c.request.on) << format;
    EXPECT_EQ(back->not_read, std::vector<std::string>{}) << format;
    const auto again = pose(*back, catalogues());
    ASSERT_TRUE(again.ok()) << format << ": " << again.error().text() << "\n" << out->text;
    auto found = recipe_words(again->analysed.recipe);
    for (const auto& [key, value] : wanted) EXPECT_EQ(found[key], value) << format << " " << key << "\n" << out->text;
  }
}

// What a run takes from software is set by the configuration, not said beside it.
TEST(Export, SoftwareIsSettingsOfMegatronBridge) {
  for (const Case& c : cases()) {
    if (std::string(c.format) != "megatron-bridge") continue;
    const auto problem = pose(c.request, catalogues());
    ASSERT_TRUE(problem.ok());
    const auto out = export_to(c.format, *problem, c.request);
    ASSERT_TRUE(out.ok()) << out.error().text();
    for (const char* key : {"cuda_graph", "cuda_graph_scope", "tp_overlap", "ep_overlap", "dp_overlap", "cp_comm",
                            "dispatcher", "capacity_factor", "optimizer"}) {
      const bool idle = (std::string(key) == "dispatcher" && !has_experts(*problem->model)) ||
                        (std::string(key) == "cp_comm" && problem->analysed.recipe.layout.cp == 1);
      if (idle) continue;
      EXPECT_EQ(std::count(out->left_out.begin(), out->left_out.end(), key), 0) << key << "\n" << out->text;
    }
  }
}

// Every precision of every stack in every format that takes its plans: what is read back is the same recipe, or the
// format refuses by name.
TEST(Export, CarriesEveryPrecision) {
  const std::map<std::string, const char*> files = {{"megatron", "run.sh"},      {"megatron-bridge", "config.py"},
                                                    {"torchtitan", "config.py"}, {"deepspeed", "ds.json"},
                                                    {"accelerate", "fsdp.yaml"}, {"nanotron", "config.yaml"},
                                                    {"slurm", "job.sbatch"}};
  std::map<std::string, std::set<std::string>> carried;
  for (const Stack& stack : catalogues().stacks.all()) {
    const bool newest = *catalogues().stacks.find(stack.name) == &stack;
    if (!stack.runs_on("sm100") || !newest) continue;
    for (const std::string& precision : stack.precision_names()) {
      const Request asked = request("llama3-8b", "8xb200",
                                    {{"stack", stack.name},
                                     {"precision", precision},
                                     {"zero", stack.zero_allowed.back() == 3 ? "3" : "1"},
                                     {"tp", "1"}});
      const auto problem = pose(asked, catalogues());
      ASSERT_TRUE(problem.ok()) << stack.name << " " << precision << ": " << problem.error().text();
      const auto wanted = recipe_words(problem->analysed.recipe);
      for (const std::string& format : export_formats()) {
        const std::string where = stack.name + " " + precision + " " + format;
        const auto out = export_to(format, *problem, asked);
        if (!out) {
          EXPECT_FALSE(out.error().valid.empty()) << where;
          continue;
        }
        for (const auto& [option, value] : out->options) {
          const auto known = options().find(format + " " + option);
          ASSERT_NE(known, options().end()) << where << ": " << option;
          EXPECT_TRUE(valid(known->second.choices, value)) << where << ": " << option << " = " << value;
        }
        const auto back = import_file(out->text, files.at(format));
        ASSERT_TRUE(back.ok()) << where << ": " << back.error().text();
        carried[format].insert(precision);
        if (!out->comments) {
          for (const auto& [key, value] : back->keys) EXPECT_EQ(value, wanted.at(key)) << where << " " << key;
          continue;
        }
        const auto again = pose(*back, catalogues());
        ASSERT_TRUE(again.ok()) << where << ": " << again.error().text() << "\n" << out->text;
        auto found = recipe_words(again->analysed.recipe);
        if (!wanted.contains("compile") && found["compile"] != "true") found.erase("compile");  // said, and not done
        EXPECT_EQ(found, wanted) << where << "\n" << out->text;
      }
    }
  }
  EXPECT_EQ(carried["slurm"].size(), 9U);
  EXPECT_EQ(carried["megatron"].size(), 8U);    // all but fp8-rowwise
  EXPECT_EQ(carried["accelerate"].size(), 5U);  // fp8-tensorwise and fp8-delayed
  EXPECT_EQ(carried["torchtitan"].size(), 5U);  // fp8-rowwise, mxfp8 and nvfp4; no fp16
  EXPECT_EQ(carried["deepspeed"].size(), 3U);
}

// A precision that the format has an option for is said by it, not by the comment alone.
TEST(Export, SaysAPrecisionByTheFormatsOwnOptions) {
  const auto text = [](const char* format, const char* stack, const char* precision) {
    const Request asked = request("qwen3-30b-a3b", "8xb200", {{"stack", stack}, {"precision", precision}, {"ep", "8"}});
    const auto problem = pose(asked, catalogues());
    EXPECT_TRUE(problem.ok()) << (problem ? "" : problem.error().text());
    if (!problem) return std::string();
    const auto out = export_to(format, *problem, asked);
    EXPECT_TRUE(out.ok()) << (out ? "" : out.error().text());
    return out ? out->text : std::string();
  };
  const auto says = [](const std::string& all, const char* part) { return all.find(part) != std::string::npos; };
  const std::string delayed = text("megatron", "megatron", "fp8-delayed");
  EXPECT_TRUE(says(delayed, "--bf16 --fp8-format hybrid --fp8-recipe delayed")) << delayed;
  EXPECT_FALSE(says(delayed, "precision=")) << delayed;
  EXPECT_TRUE(says(text("megatron", "megatron", "nvfp4"), "--bf16 --fp4-format e2m1 --fp4-recipe nvfp4"));
  EXPECT_TRUE(says(text("megatron-bridge", "megatron", "mxfp8"), "mixed_precision = \"bf16_with_mxfp8_mixed\""));
  EXPECT_TRUE(says(text("torchtitan", "megatron-fsdp", "mxfp8"),
                   "CONVERTERS = [MXFP8LinearConverter.Config(), MXFP8GroupedExpertsConverter.Config()]"));
}

// What a file cannot say and the run is not the same without is refused, by name.
TEST(Export, DeepSpeedRefusesWhatItsFileCannotSay) {
  using Keys = std::map<std::string, std::string, std::less<>>;
  for (const auto& [keys, what] :
       {std::pair{Keys{{"pp", "4"}, {"tp", "4"}}, "pipeline"}, std::pair{Keys{{"cp", "2"}}, "context parallelism"},
        std::pair{Keys{{"precision", "fp8-delayed"}, {"tp", "2"}}, "fp8-delayed"}}) {
    Request asked = request("llama3-8b", "16xh100-sxm", keys);
    asked.keys["stack"] = "megatron";
    const auto problem = pose(asked, catalogues());
    ASSERT_TRUE(problem.ok()) << what << ": " << problem.error().text();
    const auto out = export_to("deepspeed", *problem, asked);
    ASSERT_FALSE(out.ok()) << what;
    EXPECT_NE(out.error().what.find(what), std::string::npos) << out.error().text();
  }
}

TEST(Import, ReadsPrecisionsAsPeopleWriteThem) {
  const auto precision = [](const std::string& text, const char* file) {
    const auto read = import_file(text, file);
    if (!read) return "refused: " + read.error().what;
    const auto at = read->keys.find("precision");
    return at == read->keys.end() ? std::string("open") : at->second;
  };
  const std::string script = "x --num-layers 2 --micro-batch-size 1 --bf16 ";
  EXPECT_EQ(precision(script + "--fp8-format hybrid", "run.sh"), "fp8-delayed");
  EXPECT_EQ(precision(script + "--fp8-format e4m3 --fp8-recipe blockwise", "run.sh"), "fp8-blockwise");
  EXPECT_EQ(precision(script + "--fp8-recipe mxfp8", "run.sh"), "bf16");  // without a format no fp8
  EXPECT_EQ(precision(script + "--fp4-format e2m1", "run.sh"), "nvfp4");
  EXPECT_EQ(precision(script + "--fp8-format e4m3 --fp8-recipe custom", "run.sh").substr(0, 7), "refused");
  const std::string bridge = "cfg.model.tensor_model_parallel_size = 8\n";
  EXPECT_EQ(precision(bridge, "c.py"), "open");
  EXPECT_EQ(precision(bridge + "cfg.mixed_precision = \"bf16_with_nvfp4_mixed\"\n", "c.py"), "nvfp4");
  EXPECT_EQ(precision(bridge + "cfg.mixed_precision = \"my_own\"\n", "c.py").substr(0, 7), "refused");
  const std::string accelerate = "distributed_type: FSDP\nmixed_precision: fp8\n";
  EXPECT_EQ(precision(accelerate + "fp8_config:\n  fp8_backend: TE\n", "a.yaml"), "fp8-delayed");
  EXPECT_EQ(precision(accelerate, "a.yaml").substr(0, 7), "refused");
}

// The lists that the options were taken from, where they are at hand.
TEST(Export, OptionsAreInTheFrameworksLists) {
  const std::filesystem::path folder = std::filesystem::path(PREFLOP_SOURCE_DIR) / "../shared/facts/options";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no lists here";
  for (const auto& [key, option] : options()) {
    const std::string format = key.substr(0, key.find(' ')), name = key.substr(key.find(' ') + 1);
    if (name == "mixed_precision" && format == "megatron-bridge") continue;  // a name in the place of its section
    std::ifstream in(folder / ((format == "megatron" ? "megatron-lm" : format) + ".tsv"));
    const std::string list{std::istreambuf_iterator<char>(in), {}};
    const bool listed =
        list.find("\n" + name + "\t") != std::string::npos || list.find("\t" + name) != std::string::npos;
    EXPECT_TRUE(listed) << key;
  }
}

TEST(Import, ReadsTheKindsOfLayersOfAHybrid) {
  const char* script = R"(
options="--is-hybrid-model --hybrid-override-pattern M-M*|-ME --num-layers 7 --hidden-size 512 --ffn-hidden-size 2048
  --num-attention-heads 8 --group-query-attention --num-query-groups 2 --kv-channels 64 --mamba-num-heads 16
  --squared-relu --normalization RMSNorm --disable-bias-linear --position-embedding-type none --vocab-size 1000
  --attention-dropout 0 --hidden-dropout 0 --num-experts 16 --moe-router-topk 2 --moe-ffn-hidden-size 64 --moe-latent-size 128
  --untie-embeddings-and-output-weights --micro-batch-size 1 --global-batch-size 8 --seq-length 1024 --bf16"
torchrun --nproc_per_node 8 pretrain_mamba.py $options)";
  auto read = import_file(script, "run.sh");
  ASSERT_TRUE(read.ok()) << read.error().text();
  read->on = "8xh100-sxm";
  const auto problem = pose(*read, catalogues());
  ASSERT_TRUE(problem.ok()) << problem.error().text() << read->model;
  const Architecture& a = problem->architecture;
  ASSERT_EQ(a.layer_count(), 7);
  EXPECT_EQ(pattern_of(a), "M-M*-ME");
  EXPECT_EQ(a.layers[0].kind.state_space->dim, Count(64));
  EXPECT_EQ(a.layers[0].kind.state_space->groups, Count(8));
  EXPECT_EQ(a.layers[0].kind.state_space->state, Count(128));
  EXPECT_EQ(*a.layers.back().kind.experts->latent, Count(128));
}

TEST(Import, TakesNoHybridForAModelOfAttentionAlone) {
  const std::string script =
      "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --micro-batch-size 1 --global-batch-size 8 "
      "--seq-length 1024 --bf16 ";
  const auto model = [&](const std::string& more) {
    const auto read = import_megatron("torchrun --nproc_per_node 8 " + more + " " + script, "run.sh");
    return read.ok() ? read->model : read.error().text();
  };
  EXPECT_NE(model("pretrain_gpt.py"), "");
  for (const char* hybrid : {"pretrain_mamba.py", "pretrain_mamba.py --hybrid-attention-ratio 0.1",
                             "pretrain_mamba.py --hybrid-override-pattern ''", "train.py --is-hybrid-model"})
    EXPECT_EQ(model(hybrid), "") << hybrid;
  EXPECT_NE(model("pretrain_mamba.py --hybrid-override-pattern M-M*M-M-").find("pattern=M-M*M-M-"), std::string::npos);
}

TEST(Import, ReadsAMegatronScriptAsPeopleWriteThem) {
  const char* script = R"(#!/bin/bash
# a 70B
TP=8; PP=4
NODES=${SLURM_NNODES:-8}
GBS=$((128 * 4))
MODEL_ARGS=(
  --num-layers 80   # as published
  --hidden-size 8192 --ffn-hidden-size 28672
  --num-attention-heads 64 --group-query-attention --num-query-groups 8
  --swiglu --normalization RMSNorm --disable-bias-linear
  --untie-embeddings-and-output-weights --position-embedding-type rope
  --attention-dropout 0 --hidden-dropout 0
)
MODEL_ARGS+=( --seq-length 4096 --max-position-embeddings 4096 )
PARALLEL="--tensor-model-parallel-size ${TP} --pipeline-model-parallel-size $PP \
  --sequence-parallel --use-distributed-optimizer"
torchrun --nnodes $NODES --nproc-per-node 8 pretrain_gpt.py \
  "${MODEL_ARGS[@]}" $PARALLEL --micro-batch-size 2 --global-batch-size=$GBS --bf16 \
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
  --vocab-size 128256
)";
  const auto r = import_megatron(script, "run.sh");
  ASSERT_TRUE(r.ok()) << r.error().text();
  const std::map<std::string, std::string> wanted = {
      {"tp", "8"},   {"pp", "4"},           {"seq", "4096"},       {"micro_batch", "2"}, {"global_batch", "512"},
      {"zero", "1"}, {"recompute", "full"}, {"precision", "bf16"}, {"sp", "true"}};
  for (const auto& [key, value] : wanted) {
    const auto at = r->keys.find(key);
    ASSERT_NE(at, r->keys.end()) << key;
    EXPECT_EQ(at->second, value) << key;
  }
  EXPECT_EQ(r->model.substr(0, 42), "gpt:layers=80,hidden=8192,heads=64,vocab=1");
  Request whole = *r;
  whole.on = "64xh100-sxm";
  const auto problem = pose(whole, catalogues());
  ASSERT_TRUE(problem.ok()) << problem.error().text();
}

// Virtual stages that follow no rule with options of its own: Megatron's layout string.
TEST(Export, VirtualStagesAsALayout) {
  const Request asked = request("deepseek-v3", "256xgb200", {{"pp", "8"}, {"vpp", "4"}, {"ep", "32"}, {"mtp", "1"}});
  const auto problem = pose(asked, catalogues());
  ASSERT_TRUE(problem.ok()) << problem.error().text();
  const auto out = export_to("megatron-bridge", *problem, asked);
  ASSERT_TRUE(out.ok()) << out.error().text();
  std::string wanted = "Et";
  for (int i = 0; i < 30; ++i) wanted += "|t*2";
  EXPECT_NE(out->text.find("pipeline_model_parallel_layout = \"" + wanted + "|mL\""), std::string::npos) << out->text;
}

TEST(Import, ReadsLayoutsOfStages) {
  const std::string script =
      "python pretrain_gpt.py --num-layers 61 --hidden-size 1024 --ffn-hidden-size 4096 --num-attention-heads 16 "
      "--vocab-size 1000 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 ";
  const auto keys = [&](const std::string& more) {
    const auto r = import_megatron(script + more, "run.sh");
    EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().text());
    return r ? r->keys : Request{}.keys;
  };
  auto plain = keys("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*15|(t*16|)*2t*14,L'");
  EXPECT_EQ(plain["layers_per_stage"], "15,16,16,14");
  EXPECT_FALSE(plain.contains("vpp"));
  auto chunks = keys("--pipeline-model-parallel-size 8 --pipeline-model-parallel-layout 'Et|(tt|)*30mL'");
  EXPECT_EQ(chunks["vpp"], "4");
  EXPECT_FALSE(chunks.contains("layers_per_stage"));
  for (const char* odd : {"'E|(t'", "'t*'", "'Q'", "'(((t)*9999)*9999'", "'E*99999999999999999999'"})
    keys(std::string("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout ") + odd);
}

// How many layers are recomputed together, in today's options and in those of 2021 and 2022.
TEST(Import, ReadsHowManyLayersAreRecomputedTogether) {
  const std::string script =
      "python pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --vocab-size 1000 "
      "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 ";
  const std::string full = "--recompute-granularity full ";
  for (const auto& [options, wanted] : std::vector<std::pair<std::string, std::string>>{
           {full + "--recompute-method uniform --recompute-num-layers 4", "full:uniform:4"},
           {full + "--recompute-method uniform --recompute-num-layers 1", "full"},
           {full + "--recompute-method uniform", "full"},
           {full + "--recompute-method block --recompute-num-layers 4", "full:4"},
           {"--checkpoint-activations", "full"},
           {"--checkpoint-activations --checkpoint-num-layers 2", "full:uniform:2"},
           {"--recompute-granularity selective", "selective"}}) {
    const auto r = import_megatron(script + options, "run.sh");
    ASSERT_TRUE(r.ok()) << options;
    EXPECT_EQ(r->keys.at("recompute"), wanted) << options;
  }
  for (const auto& [method, wanted] : {std::pair{"uniform", "full:uniform:4"}, std::pair{"block", "full:4"}})
    EXPECT_EQ(whole_layers(method, "4"), wanted);
}

TEST(Import, RunsOfSamplesStayRunsOfSamples) {
  const Request asked =
      request("llama3-8b", "8xh100-sxm", {{"samples", "1000"}, {"mean_length", "300"}, {"packing", "on"}});
  const auto problem = pose(asked, catalogues());
  ASSERT_TRUE(problem.ok()) << problem.error().text();
  const Estimate e = estimate<double>(problem->analysed, problem->cluster);
  const auto back = import_result(json_text(estimate_json_value(e)), "x.json");
  ASSERT_TRUE(back.ok()) << back.error().text();
  const auto again = pose(*back, catalogues());
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(*again->analysed.recipe.tokens, *problem->analysed.recipe.tokens);
  EXPECT_EQ(again->analysed.recipe.sample_tokens, 300);
}

TEST(Import, RefusesWhatItCannotRead) {
  EXPECT_FALSE(import_megatron("python train.py --lr 1", "run.sh").ok());
  EXPECT_FALSE(import_megatron("x --num-layers 2 --hidden-size 8 --tensor-model-parallel-size $TP", "run.sh").ok());
  EXPECT_FALSE(import_yaml("a: 1\n", "x.yaml").ok());
  EXPECT_FALSE(import_yaml("a\n", "x.yaml").ok());
  EXPECT_FALSE(import_file("nothing", "x.txt").ok());
  EXPECT_FALSE(import_result("{}", "x.json").ok());
  EXPECT_FALSE(import_result(R"({"schema": "preflop.plan/1", "plans": []})", "x.json").ok());
}

}  // namespace
}  // namespace preflop
