#include "src/step/compute.hpp"

#include "src/stack/rules/rules.hpp"

namespace preflop {

const std::vector<Convention>& conventions() {
  using W = Convention::Weights;
  static const std::vector<Convention> kTable = {
      {"palm", "6N + 12 L h s: all parameters, every query sees every key", W::parameters, true, Visible::full, false, 3, false,
       "Chowdhery et al. 2022 (PaLM), arXiv:2204.02311 appendix B"},
      {"6n", "6N: all parameters, no attention", W::parameters, false, Visible::full, false, 3, false, "Kaplan et al. 2020, arXiv:2001.08361"},
      {"6n-no-embedding", "6N without the embedding tables", W::parameters_no_tables, false, Visible::full, false, 3, false,
       "Kaplan et al. 2020, arXiv:2001.08361 section 2.1"},
      {"bridge", "executed products, causal half of the attention, padded logits", W::products, true, Visible::causal, true, 3, false,
       "NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/training/utils/flop_utils.py"},
      {"nemo24", "executed products, attention not halved, padded logits", W::products, true, Visible::full, true, 3, false,
       "NVIDIA/NeMo up to 2.2 nemo/collections/common/metrics/perf_metrics.py"},
      {"narayanan", "executed products with full recomputation: 96 B s L h^2 (1 + s/6h + V/16Lh)", W::products, true, Visible::full, true, 4, false,
       "Narayanan et al. 2021, arXiv:2104.04473 section 5.1"},
      {"hfu", "executed products, attention not halved, and what this recipe recomputes", W::products, true, Visible::full, true, 3, true,
       "Chowdhery et al. 2022 (PaLM), arXiv:2204.02311 appendix B"}};
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
BlockCost whole(const Analysed& a, int block, bool padded) {
  Setting setting;
  Stack unpadded;
  if (!padded) {
    unpadded = *a.stack;
    unpadded.vocab_multiple.value = 1;
  }
  setting.stack = padded ? a.stack : &unpadded;
  setting.loss = setting.stack->loss(a.recipe.loss);
  setting.mesh = {};
  setting.seq = a.recipe.seq;
  setting.kernel = a.recipe.attention;
  const bool is_layer = block != a.model->embedding && block != a.model->head;
  setting.segment = is_layer && !a.segment.tags.empty() ? &a.segment : nullptr;
  BlockCost out = analyse(rewrite(a.model->blocks[static_cast<std::size_t>(block)], *a.stack, a.recipe.attention), setting);
  // The padded vocabulary is a multiple of the stack's step times the recipe's tp, wherever it is computed.
  if (padded && a.model->blocks[static_cast<std::size_t>(block)].extents[Axis::vocab].get() > 0) {
    const Count multiple = static_cast<std::int64_t>(a.stack->vocab_multiple.value) * a.recipe.layout.tp;
    const Count padded_vocab = round_up(a.model->blocks[static_cast<std::size_t>(block)].extents[Axis::vocab], multiple);
    for (WorkItem& w : out.work) {
      if (w.kind == Kind::product) w.forward_flops = w.forward_flops / out.extents[Axis::vocab].real() * padded_vocab.real();
    }
  }
  return out;
}

std::vector<BlockRun> all_blocks(const Model& model) {
  std::vector<BlockRun> out = {{model.embedding, 1}};
  out.insert(out.end(), model.layers.begin(), model.layers.end());
  out.push_back({model.head, 1});
  return out;
}

template <class N>
N flops_leaf(const WorkItem& w, double per_token, double passes, double layers, double visible) {
  std::string label;
  std::string factors;
  if constexpr (is_traced<N>) {
    label = std::string(name(w.tag));
    factors = "2 x " + w.volume.text() + (w.attention ? " x visible keys " + std::to_string(visible) : "") + " / tokens x " +
              std::to_string(static_cast<int>(passes)) + " passes x " + std::to_string(static_cast<long long>(layers)) + " layers";
  }
  return leaf<N>(per_token * passes * layers, [&] { return Origin{label.c_str(), "FLOP/token", "read off the operator's axes", factors}; });
}

// The products of one block, per token and layer.
template <class N>
void add_products(std::vector<N>& out, const Analysed& a, const BlockRun& run, const Convention& c, bool weights, bool attention, bool replay) {
  const BlockCost block = whole(a, run.block, c.padded_vocab);
  const double tokens = a.recipe.seq;
  const bool is_layer = run.block != a.model->embedding && run.block != a.model->head;
  for (const WorkItem& w : block.work) {
    const bool is_product = w.kind == Kind::product && weights;
    if (!is_product && !(w.attention && attention)) continue;
    const double visible = w.attention ? visible_keys(c.visible, a.recipe.seq, block.window) : 0;
    const double forward = (w.attention ? w.per_key * visible : w.forward_flops) / tokens;
    const double passes = (is_layer ? c.layer_passes : kPasses) + (replay && w.replayed ? 1 : 0);
    out.push_back(flops_leaf<N>(w, forward, passes, static_cast<double>(run.count), visible));
  }
}

template <class N>
FlopsPerToken<N> from_parameters(const Analysed& a, bool tables) {
  const ModelSummary summary = summarise(*a.model);
  const Count counted = tables ? summary.params_active : summary.params_active - summary.params_embedding;
  const N params = leaf<N>(counted.real(), [&] { return Origin{tables ? "N, parameters" : "N, parameters without tables", "", "read off the operators' weights", {}}; });
  const N multiply_add = leaf<N>(2, [] { return Origin{"FLOPs per multiply-add", "", "definition", {}}; });
  const N passes = leaf<N>(kPasses, [] { return Origin{"passes: forward, input gradient, weight gradient", "", "definition", {}}; });
  return FlopsPerToken<N>(multiply_add * passes * params);
}

// Recomputed weight products, per token.
template <class N>
void add_replayed(std::vector<N>& out, const Analysed& a, const BlockRun& run, const Convention& c) {
  const BlockCost block = whole(a, run.block, c.padded_vocab);
  for (const WorkItem& w : block.work) {
    if (!w.replayed || (w.kind != Kind::product && !w.attention)) continue;
    const double visible = w.attention ? visible_keys(c.visible, a.recipe.seq, block.window) : 0;
    const double forward = (w.attention ? w.per_key * visible : w.forward_flops) / static_cast<double>(a.recipe.seq);
    out.push_back(flops_leaf<N>(w, forward, 1, static_cast<double>(run.count), visible));
  }
}

}  // namespace

template <class N>
FlopsPerToken<N> attention_flops_per_token(const Analysed& a, const Convention& c) {
  std::vector<N> terms;
  if (c.attention) {
    for (const BlockRun& run : all_blocks(*a.model)) add_products(terms, a, run, c, false, true, false);
  }
  return FlopsPerToken<N>(named(total(terms), "attention", "FLOP/token"));
}

template <class N>
FlopsPerToken<N> flops_per_token(const Analysed& a, const Convention& c, bool replay_too) {
  const bool replay = replay_too || c.replay;
  if (c.weights == Convention::Weights::products) {
    std::vector<N> terms;
    for (const BlockRun& run : all_blocks(*a.model)) add_products(terms, a, run, c, true, c.attention, replay);
    return FlopsPerToken<N>(named(total(terms), c.name, "FLOP/token"));
  }
  FlopsPerToken<N> out = from_parameters<N>(a, c.weights == Convention::Weights::parameters);
  if (c.attention) out += attention_flops_per_token<N>(a, c);
  if (replay) {
    std::vector<N> terms;
    for (const BlockRun& run : all_blocks(*a.model)) add_replayed(terms, a, run, c);
    out += FlopsPerToken<N>(named(total(terms), "recomputed", "FLOP/token"));
  }
  return named(out, c.name, "FLOP/token");
}

template <class N>
ComputeEstimate<N> compute_estimate(const Analysed& a, const Convention& c) {
  ComputeEstimate<N> out;
  out.convention = c.name;
  out.model = flops_per_token<N>(a, c, false);
  out.hardware = named(flops_per_token<N>(a, c, true), "hardware", "FLOP/token");
  out.six_n = flops_per_token<N>(a, *find_convention("6n"), false);
  out.attention = attention_flops_per_token<N>(a, c);
  for (const Convention& each : conventions()) out.conventions.emplace_back(each.name, flops_per_token<N>(a, each, false));
  return out;
}

template FlopsPerToken<double> flops_per_token<double>(const Analysed&, const Convention&, bool);
template FlopsPerToken<Traced> flops_per_token<Traced>(const Analysed&, const Convention&, bool);
template FlopsPerToken<double> attention_flops_per_token<double>(const Analysed&, const Convention&);
template FlopsPerToken<Traced> attention_flops_per_token<Traced>(const Analysed&, const Convention&);
template ComputeEstimate<double> compute_estimate<double>(const Analysed&, const Convention&);
template ComputeEstimate<Traced> compute_estimate<Traced>(const Analysed&, const Convention&);

}  // namespace preflop
