#include "src/step/compute.hpp"

#include <algorithm>

#include "src/base/text.hpp"
#include "src/stack/rules/rules.hpp"

namespace preflop {

const std::vector<Convention>& conventions() {
  using W = Convention::Weights;
  static const std::vector<Convention> kTable = {
      {"palm", "6N + 12 L h s: all parameters, every query sees every key", W::parameters, true, Visible::full, false,
       3, false, "Chowdhery et al. 2022 (PaLM), arXiv:2204.02311 appendix B"},
      {"palm-no-embedding", "6 (N - tables) + 12 L h s: the embedding tables, which multiply nothing, left out",
       W::parameters_no_tables, true, Visible::full, false, 3, false, "pytorch/torchtitan PR #280 and issue #452"},
      {"6n", "6N: all parameters, no attention", W::parameters, false, Visible::full, false, 3, false,
       "Kaplan et al. 2020, arXiv:2001.08361"},
      {"6n-no-embedding", "6N without the embedding tables", W::parameters_no_tables, false, Visible::full, false, 3,
       false, "Kaplan et al. 2020, arXiv:2001.08361 section 2.1"},
      {"8n", "8N: all parameters, no attention, one more forward for full recomputation", W::parameters, false,
       Visible::full, false, 4, false, "bigscience-workshop/bigscience math/README.md"},
      {"bridge", "executed products but routers, causal half of the attention, padded logits", W::products, true,
       Visible::causal, true, 3, false, "NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/training/utils/flop_utils.py",
       false, true, true},
      {"bridge-v0-4", "bridge up to 26.04: no windows, no gate branch unless its activation is SiLU", W::products, true,
       Visible::causal, true, 3, false,
       "NVIDIA-NeMo/Megatron-Bridge v0.4 src/megatron/bridge/training/utils/flop_utils.py", false, false, true, false},
      {"nemo24", "executed products, attention not halved, logits not padded", W::products, true, Visible::full, false,
       3, false, "NVIDIA/NeMo up to 2.2 nemo/collections/common/metrics/perf_metrics.py"},
      {"maxtext", "executed products, routers too, attention not halved, logits not padded", W::products, true,
       Visible::full, false, 3, false,
       "AI-Hypercomputer/maxtext maxtext_utils.py calculate_tflops_training_per_device, until July 2025", true, false},
      {"maxtext-causal", "maxtext with half of the attention: the causal mask", W::products, true, Visible::causal,
       false, 3, false, "AI-Hypercomputer/maxtext PR 1988, July 2025"},
      {"korthikanti", "executed products, attention not halved, padded logits: 72 B s L h^2 (1 + s/6h + V/12Lh)",
       W::products, true, Visible::full, true, 3, false, "Korthikanti et al. 2022, arXiv:2205.05198 appendix A"},
      {"narayanan", "executed products with full recomputation: 96 B s L h^2 (1 + s/6h + V/16Lh)", W::products, true,
       Visible::full, true, 4, false, "Narayanan et al. 2021, arXiv:2104.04473 section 5.1"},
      {"hfu", "executed products, attention not halved, and what this recipe recomputes", W::products, true,
       Visible::full, true, 3, true, "Chowdhery et al. 2022 (PaLM), arXiv:2204.02311 appendix B"}};
  return kTable;
}

const Convention* find_convention(std::string_view text) {
  for (const Convention& c : conventions()) {
    if (text == c.name) return &c;
  }
  return nullptr;
}

std::vector<std::string> convention_names() {
  std::vector<std::string> out;
  for (const Convention& c : conventions()) out.emplace_back(c.name);
  return out;
}

namespace {

constexpr int kPasses = 3;  // forward, gradient of the input, gradient of the weight

// The model on one GPU and one sequence: what a token costs does not depend on how it is split.
class Whole {
 public:
  explicit Whole(const Analysed& a) : analysed(a), unpadded_(*a.stack) {
    for (const Block& block : a.model->blocks) hybrid_ = hybrid_ || block.scan == ScanKind::mamba2;
    unpadded_.vocab_multiple.value = 1;
    for (std::size_t i = 0; i < a.model->blocks.size(); ++i) blocks_.push_back(cost_of(static_cast<int>(i)));
  }
  const BlockCost& block(int i) const { return blocks_[static_cast<std::size_t>(i)]; }
  bool is_layer(int i) const { return analysed.model->is_layer(i); }
  double tokens() const { return static_cast<double>(analysed.recipe.seq); }

