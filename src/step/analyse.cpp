// A recipe checked, split into stages and analysed block by block.
#include <algorithm>

#include "src/base/text.hpp"
#include "src/stack/legality.hpp"
#include "src/stack/rules/rules.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/step/memory.hpp"

namespace preflop {

namespace {

// A size beyond 2^53 anywhere makes every number that it enters meaningless.
Status check_countable(const Analysed& a) {
  bool ok = summarise(*a.model).params_total.valid();
  for (const BlockCost& block : a.blocks) ok = ok && block.legal;
  for (const Stage& stage : a.stages) ok = ok && stage_parameters(a, stage).valid();
  if (ok) return Nothing{};
  return Error{"model", "its parameters or the activations of one micro-batch are more than 2^53 elements",
               "a smaller model, --seq or --micro-batch"};
}

// Elements of a block's matrices, a tied head's too: what a token's products cost.
double matrix_work(const Model& model, int block) {
  const Block& b = model.blocks[static_cast<std::size_t>(block)];
  double out = 0;
  for (const Op& op : b.ops) {
    for (const Weight& w : op.weights) {
      if (w.role == Role::matrix) out += volume(w.axes, b.extents, Mesh{}).elements.real();
    }
  }
  return out;
}

}  // namespace

Result<Split> split_model(const Model& model, const Stack& stack, const Layout& layout) {
  const std::int64_t layers = layer_count(model);
  const auto scans = [](const Block& b) { return b.scan.has_value(); };
  if (stack.even_scan_stages && layout.pp > 1 && std::any_of(model.blocks.begin(), model.blocks.end(), scans))
    return split_evenly(layers, layout, stack);
  std::vector<double> costs;
  if (stack.split_by_cost) {
    for (const BlockRun& run : model.layers)
      costs.insert(costs.end(), static_cast<std::size_t>(run.count), matrix_work(model, run.block));
    costs.push_back(matrix_work(model, model.head));
  }
  return split_layers(layers, layout, stack, model.mtp_layers(), costs);
}

Setting setting_of(const Model& model, const Stack& stack, const Recipe& recipe, const std::vector<Segment>& segments,
                   int block) {
  Setting out;
  out.stack = &stack;
  out.loss = stack.loss(recipe.loss, recipe.compile);
  out.mesh = Mesh::of(recipe.layout);
  out.micro_batch = recipe.micro_batch;
  out.seq = recipe.seq;
  out.activation_width = recipe.activation_width();
  out.kernel = recipe.attention;
  out.beside_experts = has_experts(model);
  out.imbalance = recipe.imbalance;
  out.capacity_factor = recipe.capacity_factor;
  if (!model.is_layer(block)) return out;
  out.in_units = recipe.recompute.units();
  out.defers = recipe.layout.schedule.starts_with("zb-");  // whatever pp is: a block is the same on every stage
  out.scaled = stack.precision(recipe.precision);
  // Of multi-token prediction no layer is among those that "some" speaks of (Megatron-LM
  // core/transformer/multi_token_prediction.py: block recomputation is skipped there).
  const bool left_alone = recipe.recompute.some() && (block != model.kind(block) || model.at_end(block));
  const Block& base = model.blocks[static_cast<std::size_t>(model.kind(block))];
  for (const Segment& s : segments) {
    if ((!left_alone || s.compiled) && s.applies_to(base)) out.segments.push_back(&s);
  }
  return out;
}

Result<Analysed> analyse_recipe(const Model& model, const Stack& stack, const Recipe& recipe) {
  if (Status s = check_legal(model, stack, recipe); !s) return s.error();
  Result<Split> split = split_model(model, stack, recipe.layout);
  if (!split) return split.error();
  if (Status s = check_units(model, *split, recipe.recompute); !s) return s.error();
  Analysed out;
  out.model = &model;
  out.stack = &stack;
  out.recipe = recipe;
  out.stages = make_stages(model, *split, recipe);
  out.split_how = split->how;
  out.chunk_layers = split->chunks;
  auto segments = recompute_segments(stack, recipe);
  if (!segments) return segments.error();
  out.segments = std::move(segments).value();
  const int kinds = block_kinds(model, recipe);
  for (int i = 0; i < kinds; ++i) {
    const Setting setting = setting_of(model, stack, recipe, out.segments, i);
    const Block& block = model.blocks[static_cast<std::size_t>(model.kind(i))];
    out.blocks.push_back(analyse(rewrite(block, stack, recipe), setting));
  }
  if (Status s = check_countable(out); !s) return s.error();
  return out;
}

int block_kinds(const Model& model, const Recipe& recipe) {
  const bool twins = recipe.recompute.some() || recipe.recompute.units() || recipe.offload.some_layers();
  return static_cast<int>(model.blocks.size()) * (twins ? 2 : 1);
}

namespace {

Status check_layers(const Stack& stack, const Recompute& recompute) {
  const auto& known = stack.recompute_layers;
  if (recompute.which == RecomputeLayers::all || std::find(known.begin(), known.end(), recompute.which) != known.end())
    return Nothing{};
  std::string valid = "none, selective, full or modules of the stack";
  for (const RecomputeLayers which : known) valid += std::string(", ") + name(which);
  return Error{"--recompute", "stack " + stack.name + " does not run " + recompute_text(recompute), valid};
}

}  // namespace

Result<std::vector<Segment>> recompute_segments(const Stack& stack, const Recipe& recipe) {
  const Recompute& recompute = recipe.recompute;
  std::vector<Segment> out;
  std::vector<std::string> modules = recompute.modules;
  if (recompute.kind == RecomputeKind::none) modules.clear();
  if (recompute.kind == RecomputeKind::selective && stack.selective.empty())
    return Error{"--recompute", "stack " + stack.full_name() + " recomputes whole layers only", "none or full"};
  if (recompute.kind == RecomputeKind::selective) modules = {stack.selective};
  if (recompute.kind == RecomputeKind::full) modules = {"full"};
  if (Status s = check_layers(stack, recompute); !s) return s.error();
  for (const std::string& module : modules) {
    const Segment* found = stack.segment(module);
    if (found == nullptr || found->compiled) {
      std::vector<std::string> known;
      for (const Segment& s : stack.segments) {
        if (!s.compiled && (known.empty() || known.back() != s.name)) known.push_back(s.name);
      }
      return text::unknown_name("--recompute", "module of stack " + stack.name, module, known);
    }
    for (const Segment& s : stack.segments) {
      if (s.name == module) out.push_back(s);
    }
  }
  // What the user asked for comes first: an operator belongs to the first segment that names it.
  for (const Segment& s : stack.segments) {
    if (s.compiled && recipe.compile) out.push_back(s);
  }
  return out;
}

Status check_recompute(const Model& model, const Stack& stack, const Recipe& recipe) {
  const auto segments = recompute_segments(stack, recipe);
  if (!segments) return segments.error();
  const auto here = [&](const std::string& module) {
    return std::any_of(stack.segments.begin(), stack.segments.end(),
                       [&](const Segment& s) { return s.name == module && !s.compiled && s.touches(model); });
  };
  for (const std::string& module : recipe.recompute.modules) {
    if (here(module)) continue;
    std::vector<std::string> valid = {"none"};
    if (!stack.selective.empty()) valid.emplace_back("selective");
    for (const Segment& s : stack.segments) {
      if (std::find(valid.begin(), valid.end(), s.name) == valid.end() && here(s.name)) valid.push_back(s.name);
    }
    return Error{"--recompute",
                 "the model has nothing that module " + module + " of stack " + stack.name + " recomputes",
                 text::list(valid)};
  }
  return Nothing{};
}

}  // namespace preflop
