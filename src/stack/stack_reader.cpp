#include "src/stack/stack_reader.hpp"

#include <algorithm>

#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/stack/software.hpp"
#include "src/stack/stack_reader_parts.hpp"

namespace preflop {

namespace {

std::optional<Kind> kind_of(std::string_view text) {
  for (int i = 0; i < kKinds; ++i) {
    if (text == name(static_cast<Kind>(i))) return static_cast<Kind>(i);
  }
  return std::nullopt;
}

// "in", "out", "element:1", "row:4"
Result<Save> save_of(const TomlTable& table, const std::string& text, const std::string& source) {
  Save save;
  save.source = source;
  if (text == "in") return save;
  save.what = Save::What::out;
  if (text == "out") return save;
  const std::size_t colon = text.find(':');
  const std::string head = text.substr(0, colon);
  const Error error = bad(table, "keep", "'" + text + "' is no save", "in, out, element:BYTES or row:BYTES");
  if (colon == std::string::npos || (head != "element" && head != "row")) return error;
  const Result<double> bytes = parse_decimal(text.substr(colon + 1));
  if (!bytes || *bytes <= 0) return error;
  save.what = head == "row" ? Save::What::row : Save::What::element;
  save.width = *bytes;
  return save;
}

Result<std::vector<Save>> saves_of(const TomlTable& table) {
  const auto keep = table.get<std::vector<std::string>>("keep");
  if (!keep) return keep.error();
  const auto source = table.get<std::string>("source");
  if (!source) return source.error();
  std::vector<Save> out;
  for (const std::string& text : *keep) {
    Result<Save> save = save_of(table, text, *source);
    if (!save) return save.error();
    out.push_back(std::move(save).value());
  }
  return out;
}

Status read_save(const TomlTable& table, Stack& stack) {
  if (Status s = table.only_keys({"kind", "keep", "source"}); !s) return s;
  const auto kind = table.get<std::string>("kind");
  if (!kind) return kind.error();
  const std::optional<Kind> k = kind_of(*kind);
  if (!k) return bad(table, "kind", "no operator kind '" + *kind + "'", "a kind of src/model/operators.hpp");
  auto saves = saves_of(table);
  if (!saves) return saves.error();
  stack.saves[static_cast<std::size_t>(*k)] = std::move(saves).value();
  return Nothing{};
}

Status read_rewrite(const TomlTable& table, Stack& stack) {
  if (Status s = table.only_keys({"rule", "tags", "into", "kind", "when", "source"}); !s) return s;
  Rewrite r;
  const auto rule = table.get<std::string>("rule");
  if (!rule) return rule.error();
  if (*rule == "merge")
    r.rule = Rewrite::Rule::merge;
  else if (*rule == "fuse")
    r.rule = Rewrite::Rule::fuse;
  else if (*rule == "copy_result")
    r.rule = Rewrite::Rule::copy_result;
  else if (*rule == "copy_slices")
    r.rule = Rewrite::Rule::copy_slices;
  else if (*rule == "repeat_heads")
    r.rule = Rewrite::Rule::repeat_heads;
  else
    return bad(table, "rule", "no rewrite '" + *rule + "'", "merge, fuse, copy_slices, copy_result or repeat_heads");
  auto tags = tags_of(table);
  if (!tags) return tags.error();
  r.tags = std::move(tags).value();
  if (const auto when = table.find<std::string>("when"); !when)
    return when.error();
  else if (when->has_value()) {
    if (**when == "fused_attention")
      r.when = Rewrite::When::fused_attention;
    else if (**when == "unfused_attention")
      r.when = Rewrite::When::unfused_attention;
    else if (**when == "context_parallel")
      r.when = Rewrite::When::context_parallel;
    else if (**when == "compiled")
      r.when = Rewrite::When::compiled;
    else
      return bad(table, "when", "no condition '" + **when + "'",
                 "fused_attention, unfused_attention, context_parallel or compiled");
  }
  if (r.rule == Rewrite::Rule::fuse) {
    const auto into = table.get<std::string>("into");
    if (!into) return into.error();
    const auto kind = table.get<std::string>("kind");
    if (!kind) return kind.error();
    const auto tag = tag_of(*into);
    const auto k = kind_of(*kind);
    if (!tag || !k)
      return bad(table, "into", "a fused operator needs a known tag and kind",
                 "e.g. into = \"core.attention\", kind = \"attention\"");
    r.into = *tag;
    r.kind = *k;
  }
  const auto source = table.get<std::string>("source");
  if (!source) return source.error();
  r.source = *source;
  stack.rewrites.push_back(std::move(r));
  return Nothing{};
}

Status read_loss(const TomlTable& table, Stack& stack) {
  if (Status s = table.only_keys({"kind", "keep", "in_place", "gradient_width", "compiled", "source"}); !s) return s;
  const auto kind = table.get<std::string>("kind");
  if (!kind) return kind.error();
  const auto k = loss_kind_of(*kind);
  if (!k) return bad(table, "kind", "no loss '" + *kind + "'", text::list(loss_kind_names()));
  auto saves = saves_of(table);
  if (!saves) return saves.error();
  LossRule rule;
  rule.kind = *k;
  rule.saves = std::move(saves).value();
  rule.source = *table.get<std::string>("source");
  if (const auto v = table.find<bool>("in_place"); !v)
    return v.error();
  else
    rule.in_place = v->value_or(false);
  if (const auto v = table.find<double>("gradient_width"); !v)
    return v.error();
  else
    rule.gradient_width = v->value_or(0);
  if (rule.gradient_width < 0) return bad(table, "gradient_width", "a negative width", "bytes per logit, 0 or more");
  if (Status s = read_flag(table, "compiled", rule.compiled); !s) return s;
  const auto same = [&](const LossRule& l) { return l.kind == rule.kind && l.compiled == rule.compiled; };
  if (const auto it = std::find_if(stack.losses.begin(), stack.losses.end(), same); it != stack.losses.end())
    *it = rule;
  else
    stack.losses.push_back(rule);
  return Nothing{};
}

using Reader = Status (*)(const TomlTable&, Stack&);
Status each(const TomlTable& table, const char* key, Reader read, Stack& stack) {
  const auto rows = table.find<std::vector<TomlTable>>(key);
  if (!rows) return rows.error();
  if (!rows->has_value()) return Nothing{};
  for (const TomlTable& row : **rows) {
    if (Status s = read(row, stack); !s) return s;
  }
  return Nothing{};
}

Status read_dtype(const TomlTable& table, const char* key, Dtype& out) {
  const auto text = table.find<std::string>(key);
  if (!text) return text.error();
  if (!text->has_value()) return Nothing{};
  const auto dtype = dtype_of(**text);
  if (!dtype) return bad(table, key, "no dtype '" + **text + "'", text::list(dtype_names()));
  out = *dtype;
  return Nothing{};
}

Status read_defaults(const TomlTable& table, Stack& stack) {
  if (Status s = table.only_keys({"weight_dtype", "grad_dtype", "master_dtype", "moment_dtype", "zero", "sp", "tp",
                                  "pp", "compile", "recompute"});
      !s)
    return s;
  if (Status s = read_dtype(table, "weight_dtype", stack.weight_dtype); !s) return s;
  if (Status s = read_dtype(table, "grad_dtype", stack.grad_dtype); !s) return s;
  if (Status s = read_dtype(table, "master_dtype", stack.master_dtype); !s) return s;
  if (Status s = read_dtype(table, "moment_dtype", stack.moment_dtype); !s) return s;
  if (const auto v = table.find<std::int64_t>("zero"); !v)
    return v.error();
  else
    stack.zero_default = static_cast<int>(v->value_or(stack.zero_default));
  if (Status s = read_flag(table, "sp", stack.sp_default); !s) return s;
  if (Status s = read_flag(table, "compile", stack.compile_default); !s) return s;
  const auto recompute = table.find<std::string>("recompute");
  if (!recompute) return recompute.error();
  if (!recompute->has_value()) return Nothing{};
  static const std::vector<std::string> kPolicies = {"none", "selective", "full"};
  if (std::find(kPolicies.begin(), kPolicies.end(), **recompute) == kPolicies.end()) {
    return bad(table, "recompute", "no policy '" + **recompute + "'", text::list(kPolicies));
  }
  stack.recompute_default = **recompute;
  return Nothing{};
}

Status read_offload(const TomlTable& table, Stack& stack) {
  const std::vector<std::string> known = {"optimizer", "optimizer-part", "all", "activations", "checkpoints"};
  if (Status s = read_words(table, "offload", "such offload", known, stack.offload); !s) return s;
  if (stack.offloads("activations") && stack.offloads("checkpoints"))
    return bad(table, "offload", "activations move in two ways", "activations or checkpoints");
  return Nothing{};
}

// Which of the segments and losses this generation has; "*" for all.
Status read_choices(const TomlTable& table, Stack& stack) {
  const std::vector<std::string> kAll = {"*"};
  if (const auto v = table.find<std::vector<std::string>>("recompute"); !v)
    return v.error();
  else if (v->has_value())
    stack.recompute_allowed = **v == kAll ? std::vector<std::string>{} : **v;
  for (const std::string& segment : stack.recompute_allowed) {
    if (stack.segment(segment) == nullptr)
      return bad(table, "recompute", "no segment '" + segment + "'", "the name of a [[segment]]");
  }
  const auto losses = table.find<std::vector<std::string>>("loss");
  if (!losses) return losses.error();
  if (!losses->has_value()) return Nothing{};
  stack.losses_allowed.clear();
  if (**losses == kAll) return Nothing{};
  for (const std::string& text : **losses) {
    const auto kind = loss_kind_of(text);
    if (!kind || stack.loss(*kind) == nullptr)
      return bad(table, "loss", "no loss '" + text + "'", "the kind of a [[loss]]");
    stack.losses_allowed.push_back(*kind);
  }
  return Nothing{};
}

// What it can do at all; a list of every key is in read_legal.
Status read_abilities(const TomlTable& table, Stack& stack) {
  const std::pair<const char*, bool*> abilities[] = {{"experts", &stack.experts},
                                                     {"plain_decoders", &stack.plain_decoders},
                                                     {"sp", &stack.sp_allowed},
                                                     {"cp", &stack.cp_allowed},
                                                     {"tp", &stack.tp_allowed},
                                                     {"pp", &stack.pp_allowed},
                                                     {"own_etp", &stack.own_etp},
                                                     {"uneven_stages", &stack.uneven_stages},
                                                     {"stage_layouts", &stack.stage_layouts},
                                                     {"split_by_cost", &stack.split_by_cost}};
  for (const auto& [key, slot] : abilities) {
    if (Status s = read_flag(table, key, *slot); !s) return s;
  }
  return Nothing{};
}

// A list of ZeRO stages.
Status read_stages(const TomlTable& table, const char* key, int least, std::vector<int>& out) {
  const auto stages = table.find<std::vector<std::int64_t>>(key);
  if (!stages) return stages.error();
  if (!stages->has_value()) return Nothing{};
  for (const std::int64_t stage : **stages) {
    if (stage < least || stage > 3)
      return bad(table, key, "no ZeRO stage " + std::to_string(stage), least > 0 ? "1, 2 or 3" : "0, 1, 2 or 3");
  }
  out.assign((*stages)->begin(), (*stages)->end());
  return Nothing{};
}

Status read_legal(const TomlTable& table, Stack& stack) {
  if (Status s = table.only_keys({"zero",
                                  "schedules",
                                  "attention",
                                  "hsdp",
                                  "precisions",
                                  "experts",
                                  "plain_decoders",
                                  "scans",
                                  "uneven_stages",
                                  "stage_layouts",
                                  "split_by_cost",
                                  "sp",
                                  "tp",
                                  "pp",
                                  "cp",
                                  "own_etp",
                                  "recompute",
                                  "recompute_layers",
                                  "offload",
                                  "loss",
                                  "dispatchers",
                                  "software",
                                  "refuses",
                                  "optimizers",
                                  "not_told_apart",
                                  "moments",
                                  "optimizer_implementations",
                                  "chips"});
      !s)
    return s;
  if (Status s = read_named(table, "recompute_layers", "such part of the layers", recompute_layers_names(),
                            recompute_layers_of, stack.recompute_layers);
      !s)
    return s;
  if (Status s = read_offload(table, stack); !s) return s;
  if (Status s = read_software(table, stack); !s) return s;
  if (Status s = read_stages(table, "zero", 0, stack.zero_allowed); !s) return s;
  if (Status s = read_stages(table, "hsdp", 1, stack.hsdp_allowed); !s) return s;
  if (Status s =
          read_words(table, "precisions", "unscaled precision", unscaled_precision_names(), stack.unscaled, true);
      !s)
    return s;
  if (Status s = read_words(table, "schedules", "schedule", schedule_names(), stack.schedules); !s) return s;
  if (Status s = read_abilities(table, stack); !s) return s;
  if (Status s = read_words(table, "dispatchers", "dispatcher", dispatcher_names(), stack.dispatchers, true); !s)
    return s;
  return read_named(table, "attention", "attention kernel", attention_kernel_names(), attention_kernel_of,
                    stack.kernels);
}

template <class Read>
Status with_table(const TomlTable& table, const char* key, Read read, Stack& stack) {
  if (!table.has(key)) return Nothing{};
  const auto inner = table.get<TomlTable>(key);
  if (!inner) return inner.error();
  return read(*inner, stack);
}

}  // namespace

Status apply_stack_table(const TomlTable& table, Stack& stack) {
  if (Status s = table.only_keys({"name", "id", "inherits", "summary", "sources", "selective", "defaults", "legal",
                                  "save", "rewrite", "loss", "segment", "live", "hold", "scalar", "precision",
                                  "reserved_sums", "generation", "on"});
      !s)
    return s;
  if (const auto v = table.find<std::string>("summary"); !v)
    return v.error();
  else
    stack.summary = v->value_or(stack.summary);
  if (const auto v = table.find<std::string>("selective"); !v)
    return v.error();
  else
    stack.selective = v->value_or(stack.selective);
  if (const auto v = table.find<std::vector<std::string>>("sources"); !v)
    return v.error();
  else if (v->has_value())
    stack.sources.insert(stack.sources.end(), (*v)->begin(), (*v)->end());
  if (Status s = with_table(table, "defaults", read_defaults, stack); !s) return s;
  if (Status s = with_table(table, "legal", read_legal, stack); !s) return s;
  if (Status s = with_table(table, "scalar", read_scalars, stack); !s) return s;
  if (table.has("reserved_sums")) {
    auto moments = moments_of(table, "reserved_sums");
    if (!moments) return moments.error();
    stack.reserved_sums = std::move(moments).value();
  }
  if (table.has("live")) stack.live.clear();  // likewise one set of rules
  if (Status s = each(table, "live", read_live, stack); !s) return s;
  if (table.has("precision")) stack.precisions.clear();
  if (Status s = each(table, "precision", read_scaled_precision, stack); !s) return s;
  if (table.has("hold")) stack.holds.clear();
  if (Status s = each(table, "hold", read_hold, stack); !s) return s;
  if (table.has("rewrite")) stack.rewrites.clear();  // a list of rewrites is an order: it replaces the parent's
  if (Status s = each(table, "rewrite", read_rewrite, stack); !s) return s;
  if (Status s = each(table, "save", read_save, stack); !s) return s;
  if (Status s = each(table, "loss", read_loss, stack); !s) return s;
  if (Status s = each(table, "segment", read_segment, stack); !s) return s;
  return with_table(table, "legal", read_choices, stack);
}

}  // namespace preflop
