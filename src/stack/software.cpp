#include "src/stack/software.hpp"

#include <algorithm>

#include "src/base/text.hpp"
#include "src/stack/optimizer.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/stack/stack_reader_parts.hpp"

namespace preflop {

namespace {

struct Switch {
  const char* word;  // of `software` in stack data
  const char* key;
  const char* flag;
  bool (*on)(const Recipe&);
  bool experts;  // of models with experts only
  const char* lacks;
  const char* valid;
};

constexpr Switch kSwitches[] = {
    {"compile", "compile", "--compile", [](const Recipe& r) { return r.compile; }, false,
     "has no switch that compiles layers", "--no-compile"},
    {"cuda-graphs", "cuda_graph", "--cuda-graph", [](const Recipe& r) { return r.cuda_graph != "none"; }, false,
     "captures no CUDA graphs", "none"},
    {"cp-a2a", "cp_comm", "--cp-comm", [](const Recipe& r) { return r.cp_comm == "a2a"; }, false,
     "does not exchange heads for tokens", "p2p"},
    {"dp-overlap-off", "dp_overlap", "--no-dp-overlap", [](const Recipe& r) { return !r.dp_overlap; }, false,
     "always exchanges gradients and weights beside compute", "--dp-overlap"},
    {"tp-overlap", "tp_overlap", "--tp-overlap", [](const Recipe& r) { return r.tp_overlap; }, false,
     "does not overlap tensor-parallel exchange", "--no-tp-overlap"},
    {"ep-overlap", "ep_overlap", "--ep-overlap", [](const Recipe& r) { return r.ep_overlap; }, true,
     "does not overlap the exchange of experts", "--no-ep-overlap"},
    {"fused-experts", "fused_experts", "--fused-experts", [](const Recipe& r) { return r.fused_experts; }, true,
     "has no such kernel of grouped products", "--no-fused-experts"},
    {"fp8-attention", "fp8_attention", "--fp8-attention", [](const Recipe& r) { return r.fp8_attention; }, false,
     "has no attention in fp8", "--no-fp8-attention"}};

bool recomputes(const Recipe& r, std::initializer_list<std::string_view> modules) {
  const std::vector<std::string>& all = r.recompute.modules;
  return r.recompute.kind == RecomputeKind::modules && std::any_of(all.begin(), all.end(), [&](const std::string& m) {
           return std::find(modules.begin(), modules.end(), m) != modules.end();
         });
}

// What a stack has, and does not run together.
struct Combination {
  const char* word;  // of `refuses` in stack data
  const char* flag;
  bool (*met)(const Recipe&);
  bool by_recompute;  // met or not by how layers are recomputed
  const char* lacks;
  const char* valid;
};

constexpr const char* kOneChunk = "ep-overlap-one-chunk";

constexpr Combination kCombinations[] = {
    {"ep-overlap-recompute-moe", "--ep-overlap", [](const Recipe& r) { return r.ep_overlap && recomputes(r, {"moe"}); },
     true, "does not overlap the exchange of experts that are recomputed",
     "--recompute none, full or other modules, or --no-ep-overlap"},
    {kOneChunk, "--ep-overlap", [](const Recipe& r) { return r.ep_overlap && r.layout.pp > 1 && r.layout.vpp == 1; },
     false, "overlaps the exchange of experts in a pipeline with virtual stages only",
     "--vpp of 2 or more, or --no-ep-overlap"},
    {"tp-overlap-without-sp", "--tp-overlap",
     [](const Recipe& r) { return r.tp_overlap && r.layout.tp > 1 && !r.layout.sp; }, false,
     "overlaps tensor-parallel exchange with sequence parallelism only", "--sp, or --no-tp-overlap"},
    {"tp-overlap-without-compile", "--tp-overlap",
     [](const Recipe& r) { return r.tp_overlap && r.layout.tp > 1 && !r.compile; }, false,
     "overlaps tensor-parallel exchange in compiled layers only", "--compile, or --no-tp-overlap"},
    {"cp-unfused", "--cp", [](const Recipe& r) { return r.layout.cp > 1 && r.attention == AttentionKernel::unfused; },
     false, "has no context parallelism with unfused attention", "1, or --attention fa2 or cudnn"},
    {"fp8-delayed-recompute", "--recompute",
     [](const Recipe& r) { return r.precision == "fp8-delayed" && recomputes(r, {"moe_act", "layernorm"}); }, true,
     "does not recompute moe_act or layernorm beside fp8-delayed",
     "none, full or other modules, or another --precision, as fp8-tensorwise"}};

bool listed(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> dtype_labels(const std::vector<Dtype>& dtypes) {
  std::vector<std::string> out;
  for (const Dtype dtype : dtypes) out.emplace_back(name(dtype));
  return out;
}

// The exchange of heads for tokens deals heads, those of keys and values too, to the ranks of context parallelism.
Status check_heads_dealt(const Model& model, const Recipe& r) {
  const std::int64_t ranks = r.layout.tp * r.layout.cp;
  if (r.cp_comm != "a2a" || r.layout.cp == 1) return Nothing{};
  for (const Block& block : model.blocks) {
    for (const Axis axis : {Axis::heads, Axis::kv_heads}) {
      const std::int64_t heads = block.extents[axis].get();
      if (heads % ranks == 0) continue;
      return Error{"--cp",
                   "--cp-comm a2a deals heads to tp x cp = " + std::to_string(ranks) + " ranks, and the model has " +
                       std::to_string(heads) + (axis == Axis::heads ? " query heads" : " kv heads"),
                   "tp x cp that divides them, or --cp-comm p2p"};
    }
  }
  return Nothing{};
}

}  // namespace

Status read_software(const TomlTable& legal, Stack& stack) {
  std::vector<std::string> switches;
  for (const Switch& s : kSwitches) switches.emplace_back(s.word);
  if (Status s = read_words(legal, "software", "switch", switches, stack.software); !s) return s;
  if (Status s = read_words(legal, "not_told_apart", "switch", switches, stack.not_told_apart); !s) return s;
  std::vector<std::string> combinations, known_optimizers;
  for (const Combination& c : kCombinations) combinations.emplace_back(c.word);
  for (const Optimizer& o : optimizers()) known_optimizers.push_back(o.name);
  if (Status s = read_words(legal, "refuses", "combination", combinations, stack.refuses); !s) return s;
  if (Status s = read_words(legal, "optimizers", "optimizer", known_optimizers, stack.optimizers); !s) return s;
  auto chips = legal.find<std::vector<std::string>>("chips");
  if (!chips) return chips.error();
  if (chips->has_value()) stack.chips = std::move(**chips);
  const std::vector<std::string> scans = {name(ScanKind::mamba2), name(ScanKind::gated_delta)};
  if (Status s = read_words(legal, "scans", "scan", scans, stack.scans); !s) return s;
  if (Status s = read_words(legal, "optimizer_implementations", "implementation", optimizer_implementation_names(),
                            stack.optimizer_implementations, true);
      !s)
    return s;
  return read_named(legal, "moments", "dtype", dtype_names(), dtype_of, stack.moments);
}

Status check_software(const Model& model, const Stack& stack, const Recipe& r) {
  const std::string on = "stack " + stack.full_name();
  for (const Switch& s : kSwitches) {
    if (!s.on(r)) continue;
    if (s.experts && !has_experts(model)) return Error{s.flag, "the model has no experts", s.valid};
    if (!listed(stack.software, s.word)) return Error{s.flag, on + " " + s.lacks, s.valid};
  }
  for (const Combination& c : kCombinations) {
    if (c.met(r) && listed(stack.refuses, c.word)) return Error{c.flag, on + " " + c.lacks, c.valid};
  }
  if (!stack.optimizers.empty() && !listed(stack.optimizers, r.optimizer))
    return Error{"--optimizer", on + " does not run " + r.optimizer, text::list(stack.optimizers)};
  if (!listed(stack.optimizer_implementations, r.optimizer_implementation))
    return Error{"--optimizer-implementation", on + " has no " + r.optimizer_implementation + " optimizer",
                 text::list(stack.optimizer_implementations)};
  if (std::find(stack.moments.begin(), stack.moments.end(), r.moment_dtype) == stack.moments.end())
    return Error{"--moment-dtype", on + " does not keep moments in " + name(r.moment_dtype),
                 text::list(dtype_labels(stack.moments))};
  if (r.given.contains("cuda_graph_scope") && (r.cuda_graph == "none" || r.cuda_graph == "full_iteration"))
    return Error{"--cuda-graph-scope", "graphs of parts of a layer hold some of them; --cuda-graph is " + r.cuda_graph,
                 "--cuda-graph transformer_engine or local"};
  if (r.fp8_attention && (r.precision == "bf16" || r.precision == "fp16" || r.precision == "fp32"))
    return Error{"--fp8-attention", "attention runs in fp8 only beside products that do, not in " + r.precision,
                 "a scaled --precision, as fp8-tensorwise"};
  return check_heads_dealt(model, r);
}

bool may_recompute(const Stack& stack, const Recipe& recipe) {
  return std::none_of(std::begin(kCombinations), std::end(kCombinations), [&](const Combination& c) {
    return c.by_recompute && c.met(recipe) && listed(stack.refuses, c.word);
  });
}

bool needs_virtual_stages(const Stack& stack, const Recipe& recipe) {
  return recipe.ep_overlap && listed(stack.refuses, kOneChunk);
}

std::vector<std::string> idle_switches(const Stack& stack, const Recipe& r) {
  struct Idle {
    const char* key;
    const char* flag;
    bool on;
    const char* size_name;
    std::int64_t size;
  };
  const Layout& l = r.layout;
  const Idle switches[] = {{"tp_overlap", "--tp-overlap", r.tp_overlap, "tp", l.tp},
                           {"cp_comm", "--cp-comm", r.cp_comm != "p2p", "cp", l.cp},
                           {"dispatcher", "--dispatcher", r.dispatcher != "alltoall", "ep", l.ep},
                           {"ep_overlap", "--ep-overlap", r.ep_overlap, "ep", l.ep},
                           {"dp_overlap", "--no-dp-overlap", !r.dp_overlap, "dp x cp", l.dp * l.cp}};
  std::vector<std::string> out;
  for (const Switch& s : kSwitches) {
    if (s.on(r) && r.given.contains(s.key) && listed(stack.not_told_apart, s.word))
      out.push_back(std::string(s.flag) + " changes nothing: the step times of stack " + stack.full_name() +
                    " do not tell it apart");
  }
  for (const Idle& s : switches) {
    if (s.on && s.size == 1 && r.given.contains(s.key))
      out.push_back(std::string(s.flag) + " changes nothing: " + s.size_name + " is 1");
  }
  return out;
}

}  // namespace preflop
