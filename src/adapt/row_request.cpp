#include "src/adapt/row_request.hpp"

#include <array>

#include "src/adapt/row_builder.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"

namespace preflop {

namespace rows {

namespace {

constexpr double kBitsPerByte = 8;
constexpr double kGiga = 1e9;

bool is_key(std::string_view name) {
  for (const Key& key : request_keys()) {
    if (name == key.name) return *key.not_built == '\0';
  }
  return false;
}

}  // namespace

// The generation as the catalogue has it: its own, else the newest of its line that is not newer, else
// the stack's newest.
std::string Builder::generation(std::string_view name, std::string_view wanted) {
  const std::string_view line = wanted.substr(0, wanted.find('-'));
  std::string best;
  std::string newest;
  for (const Stack& s : catalogues_.stacks.all()) {
    if (s.name != name) continue;
    newest = s.generation;
    if (s.generation == wanted) return s.generation;
    const bool same_line = std::string_view(s.generation).substr(0, s.generation.find('-')) == line;
    if (same_line && s.generation <= wanted && s.generation > best) best = s.generation;
  }
  const std::string out = best.empty() ? newest : best;
  if (!wanted.empty())
    later("generation", wanted, "not described yet, taken as " + (out.empty() ? std::string(name) : out));
  return out;
}

// Of a stack whose generations are months, the newest that is not after the row's, else its first.
std::string Builder::generation_of(std::string_view name, std::string_view date) const {
  std::string best;
  std::string oldest;
  for (const Stack& s : catalogues_.stacks.all()) {
    const bool month = s.generation.size() == 7 && s.generation.starts_with("20") && s.generation[4] == '-';
    if (s.name == name && month && oldest.empty()) oldest = s.generation;
    if (s.name == name && month && s.generation <= date && s.generation > best) best = s.generation;
  }
  return best.empty() ? oldest : best;
}

void Builder::stack() {
  const std::string* text = cell("stack");
  const std::string* date = cell("date");
  if (text == nullptr) {
    assume("stack", "default");
    return;
  }
  const std::string name = text::normalise_name(text->substr(0, text->find('@')));
  generation_ = text->find('@') == std::string::npos ? "" : text->substr(text->find('@') + 1);
  const auto built = catalogues_.stacks.find(name);
  if (built) {
    stack_ = *built;
    out_.stack = name;
    if (generation_.empty() && date != nullptr) generation_ = generation_of(name, *date);
    const std::string own = generation(name, generation_);
    key("stack", own.empty() ? name : name + "@" + own);
    return;
  }
  const auto& known = words_.stacks();
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    out_.stack = name;
    skip(SkipKind::not_built, "stack not built: " + name);
  } else {
    out_.assumed.push_back("stack=" + *text + " (not known: the default)");
  }
}

void Builder::model() {
  RowModel model = row_model(row_, catalogues_.models);
  for (const char* used : {"model", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "experts",
                           "topk", "moe_ffn", "dense_layers", "params", "size_b"})
    cell(used);
  out_.request.model = std::move(model.text);
  out_.model = std::move(model.label);
  out_.moe = model.moe;
  layers_ = model.layers;
  for (std::string& assumed : model.assumed) {
    if (assumed.find('=') == std::string::npos)
      assumed.append("=").append(out_.request.model, 0, out_.request.model.find(':'));
    out_.assumed.push_back(std::move(assumed));
  }
  shape_known_ = model.skip.kind != SkipKind::cell;
  if (model.skip) skip(model.skip.kind, model.skip.reason);
  if (const std::string* mtp = cell("mtp")) {
    key("mtp", *mtp);
  } else if (row_.has("layers") && out_.moe) {
    key("mtp", "0");  // a model cut to a few layers: what is not said to be trained is not
    out_.assumed.emplace_back("mtp=0");
  }
  if (const std::string* capacity = cell("capacity"); capacity != nullptr && out_.moe) {
    if (row_.flag("dropless"))
      later("capacity", *capacity, "of buffers: no row is dropped or padded");
    else
      key("capacity_factor", *capacity);
  }
}

// The id of a GPU by any of its names, also where more is appended: "H100-SXM-80GB-HBM3".
std::string Builder::find_gpu(const std::string& text) {
  std::string name = loose_name(text);
  if (name.starts_with("nvidia ")) name = name.substr(7);
  if (const auto exact = catalogues_.machines.gpu(text)) return (*exact)->id;
  while (!name.empty()) {
    if (const auto found = catalogues_.machines.gpu(name)) {
      if (name != loose_name(text)) out_.assumed.push_back("gpu=" + (*found)->id + " (named " + text + ")");
      return (*found)->id;
    }
    const std::size_t cut = name.find_last_of("-_ /");
    name = cut == std::string::npos ? std::string() : name.substr(0, cut);
  }
  return {};
}

void Builder::cluster() {
  gpus_ = whole("gpus");
  const std::string* gpu = cell("gpu");
  const std::int64_t per_node = whole("gpus_per_node");
  if (gpu == nullptr) skip(SkipKind::cell, "gpu");
  if (gpus_ == 0) skip(SkipKind::cell, "gpu count");
  if (gpu == nullptr) return;
  capacity_only_ = gpu->ends_with("GB") && gpu->find_first_not_of("0123456789.") == gpu->size() - 2;
  const std::string id = capacity_only_ ? *gpu : find_gpu(*gpu);
  if (id.empty()) {
    skip(SkipKind::source, "GPU unknown: " + *gpu);
    return;
  }
  if (gpus_ == 0) return;
  out_.request.on = num(gpus_) + "x" + id;
  if (per_node > 0 && !capacity_only_) {
    if (gpus_ % per_node == 0)
      out_.request.on.append("/").append(num(per_node));
    else if (gpus_ > per_node)
      later("gpus_per_node", num(per_node), "does not divide " + num(gpus_) + " GPUs");
  }
  if (const std::string* cap = cell("cap_gb")) {
    if (const auto gb = parse_decimal(*cap)) out_.capacity_bytes = *gb * kGiB;
  }
  if (const std::string* rate = cell("sustained_tflops")) {
    constexpr double kTera = 1e12;
    if (const auto tflops = parse_decimal(*rate)) out_.sustained = *tflops * kTera;
  }
  if (const std::string* net = cell("net_gbps")) {
    if (const auto rate = parse_decimal(*net)) out_.scaleout = *rate / kBitsPerByte * kGiga;
  }
}

void Builder::numerics() {
  if (const std::string* precision = cell("precision")) {
    key("precision", *precision);
  } else {
    const bool v100 = out_.request.on.find("v100") != std::string::npos;
    key("precision", v100 ? "fp16" : "bf16");
    assume("precision", v100 ? "fp16" : "bf16");
  }
  for (const char* dtype : {"weight_dtype", "grad_dtype", "master_dtype", "moment_dtype"}) {
    if (const std::string* value = cell(dtype)) key(dtype, *value);
  }
  for (const auto& [flag, name] :
       {std::pair{"async-tp", "tp_overlap"}, std::pair{"ep-overlap", "ep_overlap"},
        std::pair{"fused-experts", "fused_experts"}, std::pair{"fp8-attention", "fp8_attention"}}) {
    if (row_.flag(flag)) key(name, "true");
  }
  if (row_.flag("no-overlap")) key("dp_overlap", "false");
  out_.first_node = row_.flag("first-node");
  if (const std::string* dispatcher = cell("dispatcher"); dispatcher != nullptr && *dispatcher != "none" && out_.moe)
    key("dispatcher", *dispatcher);
  if (const std::string* graph = cell("cuda_graph")) {
    const bool named = *graph == "full_iteration" || *graph == "local" || *graph == "none";
    key("cuda_graph", named ? *graph : "transformer_engine");
    if (!named && *graph != "transformer_engine") assume("cuda_graph", "transformer_engine");
    const std::string* scope = *graph == "transformer_engine" ? cell("graph_scope") : nullptr;
    if (scope != nullptr && *scope != "None") key("cuda_graph_scope", *scope);
  }
  if (const std::string* wire = cell("reduce_dtype")) later("reduce_dtype", *wire);
  if (const std::string* last = cell("bf16_layers")) later("bf16_layers", *last);
  if (const std::string* optimizer = cell("optimizer")) key("optimizer", *optimizer);
  if (const std::string* fused = cell("optimizer_in_backward"); fused != nullptr && *fused == "yes") {
    skip(SkipKind::not_built, "not built: optimizer step in the backward pass");
  }
}

void Builder::memory_keys() {
  if (const std::string* recompute = cell("recompute")) {
    key("recompute", *recompute);
  } else {
    const std::string value = stack_ != nullptr ? stack_->recompute_default : "none";
    key("recompute", value);
    assume("recompute", value);
  }
  if (const std::string* offload = cell("offload"); offload != nullptr && *offload != "none") key("offload", *offload);
  if (const std::string* loss = cell("loss")) key("loss", *loss);
  if (const std::string* attention = cell("attention"))
    key("attention", *attention);
  else if (before("2024"))
    key("attention", "unfused");  // in 2023 an option, --use-flash-attn
  const std::string* task = cell("task");
  const std::string* lora = cell("lora");
  if (lora != nullptr && *lora != "none")
    key("lora", *lora);
  else if (task != nullptr && *task == "lora")
    key("lora", "yes");
  if (const std::string* quantize = cell("quantize")) key("quantize", *quantize);
  if (task != nullptr && *task == "rl")
    skip(SkipKind::not_built, "kind of training not built: rl");
  else if (task != nullptr && *task != "sft" && *task != "lora" && *task != "pretrain" && *task != "pretraining") {
    out_.assumed.push_back("task=" + *task + " (not known: pretraining)");
  }
}

// Other cells become the recipe key of their name, where there is one; the rest are named: nothing is
// read past in silence.
void Builder::rest() {
  for (const RowColumn& column : row_columns()) {
    const auto kind = column.kind;
    if (kind == RowColumn::Kind::measured || kind == RowColumn::Kind::remark) continue;
    static const std::set<std::string_view> kResults = {"id",         "mem_kind", "convention",  "peak_tflops",
                                                        "mfu_causal", "hfu",      "end_gib",     "stage_gib",
                                                        "oom",        "bubble",   "run_tokens_b"};
    if (kResults.count(column.name) != 0 || used_.find(column.name) != used_.end()) continue;
    const std::string* value = row_.cell(column.name);
    if (value == nullptr) continue;
    const bool is_switch = column.kind == RowColumn::Kind::yes_no;
    if (is_key(column.name))
      key(column.name, !is_switch ? *value : *value == "yes" ? "true" : "false");
    else if (*value != "none" && *value != "no")
      later(column.name, *value);
  }
}

void Builder::list_assumed() {
  for (const std::string& name : row_.assumed) {
    const std::string* value = row_.cell(name);
    std::string line = name;
    if (value != nullptr) line.append("=").append(*value);
    const bool there = std::any_of(out_.assumed.begin(), out_.assumed.end(),
                                   [&](const std::string& a) { return a == name || a.starts_with(name + "="); });
    if (!there) out_.assumed.push_back(line);
  }
  if (!row_.has("mem_kind") && rules_.memory.empty() && row_.has("peak_mem_gib")) assume("mem_kind", "reserved");
  std::sort(out_.assumed.begin(), out_.assumed.end());
  out_.states_enough =
      shape_known_ && row_.has("gpu") && gpus_ > 0 && (row_.has("seq") || row_.has("longest")) && mbs_ > 0;
}

// What the row is comes first, then what it lacks, then what preflop lacks.
Skip Builder::first_reason() {
  struct Flagged {
    const char* flag;
    const char* reason;
  };
  constexpr std::array kFlags = {Flagged{"whole-run", "whole run"},
                                 Flagged{"not-measured", "not measured: a projection"},
                                 Flagged{"no-result", "no result"},
                                 Flagged{"one-layer", "one layer, no embedding"},
                                 Flagged{"elsewhere", "layout stands in another table"},
                                 Flagged{"duplicate", "duplicate of another row"}};
  for (const Flagged& f : kFlags) {
    if (row_.flag(f.flag)) return {SkipKind::source, f.reason};
  }
  if (!row_.refused.empty()) {
    const bool later = row_.refused.front().find("not built") != std::string::npos;
    return {later ? SkipKind::not_built : SkipKind::source, row_.refused.front()};
  }
  if (!source_.empty()) return {SkipKind::source, source_.front()};
  if (!out_.measures) return {SkipKind::source, "nothing measured"};
  if (!missing_.empty()) return missing_.front();
  if (!not_built_.empty()) return {SkipKind::not_built, not_built_.front()};
  return {};
}

}  // namespace rows

RowRequest row_request(const Row& row, const SourceRules& rules, const RowWords& words, const Catalogues& catalogues) {
  return rows::Builder(row, rules, words, catalogues).build();
}

}  // namespace preflop
