// Real config.json files, where the folder of samples is there: each reads to its count, or is refused
// with the true reason. The samples are not part of the project; without them the test is skipped.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "src/adapt/hf_config.hpp"
#include "src/model/model.hpp"
#include "tests/unit/param_oracle.hpp"

namespace preflop {
namespace {

struct Verdict {
  std::int64_t parameters;  // 0: refused
  const char* reason;       // part of the error, or of a note
};

const std::map<std::string, Verdict> kVerdicts = {
    {"aya-23-8b.json", {8028033024, ""}},
    {"baichuan2-7b.json", {7505973248, ""}},
    {"bloom-176b.trimmed-missing-hidden.json", {0, "hidden_size: is absent"}},
    {"chatglm3-6b.json", {6243584000, ""}},
    {"dbrx.json", {131596523520, ""}},
    {"deepseek-v2-lite.json", {15706484224, ""}},
    {"deepseek-v3.2.json", {671877944064, "indexer"}},
    {"deepseek-v3.json", {671026419200, ""}},
    {"deepseek-v4-flash.json", {0, "(compressed sparse attention and hyper-connections)"}},
    {"falcon-40b.trimmed-rw.json", {0, "n_head_kv: is absent, and so is multi_query"}},
    {"gemma-2-2b.json", {2614341888, ""}},
    {"gemma-3-1b.json", {999885952, ""}},
    {"gemma-4-26b-a4b.json", {0, "(experts beside a dense MLP)"}},
    {"glm-5.2.json", {743377019904, "indexer"}},
    {"glm-5.json", {743911218432, "indexer"}},
    {"gpt-bigcode-santacoder.json", {1124886528, ""}},
    {"gpt-j-6b.json", {6050882784, ""}},
    {"gpt-oss-20b.json", {20914757184, ""}},
    {"gpt2.json", {124439808, ""}},
    {"kimi-k2.json", {1026408232448, ""}},
    {"kimi-k3.json", {0, "KimiK3ForConditionalGeneration: not built yet (state-space or linear-attention layers)"}},
    {"llama4-maverick.json", {400711848960, "vision tower"}},
    {"llama4-scout.json", {107769861120, "vision tower"}},
    {"mimo-v2-flash.json", {308778780864, ""}},
    {"minimax-m2.5.json", {228689764864, ""}},
    {"minimax-m3.json", {0, "MiniMaxM3ForCausalLM: not built yet (block-sparse attention)"}},
    {"ministral3-3b.json", {3429006336, "vision tower"}},
    {"mixtral-8x7b.json", {46702792704, ""}},
    {"nemotron-3-nano-30b.json", {31577937344, ""}},
    {"nemotron-h-56b.json", {56324350464, ""}},
    {"nemotron-nas-49b.json", {0, "block_configs"}},
    {"phi-2-msft.json", {2779683840, ""}},
    {"phi-3.5-longrope.json", {3821079552, ""}},
    {"qwen-1.8b-v1.json", {1836828672, ""}},
    {"qwen1.5-moe-a2.7b.json", {14315784192, ""}},
    {"qwen3-235b-nvfp4.hf_quant_config.json", {0, "describes a quantisation, not a model"}},
    {"qwen3-235b-nvfp4.json", {235093634560, ""}},
    {"qwen3-30b-a3b.json", {30532122624, ""}},
    {"qwen3-32b-fp8.json", {32762123264, "quantization_config (fp8)"}},
    {"qwen3.5-35b-a3b.json", {34660610688, "vision tower"}},
    {"starcoder2-7b.json", {7173923840, ""}},
};

TEST(ConfigSamples, ReadOrRefusedForTheTrueReason) {
  const std::filesystem::path folder = std::filesystem::path(PREFLOP_SOURCE_DIR) / ".." / "shared" / "configs";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no folder of sample configs beside the project";
  int read = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const auto verdict = kVerdicts.find(name);
    ASSERT_NE(verdict, kVerdicts.end()) << "a sample that this table does not know";
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const Result<Architecture> a = read_hf_config(text, name);
    const std::string reason = verdict->second.reason;
    if (verdict->second.parameters == 0) {
      ++refused;
      ASSERT_FALSE(a.ok());
      EXPECT_NE(a.error().text().find(reason), std::string::npos) << a.error().text();
      continue;
    }
    ++read;
    ASSERT_TRUE(a.ok()) << a.error().text();
    EXPECT_EQ(oracle::main_parameters(*a), verdict->second.parameters);
    EXPECT_EQ(summarise(build_model(*a)).params_total.get(), verdict->second.parameters);
    std::string notes;
    for (const std::string& note : a->notes) notes += note + "\n";
    EXPECT_NE(notes.find(reason), std::string::npos) << notes;
  }
  EXPECT_EQ(read + refused, static_cast<int>(kVerdicts.size()));
  std::printf("%d samples read, %d refused by reason\n", read, refused);
}

}  // namespace
}  // namespace preflop
