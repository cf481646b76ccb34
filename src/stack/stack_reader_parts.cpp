#include "src/stack/stack_reader_parts.hpp"

#include <algorithm>

#include "preflop/estimate.hpp"
#include "src/base/text.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

Error bad(const TomlTable& table, std::string_view key, std::string what, std::string valid) {
  return {table.where(key), std::move(what), std::move(valid)};
}

Status read_words(const TomlTable& table, const char* key, std::string_view what, const std::vector<std::string>& known,
                  std::vector<std::string>& out, bool some) {
  auto words = table.find<std::vector<std::string>>(key);
  if (!words) return words.error();
  if (!words->has_value()) return Nothing{};
  for (const std::string& word : **words) {
    if (std::find(known.begin(), known.end(), word) == known.end())
      return bad(table, key, "no " + std::string(what) + " '" + word + "'", text::list(known));
  }
  if (some && (*words)->empty()) return bad(table, key, "an empty list", text::list(known));
  out = std::move(**words);
  return Nothing{};
}

Result<std::vector<std::string>> tags_of(const TomlTable& table, const char* key) {
  auto tags = table.get<std::vector<std::string>>(key);
  if (!tags) return tags;
  for (const std::string& tag : *tags) {
    if (!known_pattern(tag))
      return bad(table, key, "no operator is tagged '" + tag + "'", "a tag or group of src/model/tags.cpp");
  }
  return tags;
}

Result<std::vector<std::string>> moments_of(const TomlTable& table, const char* key) {
  auto moments = table.get<std::vector<std::string>>(key);
  if (!moments) return moments;
  std::vector<std::string> known;
  for (int m = 0; m < kMoments; ++m) known.emplace_back(name(static_cast<Moment>(m)));
  for (const std::string& moment : *moments) {
    if (std::find(known.begin(), known.end(), moment) == known.end()) {
      return bad(table, key, "no moment '" + moment + "'", text::list(known));
    }
  }
  return moments;
}

Status read_flag(const TomlTable& table, const char* key, bool& out) {
  const auto value = table.find<bool>(key);
  if (!value) return value.error();
  out = value->value_or(out);
  return Nothing{};
}

Status read_segment(const TomlTable& table, Stack& stack) {
  if (Status s = table.only_keys(
          {"name", "tags", "keep", "keeps_on_host", "only_read", "drops_output", "compiled", "beside", "source"});
      !s)
    return s;
  const auto segment_name = table.get<std::string>("name");
  if (!segment_name) return segment_name.error();
  auto tags = tags_of(table);
  if (!tags) return tags.error();
  const auto source = table.get<std::string>("source");
  if (!source) return source.error();
  Segment segment;
  segment.name = *segment_name;
  segment.tags = std::move(tags).value();
  segment.source = *source;
  if (table.has("keep")) {
    auto keep = tags_of(table, "keep");
    if (!keep) return keep.error();
    segment.keep = std::move(keep).value();
  }
  if (Status s = read_flag(table, "only_read", segment.only_read); !s) return s;
  if (Status s = read_flag(table, "keeps_on_host", segment.keeps_on_host); !s) return s;
  if (Status s = read_flag(table, "drops_output", segment.drops_output); !s) return s;
  if (Status s = read_flag(table, "compiled", segment.compiled); !s) return s;
  const auto beside = table.find<std::string>("beside");
  if (!beside) return beside.error();
  segment.beside = beside->value_or("");
  if (!segment.beside.empty() && !known_pattern(segment.beside))
    return bad(table, "beside", "no operator or group '" + segment.beside + "'", "a tag (attn.q) or a group (attn)");
  const auto same = [&](const Segment& s) { return s.name == segment.name && s.beside == segment.beside; };
  const auto it = std::find_if(stack.segments.begin(), stack.segments.end(), same);
  if (it != stack.segments.end())
    *it = std::move(segment);
  else
    stack.segments.push_back(std::move(segment));
  return Nothing{};
}

