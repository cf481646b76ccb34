#include "src/adapt/row_request.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "src/adapt/recipe_keys.hpp"
#include "src/adapt/row_readings.hpp"
#include "src/base/decimal.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kBitsPerByte = 8;
constexpr double kGiga = 1e9;

std::string num(std::int64_t v) { return std::to_string(v); }

// What the stack's own software is able to do, where that decides whether an empty cell is a question.
bool has_axis(std::string_view stack, std::string_view axis) {
  if (stack == "megatron" || stack == "torchtitan" || stack.empty()) return true;
  if (axis == "cp") return stack == "megatron-fsdp";
  return stack == "megatron-fsdp" || stack == "megatron-deepspeed" || stack == "nanotron" || stack == "maxtext" || stack == "textbook";
}

// Turns one row into one request. Each step reads cells and may end the row with a reason.
class Builder {
 public:
  Builder(const Row& row, const SourceRules& rules, const RowWords& words, const Catalogues& catalogues)
      : row_(row), rules_(rules), words_(words), catalogues_(catalogues) {}

  RowRequest build() {
    out_.readings = row_readings(row_, rules_);
    out_.measures = std::any_of(out_.readings.begin(), out_.readings.end(), [](const Reading& r) { return r.from != Reading::From::nothing; });
    for (const std::string& entry : row_.unknown) out_.assumed.push_back(entry);
    source_defaults();
    stack();
    model();
    cluster();
    batch();
    layout();
    pipeline();
    numerics();
    memory_keys();
    rest();
    list_assumed();
    out_.gpus = static_cast<double>(gpus_);
    out_.seq = static_cast<double>(seq_);
    out_.step_tokens = out_.seq * static_cast<double>(gbs_);
    out_.skip = first_reason();
    return std::move(out_);
  }

 private:
  const std::string* cell(std::string_view key) {
    used_.insert(std::string(key));
    if (const std::string* own = row_.cell(key)) return own;
    const auto it = defaults_.find(key);
    return it == defaults_.end() ? nullptr : &it->second;
  }
  std::int64_t whole(std::string_view key) {
    const std::string* text = cell(key);
    std::int64_t out = 0;
    if (text != nullptr) {
      const auto value = parse_decimal(*text);  // "4096.0" and "1e3" are whole, too
      out = value ? static_cast<std::int64_t>(*value) : 0;
    }
    return out;
  }
  void key(std::string_view name, std::string value) { out_.request.keys[std::string(name)] = std::move(value); }
  void assume(std::string_view name, std::string_view value) { out_.assumed.push_back(std::string(name) + "=" + std::string(value)); }
  void later(std::string_view name, std::string_view value, std::string_view why = {}) {
    out_.not_modelled.push_back(std::string(name) + "=" + std::string(value) + (why.empty() ? "" : " (" + std::string(why) + ")"));
  }
  void skip(SkipKind kind, std::string reason) {
    if (kind == SkipKind::not_built) not_built_.push_back(std::move(reason));
    else if (kind == SkipKind::source) source_.push_back(std::move(reason));
    else missing_.push_back({kind, std::move(reason)});
  }

  void source_defaults() {
    for (const auto& [name, value] : rules_.defaults) {
      if (value == "auto" || row_.has(name)) continue;
      defaults_[name] = value;
      assume(name, value);
    }
  }

  void stack();
  std::string generation(std::string_view name, std::string_view wanted);
  void model();
  void cluster();
  std::string find_gpu(const std::string& text);
  void batch();
  void layout();
  void pipeline();
  void default_chunks(std::int64_t pp);
  void numerics();
  void memory_keys();
  void rest();
  void list_assumed();
  Skip first_reason();

  const Row& row_;
  const SourceRules& rules_;
  const RowWords& words_;
  const Catalogues& catalogues_;
  RowRequest out_;
  std::map<std::string, std::string, std::less<>> defaults_;
  std::set<std::string, std::less<>> used_;
  const Stack* stack_ = nullptr;  // built
  std::string generation_;        // as the row has it
  bool capacity_only_ = false;
  bool shape_known_ = false;
  std::int64_t layers_ = 0, gpus_ = 0, tp_ = 1, pp_ = 1, cp_ = 1, dp_ = 0, mbs_ = 0, gbs_ = 0, seq_ = 0;
  std::vector<std::string> not_built_, source_;
  std::vector<Skip> missing_;
};

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
  if (!wanted.empty()) later("generation", wanted, "not described yet, taken as " + (out.empty() ? std::string(name) : out));
  return out;
}

