// Files of every framework: each of their values is read, known to decide nothing, named or refused with its line.
#include "src/adapt/import/import.hpp"

#include <gtest/gtest.h>

#include "src/adapt/import/fields.hpp"
#include "src/base/csv.hpp"
#include "src/base/embedded.hpp"

namespace preflop {
namespace {

struct Kind {
  const char* format;
  const char* file;
  std::string base;
  std::string (*line)(const std::string& option, const std::string& value);  // one more setting
};

std::string python(const std::string& object, const std::string& option, const std::string& value) {
  const bool bare = value.find_first_not_of("0123456789.-") == std::string::npos || value == "None" ||
                    value == "True" || value == "False" || value.ends_with(")");
  return object + "." + option + " = " + (bare ? value : "\"" + value + "\"") + "\n";
}

std::string nested(const std::string& option, const std::string& value, bool json) {
  std::string out, close;
  std::string_view rest = option;
  for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
    const std::string key(rest.substr(0, dot));
    out += json ? "\"" + key + "\": {" : key + ": {";
    close += "}";
    rest.remove_prefix(dot + 1);
  }
  const std::string key(rest);
  return out + (json ? "\"" + key + "\": \"" + value + "\"" : key + ": " + value) + close;
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kAll = {
      {"torchtitan", "run.py", "config.parallelism.data_parallel_shard_degree = -1\n",
       [](const std::string& o, const std::string& v) { return python("config", o, v); }},
      {"megatron-bridge", "run.py", "cfg.model.tensor_model_parallel_size = 2\n",
       [](const std::string& o, const std::string& v) { return python("cfg", o, v); }},
      {"accelerate", "run.yaml", "distributed_type: FSDP\n",
       [](const std::string& o, const std::string& v) { return nested(o, v, false) + "\n"; }},
      {"nanotron", "run.yaml", "parallelism: {dp: 8}\ntokens: {sequence_length: 2048}\n",
       [](const std::string& o, const std::string& v) { return nested(o, v, false) + "\n"; }},
      {"deepspeed", "run.json", "",
       [](const std::string& o, const std::string& v) { return "{\n" + nested(o, v, true) + "}\n"; }},
      {"megatron", "run.sh", "", [](const std::string& o, const std::string& v) {
         return "# --num-layers of a comment\ntorchrun pretrain_gpt.py --tensor-model-parallel-size 1 \\\n  " + o +
                " " + v + "\n";
       }}};
  return kAll;
}

Result<Request> with(const Kind& kind, const std::string& option, const std::string& value) {
  return import_file(kind.base + kind.line(option, value), kind.file);
}

// A name that no framework has is named, whatever the file.
TEST(Import, SizesThatNobodyHasAreNoOverflow) {
  const std::string most = "9007199254740992";  // 2^53
  const auto titan = import_file(
      "[training]\nlocal_batch_size = 1\nseq_len = " + most + "\nglobal_batch_size = " + most + "\nsteps = " + most +
          "\n[parallelism]\ndata_parallel_shard_degree = " + most + "\ndata_parallel_replicate_degree = " + most + "\n",
      "a.toml");
  ASSERT_TRUE(titan.ok()) << titan.error().text();
  EXPECT_FALSE(titan->keys.contains("tokens"));
  EXPECT_FALSE(titan->keys.contains("dp"));
  EXPECT_EQ(product({std::int64_t{1} << 53, 1}), std::int64_t{1} << 53);
  EXPECT_EQ(product({std::int64_t{1} << 53, 2}), 0);
  EXPECT_EQ(product({3, 0, 5}), 0);
}

TEST(ImportFiles, AnUnknownSettingIsNamed) {
  for (const Kind& kind : kinds()) {
    const std::string option = std::string(kind.format) == "megatron" ? "--bogus-key" : "training.bogus_key";
    const auto out = with(kind, option, "3");
    ASSERT_TRUE(out.ok()) << kind.format << ": " << out.error().text();
    ASSERT_EQ(out->not_read.size(), 1U) << kind.format;
    EXPECT_EQ(out->not_read[0], option) << kind.format;
  }
}

// A value that is none of the framework's is refused with its line, its name, itself and what is valid.
TEST(ImportFiles, AValueThatIsNoneOfTheFrameworksIsRefused) {
  const auto csv = Csv::parse(embedded("launch_read.csv"), "data/launch_read.csv");
  ASSERT_TRUE(csv.ok());
  std::map<std::string, int> refused;
  for (std::size_t i = 0; i < csv->rows(); ++i) {
    const auto cell = [&](const char* column) { return std::string(csv->at(i, std::string_view(column))); };
    const std::string format = cell("format"), option = cell("option"), values = cell("values");
    EXPECT_FALSE(cell("source").empty()) << option;
    if (word_of(values, "banana")) continue;  // any word
    for (const Kind& kind : kinds()) {
      const bool older = format == "torchtitan" && option == "activation_checkpoint.mode";
      if (format != kind.format || older) continue;
      // Of the sections of accelerate only the one that its distributed_type names is looked at.
      if (option.starts_with("deepspeed_config.") || option.starts_with("megatron_lm_config.")) continue;
      const auto out = with(kind, option, "banana");
      ASSERT_FALSE(out.ok()) << format << " " << option;
      const std::string text = out.error().text();
      EXPECT_TRUE(out.error().where.starts_with(std::string(kind.file) + ":")) << text;
      EXPECT_NE(text.find(option), std::string::npos) << text;
      EXPECT_NE(text.find("banana"), std::string::npos) << text;
      EXPECT_FALSE(out.error().valid.empty()) << text;
      ++refused[format];
    }
  }
  for (const Kind& kind : kinds()) EXPECT_GT(refused[kind.format], 15) << kind.format;
}

TEST(ImportFiles, WordsOfATable) {
  EXPECT_EQ(word_of("1F1B=1f1b|GPipe=gpipe", "GPipe"), "gpipe");
  EXPECT_EQ(word_of("true|false", "True"), "true");
  EXPECT_EQ(word_of("no|fp16", "no"), "no");
  EXPECT_EQ(word_of("-1=|N", "-1"), "");
  EXPECT_EQ(word_of("-1=|N", "128 * 8_192"), "1048576");
  EXPECT_EQ(word_of("N", "0"), std::nullopt);
  EXPECT_EQ(word_of("N", "-4"), std::nullopt);
  EXPECT_EQ(word_of("N", "99999999999999999999"), std::nullopt);
  EXPECT_EQ(word_of("500000000=|*=?", "5e8"), "");
  EXPECT_EQ(word_of("FullAC*=full", "FullAC.Config()"), "full");
}

TEST(ImportFiles, WhatBashAppendsIsRead) {
  const auto out = import_megatron(
      "ARGS=\"--num-layers 4 --tensor-model-parallel-size 2\"\nARGS+=\" --sequence-parallel "
      "--pipeline-model-parallel-size 4\"\ntorchrun pretrain_gpt.py $ARGS\n",
      "run.sh");
  ASSERT_TRUE(out.ok()) << out.error().text();
  EXPECT_EQ(out->keys.at("pp"), "4");
  EXPECT_EQ(out->keys.at("sp"), "true");
  for (const char* start :
       {"sh -c \"torchrun pretrain_gpt.py $O\"", "C=\"python pretrain_gpt.py $O\"\nsrun -l sh -c \"${C}\""}) {
    const auto command =
        import_megatron("O='--num-layers 4 --tensor-model-parallel-size 2'\n" + std::string(start), "run.sh");
    ASSERT_TRUE(command.ok()) << start << command.error().text();
    EXPECT_EQ(command->keys.at("tp"), "2") << start;
  }
}

TEST(ImportFiles, ContradictionsAreRefused) {
  for (const auto& [text, file] :
       {std::pair{"{\"bf16\": {\"enabled\": true},\n\"fp16\": {\"enabled\": true}}", "run.json"},
        std::pair{
            "{\n\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 3}",
            "run.json"},
        std::pair{"torchrun pretrain_gpt.py --bf16 \\\n --fp16 --num-layers 4", "run.sh"}}) {
    const auto out = import_file(text, file);
    ASSERT_FALSE(out.ok()) << text;
    EXPECT_EQ(out.error().where, std::string(file) + ":2") << out.error().text();
  }
}

TEST(ImportFiles, AcceleratesGenerationsAndHosts) {
  const auto keys = [](const std::string& more) {
    const auto out = import_yaml("distributed_type: FSDP\nnum_processes: 64\nnum_machines: 8\n" + more, "run.yaml");
    EXPECT_TRUE(out.ok()) << (out ? "" : out.error().text());
    return out ? out->keys : Request{}.keys;
  };
  auto first =
      keys("fsdp_config: {fsdp_version: 1, fsdp_sharding_strategy: HYBRID_SHARD, fsdp_offload_params: true}\n");
  EXPECT_EQ(first["stack"], "fsdp1");
  EXPECT_EQ(first["hsdp"], "8");
  EXPECT_EQ(first["dp"], "64");
  EXPECT_EQ(first["offload"], "optimizer=cpu,params=cpu");
  EXPECT_FALSE(keys("fsdp_config: {fsdp_version: 2}\n").contains("stack"));
}

}  // namespace
}  // namespace preflop
