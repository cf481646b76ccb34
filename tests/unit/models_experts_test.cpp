// Counts of models with experts: total under every reading, active, embedding; catalogue against config.
#include <gtest/gtest.h>

#include "src/adapt/model_catalogue.hpp"
#include "src/model/model.hpp"
#include "tests/unit/param_oracle.hpp"

namespace preflop {
namespace {

const ModelCatalogue& catalogue() {
  static const Result<ModelCatalogue> loaded = ModelCatalogue::load();
  if (!loaded) ADD_FAILURE() << loaded.error().text();
  return *loaded;
}

Model model_of(const char* id) {
  const Result<Architecture> a = catalogue().find(id);
  if (!a) {
    ADD_FAILURE() << a.error().text();
    return build_model({});
  }
  return build_model(*a);
}

struct Row {
  const char* id;
  std::int64_t total, active;  // active: every parameter that works on a token, embedding and head too
};
// Totals as published; active counts by the rules of tests/unit/param_oracle.hpp applied by hand to the shapes.
const Row kRows[] = {{"llama4-scout", 107769861120, 17172894720},
                     {"llama4-maverick", 400711848960, 17184691200},
                     {"mixtral-8x7b", 46702792704, 12879925248},
                     {"mixtral-8x22b", 140620634112, 39152031744},
                     {"mixtral-8x22b-instruct", 140630071296, 39161468928},
                     {"qwen1.5-moe-a2.7b", 14315784192, 2689173504},
                     {"qwen2-57b-a14b", 57408658944, 14249270784},
                     {"qwen3-30b-a3b", 30532122624, 3353032704},
                     {"qwen3-235b-a22b", 235093634560, 22190763520},
                     {"qwen3-coder-480b-a35b", 480154875392, 35474765312},
                     {"deepseek-v2-lite", 15706484224, 2661150208},
                     {"deepseek-v2", 235741434880, 21375800320},
                     {"deepseek-v3", 671026419200, 37552297472},
                     {"deepseek-r1", 684489845504, 37552297472},
                     {"kimi-k2", 1026408232448, 32861500928},
                     {"olmoe-1b-7b", 6919161856, 1282017280},
                     {"dbrx", 131596523520, 36469708800},
                     {"grok-1", 315684820992, 83756587008},
                     {"gpt-oss-20b", 20914757184, 4187440704},
                     {"gpt-oss-120b", 116829156672, 5711982912},
                     {"glm4.5", 358337791296, 33632266144},
                     {"glm4.5-air", 110468824832, 13424129664},
                     {"glm5", 753864139008, 41784728832},
                     {"minimax-m2.5", 228689764864, 11030553088},
                     {"deepseek-v3.2", 685355329792, 0},
                     {"nemotron3-nano-30b-a3b", 31577937344, 3580073408},
                     {"granite-4.0-h-small", 32207337984, 8803121664},
                     {"nemotron3-super", 120668687360, 12770216960},
                     {"qwen3-next-80b-a3b", 81324862720, 3874929408}};

TEST(Experts, TotalsAndActiveToTheDigit) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.id);
    const Model model = model_of(row.id);
    const ModelSummary s = summarise(model);
    EXPECT_EQ(s.params_total.get(), row.total);
    const Result<Architecture> a = catalogue().find(row.id);
    EXPECT_EQ(s.params_total.get(), oracle::parameters(*a));
    EXPECT_EQ(s.params_active.get(), oracle::main_parameters(*a, true));
    if (row.active != 0) {
      EXPECT_EQ(s.params_active.get(), row.active);
    }
    EXPECT_EQ(s.params_embedding.get(), a->vocab.get() * a->hidden.get());
  }
}

// The README of GPT-OSS leaves the input embedding out: 3.6B and 5.1B.
TEST(Experts, ActiveByConvention) {
  const std::pair<const char*, std::int64_t> readme[] = {{"gpt-oss-20b", 3608307264}, {"gpt-oss-120b", 5132849472}};
  for (const auto& [id, published] : readme) {
    const auto counts = active_conventions(model_of(id));
    ASSERT_EQ(counts.size(), 3u);
    EXPECT_EQ(counts[0].first, "every_weight");
    EXPECT_EQ(counts[1].first, "without_input_embedding");
    EXPECT_EQ(counts[1].second.get(), published);
    EXPECT_EQ(counts[2].second.get(), published - 201088 * 2880);
  }
  const auto tied = active_conventions(model_of("grok-1"));
  EXPECT_EQ(tied[1].second, tied[0].second);
  EXPECT_EQ(tied[2].second.get(), tied[0].second.get() - 131072 * 6144);
}

TEST(Experts, ReadingsOfMultiTokenPrediction) {
  const Model v3 = model_of("deepseek-v3");
  EXPECT_EQ(counted_parameters(v3, Counted::main).get(), 671026419200);
  EXPECT_EQ(counted_parameters(v3, Counted::main_mtp).get(), 671026419200 + 11610068224);
  EXPECT_EQ(counted_parameters(v3, Counted::main_mtp_copies).get(), 684489845504);
  const Model glm = model_of("glm4.5");
  EXPECT_EQ(counted_parameters(glm, Counted::main).get(), 352797829024);
  EXPECT_EQ(counted_parameters(glm, Counted::main_mtp).get(), 356785898816);
  const Model glm5 = model_of("glm5");
  EXPECT_EQ(counted_parameters(glm5, Counted::main).get(), 743911218432);
}

}  // namespace
}  // namespace preflop