namespace {

template <class T>
Status read_word(const TomlTable& table, const char* key, const std::vector<std::pair<std::string, T>>& words, T& out) {
  const auto text = table.find<std::string>(key);
  if (!text) return text.error();
  if (!text->has_value()) return Nothing{};
  std::vector<std::string> known;
  for (const auto& [word, value] : words) {
    if (word == **text) {
      out = value;
      return Nothing{};
    }
    known.push_back(word);
  }
  return bad(table, key, "unknown word '" + **text + "'", text::list(known));
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): one key after the other
Status read_live(const TomlTable& table, Stack& stack) {
  using Unit = LiveRule::Unit;
  using When = LiveRule::When;
  if (Status s = table.only_keys({"unit", "when", "term", "what", "copies", "width", "during", "min_zero", "max_zero",
                                  "precision", "sharded", "alone", "source"});
      !s)
    return s;
  LiveRule rule;
  if (Status s = read_word<Unit>(
          table, "unit",
          {{"layer", Unit::layer}, {"head", Unit::head}, {"embedding", Unit::embedding}, {"stage", Unit::stage}},
          rule.unit);
      !s)
    return s;
  if (Status s = read_word<When>(table, "when",
                                 {{"always", When::always},
                                  {"without_pipeline", When::without_pipeline},
                                  {"with_pipeline", When::with_pipeline}},
                                 rule.when);
      !s)
    return s;
  const auto what = table.get<std::string>("what");
  if (!what) return what.error();
  rule.what = *what;
  const auto source = table.get<std::string>("source");
  if (!source) return source.error();
  rule.source = *source;
  for (const auto& [key, slot] : {std::pair("copies", &rule.copies), std::pair("width", &rule.width)}) {
    const auto number = table.find<double>(key);
    if (!number) return number.error();
    *slot = number->value_or(*slot);
    if (*slot < 0) return bad(table, key, "a negative value", "0 or more");
  }
  if (Status s = read_word<Term>(table, "term",
                                 {{"transients", Term::transients},
                                  {"gradients", Term::gradients},
                                  {"weights", Term::weights},
                                  {"optimizer", Term::optimizer},
                                  {"buffers", Term::buffers}},
                                 rule.term);
      !s)
    return s;
  for (const auto& [key, slot] : {std::pair("min_zero", &rule.min_zero), std::pair("max_zero", &rule.max_zero)}) {
    const auto zero = table.find<std::int64_t>(key);
    if (!zero) return zero.error();
    *slot = static_cast<int>(zero->value_or(*slot));
  }
  if (table.has("precision")) {
    auto precision = table.get<std::vector<std::string>>("precision");
    if (!precision) return precision.error();
    rule.precision = std::move(precision).value();
  }
  if (Status s = read_flag(table, "sharded", rule.sharded); !s) return s;
  if (Status s = read_flag(table, "alone", rule.alone); !s) return s;
  if (table.has("during")) {
    auto during = moments_of(table, "during");
    if (!during) return during.error();
    rule.during = std::move(during).value();
  }
  stack.live.push_back(std::move(rule));
  return Nothing{};
}

Status read_hold(const TomlTable& table, Stack& stack) {
  if (Status s = table.only_keys({"tags", "until", "source"}); !s) return s;
  auto tags = tags_of(table);
  if (!tags) return tags.error();
  const auto until = table.get<std::string>("until");
  if (!until) return until.error();
  const auto tag = tag_of(*until);
  if (!tag) return bad(table, "until", "no operator is tagged '" + *until + "'", "a tag of src/model/tags.cpp");
  const auto source = table.get<std::string>("source");
  if (!source) return source.error();
  stack.holds.push_back({std::move(tags).value(), *tag, *source});
  return Nothing{};
}

Status read_scaled_precision(const TomlTable& table, Stack& stack) {
  if (Status s = table.only_keys({"names", "quantised", "width", "weight_copies", "replaces_weights", "source"}); !s)
    return s;
  ScaledPrecision out;
  auto names = table.get<std::vector<std::string>>("names");
  if (!names) return names.error();
  out.names = std::move(names).value();
  const std::vector<std::string> known = scaled_precision_names();
  for (const std::string& text : out.names) {
    if (std::find(known.begin(), known.end(), text) == known.end())
      return bad(table, "names", "no scaled precision '" + text + "'", text::list(known));
  }
  if (table.has("quantised")) {
    auto tags = tags_of(table, "quantised");
    if (!tags) return tags.error();
    out.quantised = std::move(tags).value();
  }
  for (const auto& [key, slot] : {std::pair("width", &out.width), std::pair("weight_copies", &out.weight_copies)}) {
    const auto number = table.find<double>(key);
    if (!number) return number.error();
    *slot = number->value_or(0);
    if (*slot < 0) return bad(table, key, "a negative width", "0 or more");
  }
  if (Status s = read_flag(table, "replaces_weights", out.replaces_weights); !s) return s;
  const auto source = table.get<std::string>("source");
  if (!source) return source.error();
  out.source = *source;
  stack.precisions.push_back(std::move(out));
  return Nothing{};
}

namespace {

struct ScalarRow {
  const char* key;
  Scalar Stack::* member;
};
constexpr ScalarRow kScalars[] = {{"grouped_workspace_bytes", &Stack::grouped_workspace_bytes},
                                  {"vocab_multiple", &Stack::vocab_multiple},
                                  {"wgrad_dummy_width", &Stack::wgrad_dummy_width},
                                  {"head_wgrad_width", &Stack::head_wgrad_width},
                                  {"gathered_input_kept", &Stack::gathered_input_kept},
                                  {"outputs_held", &Stack::outputs_held},
                                  {"workspace_bytes", &Stack::workspace_bytes},
                                  {"reserved_factor", &Stack::reserved_factor},
                                  {"context_bytes", &Stack::context_bytes},
                                  {"allocated_band", &Stack::allocated_band},
                                  {"reserved_band", &Stack::reserved_band},
                                  {"device_band", &Stack::device_band},
                                  {"optimizer_temporary_width", &Stack::optimizer_temporary_width},
                                  {"reserved_factor_compiled", &Stack::reserved_factor_compiled},
                                  {"more_communicators", &Stack::more_communicators},
                                  {"exchange_peer_bytes", &Stack::exchange_peer_bytes},
                                  {"communicator_bytes", &Stack::communicator_bytes}};

Status read_on_arch(const TomlTable& entry, Scalar& out) {
  if (!entry.has("on")) return Nothing{};
  const auto rows = entry.get<std::vector<TomlTable>>("on");
  if (!rows) return rows.error();
  for (const TomlTable& row : *rows) {
    if (Status s = row.only_keys({"arch", "value", "source", "fitted"}); !s) return s;
    const auto arch = row.get<std::string>("arch");
    const auto value = row.get<double>("value");
    const auto source = row.get<std::string>("source");
    if (!arch) return arch.error();
    if (!value) return value.error();
    if (!source) return source.error();
    if (*value < 0) return bad(row, "value", "a negative value", "0 or more");
    const auto fitted = row.find<std::string>("fitted");
    if (!fitted) return fitted.error();
    out.on.push_back({*arch, *value, *source, fitted->value_or("")});
  }
  return Nothing{};
}

}  // namespace

Status read_scalars(const TomlTable& table, Stack& stack) {
  std::vector<std::string> known;
  for (const ScalarRow& row : kScalars) known.emplace_back(row.key);
  if (Status s = table.only_keys(known); !s) return s;
  for (const ScalarRow& row : kScalars) {
    if (!table.has(row.key)) continue;
    const auto entry = table.get<TomlTable>(row.key);
    if (!entry) return entry.error();
    const auto value = entry->get<double>("value");
    if (!value) return value.error();
    const auto source = entry->get<std::string>("source");
    if (!source) return source.error();
    if (*value < 0) return bad(*entry, "value", "a negative value", "0 or more");
    const auto fitted = entry->find<std::string>("fitted");
    if (!fitted) return fitted.error();
    const auto borrowed = entry->find<bool>("borrowed");
    if (!borrowed) return borrowed.error();
    stack.*row.member = {*value, *source, {}, fitted->value_or(""), borrowed->value_or(false)};
    if (Status s = read_on_arch(*entry, stack.*row.member); !s) return s;
  }
  return Nothing{};
}

}  // namespace preflop
