#include "src/stack/stack.hpp"

#include <algorithm>

#include "src/base/embedded.hpp"
#include "src/base/text.hpp"
#include "src/base/toml_read.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

constexpr std::string_view kFolder = "stacks/";

// What only the finished stack shows: a choice for everything that a recipe must choose, and defaults that
// are among the choices.
Status check_finished(const TomlTable& table, const Stack& s) {
  const auto place = [&](const char* section, const char* key) {
    const auto inner = table.find<TomlTable>(section);
    return inner && inner->has_value() ? (*inner)->where(key) : table.where(section);
  };
  if (s.zero_allowed.empty()) return Error{place("legal", "zero"), "no ZeRO stage is allowed", "zero = [0] at least"};
  if (s.schedules.empty()) return Error{place("legal", "schedules"), "no schedule", text::list(schedule_names())};
  if (s.kernels.empty())
    return Error{place("legal", "attention"), "no attention kernel", text::list(attention_kernel_names())};
  if (s.losses.empty())
    return Error{table.where("loss"), "no loss", "a [[loss]] of kind " + text::list(loss_kind_names())};
  if (std::find(s.zero_allowed.begin(), s.zero_allowed.end(), s.zero_default) == s.zero_allowed.end()) {
    return Error{place("defaults", "zero"), "the default stage " + std::to_string(s.zero_default) + " is not allowed",
                 "one of legal.zero"};
  }
  if (s.segment(s.selective) == nullptr) {
    return Error{table.where("selective"), "no segment '" + s.selective + "'", "the name of a [[segment]]"};
  }
  return Nothing{};
}

bool waits_for_parent(const TomlTable& file, const std::vector<Stack>& known) {
  const auto parent = file.find<std::string>("inherits");
  return parent && parent->has_value() &&
         std::none_of(known.begin(), known.end(), [&](const Stack& s) { return s.name == **parent; });
}

// The stack with what this generation has of the file's losses and segments.
Stack finished(Stack stack) {
  const auto absent = [](const auto& allowed, const auto& name) {
    return !allowed.empty() && std::find(allowed.begin(), allowed.end(), name) == allowed.end();
  };
  std::erase_if(stack.losses, [&](const LossRule& l) { return absent(stack.losses_allowed, l.kind); });
  std::erase_if(stack.segments,
                [&](const Segment& s) { return !s.compiled && absent(stack.recompute_allowed, s.name); });
  if (stack.segment(stack.selective) == nullptr) stack.selective.clear();
  return stack;
}

// A file's stacks: one per generation, each on top of the one before it, or, with `on = "base"`, of the
// file itself; one alone without any.
Status add_file(const TomlTable& file, std::vector<Stack>& out) {
  const auto stack_name = file.get<std::string>("name");
  if (!stack_name) return stack_name.error();
  Stack stack;
  if (file.has("inherits")) {
    const auto parent = file.get<std::string>("inherits");
    if (!parent) return parent.error();
    const auto it = std::find_if(out.rbegin(), out.rend(), [&](const Stack& s) { return s.name == *parent; });
    if (it == out.rend())
      return Error{file.where("inherits"), "no stack '" + *parent + "', or one that inherits from this",
                   "the name of a stack"};
    stack = *it;
  }
  stack.name = *stack_name;
  stack.generation.clear();
  if (Status s = apply_stack_table(file, stack); !s) return s;
  const Stack base = stack;
  const auto generations = file.find<std::vector<TomlTable>>("generation");
  if (!generations) return generations.error();
  if (!generations->has_value()) {
    if (Status s = check_finished(file, stack); !s) return s;
    out.push_back(finished(std::move(stack)));
    return Nothing{};
  }
  for (const TomlTable& table : **generations) {
    const auto id = table.get<std::string>("id");
    if (!id) return id.error();
    const auto on = table.find<std::string>("on");
    if (!on) return on.error();
    if (on->has_value()) {
      if (**on != "base") return Error{table.where("on"), "no generation can be built on '" + **on + "'", "base"};
      stack = base;
    }
    stack.generation = *id;
    if (Status s = apply_stack_table(table, stack); !s) return s;
    if (Status s = check_finished(table, stack); !s) return s;
    out.push_back(finished(stack));
  }
  return Nothing{};
}

}  // namespace

