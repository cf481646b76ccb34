// YAML as launchers write it, and the two launchers that do.
#include <algorithm>

#include "src/adapt/import/import.hpp"
#include "src/adapt/precision_words.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

// Without a comment and without the quotes around it.
std::string plain(std::string_view text) {
  std::string out = trimmed(text);
  if (!out.empty() && (out.front() == '"' || out.front() == '\'')) {
    const std::size_t end = out.find(out.front(), 1);
    return end == std::string::npos ? out.substr(1) : out.substr(1, end - 1);
  }
  const std::size_t hash = out.find(" #");
  if (hash != std::string::npos) out = trimmed(out.substr(0, hash));
  return out.starts_with('#') ? "" : out;
}

using Flat = std::map<std::string, std::string>;

// "{ a: 1, b: {c: 2} }" under a path.
void flow(std::string_view text, const std::string& path, Flat& out, int depth) {
  std::size_t from = 1;
  int open = 0;
  constexpr int kDeepest = 16;
  for (std::size_t i = 1; i < text.size() && depth < kDeepest; ++i) {
    if (text[i] == '{' || text[i] == '[') ++open;
    const bool last = open == 0 && text[i] == '}';
    if ((text[i] == '}' || text[i] == ']') && open > 0) --open;
    if (!last && !(open == 0 && text[i] == ',')) continue;
    const std::string_view item = text.substr(from, i - from);
    from = i + 1;
    const std::size_t colon = item.find(':');
    if (colon != std::string_view::npos) {
      const std::string key = path + plain(item.substr(0, colon)), value = trimmed(item.substr(colon + 1));
      if (value.starts_with('{'))
        flow(value, key + ".", out, depth + 1);
      else
        out[key] = plain(value);
    }
    if (last) return;
  }
}

void copy(const Flat& from, const char* path, const char* key, Request& out) {
  const auto at = from.find(path);
  if (at != from.end() && !at->second.empty() && at->second != "null") out.keys[key] = at->second;
}

std::int64_t digits_at(const Flat& from, const std::string& path) {
  const auto at = from.find(path);
  std::int64_t out = 0;
  if (at == from.end()) return 0;
  for (const char c : at->second) {
    if (c < '0' || c > '9' || out > (std::int64_t{1} << 40)) return 0;
    out = out * 10 + (c - '0');
  }
  return out;
}

std::string text_at(const Flat& from, const std::string& path) {
  const auto at = from.find(path);
  return at == from.end() ? "" : at->second;
}

void read_nanotron(const Flat& y, Request& out) {
  for (const auto& [path, key] :
       {std::pair("parallelism.tp", "tp"), std::pair("parallelism.pp", "pp"), std::pair("parallelism.dp", "dp"),
        std::pair("parallelism.context_parallel_size", "cp"), std::pair("parallelism.expert_parallel_size", "ep"),
        std::pair("optimizer.zero_stage", "zero"), std::pair("tokens.sequence_length", "seq"),
        std::pair("tokens.micro_batch_size", "micro_batch")})
    copy(y, path, key, out);
  const std::int64_t dp = std::max<std::int64_t>(1, digits_at(y, "parallelism.dp"));
  const std::int64_t batch =
      digits_at(y, "tokens.micro_batch_size") * digits_at(y, "tokens.batch_accumulation_per_replica") * dp;
  if (batch > 0) out.keys["global_batch"] = std::to_string(batch);
  if (digits_at(y, "parallelism.tp") > 1)
    out.keys["sp"] = text_at(y, "parallelism.tp_mode") == "REDUCE_SCATTER" ? "true" : "false";
  if (digits_at(y, "parallelism.pp") > 1)
    out.keys["schedule"] = text_at(y, "parallelism.pp_engine") == "1f1b" ? "1f1b" : "gpipe";
  if (const std::string own = text_at(y, "parallelism.tp_linear_async_communication"); own == "true" || own == "false")
    out.keys["tp_overlap"] = own;
  if (const std::string wide = text_at(y, "optimizer.accumulate_grad_in_fp32"); wide == "true" || wide == "false")
    out.keys["grad_dtype"] = wide == "true" ? "fp32" : text_at(y, "model.dtype") == "float16" ? "fp16" : "bf16";
  out.keys["recompute"] = text_at(y, "parallelism.recompute_layer") == "true" ? "full" : "none";
  const std::string dtype = text_at(y, "model.dtype");
  if (dtype == "float16" || dtype == "float32") out.keys["precision"] = dtype == "float16" ? "fp16" : "fp32";
  if (!dtype.empty()) out.keys.emplace("precision", "bf16");
  const std::string optimizer = text_at(y, "optimizer.optimizer_factory.name");
  if (optimizer == "adamW" || optimizer == "sgd") out.keys["optimizer"] = optimizer == "sgd" ? "sgd" : "adamw";
  out.keys.emplace("stack", "nanotron");
  const std::string m = "model.model_config.";
  if (!out.model.empty() || digits_at(y, m + "num_hidden_layers") == 0) return;
  out.model = "llama:layers=" + text_at(y, m + "num_hidden_layers") + ",hidden=" + text_at(y, m + "hidden_size") +
              ",heads=" + text_at(y, m + "num_attention_heads") + ",vocab=" + text_at(y, m + "vocab_size");
  if (digits_at(y, m + "num_key_value_heads") > 0) out.model += ",kv_heads=" + text_at(y, m + "num_key_value_heads");
  if (digits_at(y, m + "intermediate_size") > 0) out.model += ",ffn=" + text_at(y, m + "intermediate_size");
  if (text_at(y, m + "tie_word_embeddings") == "true") out.model += ",tied=true";
  if (text_at(y, m + "attention_bias") == "true") out.model += ",qkv_bias=true";
  if (digits_at(y, m + "no_rope_layer") > 0) out.model += ",nope_every=" + text_at(y, m + "no_rope_layer");
  for (const auto& [key, constant] :
       {std::pair("rope_theta", ",rope_theta="), std::pair("rms_norm_eps", ",norm_eps=")}) {
    if (const std::string value = text_at(y, m + key); !value.empty()) out.model += constant + value;
  }
}