  // Forward FLOPs of a whole sequence through one layer's operator under a convention.
  double forward(const WorkItem& w, int block_index, const Convention& c) const {
    if (w.attention) return w.per_key * visible(w, block_index, c);
    if (c.hybrid_formula && hybrid_ && group(w.tag) == "ssm")
      return w.forward_flops * doubled_hidden(w, block(block_index));
    return c.padded_vocab && w.logits ? w.forward_flops * padding_ : w.forward_flops;
  }
  double visible(const WorkItem& w, int block_index, const Convention& c) const {
    const BlockCost& b = block(block_index);
    return visible_keys(c.visible, analysed.recipe.seq, c.windows && !w.all_keys ? b.window : Count(0), b.chunked);
  }
  // The source's formula for hybrids takes a Mamba-2 layer for twice the hidden size wide.
  static double doubled_hidden(const WorkItem& w, const BlockCost& block) {
    const bool wide = w.tag == Tag::ssm_z || w.tag == Tag::ssm_x || w.tag == Tag::ssm_scan || w.tag == Tag::ssm_out;
    const double own = (block.extents[Axis::ssm_heads] * block.extents[Axis::ssm_dim]).real();
    return wide && own > 0 ? 2 * block.extents[Axis::hidden].real() / own : 1;
  }
  // Does a convention leave this product out?
  bool skips(const WorkItem& w, int block_index, const Convention& c) const {
    if (c.hybrid_formula && hybrid_ && group(w.tag) == "mtp") return true;
    if (!c.routers && (w.tag == Tag::moe_router || w.tag == Tag::shared_scale_logit)) return true;
    const bool gate = w.tag == Tag::mlp_gate || w.tag == Tag::exp_gate || w.tag == Tag::shared_gate;
    return gate && !c.every_gate && block(block_index).activation != Activation::silu;
  }

  const Analysed& analysed;

 private:
  BlockCost cost_of(int i) {
    const Analysed& a = analysed;
    const Block& block = a.model->blocks[static_cast<std::size_t>(i)];
    Setting setting;
    setting.stack = &unpadded_;
    setting.loss = unpadded_.loss(a.recipe.loss);
    setting.seq = a.recipe.seq;
    setting.kernel = a.recipe.attention;
    for (const Segment& s : a.segments) {
      if (is_layer(i) && s.applies_to(block)) setting.segments.push_back(&s);
    }
    if (i == a.model->head) {
      // Padded to the stack's step times the recipe's tp, on whichever GPU it is computed.
      const Count multiple = static_cast<std::int64_t>(a.stack->vocab_multiple.value) * a.recipe.layout.tp;
      const Count vocab = block.extents[Axis::vocab];
      if (a.stack->vocab_multiple.value > 1) padding_ = round_up(vocab, multiple).real() / vocab.real();
    }
    return analyse(rewrite(block, *a.stack, a.recipe), setting);
  }

