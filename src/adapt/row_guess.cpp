// Strings of word columns that the vocabulary does not have, by what they contain.
#include <algorithm>
#include <array>
#include <charconv>

#include "src/adapt/rows.hpp"

namespace preflop {

namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The digits after `mark`: "zero-2" after "zero" -> "2". Separators between are skipped.
std::string digits_after(std::string_view text, std::string_view mark) {
  std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  at += mark.size();
  while (at < text.size() &&
         (text[at] == '-' || text[at] == '_' || text[at] == ':' || text[at] == ' ' || text[at] == '='))
    ++at;
  std::size_t end = at;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  return std::string(text.substr(at, end - at));
}

Keys sharding(std::string_view t) {
  if (const std::string stage = digits_after(t, "zero"); stage.size() == 1 && stage[0] <= '3') return {{"zero", stage}};
  if (const std::string replicas = digits_after(t, "hsdp"); !replicas.empty())
    return {{"zero", "3"}, {"replicas", replicas}};
  if (contains(t, "hsdp")) return {{"zero", "3"}, {"hsdp", "8"}};
  if (contains(t, "fsdp")) return {{"zero", "3"}};
  if (contains(t, "distributed optimizer")) return {{"zero", "1"}};
  if (t == "none" || t == "no" || contains(t, "ddp") || contains(t, "replicated")) return {{"zero", "0"}};
  return {};
}

Keys precision(std::string_view t) {
  constexpr std::array<std::string_view, 6> kScaled = {"fp8-tensorwise", "fp8-delayed", "fp8-rowwise",
                                                       "fp8-blockwise",  "mxfp8",       "nvfp4"};
  for (std::string_view name : kScaled) {
    if (contains(t, name)) return {{"precision", std::string(name)}};
  }
  if (contains(t, "fp8") || contains(t, "float8"))
    return {{"precision", contains(t, "delayed") ? "fp8-delayed"
                          : contains(t, "row")   ? "fp8-rowwise"
                          : contains(t, "block") ? "fp8-blockwise"
                                                 : "fp8-tensorwise"}};
  if (contains(t, "fp4")) return {{"precision", "nvfp4"}};
  if (contains(t, "bf16") || contains(t, "bfloat16")) return {{"precision", "bf16"}};
  if (contains(t, "fp16") || contains(t, "float16") || contains(t, "half")) return {{"precision", "fp16"}};
  if (contains(t, "fp32") || contains(t, "float32") || contains(t, "tf32")) return {{"precision", "fp32"}};
  return {};
}

bool is_module_list(std::string_view t) {
  return !t.empty() && std::all_of(t.begin(), t.end(),
                                   [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '-' || c == ','; });
}

Keys recompute(std::string_view t) {
  if (const std::string n = digits_after(t, "full:"); !n.empty() && t == "full:" + n)
    return {{"recompute", std::string(t)}};
  for (std::string_view kind : {"full", "selective", "none"}) {
    if (t.starts_with(kind)) return {{"recompute", std::string(kind)}};
  }
  if (t == "no" || t == "off" || t == "false") return {{"recompute", "none"}};
  if (t == "yes" || t == "true" || t == "on") return {{"recompute", "full"}};
  if (is_module_list(t) && contains(t, ",")) return {{"recompute", std::string(t)}};
  for (std::string_view module :
       {"core_attn", "mlp", "layernorm", "moe_act", "moe", "mla_up_proj", "shared_experts", "selective-layer"}) {
    if (t == module) return {{"recompute", std::string(t)}};
  }
  return {};
}

Keys optimizer(std::string_view t) {
  const bool eight = contains(t, "8bit") || contains(t, "8-bit");
  for (std::string_view name :
       {"adamw-8bit", "adamw-paged", "adafactor", "muon", "lion", "sgd", "shampoo", "soap", "adamw-schedule-free"}) {
    if (contains(t, name)) return {{"optimizer", std::string(name)}};
  }
  if (contains(t, "adam"))
    return {{"optimizer", eight ? "adamw-8bit" : contains(t, "paged") ? "adamw-paged" : "adamw"}};
  return {};
}

Keys lora(std::string_view t) {
  if (t == "none" || t == "no" || t == "false") return {{"lora", "none"}};
  if (t == "yes" || (t.starts_with("r=") && !contains(t, " "))) return {{"lora", std::string(t)}};
  Keys out = {{"lora", "yes"}};
  if (const std::string rank = digits_after(t, "r="); !rank.empty()) out[0].second = "r=" + rank;
  if (contains(t, "qlora")) out.emplace_back("quantize", "nf4");
  return out;
}

Keys offload(std::string_view t) {
  if (t == "none" || t == "no" || t.starts_with("activations=") || t.starts_with("optimizer="))
    return {{"offload", std::string(t)}};
  if (contains(t, "activation")) return {{"offload", "activations"}};
  if (contains(t, "optimizer") && !contains(t, "param")) return {{"offload", "optimizer=cpu"}};
  if (contains(t, "cpu") || contains(t, "param") || contains(t, "nvme"))
    return {{"offload", "optimizer=cpu,params=cpu"}};
  return {};
}

Keys memory_kind(std::string_view t) {
  if (contains(t, "smi") || contains(t, "device")) return {{"mem_kind", "device"}};
  if (contains(t, "reserved")) return {{"mem_kind", "reserved"}};
  if (contains(t, "alloc") || contains(t, "active")) return {{"mem_kind", "allocated"}};
  return {{"mem_kind", "reserved"}};
}

// "3200 Gb/s per node": the rate of an accelerator, where nodes have eight.
Keys network(std::string_view t) {
  const std::size_t unit = t.find("gb/s") != std::string_view::npos ? t.find("gb/s") : t.find("gbps");
  if (unit == std::string_view::npos) return {};
  std::size_t end = unit;
  while (end > 0 && t[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && t[begin - 1] >= '0' && t[begin - 1] <= '9') --begin;
  int rate = 0;
  if (std::from_chars(t.data() + begin, t.data() + end, rate).ec != std::errc() || rate <= 0) return {};
  const bool each = contains(t, "8x") || !contains(t, "per node");
  return {{"net_gbps", std::to_string(each ? rate : std::max(1, rate / 8))}};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> guess_word(std::string_view column, std::string_view text) {
  const std::string t = loose_name(text);
  if (column == "sharding") return sharding(t);
  if (column == "precision") return precision(t);
  if (column == "recompute") return recompute(t);
  if (column == "optimizer") return optimizer(t);
  if (column == "lora") return lora(t);
  if (column == "offload") return offload(t);
  if (column == "mem_kind") return memory_kind(t);
  if (column == "internode") return network(t);
  if (column == "seq_parallel") {
    if (t == "yes" || t == "true" || t == "1" || t == "on") return {{"seq_parallel", "yes"}};
    if (t == "no" || t == "false" || t == "0" || t == "off") return {{"seq_parallel", "no"}};
  }
  if (column == "tflops_kind") return {{"convention", "unknown"}};
  return {};
}

}  // namespace preflop
