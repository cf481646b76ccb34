#include "src/adapt/hf_config.hpp"

#include <algorithm>
#include <array>

#include "src/adapt/hf_config_experts.hpp"
#include "src/adapt/hf_config_family.hpp"
#include "src/adapt/hf_config_refuse.hpp"
#include "src/adapt/hf_config_state.hpp"
#include "src/adapt/vision_tower.hpp"
#include "src/base/json_read.hpp"
#include "src/base/text.hpp"

namespace preflop {
namespace {

using Json = nlohmann::json;

// One line per model class. model_type stands in where a file names no class (the first line of a type wins).
struct Family {
  std::string_view model_class;
  std::string_view model_type;
  ReadFamily read;
  bool nested = false;   // the language model's keys stand in text_config
  bool experts = false;  // reads experts and latent attention, with an indexer where it has one
  bool states = false;   // reads state spaces
};

// Files of state-spaces/mamba2-* name no class.
constexpr std::string_view kMambaLm = "MambaLMHeadModel";

constexpr std::array kFamilies = {
    Family{"LlamaForCausalLM", "llama", read_llama},
    Family{"LLaMAForCausalLM", "", read_llama},
    Family{"YiForCausalLM", "Yi", read_llama},
    Family{"MistralForCausalLM", "mistral", read_mistral},
    Family{"MinistralForCausalLM", "ministral", read_mistral},
    Family{"Ministral3ForCausalLM", "", read_ministral3},
    Family{"Mistral3ForConditionalGeneration", "mistral3", read_mistral, true},
    Family{"QWenLMHeadModel", "qwen", read_qwen1},
    Family{"Qwen2ForCausalLM", "qwen2", read_qwen2},
    Family{"Qwen3ForCausalLM", "qwen3", read_qwen3},
    Family{"GemmaForCausalLM", "gemma", read_gemma},
    Family{"Gemma2ForCausalLM", "gemma2", read_gemma2},
    Family{"Gemma3ForCausalLM", "gemma3_text", read_gemma3},
    Family{"Gemma3ForConditionalGeneration", "gemma3", read_gemma3, true},
    Family{"PhiForCausalLM", "phi", read_phi},
    Family{"PhiForCausalLM", "phi-msft", read_phi},
    Family{"Phi3ForCausalLM", "phi3", read_phi3},
    Family{"GPT2LMHeadModel", "gpt2", read_gpt2},
    Family{"GPTBigCodeForCausalLM", "gpt_bigcode", read_gpt_bigcode},
    Family{"GPTJForCausalLM", "gptj", read_gptj},
    Family{"GPTNeoXForCausalLM", "gpt_neox", read_gpt_neox},
    Family{"OPTForCausalLM", "opt", read_opt},
    Family{"BloomForCausalLM", "bloom", read_bloom},
    Family{"FalconForCausalLM", "falcon", read_falcon},
    Family{"RWForCausalLM", "RefinedWeb", read_falcon_rw},
    Family{"RWForCausalLM", "RefinedWebModel", read_falcon_rw},
    Family{"MptForCausalLM", "", read_mpt},
    Family{"MPTForCausalLM", "mpt", read_mpt_foundry},
    Family{"Starcoder2ForCausalLM", "starcoder2", read_starcoder2},
    Family{"OlmoForCausalLM", "olmo", read_olmo},
    Family{"Olmo2ForCausalLM", "olmo2", read_olmo2},
    Family{"Olmo3ForCausalLM", "olmo3", read_olmo3},
    Family{"GraniteForCausalLM", "granite", read_granite},
    Family{"CohereForCausalLM", "cohere", read_cohere},
    Family{"Cohere2ForCausalLM", "cohere2", read_cohere2},
    Family{"StableLmForCausalLM", "stablelm", read_stablelm},
    Family{"StableLMEpochForCausalLM", "stablelm_epoch", read_stablelm},
    Family{"InternLM2ForCausalLM", "internlm2", read_internlm2},
    Family{"BaichuanForCausalLM", "baichuan", read_baichuan},
    Family{"BaiChuanForCausalLM", "", read_baichuan},
    Family{"ChatGLMModel", "chatglm", read_chatglm},
    Family{"ChatGLMForConditionalGeneration", "", read_chatglm},
    Family{"GlmForCausalLM", "glm", read_glm},
    Family{"Glm4ForCausalLM", "glm4", read_glm4},
    Family{"SmolLM3ForCausalLM", "smollm3", read_smollm3},
    Family{"NemotronForCausalLM", "nemotron", read_nemotron},
    Family{"MixtralForCausalLM", "mixtral", read_mixtral, false, true},
    Family{"PhiMoEForCausalLM", "phimoe", read_phimoe, false, true},
    Family{"PhimoeForCausalLM", "", read_phimoe, false, true},
    Family{"OlmoeForCausalLM", "olmoe", read_olmoe, false, true},
    Family{"Qwen2MoeForCausalLM", "qwen2_moe", read_qwen2_moe, false, true},
    Family{"Qwen3MoeForCausalLM", "qwen3_moe", read_qwen3_moe, false, true},
    Family{"MiniMaxM2ForCausalLM", "minimax_m2", read_minimax_m2, false, true},
    Family{"DbrxForCausalLM", "dbrx", read_dbrx, false, true},
    Family{"Grok1ModelForCausalLM", "grok-1", read_grok1, false, true},
    Family{"GptOssForCausalLM", "gpt_oss", read_gpt_oss, false, true},
    Family{"Llama4ForConditionalGeneration", "llama4", read_llama4, true, true},
    Family{"Llama4ForCausalLM", "llama4_text", read_llama4, false, true},
    Family{"Glm4MoeForCausalLM", "glm4_moe", read_glm4_moe, false, true},
    Family{"MiMoV2FlashForCausalLM", "mimo_v2_flash", read_mimo_v2, false, true},
    Family{"DeepseekV2ForCausalLM", "deepseek_v2", read_deepseek, false, true},
    Family{"DeepseekV3ForCausalLM", "deepseek_v3", read_deepseek_v3, false, true},
    Family{"DeepseekV3ForCausalLM", "kimi_k2", read_deepseek_v3, false, true},
    Family{"DeepseekV32ForCausalLM", "deepseek_v32", read_deepseek_v3, false, true},
    Family{"GlmMoeDsaForCausalLM", "glm_moe_dsa", read_glm_dsa, false, true},
    Family{"Mamba2ForCausalLM", "mamba2", read_mamba2, false, false, true},
    Family{kMambaLm, "", read_mamba_lm, false, false, true},
    Family{"NemotronHForCausalLM", "nemotron_h", read_nemotron_h, false, true, true},
    Family{"GraniteMoeHybridForCausalLM", "granitemoehybrid", read_granite_hybrid, false, true, true},
    Family{"Qwen3NextForCausalLM", "qwen3_next", read_qwen3_next, false, true, true},
    Family{"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", read_qwen3_next, true, true, true},
    Family{"Qwen3_5ForConditionalGeneration", "qwen3_5", read_qwen3_next, true, true, true},
};

std::string text_of(const Json& object, std::string_view key) {
  const auto it = object.find(key);
  if (it == object.end()) return {};
  const auto* s = it->get_ptr<const Json::string_t*>();
  return s != nullptr ? *s : std::string();
}

// The class the file names, else its model_type; an --assume wins over both.
Result<std::string> model_class_of(const Json& config, const std::string& where, const Assume& assume) {
  for (const char* key : {"architectures", "model_type"}) {
    if (const auto it = assume.find(key); it != assume.end()) return it->second;
  }
  const auto it = config.find("architectures");
  if (it != config.end() && !it->is_null()) {
    const auto* name = it->is_array() && it->size() == 1 ? (*it)[0].get_ptr<const Json::string_t*>() : nullptr;
    if (name == nullptr) return Error{where + ": architectures", "is " + shown(*it), "valid: a list of one class name"};
    return *name;
  }
  if (std::string type = text_of(config, "model_type"); !type.empty()) return type;
  if (std::string part = text_of(config, "_class_name"); !part.empty()) return part;
  if (config.contains("ssm_cfg")) return std::string(kMambaLm);
  const bool quantisation = config.contains("quantization") || config.contains("quant_method");
  return Error{where,
               quantisation ? "describes a quantisation, not a model" : "names neither architectures nor model_type",
               quantisation ? "valid: the config.json that lies beside it"
                            : "valid: a model's config.json; or supply --assume model_type=llama (or another)"};
}

const Family* find_family(std::string_view name) {
  for (const Family& f : kFamilies) {
    if (f.model_class == name) return &f;
  }
  for (const Family& f : kFamilies) {
    if (!f.model_type.empty() && f.model_type == name) return &f;
  }
  return nullptr;
}

Error unknown_class(const std::string& where, const std::string& name) {
  const std::string near = text::suggestion(name, hf_config_families());
  return Error{where, "model class " + text::quoted(name) + " is not one that is read",
               near.empty() ? "valid: a decoder of the families that `preflop models` lists, or a shape string "
                              "(llama:layers=..,hidden=..)"
                            : near};
}

// Gemma 3's published files leave these out; the class fills them in.
void fill_gemma3(Json& text_config, Architecture& a) {
  const std::array<std::pair<const char*, int>, 5> defaults = {{{"num_attention_heads", 8},
                                                                {"num_key_value_heads", 4},
                                                                {"head_dim", 256},
                                                                {"vocab_size", 262208},
                                                                {"max_position_embeddings", 131072}}};
  for (const auto& [key, value] : defaults) {
    if (text_config.contains(key)) continue;
    text_config[key] = value;
    a.defaulted.push_back(std::string(key) + "=" + std::to_string(value));
  }
}

// The language model of a nested file, with what stands beside it noted.
Result<Json> nested_text(const Json& config, const std::string& where, const std::string& model_class,
                         Architecture& a) {
  const auto it = config.find("text_config");
  if (it == config.end() || !it->is_object()) {
    return Error{where + ": text_config", it == config.end() ? "is absent" : "is " + shown(*it),
                 "valid: the object with the language model's keys"};
  }
  Json text_config = *it;
  if (!text_config.contains("tie_word_embeddings") && config.contains("tie_word_embeddings"))
    text_config["tie_word_embeddings"] = config["tie_word_embeddings"];
  if (model_class.rfind("Gemma3", 0) == 0) fill_gemma3(text_config, a);
  return text_config;
}

void note_quantisation(const Json& config, Architecture& a) {
  const auto it = config.find("quantization_config");
  if (it == config.end() || !it->is_object()) return;
  const std::string method = text_of(*it, "quant_method");
  a.notes.push_back("quantization_config" + (method.empty() ? "" : " (" + method + ")") +
                    " says how the weights are stored: parameters are counted from the shapes");
}

// Names come from the file: only what looks like one is repeated as it stands.
bool looks_like_name(std::string_view name) {
  constexpr std::size_t kLongest = 96;
  return !name.empty() && name.size() <= kLongest &&
         std::all_of(name.begin(), name.end(), [](char ch) { return ch > ' ' && ch <= '~'; });
}

std::string own_name(const Json& config, std::string_view where) {
  for (const char* key : {"_name_or_path", "name_or_path"}) {
    if (std::string name = text_of(config, key); looks_like_name(name)) return name;
  }
  return std::string(where);
}

Error not_built(const std::string& where, const std::string& model_class, const std::vector<std::string>& parts) {
  const std::string name = looks_like_name(model_class) ? model_class : text::quoted(model_class);
  return Error{where, name + ": not built yet (" + text::list(parts, "and") + ")",
               "valid: a decoder of the families that `preflop models` lists"};
}

// Constants of formulas, for launch files: those that the file states itself.
void read_constants(ConfigReader& reader, const Json& config, Architecture& a) {
  const auto first = [&](std::initializer_list<std::string_view> keys, double most) {
    std::optional<double> out;
    for (const std::string_view key : keys) {
      const std::optional<double> stated = reader.real_if_given(key, most);
      if (!out) out = stated;
    }
    return out;
  };
  a.norm_eps = first({"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"},
                     Architecture::kMostEps);
  if (a.positions != Positions::rope) return;
  a.rope_theta = first({"rope_theta"}, Architecture::kMostTheta);
  a.rope_share = first({"partial_rotary_factor", "rotary_pct"}, 1);
  const auto nested = config.find("rope_parameters");  // of newer files
  if (nested == config.end() || !nested->is_object()) return;
  static const Assume kNothing;
  ConfigReader inner(*nested, reader.where() + ": rope_parameters", kNothing);
  if (!a.rope_theta) a.rope_theta = inner.real_if_given("rope_theta", Architecture::kMostTheta);
  if (!a.rope_share) a.rope_share = inner.real_if_given("partial_rotary_factor", 1);
  reader.adopt(inner);
}

}  // namespace

std::vector<std::string> hf_config_families() {
  std::vector<std::string> names;
  for (const Family& f : kFamilies) names.emplace_back(f.model_class);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<Architecture> read_hf_config(std::string_view json_text, std::string_view where_view, const Assume& assume) {
  const std::string where(where_view);
  Result<Json> parsed = read_json(json_text, where);
  if (!parsed) return parsed.error();
  const Json& config = *parsed;
  if (!config.is_object())
    return Error{where, "holds " + shown(config) + ", not an object", "valid: a Hugging Face config.json"};
  const Result<std::string> named = model_class_of(config, where, assume);
  if (!named) return named.error();

  const Family* family = find_family(*named);
  const std::vector<std::string> unbuilt =
      unbuilt_parts(config, *named, {family != nullptr && family->experts, family != nullptr && family->states});
  if (!unbuilt.empty()) return not_built(where, *named, unbuilt);
  if (family == nullptr) return unknown_class(where, *named);

  Architecture a;
  a.family = family->model_class;
  a.name = own_name(config, where);
  a.source = where;
  for (const char* key : {"architectures", "model_type"}) {
    if (const auto it = assume.find(key); it != assume.end()) a.assumed.push_back(it->first + "=" + it->second);
  }
  Json nested;
  ReadFamily read = family->read;
  if (family->nested) {
    Result<Json> text_config = nested_text(config, where, a.family, a);
    if (!text_config) return text_config.error();
    nested = std::move(*text_config);
    if (text_of(nested, "model_type") == "ministral3") read = read_ministral3;
  }
  ConfigReader reader(family->nested ? nested : config, family->nested ? where + ": text_config" : where, assume);
  read(reader, a);
  read_constants(reader, family->nested ? nested : config, a);
  reader.refuse_unused(a.family);
  reader.record(a);
  if (a.positions != Positions::rope) {
    for (LayerRun& run : a.layers) run.kind.attention.rope = false;
  }
  if (!reader.ok()) return reader.error();
  if (family->nested) read_vision_tower(config, a);
  note_quantisation(config, a);
  return a;
}

}  // namespace preflop
