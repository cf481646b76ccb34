// Random models with experts, latent attention and multi-token prediction on random meshes: ledgers sum, traced
// numbers are the plain ones to the bit, more ranks of experts never need more memory for states.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "tests/support/draw.hpp"
#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

i64 two_to(i64 most) { return i64{1} << pick(0, most); }

LatentAttention draw_latent() {
  LatentAttention l;
  if (coin()) l.q_lora = 16 * pick(1, 8);
  l.kv_lora = 16 * pick(1, 8);
  l.nope_dim = 8 * pick(1, 8);
  l.rope_dim = 8 * pick(1, 4);
  l.value_dim = 8 * pick(1, 8);
  return l;
}

ExpertSpec draw_experts() {
  ExpertSpec e;
  e.count = 16 * pick(1, 4);
  e.top_k = pick(1, 8);
  e.width = 16 * pick(1, 16);
  e.gated = coin();
  e.bias = coin();
  e.router_bias = coin();
  e.correction_bias = coin();
  if (coin()) e.shared_width = 8 * pick(1, 16);
  e.shared_gate = e.shared_width.get() > 0 && coin();
  if (coin()) e.latent = 8 * pick(1, 8);
  return e;
}

LayerKind draw_mixed_kind(const ExpertSpec& experts) {
  LayerKind k = draw_kind();
  k.attention.sinks = coin();
  k.attention.gate = coin();
  k.attention.chunked = k.attention.window && coin();
  if (coin()) {
    k.attention.latent = draw_latent();
    k.attention.kv_heads = k.attention.heads;
    k.attention.head_dim = k.attention.latent->nope_dim + k.attention.latent->rope_dim;
    k.attention.qk_norm = QkNorm::none;
    if (coin()) k.attention.indexer = SparseIndexer{2, 8, 64};
  }
  if (*rc::gen::inRange(0, 4) != 0) {
    k.experts = experts;
    k.mlp = {};
  }
  return k;
}

struct Drawn {
  Architecture architecture;
  Recipe recipe;
  const Stack* stack = nullptr;
};

Drawn draw_experts_case() {
  Drawn d;
  d.stack = &stack(one_of<std::string>({"textbook", "megatron"}));
  d.architecture = draw_architecture(1);
  d.architecture.layers.clear();
  const ExpertSpec experts = draw_experts();
  d.architecture.layers.push_back({draw_mixed_kind(experts), pick(1, 2)});
  if (coin()) d.architecture.layers.push_back({draw_hybrid_kind(*d.stack), pick(1, 2)});
  LayerKind last = draw_mixed_kind(experts);
  last.experts = experts;
  last.mlp = {};
  d.architecture.layers.push_back({last, pick(1, 3)});
  d.architecture.mtp_layers = pick(0, 2);
  d.architecture.mtp_shared = coin();
  d.recipe = draw_recipe(d.architecture, *d.stack);
  Layout& l = d.recipe.layout;
  l.vpp = 1;
  if (d.stack->even_scan_stages && d.architecture.layer_count() % l.pp != 0) l.pp = 1;  // some of them scan
  l.schedule = "1f1b";
  l.sp = l.tp > 1;
  const i64 ranks = l.tp * l.cp * l.dp;
  do l.ep = two_to(4);
  while (ranks % l.ep != 0);
  do l.etp = two_to(3);
  while (ranks % (l.ep * l.etp) != 0);
  d.recipe.global_batch = pick(1, 9) * d.recipe.micro_batch * l.dp;
  if (coin()) d.recipe.capacity_factor = 1.25;
  if (coin()) d.recipe.imbalance = 1.5;
  return d;
}

RC_GTEST_PROP(RandomExperts, LedgersSumAndExplainThemselves, ()) {
  const Drawn d = draw_experts_case();
  RC_LOG() << d.recipe << " ep " << d.recipe.layout.ep << " etp " << d.recipe.layout.etp << "\n";
  const Result<Case> c = try_run(d.architecture, *d.stack, d.recipe);
  if (!c) RC_LOG() << c.error().text() << "\n";
  RC_ASSERT(c.ok());
  const MemoryEstimate<double> plain = memory_estimate<double>(c->a, Cluster{});
  const MemoryEstimate<Traced> traced = memory_estimate<Traced>(c->a, Cluster{});
  for (std::size_t i = 0; i < plain.stages.size(); ++i) {
    double sum = 0;
    for (const Bytes<double>& term : plain.stages[i].terms) sum += term.number();
    RC_ASSERT(sum == plain.stages[i].allocated.number());
    RC_ASSERT(std::isfinite(sum) && sum > 0);
    RC_ASSERT(traced.stages[i].allocated.number().value() == plain.stages[i].allocated.number());
  }
  for (const Convention& convention : conventions()) {
    const double flops = flops_per_token<double>(c->a, convention, true).number();
    RC_ASSERT(std::isfinite(flops) && flops > 0);
    RC_ASSERT(flops_per_token<Traced>(c->a, convention, true).number().value() == flops);
  }
}

// What a rank keeps for the backward pass never grows when experts are spread over more ranks, and the states of
// experts shrink with ep.
RC_GTEST_PROP(RandomExperts, SpreadingExpertsNeverCostsStates, ()) {
  Drawn d = draw_experts_case();
  Recipe one = d.recipe;
  one.layout.ep = one.layout.etp = 1;
  const Result<Case> spread = try_run(d.architecture, *d.stack, d.recipe),
                     whole = try_run(d.architecture, *d.stack, one);
  RC_ASSERT(spread.ok() && whole.ok());
  for (std::size_t i = 0; i < spread->a.stages.size(); ++i) {
    const i64 experts = stage_parameters(whole->a, whole->a.stages[i], Which::expert).get();
    const i64 cut = d.recipe.layout.ep * d.recipe.layout.etp;
    const i64 local = stage_parameters(spread->a, spread->a.stages[i], Which::expert).get();
    RC_ASSERT(local * cut >= experts);  // biases of the experts' outputs are whole on every rank of etp
    RC_ASSERT(local * d.recipe.layout.ep <= experts);
    RC_ASSERT(stage_parameters(spread->a, spread->a.stages[i], Which::dense) ==
              stage_parameters(whole->a, whole->a.stages[i], Which::dense));
  }
}

}  // namespace
}  // namespace preflop::test