  Stack unpadded_;
  std::vector<BlockCost> blocks_;
  double padding_ = 1;
  bool hybrid_ = false;  // has Mamba-2 layers
};

// Where N is a number of parameters it is that of the main model: multi-token prediction stays out.
std::vector<BlockRun> all_blocks(const Model& model, const Convention& c) {
  std::vector<BlockRun> out = {{model.embedding, 1}};
  out.insert(out.end(), model.layers.begin(), model.layers.end());
  if (c.weights == Convention::Weights::products) out.insert(out.end(), model.mtp.begin(), model.mtp.end());
  out.push_back({model.head, 1});
  return out;
}

// "2 x b 1 x s 4096 x h 4096": forward FLOPs as a product of sizes, of attention for a visible key. Fused attention is
// two products, over the keys' and the values' dimension.
std::string multiplied(const WorkItem& w) {
  const double each = w.kind == Kind::scan ? w.forward_flops / w.volume.elements.real() : 2;
  const std::string start = text::fixed(each, 0) + " x ";
  if (!w.attention || w.per_key <= each * w.volume.elements.real()) return start + w.volume.text();
  Volume rest = w.volume;
  const auto end = rest.factors.begin() + rest.size;
  const auto dim =
      std::find_if(rest.factors.begin(), end, [](const Volume::Factor& f) { return f.axis == Axis::value_dim; });
  if (dim == end) return text::fixed(w.per_key, 0);
  const double values = dim->extent.real() / static_cast<double>(dim->divisor);
  const double keys = values * (w.per_key / (each * w.volume.elements.real()) - 1);
  std::copy(dim + 1, end, dim);
  --rest.size;
  return start + rest.text() + " x (head dim " + text::fixed(keys, 0) + " + value dim " + text::fixed(values, 0) + ")";
}

template <class N>
N flops_leaf(const WorkItem& w, double per_token, double passes, double layers, double visible) {
  std::string label;
  std::string factors;
  if constexpr (is_traced<N>) {
    label = std::string(name(w.tag));
    factors =
        multiplied(w) +
        (w.attention ? " x visible keys " +
                           text::fixed(visible, visible == static_cast<double>(static_cast<long long>(visible)) ? 0 : 1)
                     : "") +
        " / tokens x " + std::to_string(static_cast<int>(passes)) + " passes x " +
        std::to_string(static_cast<long long>(layers)) + " layers";
  }
  return leaf<N>(per_token * passes * layers,
                 [&] { return Origin{label.c_str(), "FLOP/token", "read off the operator's axes", factors}; });
}

// Which operators of a block count, and how many passes of each.
struct Filter {
  bool weights = true;
  bool attention = true;
  bool model = true;    // the passes of the convention
  bool replay = false;  // one more forward of what is recomputed
};

template <class N>
void add_products(std::vector<N>& out, const Whole& whole, const BlockRun& run, const Convention& c,
                  const Filter& filter) {
  for (const WorkItem& w : whole.block(run.block).work) {
    const bool product = w.kind == Kind::product || w.kind == Kind::scan;
    const bool counts = (product && filter.weights) || (w.attention && filter.attention);
    if (!counts || whole.skips(w, run.block, c)) continue;
    const double passes = (filter.model ? (whole.is_layer(run.block) ? c.layer_passes : kPasses) : 0) +
                          (filter.replay && w.replayed ? 1 : 0);
    if (passes == 0) continue;
    const double per_token = whole.forward(w, run.block, c) / whole.tokens();
    out.push_back(flops_leaf<N>(w, per_token, passes, static_cast<double>(run.count),
                                w.attention ? whole.visible(w, run.block, c) : 0));
  }
}

// Layers that a policy for some of them recomputes, by kind.
std::vector<BlockRun> recomputed_layers(const Analysed& a) {
  std::vector<BlockRun> out;
  for (const Stage& stage : a.stages) {
    for (const BlockRun& run : stage.layers) {
      if (run.block != a.model->kind(run.block)) continue;
      const auto known = std::find_if(out.begin(), out.end(), [&](const BlockRun& r) { return r.block == run.block; });
      if (known == out.end())
        out.push_back(run);
      else
        known->count += run.count;
    }
  }
  return out;
}

template <class N>
FlopsPerToken<N> products(const Whole& whole, const Convention& c, const Filter& filter, const char* label) {
  std::vector<N> terms;
  const bool some = whole.analysed.recipe.recompute.some();
  Filter once = filter;
  once.replay = filter.replay && !some;
  for (const BlockRun& run : all_blocks(*whole.analysed.model, c)) add_products(terms, whole, run, c, once);
  if (!filter.replay || !some) return FlopsPerToken<N>(named(total(terms), label, "FLOP/token"));
  // Only some layers are recomputed: one more forward of those.
  Filter again = filter;
  again.model = false;
  for (const BlockRun& run : recomputed_layers(whole.analysed)) add_products(terms, whole, run, c, again);
  return FlopsPerToken<N>(named(total(terms), label, "FLOP/token"));
}

template <class N>
FlopsPerToken<N> from_parameters(const Analysed& a, const Convention& c) {
  const bool tables = c.weights == Convention::Weights::parameters;
  const ModelSummary summary = summarise(*a.model);
  const Count counted = tables ? summary.params_active : summary.params_active - summary.params_embedding;
  const N params = leaf<N>(counted.real(), [&] {
    return Origin{tables ? "N, parameters" : "N, parameters without tables", "", "read off the operators' weights", {}};
  });
  const N multiply_add = leaf<N>(2, [] { return Origin{"FLOPs per multiply-add", "", "definition", {}}; });
  const N passes = leaf<N>(c.layer_passes, [&] {
    return Origin{c.layer_passes > kPasses ? "passes: forward twice, input gradient, weight gradient"
                                           : "passes: forward, input gradient, weight gradient",
                  "",
                  "definition",
                  {}};
  });
  return FlopsPerToken<N>(multiply_add * passes * params);
}

template <class N>
FlopsPerToken<N> attention_of(const Whole& whole, const Convention& c) {
  return products<N>(whole, c, {false, c.attention, true, false}, "attention");
}

template <class N>
FlopsPerToken<N> flops_of(const Whole& whole, const Convention& c, bool replay_too) {
  const bool replay = replay_too || c.replay;
  if (c.weights == Convention::Weights::products)
    return products<N>(whole, c, {true, c.attention, true, replay}, c.name);
  FlopsPerToken<N> out = from_parameters<N>(whole.analysed, c);
  if (c.attention) out += attention_of<N>(whole, c);
  if (replay) out += products<N>(whole, c, {true, true, false, true}, "recomputed");
  return named(out, c.name, "FLOP/token");
}

}  // namespace

template <class N>
FlopsPerToken<N> attention_flops_per_token(const Analysed& a, const Convention& c) {
  return attention_of<N>(Whole(a), c);
}

template <class N>
FlopsPerToken<N> flops_per_token(const Analysed& a, const Convention& c, bool replay_too) {
  return flops_of<N>(Whole(a), c, replay_too);
}

template <class N>
ComputeEstimate<N> compute_estimate(const Analysed& a, const Convention& c) {
  const Whole whole(a);
  ComputeEstimate<N> out;
  out.convention = c.name;
  out.model = flops_of<N>(whole, c, false);
  out.hardware = named(flops_of<N>(whole, c, true), "hardware", "FLOP/token");
  out.six_n = flops_of<N>(whole, *find_convention("6n"), false);
  out.attention = attention_of<N>(whole, c);
  for (const Convention& each : conventions()) out.conventions.emplace_back(each.name, flops_of<N>(whole, each, false));
  return out;
}

template FlopsPerToken<double> flops_per_token<double>(const Analysed&, const Convention&, bool);
template FlopsPerToken<Traced> flops_per_token<Traced>(const Analysed&, const Convention&, bool);
template FlopsPerToken<double> attention_flops_per_token<double>(const Analysed&, const Convention&);
template FlopsPerToken<Traced> attention_flops_per_token<Traced>(const Analysed&, const Convention&);
template ComputeEstimate<double> compute_estimate<double>(const Analysed&, const Convention&);
template ComputeEstimate<Traced> compute_estimate<Traced>(const Analysed&, const Convention&);

}  // namespace preflop
