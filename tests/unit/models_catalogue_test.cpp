#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "src/adapt/model_catalogue.hpp"
#include "src/base/csv.hpp"
#include "tests/unit/param_oracle.hpp"

namespace preflop {
namespace {

const ModelCatalogue& catalogue() {
  static const Result<ModelCatalogue> loaded = ModelCatalogue::load();
  if (!loaded) ADD_FAILURE() << loaded.error().text();
  return *loaded;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ModelCatalogue, EveryRowCountsExactly) {
  int exact = 0, exact_right = 0, counted = 0, counted_right = 0, refused = 0;
  for (const CatalogueModel& model : catalogue().list()) {
    SCOPED_TRACE(model.id);
    const Result<Architecture> a = catalogue().find(model.id);
    if (!model.not_built.empty()) {
      ++refused;
      ASSERT_FALSE(a.ok());
      EXPECT_NE(a.error().text().find(model.not_built), std::string::npos);
      continue;
    }
    ASSERT_TRUE(a.ok()) << a.error().text();
    EXPECT_FALSE(model.source.empty());
    EXPECT_EQ(a->name, model.id);
    EXPECT_EQ(a->family, model.family);
    EXPECT_TRUE(a->defaulted.empty());
    if (!model.parameters) continue;
    const bool right = oracle::parameters(*a) == model.parameters->get();
    EXPECT_EQ(oracle::parameters(*a), model.parameters->get());
    (model.exact ? exact : counted) += 1;
    (model.exact ? exact_right : counted_right) += right ? 1 : 0;
  }
  std::printf("%d of %d published counts to the digit, %d of %d further counts, %d refused by reason\n", exact_right,
              exact, counted_right, counted, refused);
  EXPECT_GE(exact, 114);
  EXPECT_GE(counted, 44);
}

// The measured shapes that no count is published for: the size in the name, at least.
TEST(ModelCatalogue, ShapesHaveTheSizeInTheirName) {
  const std::pair<const char*, double> sizes[] = {{"maxtext-16b", 16e9},       {"maxtext-32b", 32e9},
                                                  {"maxtext-64b", 64e9},       {"maxtext-128b", 128e9},
                                                  {"maxtext-256b", 256e9},     {"maxtext-512b", 512e9},
                                                  {"maxtext-1024b", 1024e9},   {"maxtext-22b", 22e9},
                                                  {"maxtext-52b", 52e9},       {"mpt-1b", 1.3e9},
                                                  {"mpt-13b", 13e9},           {"mpt-30b", 30e9},
                                                  {"gpt-104b", 104e9},         {"bloomberggpt-50b", 50.6e9},
                                                  {"nemotron3-8b-gpt", 8.5e9}, {"nemotron3-22b-gpt", 21.3e9},
                                                  {"santacoder", 1.12e9}};
  for (const auto& [id, size] : sizes) {
    const Result<Architecture> a = catalogue().find(id);
    ASSERT_TRUE(a.ok()) << id;
    EXPECT_NEAR(static_cast<double>(oracle::parameters(*a)) / size, 1, 0.03) << id;
  }
  // nanotron prints three digits: tied or not is decided by them.
  const std::pair<const char*, double> printed[] = {{"nanotron-llama-1.34b", 1.34e9},
                                                    {"nanotron-llama-3.57b", 3.57e9},
                                                    {"nanotron-llama-8.86b", 8.86e9},
                                                    {"nanotron-llama-80b", 80.0e9}};
  for (const auto& [id, size] : printed) {
    EXPECT_NEAR(static_cast<double>(oracle::parameters(*catalogue().find(id))) / size, 1, 0.002) << id;
  }
}

// Each id and each alias leads to its own row, however it is written.
TEST(ModelCatalogue, NamesResolve) {
  std::size_t names = 0;
  for (const CatalogueModel& model : catalogue().list()) {
    std::vector<std::string> all(model.aliases.begin(), model.aliases.end());
    all.emplace_back(model.id);
    if (!model.hf_id.empty()) all.emplace_back(model.hf_id);
    for (const std::string& name : all) {
      for (int spelling = 0; spelling < 3; ++spelling) {
        std::string written = name;
        for (char& c : written) {
          if (spelling == 1 && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
          if (spelling == 2 && (c == '-' || c == '.' || c == ' ')) c = '_';
        }
        const Result<CatalogueModel> found = catalogue().describe(written);
        ASSERT_TRUE(found.ok()) << written << ": " << found.error().text();
        EXPECT_EQ(found->id, model.id) << written;
      }
      ++names;
    }
  }
  std::printf("%zu names of %zu models\n", names, catalogue().list().size());
}

TEST(ModelCatalogue, NamesPeopleType) {
  const std::pair<const char*, const char*> names[] = {{"llama3-70b", "llama3-70b"},
                                                       {"meta-llama/Meta-Llama-3-70B", "llama3-70b"},
                                                       {"Llama 3 70B", "llama3-70b"},
                                                       {"LLAMA_3.1_8B", "llama3.1-8b"},
                                                       {"meta-llama/Llama-3.1-8B-Instruct", "llama3.1-8b"},
                                                       {"Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"},
                                                       {"gpt2", "gpt2"},
                                                       {"gpt-3", "gpt3-175b"},
                                                       {"google/gemma-2-9b", "gemma2-9b"},
                                                       {"mistralai/Mistral-7B-v0.1", "mistral-7b"},
                                                       {"bigscience/bloom", "bloom-176b"}};
  for (const auto& [name, id] : names) {
    const Result<Architecture> a = catalogue().find(name);
    ASSERT_TRUE(a.ok()) << name << ": " << a.error().text();
    EXPECT_EQ(a->name, id);
  }
}

TEST(ModelCatalogue, Refusals) {
  const auto error = [](const char* name) { return catalogue().find(name, "MODEL").error().text(); };
  EXPECT_NE(error("lama3-70b").find("MODEL: unknown model 'lama3-70b'; did you mean llama3-70b"), std::string::npos)
      << error("lama3-70b");
  EXPECT_NE(error("acme/Nothing-7B").find("https://huggingface.co/acme/Nothing-7B/raw/main/config.json"),
            std::string::npos);
  EXPECT_NE(error("").find("unknown model"), std::string::npos);
  EXPECT_NE(error("...").find("unknown model"), std::string::npos);
  EXPECT_EQ(error("jamba-v0.1"), "MODEL: jamba-v0.1: not built yet (state-space or linear-attention layers)");
  EXPECT_EQ(error("deepseek-v4-pro"),
            "MODEL: deepseek-v4-pro: not built yet (compressed sparse attention and hyper-connections)");
  EXPECT_NE(error("gpt3-13b").find("pass gpt:layers=40,hidden=5120,heads=40,vocab=N"), std::string::npos);
  EXPECT_NE(error("deepseek-67b").find("pass its config.json"), std::string::npos);
}

constexpr const char* kHeader =
    "id,aliases,hf_id,family,base,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,seq,tied,details,params,exact,not_"
    "built,source,note\n";

TEST(ModelCatalogue, Overlay) {
  const std::string overlay =
      std::string(kHeader) +
      "llama3-8b,,,Mine,llama,2,64,4,,,,1000,,,,,,,me,\nmy-model,shared name,,Mine,gpt,2,64,4,,,,1000,,,,,,,me,\n"
      "my-other,shared.name,,Mine,gpt,2,65,4,,,,1000,,,,,,,me,\n";
  const Result<ModelCatalogue> c = ModelCatalogue::load(overlay);
  ASSERT_TRUE(c.ok()) << c.error().text();
  EXPECT_EQ(c->list().size(), catalogue().list().size() + 2);
  EXPECT_EQ(c->find("llama3-8b")->layer_count(), 2);
  EXPECT_EQ(c->find("my model")->family, "Mine");
  EXPECT_EQ(c->find("Shared_Name").error().text(),
            "MODEL: model 'Shared_Name' is ambiguous; valid: my-model or my-other");
  const std::string bad = c->find("my-other").error().text();
  EXPECT_NE(bad.find("models.csv in the data directory:4: heads: is 4, which does not divide hidden=65"),
            std::string::npos)
      << bad;
  EXPECT_NE(ModelCatalogue::load("id,aliases\nx,y\n").error().text().find("hf_id"), std::string::npos);
  EXPECT_NE(ModelCatalogue::load(std::string(kHeader) + "a,,,,,,,,,,,,,,,,,,,\na,,,,,,,,,,,,,,,,,,,\n")
                .error()
                .text()
                .find("twice"),
            std::string::npos);
  EXPECT_NE(ModelCatalogue::load(std::string(kHeader) + ",,,,,,,,,,,,,,,,,,,\n").error().text().find("id is empty"),
            std::string::npos);
}

// Against the collected list of names, where it lies beside the project.
TEST(ModelCatalogue, CollectedNames) {
  const std::filesystem::path path = std::filesystem::path(PREFLOP_SOURCE_DIR) / ".." / "shared" / "facts" / "ids.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no list of collected names beside the project";
  const Result<Csv> ids = Csv::parse(read_file(path), "ids.csv");
  ASSERT_TRUE(ids.ok()) << ids.error().text();
  int built = 0, refused = 0;
  for (std::size_t i = 0; i < ids->rows(); ++i) {
    if (ids->at(i, "kind") != "model") continue;
    std::string names = std::string(ids->at(i, "canonical_id")) + " | " + std::string(ids->at(i, "aliases"));
    for (std::size_t start = 0; start < names.size();) {
      std::size_t end = names.find(" | ", start);
      if (end == std::string::npos) end = names.size();
      const std::string name = names.substr(start, end - start);
      start = end + 3;
      if (name.empty()) continue;
      const Result<CatalogueModel> found = catalogue().describe(name);
      ASSERT_TRUE(found.ok()) << name << ": " << found.error().text();
      EXPECT_EQ(found->id, ids->at(i, "canonical_id")) << name;
      (catalogue().find(name).ok() ? built : refused) += 1;
    }
  }
  std::printf("%d names built, %d refused by reason\n", built, refused);
  EXPECT_GT(built, 600);
}

}  // namespace
}  // namespace preflop
