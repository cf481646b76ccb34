// Bad config.json files: one clear sentence that names the key, never a crash or a guess.
#include <gtest/gtest.h>

#include <string>

#include "src/adapt/hf_config.hpp"
#include "tests/unit/param_oracle.hpp"

namespace preflop {
namespace {

// A small good file with one key replaced (`value` empty: left out).
std::string with(const std::string& key, const std::string& value) {
  const std::pair<const char*, const char*> keys[] = {{"architectures", "[\"LlamaForCausalLM\"]"},
                                                      {"hidden_size", "64"},
                                                      {"intermediate_size", "176"},
                                                      {"num_attention_heads", "4"},
                                                      {"num_key_value_heads", "2"},
                                                      {"num_hidden_layers", "3"},
                                                      {"vocab_size", "1000"}};
  std::string out;
  bool replaced = false;
  for (const auto& [k, v] : keys) {
    if (k == key) {
      replaced = true;
      if (value.empty()) continue;
    }
    out += (out.empty() ? "" : ",") + std::string("\"") + k + "\":" + (k == key ? value : v);
  }
  if (!replaced) out += ",\"" + key + "\":" + value;
  return "{" + out + "}";
}

std::string error_of(const std::string& text, const Assume& assume = {}) {
  const Result<Architecture> a = read_hf_config(text, "config.json", assume);
  return a.ok() ? "read" : a.error().text();
}

void expect_error(const std::string& text, const std::string& part) {
  const std::string error = error_of(text);
  EXPECT_NE(error.find(part), std::string::npos) << "got: " << error << "\nwanted: " << part;
}

TEST(ConfigRefusal, NotJson) {
  expect_error("", "config.json");
  expect_error("llama", "config.json");
  expect_error(with("hidden_size", "64").substr(0, 70), "config.json:1:");
  expect_error("[]", "holds a list, not an object");
  expect_error("[{\"architectures\":[\"LlamaForCausalLM\"]}]", "not an object");
  expect_error("42", "not an object");
  expect_error("null", "not an object");
  expect_error("{}", "names neither architectures nor model_type");
  expect_error(with("hidden_size", "64") + "x", "config.json:1:");
  expect_error(with("hidden_size", "{\"a\":1,\"a\":2}"), "the key 'a' stands twice");
  expect_error("{\"hidden_size\":1,\"hidden_size\":2}", "hidden_size");
  expect_error("{\"a\":" + std::string(100000, '[') + "}", "config.json");
  expect_error("{\"a\":\"\xff\xfe\"}", "config.json");
  expect_error(std::string("\0\0\0", 3), "config.json");
}

TEST(ConfigRefusal, AHundredMegabytes) {
  const std::string big =
      "{\"architectures\":[\"LlamaForCausalLM\"],\"pad\":\"" + std::string(100'000'000, 'x') + "\"}";
  expect_error(big, "config.json");
  expect_error(std::string(100'000'000, ' '), "config.json");
}

TEST(ConfigRefusal, Sizes) {
  ASSERT_EQ(error_of(with("hidden_size", "64")), "read");
  for (const char* key :
       {"hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size"}) {
    const std::string place = std::string("config.json: ") + key + ": ";
    expect_error(with(key, ""), place + "is absent; valid: a whole number from 1 to ");
    expect_error(with(key, ""), std::string("--assume ") + key + "=VALUE");
    expect_error(with(key, "null"), place + "is null");
    expect_error(with(key, "0"), place + "is 0; valid: a whole number from 1 to ");
    expect_error(with(key, "-4"), place + "is -4;");
    expect_error(with(key, "2.5"), place + "is 2.5;");
    expect_error(with(key, "2147483648"), place + "is 2147483648;");
    expect_error(with(key, "1000000000000000000"), place + "is 1000000000000000000;");
    expect_error(with(key, "18446744073709551615"), place + "is 18446744073709551615;");
    expect_error(with(key, "1e18"), place + "is 1e+18;");
    expect_error(with(key, "99999999999999999999999"), place + "is ");
    expect_error(with(key, "1e999"), "config.json");
    expect_error(with(key, "NaN"), place + "is 'NaN';");
    expect_error(with(key, "Infinity"), place + "is 'Infinity';");
    expect_error(with(key, "\"64\""), place + "is '64';");
    expect_error(with(key, "true"), place + "is true;");
    expect_error(with(key, "[64]"), place + "is a list;");
    expect_error(with(key, "{}"), place + "is an object;");
  }
  // A whole number may be written with a point, as some exporters do.
  EXPECT_EQ(error_of(with("hidden_size", "64.0")), "read");
  expect_error(with("num_hidden_layers", "10001"), "valid: a whole number from 1 to 10000");
}

TEST(ConfigRefusal, Contradictions) {
  expect_error(with("num_attention_heads", "6"), "num_attention_heads: is 6, which does not divide hidden_size 64");
  EXPECT_EQ(error_of(with("head_dim", "24")), "read");
  expect_error(with("num_key_value_heads", "3"),
               "num_key_value_heads: is 3, which does not divide num_attention_heads 4");
  expect_error(with("num_key_value_heads", "8"), "num_key_value_heads: is 8");
  expect_error(with("num_key_value_heads", "0"), "num_key_value_heads: is 0");
  expect_error(with("n_embd", "128"), "n_embd: is 128, but hidden_size is 64");
  EXPECT_EQ(error_of(with("n_embd", "64")), "read");
}

TEST(ConfigRefusal, OtherTypes) {
  expect_error(with("tie_word_embeddings", "1"), "tie_word_embeddings: is 1; valid: true or false");
  expect_error(with("attention_dropout", "1"), "attention_dropout: is 1; valid: a probability");
  expect_error(with("attention_dropout", "-0.1"), "attention_dropout: is -0.1");
  expect_error(with("attention_dropout", "\"none\""), "attention_dropout: is 'none'");
  expect_error(with("hidden_act", "\"situ\""), "hidden_act: is 'situ'; valid: gelu");
  expect_error(with("hidden_act", "3"), "hidden_act: is 3");
  expect_error(with("max_position_embeddings", "-1"), "max_position_embeddings: is -1");
  expect_error(with("architectures", "\"LlamaForCausalLM\""),
               "architectures: is 'LlamaForCausalLM'; valid: a list of one class name");
  expect_error(with("architectures", "[]"), "architectures: is a list");
  expect_error(with("architectures", "[1]"), "architectures");
}

TEST(ConfigRefusal, Lists) {
  const std::string gemma =
      R"({"architectures":["Gemma3ForCausalLM"],"hidden_size":64,"intermediate_size":128,"num_attention_heads":4,"num_key_value_heads":1,
    "num_hidden_layers":3,"vocab_size":100,"head_dim":16,"layer_types":)";
  EXPECT_EQ(error_of(gemma + R"(["sliding_attention","full_attention","full_attention"]})"), "read");
  expect_error(gemma + R"(["full_attention"]})", "layer_types: has 1 entries; valid: a list of 3 words");
  expect_error(gemma + R"(["full_attention",1,2]})", "layer_types: holds 1");
  expect_error(gemma + R"(["full_attention","full_attention","chunked"]})", "layer_types: holds 'chunked'");
  expect_error(gemma + "\"full\"}", "layer_types: is 'full'");
}

TEST(ConfigRefusal, ClassesByReason) {
  expect_error(with("architectures", "[\"LlamaForCausalLm\"]"), "did you mean LLaMAForCausalLM, LlamaForCausalLM");
  expect_error(with("architectures", "[\"FancyForCausalLM\"]"),
               "model class 'FancyForCausalLM' is not one that is read");
  expect_error(with("architectures", "[\"BertForMaskedLM\"]"), "BertForMaskedLM: not built yet (encoder-only models)");
  expect_error(with("architectures", "[\"T5ForConditionalGeneration\"]"), "encoder-decoder models");
  expect_error(with("architectures", "[\"MambaForCausalLM\"]"), "state-space");
  expect_error(with("architectures", "[\"ViTForImageClassification\"]"), "vision");
  expect_error("{\"_class_name\":\"UNet2DConditionModel\"}", "UNet2DConditionModel: not built yet (diffusion models)");
  expect_error(with("num_local_experts", "8"),
               "LlamaForCausalLM: not built yet (experts in a class that is not known to have them)");
  EXPECT_EQ(error_of(with("num_local_experts", "1")), "read");
  EXPECT_EQ(error_of(with("kv_lora_rank", "null")), "read");
  expect_error(with("kv_lora_rank", "512"), "latent attention");
  expect_error("{\"architectures\":[\"Mistral3ForConditionalGeneration\"]}", "text_config: is absent");
  expect_error("{\"architectures\":[\"Gemma3ForConditionalGeneration\"],\"text_config\":7}", "text_config: is 7");
  expect_error("{\"architectures\":[\"Gemma3ForConditionalGeneration\"],\"text_config\":{\"hidden_size\":64}}",
               "config.json: text_config: num_hidden_layers: is absent");
}

// What a file calls itself is repeated only where it looks like a name.
TEST(ConfigRefusal, NamesFromTheFile) {
  const std::string good = "\"mistralai/Some-7B\"", odd = "\"" + std::string(500, 'x') + "\"",
                    control = "\"a\\u001b[2J\"";
  EXPECT_EQ(read_hf_config(with("_name_or_path", good), "config.json")->name, "mistralai/Some-7B");
  EXPECT_EQ(read_hf_config(with("_name_or_path", odd), "config.json")->name, "config.json");
  EXPECT_EQ(read_hf_config(with("_name_or_path", control), "config.json")->name, "config.json");
  const std::string error = error_of(with("architectures", "[\"Moe\\u001b" + std::string(500, 'x') + "\"]"));
  EXPECT_EQ(error.find('\x1b'), std::string::npos) << error;
  EXPECT_LT(error.size(), 250u);  // the name is cut
}

TEST(ConfigRefusal, AssumeSuppliesWhatIsMissing) {
  const std::string text = with("hidden_size", "");
  const Result<Architecture> a = read_hf_config(text, "config.json", {{"hidden_size", "64"}});
  ASSERT_TRUE(a.ok()) << a.error().text();
  EXPECT_EQ(a->hidden, Count(64));
  EXPECT_EQ(a->assumed, std::vector<std::string>{"hidden_size=64"});
  // It also settles a contradiction, and goes through the same checks.
  EXPECT_EQ(error_of(with("num_attention_heads", "6"), {{"head_dim", "16"}}).find("num_key"), std::string::npos);
  EXPECT_EQ(error_of(with("n_embd", "128"), {{"hidden_size", "64"}}), "read");
  EXPECT_NE(error_of(text, {{"hidden_size", "-1"}}).find("hidden_size: is -1"), std::string::npos);
  EXPECT_NE(error_of(text, {{"hidden_size", "wide"}}).find("hidden_size: is 'wide'"), std::string::npos);
  EXPECT_NE(error_of(text, {{"hidden_size", "[64]"}}).find("hidden_size: is '[64]'"), std::string::npos);
  EXPECT_EQ(error_of(with("architectures", ""), {{"model_type", "llama"}}), "read");
  EXPECT_EQ(read_hf_config(with("architectures", ""), "config.json", {{"model_type", "llama"}})->assumed,
            std::vector<std::string>{"model_type=llama"});
  EXPECT_EQ(error_of(R"({"architectures":["RWForCausalLM"],"hidden_size":64,"n_head":8,"n_layer":2,"vocab_size":9})",
                     {{"n_head_kv", "2"}}),
            "read");
}

TEST(ConfigRefusal, AssumeOfAKeyThatNobodyReads) {
  EXPECT_EQ(error_of(with("hidden_size", "64"), {{"hidden_sizes", "64"}}),
            "--assume: key 'hidden_sizes' is not read from this LlamaForCausalLM; did you mean hidden_size?");
  EXPECT_NE(error_of(with("hidden_size", "64"), {{"zzz", "1"}}).find("key 'zzz' is not read"), std::string::npos);
  const std::string mpt =
      R"({"architectures":["MPTForCausalLM"],"d_model":64,"n_layers":2,"n_heads":4,"max_seq_len":8,"vocab_size":9})";
  EXPECT_EQ(error_of(mpt, {{"alibi", "true"}}), "read");
}

}  // namespace
}  // namespace preflop
