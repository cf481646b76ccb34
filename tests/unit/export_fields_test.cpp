// Every recipe field in every format: the file says it by the framework's own option, or its remark says it and it is
// named as what the format has no option for, or the export is refused by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "src/adapt/export/export.hpp"
#include "src/adapt/import/import.hpp"
#include "src/adapt/recipe_words.hpp"
#include "src/base/csv.hpp"
#include "src/base/embedded.hpp"

namespace preflop {
namespace {

using FieldKeys = std::map<std::string, std::string, std::less<>>;

const Catalogues& field_catalogues() {
  static const Catalogues kLoaded = std::move(Catalogues::load()).value();
  return kLoaded;
}

struct FieldFormat {
  const char* format;
  const char* file;
  std::vector<const char*> stacks;
  std::set<std::string> carries;  // keys that its own options say
  std::set<std::string> but;      // "key=value" of them that they do not
};

const std::vector<FieldFormat>& field_formats() {
  static const std::set<std::string> kMegatron = {"tp",
                                                  "pp",
                                                  "vpp",
                                                  "cp",
                                                  "ep",
                                                  "etp",
                                                  "dp",
                                                  "zero",
                                                  "sp",
                                                  "hsdp",
                                                  "seq",
                                                  "micro_batch",
                                                  "global_batch",
                                                  "recompute",
                                                  "offload",
                                                  "attention",
                                                  "loss",
                                                  "layers_per_stage",
                                                  "cuda_graph",
                                                  "precision",
                                                  "fused_experts",
                                                  "dp_overlap",
                                                  "tp_overlap",
                                                  "ep_overlap",
                                                  "cp_comm",
                                                  "optimizer",
                                                  "dispatcher",
                                                  "moment_dtype",
                                                  "grad_dtype",
                                                  "capacity_factor",
                                                  "mtp",
                                                  "schedule",
                                                  "master_dtype",
                                                  "weight_dtype",
                                                  "cuda_graph_scope"};
  std::set<std::string> bridge = kMegatron;
  bridge.insert("fp8_attention");
  // Which FlashAttention runs is what is installed; what is trained beside fp16 products is not told.
  const std::set<std::string> flash = {"attention=fa3"};
  static const std::vector<FieldFormat> kTable = {
      {"megatron", "run.sh", {"megatron", "megatron-fsdp", "textbook"}, kMegatron, flash},
      {"megatron-bridge",
       "config.py",
       {"megatron", "megatron-fsdp", "textbook"},
       bridge,
       {"attention=fa3", "moment_dtype=fp8"}},
      {"torchtitan",
       "config.py",
       {"torchtitan", "megatron-fsdp"},
       {"tp", "pp", "cp", "ep", "dp", "zero", "sp", "hsdp", "seq", "micro_batch", "global_batch", "recompute",
        "offload", "compile", "tp_overlap", "precision", "layers_per_stage", "optimizer_implementation", "schedule"},
       {"layers_per_stage=7,10,8,7", "layers_per_stage=6,10,8,8"}},
      {"deepspeed",
       "ds.json",
       {"textbook", "megatron-deepspeed"},
       {"ep", "dp", "zero", "hsdp", "micro_batch", "global_batch", "offload", "precision"},
       {}},
      {"accelerate",
       "fsdp.yaml",
       {"fsdp1", "torchtitan"},
       {"tp", "pp", "cp", "dp", "zero", "offload", "precision"},
       {}},
      {"nanotron",
       "config.yaml",
       {"nanotron"},
       {"tp", "pp", "cp", "dp", "zero", "sp", "schedule", "seq", "micro_batch", "global_batch", "recompute",
        "optimizer", "precision", "tp_overlap", "grad_dtype"},
       {}}};
  return kTable;
}

// One field after the other, beside what it needs.
const std::vector<FieldKeys>& fields() {
  static const std::vector<FieldKeys> kTable = {{},
                                                {{"tp", "4"}},
                                                {{"tp", "2"}, {"sp", "false"}},
                                                {{"pp", "4"}},
                                                {{"pp", "4"}, {"vpp", "2"}},
                                                {{"pp", "4"}, {"schedule", "gpipe"}},
                                                {{"pp", "4"}, {"layers_per_stage", "7,9,9,7"}},
                                                {{"pp", "4"}, {"layers_per_stage", "7,10,8,7"}},
                                                {{"pp", "4"}, {"vpp", "2"}, {"layers_per_stage", "6,10,8,8"}},
                                                {{"cp", "2"}, {"attention", "fa2"}},
                                                {{"cp", "2"}, {"cp_comm", "a2a"}, {"attention", "fa2"}},
                                                {{"zero", "0"}},
                                                {{"zero", "1"}},
                                                {{"zero", "2"}},
                                                {{"zero", "3"}},
                                                {{"zero", "1"}, {"hsdp", "8"}},
                                                {{"zero", "3"}, {"hsdp", "8"}},
                                                {{"seq", "4096"}},
                                                {{"micro_batch", "2"}, {"global_batch", "256"}},
                                                {{"recompute", "none"}},
                                                {{"recompute", "selective"}},
                                                {{"recompute", "full"}},
                                                {{"recompute", "full:2"}},
                                                {{"recompute", "core_attn,mlp"}},
                                                {{"offload", "optimizer"}, {"zero", "1"}},
                                                {{"offload", "optimizer=0.5"}, {"zero", "1"}},
                                                {{"offload", "optimizer,params"}, {"zero", "3"}},
                                                {{"offload", "activations=10"}, {"recompute", "none"}},
                                                {{"offload", "activations"}, {"recompute", "none"}},
                                                {{"offload", "activations"}, {"recompute", "full"}},
                                                {{"attention", "unfused"}},
                                                {{"attention", "fa2"}},
                                                {{"attention", "fa3"}},
                                                {{"attention", "cudnn"}},
                                                {{"loss", "plain"}},
                                                {{"loss", "fused"}},
                                                {{"loss", "chunked"}},
                                                {{"precision", "fp16"}},
                                                {{"precision", "fp32"}},
                                                {{"precision", "fp8-delayed"}},
                                                {{"precision", "fp8-blockwise"}},
                                                {{"precision", "fp8-delayed"}, {"fp8_attention", "true"}},
                                                {{"weight_dtype", "bf16"}},
                                                {{"grad_dtype", "bf16"}},
                                                {{"grad_dtype", "fp32"}},
                                                {{"master_dtype", "fp16"}},
                                                {{"moment_dtype", "bf16"}},
                                                {{"moment_dtype", "fp8"}},
                                                {{"optimizer", "sgd"}},
                                                {{"optimizer", "sgd-momentum"}},
                                                {{"optimizer", "muon"}},
                                                {{"optimizer", "lion"}},
                                                {{"optimizer", "adafactor"}},
                                                {{"optimizer_implementation", "foreach"}},
                                                {{"compile", "true"}},
                                                {{"tp", "2"}, {"compile", "true"}, {"tp_overlap", "true"}},
                                                {{"tp", "2"}, {"tp_overlap", "true"}},
                                                {{"dp_overlap", "false"}},
                                                {{"cuda_graph", "full_iteration"}},
                                                {{"cuda_graph", "local"}, {"cuda_graph_scope", "attn"}},
                                                {{"ep", "8"}},
                                                {{"tp", "2"}, {"ep", "8"}, {"etp", "1"}},
                                                {{"ep", "8"}, {"dispatcher", "hybridep"}},
                                                {{"ep", "8"}, {"ep_overlap", "true"}},
                                                {{"ep", "8"}, {"capacity_factor", "1.2"}},
                                                {{"ep", "8"}, {"fused_experts", "true"}}};
  return kTable;
}

std::string said(const FieldKeys& keys) {
  std::string out;
  for (const auto& [key, value] : keys) out += " " + key + "=" + value;
  return out;
}

bool has_key(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

void check_field(const FieldFormat& f, const Problem& problem, const Request& asked, const std::string& where) {
  static const std::set<std::string> kOptions = [] {
    std::set<std::string> out;
    const auto csv = Csv::parse(embedded("launch_options.csv"), "data/launch_options.csv");
    for (std::size_t i = 0; csv && i < csv->rows(); ++i)
      out.insert(std::string(csv->at(i, std::string_view("format"))) + " " +
                 std::string(csv->at(i, std::string_view("option"))));
    return out;
  }();
  const auto out = export_to(f.format, problem, asked);
  if (!out) {
    EXPECT_FALSE(out.error().valid.empty()) << where;
    return;
  }
  for (const auto& [option, value] : out->options)
    EXPECT_TRUE(kOptions.contains(std::string(f.format) + " " + option)) << where << ": " << option;
  const auto wanted = recipe_words(problem.analysed.recipe);
  const auto open = unsaid(f.format, *out, problem, asked, field_catalogues());
  // A key is in the options, or in the remark.
  for (const std::string& key : open)
    EXPECT_TRUE(has_key(out->left_out, key)) << where << ": nowhere " << key << "\n" << out->text;
  for (const auto& [key, value] : wanted) {
    // Of another framework's plan only what this one is made of is said by options.
    const bool foreign = is_foreign(f.format, problem.analysed.recipe.stack);
    if (foreign || !f.carries.contains(key) || f.but.contains(key + "=" + value)) continue;
    EXPECT_FALSE(has_key(open, key)) << where << ": no option says " << key << "=" << value << "\n" << out->text;
  }
  if (!out->comments) return;
  const auto back = import_file(out->text, f.file);
  ASSERT_TRUE(back.ok()) << where << ": " << back.error().text();
  EXPECT_EQ(back->not_read, std::vector<std::string>{}) << where;
  const auto again = pose(*back, field_catalogues());
  ASSERT_TRUE(again.ok()) << where << ": " << again.error().text() << "\n" << out->text;
  auto found = recipe_words(again->analysed.recipe);
  for (const auto& [key, value] : wanted) EXPECT_EQ(found[key], value) << where << " " << key << "\n" << out->text;
}

TEST(ExportFields, EachIsAnOptionOrNamed) {
  for (const FieldFormat& f : field_formats()) {
    int checked = 0;
    for (const char* stack : f.stacks) {
      for (const FieldKeys& field : fields()) {
        const bool experts = field.contains("ep");
        Request asked;
        asked.model = experts ? "mixtral-8x7b" : "llama3-8b";
        asked.on = "64xh100-sxm";
        asked.keys = field;
        asked.keys["stack"] = stack;
        for (const char* key : {"tp", "pp", "cp"}) asked.keys.emplace(key, "1");
        const auto problem = pose(asked, field_catalogues());
        if (!problem) continue;  // no recipe of this stack
        check_field(f, *problem, asked, std::string(f.format) + " of " + stack + said(field));
        ++checked;
      }
    }
    EXPECT_GT(checked, 15) << f.format;
  }
}

TEST(ExportFields, WhatNoOptionSaysIsNamed) {
  struct {
    const char *format, *stack;
    FieldKeys keys;
    std::vector<std::string> open;
  } cases[] = {{"torchtitan", "torchtitan", {{"optimizer", "sgd"}}, {"optimizer"}},
               {"torchtitan", "torchtitan", {{"loss", "chunked"}, {"tp", "2"}}, {}},
               {"torchtitan", "torchtitan", {{"weight_dtype", "bf16"}}, {"grad_dtype", "moment_dtype"}},
               {"megatron", "megatron", {{"attention", "fa3"}}, {"attention"}},
               {"megatron", "textbook", {{"pp", "4"}, {"schedule", "gpipe"}}, {"schedule"}},
               {"megatron-bridge", "megatron", {{"moment_dtype", "fp8"}}, {"moment_dtype"}},
               {"accelerate",
                "fsdp1",
                {{"seq", "2048"}, {"global_batch", "128"}, {"micro_batch", "2"}, {"loss", "plain"}},
                {"global_batch", "micro_batch", "seq"}}};
  for (const auto& c : cases) {
    Request asked;
    asked.model = "llama3-8b";
    asked.on = "64xh100-sxm";
    asked.keys = c.keys;
    asked.keys["stack"] = c.stack;
    const auto problem = pose(asked, field_catalogues());
    ASSERT_TRUE(problem.ok()) << problem.error().text();
    const auto out = export_to(c.format, *problem, asked);
    ASSERT_TRUE(out.ok()) << out.error().text();
    EXPECT_EQ(unsaid(c.format, *out, *problem, asked, field_catalogues()), c.open) << c.format << said(c.keys);
  }
  EXPECT_TRUE(is_foreign("torchtitan", "megatron-fsdp") && is_foreign("megatron", "textbook"));
  EXPECT_FALSE(is_foreign("megatron-bridge", "megatron") || is_foreign("slurm", "textbook"));
}

// The recipe, or why it is none.
std::string legal(const std::string& model, FieldKeys keys, const std::string& on = "64xh100-sxm") {
  Request asked;
  asked.model = model;
  asked.on = on;
  asked.keys = std::move(keys);
  const auto problem = pose(asked, field_catalogues());
  return problem ? "legal" : problem.error().text();
}

// Megatron-LM core/ssm/mamba_block.py: no virtual stages, and num_layers // pp layers on each.
TEST(ExportFields, MegatronCutsHybridsIntoEqualStages) {
  const FieldKeys base = {{"stack", "megatron"}, {"tp", "8"}};
  const auto with = [&](const char* stack, FieldKeys more) {
    more.merge(FieldKeys(base));
    more["stack"] = stack;
    return legal("nemotron-h-56b", more);  // 118 layers
  };
  EXPECT_EQ(with("megatron", {{"pp", "2"}}), "legal");
  EXPECT_NE(with("megatron", {{"pp", "4"}}).find("--pp"), std::string::npos);
  EXPECT_NE(with("megatron", {{"pp", "2"}, {"vpp", "2"}}).find("--vpp"), std::string::npos);
  EXPECT_NE(with("megatron", {{"pp", "2"}, {"layers_per_stage", "60,58"}}).find("--layers-per-stage"),
            std::string::npos);
  EXPECT_EQ(with("textbook", {{"pp", "4"}}), "legal");
  EXPECT_EQ(legal("llama3-70b", {{"stack", "megatron"}, {"pp", "2"}, {"vpp", "2"}}), "legal");
}

// core/transformer/transformer_config.py, core/transformer/dot_product_attention.py.
TEST(ExportFields, MegatronMovesFewerThanAllLayersAndHasNoUnfusedContextParallelism) {
  const auto moved = [](const char* stack, const char* what) {
    return legal("llama3-8b", {{"stack", stack}, {"offload", what}, {"recompute", "none"}, {"zero", "1"}});
  };
  EXPECT_EQ(moved("megatron", "activations=31"), "legal");
  for (const char* all : {"activations=32", "activations=80", "activations"})
    EXPECT_NE(moved("megatron", all).find("at most 31"), std::string::npos) << moved("megatron", all);
  EXPECT_EQ(moved("textbook", "activations=32"), "legal");
  EXPECT_EQ(moved("textbook", "activations"), "legal");
  EXPECT_NE(moved("textbook", "activations=80").find("at most 32"), std::string::npos);
  const FieldKeys ring = {{"stack", "megatron"}, {"cp", "2"}, {"attention", "unfused"}};
  EXPECT_NE(legal("llama3-8b", ring).find("context parallelism"), std::string::npos) << legal("llama3-8b", ring);
}

}  // namespace
}  // namespace preflop