const LossRule* Stack::loss(LossKind kind, bool compiled) const {
  const LossRule* out = nullptr;
  for (const LossRule& rule : losses) {
    if (rule.kind == kind && (!rule.compiled || compiled) && (out == nullptr || rule.compiled)) out = &rule;
  }
  return out;
}

bool Segment::applies_to(const Block& block) const {
  return beside.empty() ||
         std::any_of(block.ops.begin(), block.ops.end(), [&](const Op& op) { return matches(op.tag, beside); });
}

bool Segment::touches(const Model& model) const {
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    const Block& block = model.blocks[i];
    if (!model.is_layer(static_cast<int>(i)) || !applies_to(block)) continue;
    for (const Op& op : block.ops) {
      if (std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) { return matches(op.tag, tag); }))
        return true;
    }
  }
  return false;
}

bool Stack::runs_on(std::string_view arch) const {
  if (chips.empty()) return arch != "tpu";
  return std::any_of(chips.begin(), chips.end(), [&](const std::string& c) { return arch.starts_with(c); });
}

const Segment* Stack::segment(std::string_view segment_name) const {
  for (const Segment& s : segments) {
    if (s.name == segment_name) return &s;
  }
  return nullptr;
}

const ScaledPrecision* Stack::precision(std::string_view precision_name) const {
  for (const ScaledPrecision& p : precisions) {
    if (std::find(p.names.begin(), p.names.end(), precision_name) != p.names.end()) return &p;
  }
  return nullptr;
}

std::vector<std::string> Stack::precision_names() const {
  std::vector<std::string> out = unscaled;
  for (const ScaledPrecision& p : precisions) out.insert(out.end(), p.names.begin(), p.names.end());
  return out;
}

Result<StackCatalogue> StackCatalogue::load(const std::map<std::string, std::string>& overlays) {
  StackCatalogue out;
  std::map<std::string, std::string_view> files;
  for (std::string_view path : embedded_paths()) {
    if (path.starts_with(kFolder)) files[std::string(path.substr(kFolder.size()))] = embedded(path);
  }
  for (const auto& [file, text] : overlays) files[file] = text;
  // A file waits until its parent has been read, whatever the two are called.
  std::vector<TomlTable> waiting;
  for (const auto& [file, text] : files) {
    auto table = TomlTable::parse(text, "data/stacks/" + file);
    if (!table) return table.error();
    waiting.push_back(std::move(table).value());
  }
  while (!waiting.empty()) {
    std::vector<TomlTable> later;
    for (TomlTable& table : waiting) {
      if (waits_for_parent(table, out.stacks_)) {
        later.push_back(std::move(table));
        continue;
      }
      if (Status s = add_file(table, out.stacks_); !s) return s.error();
    }
    if (later.size() == waiting.size()) return add_file(later.front(), out.stacks_).error();
    waiting = std::move(later);
  }
  // By name, generations in their own order: a listing does not depend on who inherits from whom.
  std::stable_sort(out.stacks_.begin(), out.stacks_.end(),
                   [](const Stack& a, const Stack& b) { return a.name < b.name; });
  return out;
}

Result<const Stack*> StackCatalogue::find(std::string_view text) const {
  const std::size_t at = text.find('@');
  const std::string wanted = text::normalise_name(text.substr(0, at));
  const std::string_view generation = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  std::vector<std::string> names;
  std::vector<std::string> generations;
  const Stack* found = nullptr;
  for (const Stack& stack : stacks_) {
    if (names.empty() || names.back() != stack.name) names.push_back(stack.name);
    if (stack.name != wanted) continue;
    generations.push_back(stack.generation);
    if (generation.empty() || stack.generation == generation) found = &stack;
  }
  if (found != nullptr) return found;
  if (!generations.empty()) return text::unknown_name("--stack", "generation of " + wanted, generation, generations);
  for (const char* known : {"transformers", "deepspeed", "accelerate", "torchtune", "litgpt", "axolotl", "unsloth"}) {
    if (wanted == known) return Error{"--stack", std::string(known) + " is not built yet", text::list(names)};
  }
  return text::unknown_name("--stack", "stack", text.substr(0, at), names);
}

}  // namespace preflop