void Builder::stack() {
  const std::string* text = cell("stack");
  cell("date");
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
  for (const char* used : {"model", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "experts", "topk", "moe_ffn", "dense_layers", "params", "size_b"}) cell(used);
  out_.request.model = std::move(model.text);
  out_.model = std::move(model.label);
  out_.moe = model.moe;
  layers_ = model.layers;
  for (std::string& assumed : model.assumed) {
    if (assumed.find('=') == std::string::npos) assumed.append("=").append(out_.request.model, 0, out_.request.model.find(':'));
    out_.assumed.push_back(std::move(assumed));
  }
  shape_known_ = model.skip.kind != SkipKind::cell;
  if (model.skip) skip(model.skip.kind, model.skip.reason);
  if (const std::string* mtp = cell("mtp"); mtp != nullptr && *mtp != "0") key("mtp", *mtp);
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
    if (gpus_ % per_node == 0) out_.request.on.append("/").append(num(per_node));
    else if (gpus_ > per_node) later("gpus_per_node", num(per_node), "does not divide " + num(gpus_) + " GPUs");
  }
  if (const std::string* cap = cell("cap_gb")) {
    if (const auto gb = parse_decimal(*cap)) out_.capacity_bytes = *gb * kGiB;
  }
  if (const std::string* net = cell("net_gbps")) {
    if (const auto rate = parse_decimal(*net)) out_.scaleout = *rate / kBitsPerByte * kGiga;
  }
}

void Builder::batch() {
  const std::int64_t own = whole("seq");
  const std::int64_t longest = whole("longest");
  seq_ = own > 0 ? own : longest;
  if (seq_ == 0) skip(SkipKind::cell, "sequence length");
  else key("seq", num(seq_));
  mbs_ = whole("mbs");
  gbs_ = whole("gbs");
  const std::string* packing = cell("packing");
  if (packing != nullptr && *packing != "packed") later("packing", *packing, "taken as full sequences");
}

void Builder::layout() {
  std::int64_t* const sizes[] = {&tp_, &pp_, &cp_};
  constexpr std::array<const char*, 3> kNames = {"tp", "pp", "cp"};
  const bool product_only = cell("mp") != nullptr && row_.cell("tp") == nullptr && row_.cell("pp") == nullptr && whole("mp") > 1;
  if (row_.flag("layout-unstated") || product_only) skip(SkipKind::cell, "tp, pp");
  const bool old = out_.stack == "megatron" && generation_ < "2024" && generation_.starts_with("20");
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::int64_t size = whole(kNames[i]);
    if (size > 0) *sizes[i] = size;
    else if (gpus_ > 1 && has_axis(out_.stack, kNames[i]) && !(old && i == 2)) assume(kNames[i], "1");
    key(kNames[i], num(*sizes[i]));
  }
  if (gpus_ > 0 && gpus_ % (tp_ * pp_ * cp_) == 0) dp_ = gpus_ / (tp_ * pp_ * cp_);
  if (const std::int64_t dp = whole("dp"); dp > 0) {
    key("dp", num(dp));
    if (dp != dp_ && gpus_ > 0 && !row_.has("tp") && !row_.has("pp")) skip(SkipKind::cell, "tp, pp");
  }
  if (mbs_ == 0 && dp_ > 0 && gbs_ == dp_) mbs_ = 1;  // it follows: one sequence a rank
  if (mbs_ == 0) skip(SkipKind::cell, "micro-batch");
  else key("micro_batch", num(mbs_));
  if (gbs_ == 0 && pp_ == 1 && mbs_ > 0 && dp_ > 0) {
    gbs_ = mbs_ * dp_;
    assume("gbs", num(gbs_));
  } else if (gbs_ == 0) {
    assume("gbs", "4Mi tokens");
  }
  if (gbs_ > 0) key("global_batch", num(gbs_));
  if (const std::int64_t ep = whole("ep"); ep > 1) key("ep", num(ep));
  if (const std::int64_t etp = whole("etp"); etp > 1) key("etp", num(etp));
  cell("folding");
  const std::string* zero = cell("zero");
  if (zero != nullptr) key("zero", num(whole("zero")));
  else if (dp_ > 1 && stack_ != nullptr) assume("zero", num(stack_->zero_default));
  std::int64_t shard = whole("hsdp");
  if (const std::int64_t replicas = whole("replicas"); shard == 0 && replicas > 1 && dp_ % replicas == 0) shard = dp_ / replicas;
  if (shard > 0 && shard != dp_ * cp_) key("hsdp", num(shard));
  const std::string* sp = cell("seq_parallel");
  if (sp != nullptr) key("sp", *sp == "yes" ? "true" : "false");
  else if (old && generation_ < "2022") key("sp", "false");  // not there before May 2022
  else if (tp_ > 1 && stack_ != nullptr) assume("sp", stack_->sp_default ? "yes" : "no");
}

// Megatron interleaves where it can: layers / pp chunks of a layer each (see docs/rows-format.md).
void Builder::default_chunks(std::int64_t pp) {
  const bool megatron = out_.stack == "megatron" || out_.stack == "megatron-fsdp";
  if (!megatron || mbs_ == 0 || dp_ == 0 || gbs_ == 0) {
    if (out_.stack == "torchtitan" || megatron) assume("vpp", "1");  // the others do not interleave
    return;
  }
  std::int64_t vpp = 1;
  const std::int64_t micro = gbs_ / (mbs_ * dp_);
  const std::string* schedule = cell("schedule");
  const std::int64_t slots = layers_ % pp == 0 ? layers_ : (layers_ + 2) % pp == 0 ? layers_ + 2 : 0;
  const std::int64_t most = schedule != nullptr ? slots : layers_;  // stated to interleave: down to a slot a chunk
  for (std::int64_t v = 1; micro % pp == 0 && v * pp <= most; ++v) {
    if (slots % (v * pp) == 0 && slots > 0) vpp = v;
  }
  key("vpp", num(vpp));
  assume("vpp", num(vpp));
}

