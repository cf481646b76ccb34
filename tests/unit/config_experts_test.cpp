// Families with experts against the catalogue's row: two descriptions from different sources come to the
// same architecture; the many names of one quantity; what is refused.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "src/adapt/hf_config.hpp"
#include "src/adapt/model_catalogue.hpp"
#include "tests/unit/expert_cases.hpp"
#include "tests/unit/param_oracle.hpp"

namespace preflop {
namespace {

TEST(ConfigExperts, EachFamilyIsItsCatalogueRow) {
  const Result<ModelCatalogue> catalogue = ModelCatalogue::load();
  ASSERT_TRUE(catalogue.ok());
  for (const ExpertCase& c : kExpertCases) {
    const Result<Architecture> read = read_hf_config(c.json, "config.json");
    ASSERT_TRUE(read.ok()) << (c.id != nullptr ? c.id : "?") << ": " << read.error().text();
    if (c.id == nullptr) continue;
    SCOPED_TRACE(c.id);
    const Result<Architecture> row = catalogue->find(c.id);
    ASSERT_TRUE(row.ok()) << row.error().text();
    EXPECT_EQ(read->family, row->family);
    EXPECT_EQ(read->hidden, row->hidden);
    EXPECT_EQ(read->vocab, row->vocab);
    EXPECT_EQ(read->tied, row->tied);
    EXPECT_EQ(read->mtp_layers, row->mtp_layers);
    EXPECT_EQ(oracle::main_parameters(*read), oracle::main_parameters(*row));
    ASSERT_EQ(read->layers.size(), row->layers.size());
    for (std::size_t i = 0; i < read->layers.size(); ++i) {
      EXPECT_EQ(read->layers[i].count, row->layers[i].count);
      LayerKind a = read->layers[i].kind, b = row->layers[i].kind;
      EXPECT_TRUE(a.attention == b.attention) << i;
      EXPECT_TRUE(a.experts == b.experts) << i;
      EXPECT_TRUE(a == b) << i;
    }
    EXPECT_EQ(read->counted, Counted::main);  // a config counts the main model
  }
}

std::string mixtral(const std::string& count, const std::string& chosen) {
  return R"({"architectures":["MixtralForCausalLM"],"hidden_size":64,"intermediate_size":96,"num_attention_heads":4,"num_key_value_heads":2,
    "num_hidden_layers":3,"vocab_size":1000,)" +
         count + "," + chosen + "}";
}

TEST(ConfigExperts, FiveNamesOfTopKAndFourOfTheCount) {
  for (const char* count : {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}) {
    for (const char* chosen :
         {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k", "top_k_experts"}) {
      const std::string text = mixtral("\"" + std::string(count) + "\":8", "\"" + std::string(chosen) + "\":2");
      const Result<Architecture> a = read_hf_config(text, "config.json");
      ASSERT_TRUE(a.ok()) << a.error().text();
      ASSERT_TRUE(a->layers.front().kind.experts.has_value());
      EXPECT_EQ(a->layers.front().kind.experts->count, Count(8));
      EXPECT_EQ(a->layers.front().kind.experts->top_k, Count(2));
    }
  }
}

TEST(ConfigExperts, Refused) {
  const auto error = [](const std::string& count, const std::string& chosen) {
    const Result<Architecture> a = read_hf_config(mixtral(count, chosen), "config.json");
    return a.ok() ? std::string("read") : a.error().text();
  };
  EXPECT_NE(error("\"num_experts\":8", "\"num_experts_per_tok\":9").find("is 9 of 8"), std::string::npos);
  EXPECT_NE(error("\"num_experts\":8", "\"num_experts_per_tok\":null").find("num_experts_per_tok"), std::string::npos);
  EXPECT_NE(error("\"num_experts\":0", "\"num_experts_per_tok\":1").find("num_experts: is 0"), std::string::npos);
  EXPECT_NE(error("\"num_experts\":8,\"num_local_experts\":4", "\"moe_top_k\":1").find("num_local_experts is 4"),
            std::string::npos);
  // Linear attention beside experts stays refused, whatever the family.
  EXPECT_NE(error("\"num_experts\":8", "\"moe_top_k\":2,\"mamba_d_state\":16").find("state-space"), std::string::npos);
}

}  // namespace
}  // namespace preflop