// fp8 is Transformer Engine's delayed scaling, or torchao's of whole tensors.
Status read_mixed_precision(const Flat& y, const std::string& file, Request& out) {
  const std::string precision = text_at(y, "mixed_precision"), backend = text_at(y, "fp8_config.fp8_backend");
  if (precision == "bf16") out.keys.emplace("precision", "bf16");
  if (precision == "fp16") out.keys["precision"] = "fp16";
  if (precision == "no") out.keys["precision"] = "fp32";
  if (precision != "fp8") return Nothing{};
  std::string lower = backend;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const PrecisionWords* words = precision_called(&PrecisionWords::accelerate, lower);
  if (words == nullptr)
    return Error{"--from", "fp8_config.fp8_backend of " + text::quoted(file) + " is " + text::quoted(backend),
                 text::list(all_words(&PrecisionWords::accelerate))};
  out.keys["precision"] = words->precision;
  return Nothing{};
}

void read_accelerate(const Flat& y, Request& out) {
  const std::string p = "parallelism_config.parallelism_config_";
  const std::int64_t tp = std::max<std::int64_t>(1, digits_at(y, p + "tp_size")),
                     cp = std::max<std::int64_t>(1, digits_at(y, p + "cp_size"));
  if (tp > 1) out.keys["tp"] = std::to_string(tp);
  if (cp > 1) out.keys["cp"] = std::to_string(cp);
  const std::string type = text_at(y, "distributed_type");
  if (type == "FSDP") {
    const bool second = text_at(y, "fsdp_config.fsdp_version") == "2";
    const std::string strategy = text_at(y, "fsdp_config.fsdp_sharding_strategy"),
                      reshard = text_at(y, "fsdp_config.fsdp_reshard_after_forward");
    const bool partly =
        second ? reshard == "false"
               : strategy.starts_with("SHARD_GRAD_OP") || strategy == "2" || strategy == "HYBRID_SHARD_ZERO2";
    out.keys["zero"] = !second && (strategy == "NO_SHARD" || strategy == "3") ? "0" : partly ? "2" : "3";
    // An export that recomputes a part of every layer says that in its comment.
    const std::string checkpoints = text_at(y, "fsdp_config.fsdp_activation_checkpointing");
    if (checkpoints == "true") out.keys["recompute"] = "full";
    if (checkpoints == "false") out.keys.emplace("recompute", "none");
    if (text_at(y, "fsdp_config.fsdp_offload_params") == "true") out.keys["offload"] = "optimizer=cpu,params=cpu";
    const std::int64_t shard = digits_at(y, p + "dp_shard_size"), replicas = digits_at(y, p + "dp_replicate_size");
    if (replicas > 1 && shard > 1) out.keys["hsdp"] = std::to_string(shard);
    // Version 1 shards within a machine and copies over the machines.
    const std::int64_t machines = std::max<std::int64_t>(1, digits_at(y, "num_machines"));
    const std::int64_t each = digits_at(y, "num_processes") / machines;
    if (!second && strategy.starts_with("HYBRID_SHARD") && each > 0) out.keys["hsdp"] = std::to_string(each);
    if (!second) out.keys.emplace("stack", "fsdp1");
  } else if (type == "DEEPSPEED") {
    copy(y, "deepspeed_config.zero_stage", "zero", out);
  } else if (type == "MULTI_GPU" || type == "NO") {
    out.keys["zero"] = "0";
  }
}

}  // namespace

Result<Flat> flat_yaml(std::string_view text, const std::string& file) {
  Flat out;
  std::vector<std::pair<std::size_t, std::string>> open;  // indentation and path of the mappings that are open
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos || line[indent] == '#' || line[indent] == '\r' ||
        line.substr(indent).starts_with("---") || line[indent] == '-')
      continue;
    if (line[indent] == '\t') return Error{file + ":" + std::to_string(line_number), "a tab indents", "spaces"};
    const std::string_view body = line.substr(indent);
    const std::size_t colon = body.find(':');
    if (colon == std::string_view::npos)
      return Error{file + ":" + std::to_string(line_number), "no key and value", "key: value"};
    while (!open.empty() && open.back().first >= indent) open.pop_back();
    const std::string path = (open.empty() ? "" : open.back().second) + plain(body.substr(0, colon));
    const std::string value = trimmed(body.substr(colon + 1));
    if (value.starts_with('{'))
      flow(value, path + ".", out, 0);
    else if (plain(value).empty())
      open.emplace_back(indent, path + ".");
    else
      out[path] = plain(value);
  }
  return out;
}

Result<Request> import_yaml(std::string_view text, const std::string& file) {
  const auto yaml = flat_yaml(text, file);
  if (!yaml) return yaml.error();
  Request out;
  read_rest_line(text, out);
  const auto any = [&](std::string_view prefix) {
    return std::any_of(yaml->begin(), yaml->end(), [&](const auto& entry) { return entry.first.starts_with(prefix); });
  };
  if (any("parallelism.") && any("tokens."))
    read_nanotron(*yaml, out);
  else if (any("distributed_type")) {
    if (Status s = read_mixed_precision(*yaml, file, out); !s) return s.error();
    read_accelerate(*yaml, out);
  } else
    return Error{"--from", text::quoted(file) + " is neither accelerate's nor nanotron's",
                 "a file with distributed_type, or with parallelism and tokens"};
  return out;
}

}  // namespace preflop