void Builder::pipeline() {
  const std::int64_t own = whole("vpp");
  const std::string* schedule = cell("schedule");
  const bool plain = schedule != nullptr && *schedule != "interleaved";
  if (own > 0) key("vpp", num(own));
  else if (pp_ > 1 && !plain) default_chunks(pp_);
  const auto it = out_.request.keys.find("vpp");
  const bool chunks = it != out_.request.keys.end() && it->second != "1";
  if (schedule != nullptr && pp_ > 1 && !(*schedule == "1f1b" && chunks) && !(*schedule == "interleaved" && !chunks)) key("schedule", *schedule);
  const std::string* split = cell("split");
  if (split != nullptr && *split == "slots" && !chunks && pp_ > 1 && layers_ > 0 && (layers_ + 2) % pp_ == 0) {
    std::string list;
    for (std::int64_t i = 0; i < pp_; ++i) {
      const bool end = i == 0 || i == pp_ - 1;
      if (i > 0) list += ',';
      list += num((layers_ + 2) / pp_ - (end ? 1 : 0));
    }
    key("layers_per_stage", list);
  }
  if (const std::string* layout = cell("pp_layout")) later("pp_layout", *layout);
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
  if (const std::string* attention = cell("attention")) key("attention", *attention);
  const std::string* task = cell("task");
  const std::string* lora = cell("lora");
  if (lora != nullptr && *lora != "none") key("lora", *lora);
  else if (task != nullptr && *task == "lora") key("lora", "yes");
  if (const std::string* quantize = cell("quantize")) key("quantize", *quantize);
  if (task != nullptr && *task == "rl") skip(SkipKind::not_built, "kind of training not built: rl");
  else if (task != nullptr && *task != "sft" && *task != "lora" && *task != "pretrain" && *task != "pretraining") {
    out_.assumed.push_back("task=" + *task + " (not known: pretraining)");
  }
}

bool is_key(std::string_view name) {
  for (const Key& key : request_keys()) {
    if (name == key.name) return *key.not_built == '\0';
  }
  return false;
}

// Other cells become the recipe key of their name, where there is one; the rest are named: nothing is
// read past in silence.
void Builder::rest() {
  for (const RowColumn& column : row_columns()) {
    const auto kind = column.kind;
    if (kind == RowColumn::Kind::measured || kind == RowColumn::Kind::remark) continue;
    static const std::set<std::string_view> kResults = {"id", "mem_kind", "convention", "peak_tflops", "mfu_causal", "hfu", "end_gib", "stage_gib", "oom", "bubble", "run_tokens_b"};
    if (kResults.count(column.name) != 0 || used_.find(column.name) != used_.end()) continue;
    const std::string* value = row_.cell(column.name);
    if (value == nullptr) continue;
    const bool is_switch = column.kind == RowColumn::Kind::yes_no;
    if (is_key(column.name)) key(column.name, !is_switch ? *value : *value == "yes" ? "true" : "false");
    else if (*value != "none" && *value != "no") later(column.name, *value);
  }
}

void Builder::list_assumed() {
  for (const std::string& name : row_.assumed) {
    const std::string* value = row_.cell(name);
    std::string line = name;
    if (value != nullptr) line.append("=").append(*value);
    const bool there = std::any_of(out_.assumed.begin(), out_.assumed.end(), [&](const std::string& a) { return a == name || a.starts_with(name + "="); });
    if (!there) out_.assumed.push_back(line);
  }
  if (!row_.has("mem_kind") && rules_.memory.empty() && row_.has("peak_mem_gib")) assume("mem_kind", "reserved");
  std::sort(out_.assumed.begin(), out_.assumed.end());
  out_.states_enough = shape_known_ && row_.has("gpu") && gpus_ > 0 && (row_.has("seq") || row_.has("longest")) && mbs_ > 0;
}

// What the row is comes first, then what it lacks, then what preflop lacks.
Skip Builder::first_reason() {
  struct Flagged {
    const char* flag;
    const char* reason;
  };
  constexpr std::array kFlags = {Flagged{"whole-run", "whole run"}, Flagged{"not-measured", "not measured: a projection"}, Flagged{"no-result", "no result"},
                                 Flagged{"one-layer", "one layer, no embedding"}, Flagged{"elsewhere", "layout stands in another table"},
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

}  // namespace

RowRequest row_request(const Row& row, const SourceRules& rules, const RowWords& words, const Catalogues& catalogues) {
  return Builder(row, rules, words, catalogues).build();
}

}  // namespace preflop
