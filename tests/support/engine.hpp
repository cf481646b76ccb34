// What the law and golden tests share: small architectures, recipes, one call that analyses them, and
// read-outs as whole numbers. Nothing here knows a formula.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "src/run/estimate.hpp"

namespace preflop::test {

using i64 = std::int64_t;

inline const StackCatalogue& stacks() {
  static const StackCatalogue catalogue = [] {
    Result<StackCatalogue> loaded = StackCatalogue::load();
    if (!loaded) ADD_FAILURE() << loaded.error().text();
    return loaded ? *loaded : StackCatalogue{};
  }();
  return catalogue;
}

// Never copied: what it holds points into it.
inline const MachineCatalogue& machines() {
  static const Result<MachineCatalogue> loaded = MachineCatalogue::load();
  if (!loaded) throw std::runtime_error(loaded.error().text());
  return *loaded;
}

inline const Stack& stack(const std::string& name) {
  static const Stack none;
  const Result<const Stack*> found = stacks().find(name);
  if (!found) ADD_FAILURE() << found.error().text();
  return found ? **found : none;
}

// GPT as the published identities mean it: biases everywhere, LayerNorm, GELU of four times the width,
// full multi-head attention, dropout on the probabilities and on both branches.
struct Gpt {
  i64 h = 0, a = 0, layers = 1, vocab = 1024;
  double dropout = 0.1;
};

inline Architecture gpt(const Gpt& g) {
  LayerKind k;
  k.attention.heads = g.a;
  k.attention.kv_heads = g.a;
  k.attention.head_dim = g.h / g.a;
  k.attention.query_bias = k.attention.key_bias = k.attention.value_bias = k.attention.out_bias = true;
  k.attention.rope = false;
  k.attention.dropout = g.dropout;
  k.mlp.width = 4 * g.h;
  k.mlp.bias = true;
  k.mlp.activation = Activation::gelu;
  k.norm = NormKind::layer;
  k.dropout = g.dropout;
  Architecture out;
  out.name = "gpt";
  out.hidden = g.h;
  out.vocab = g.vocab;
  out.layers = {{k, g.layers}};
  out.final_norm = NormKind::layer;
  out.positions = Positions::none;
  return out;
}

// Llama: RMSNorm, rotary embedding, gated MLP, no biases, no dropout.
struct Llama {
  i64 h = 0, heads = 0, kv = 0, d = 0, f = 0, layers = 1, vocab = 1024;
};

inline Architecture llama(const Llama& l) {
  LayerKind k;
  k.attention.heads = l.heads;
  k.attention.kv_heads = l.kv;
  k.attention.head_dim = l.d;
  k.mlp.width = l.f;
  k.mlp.gated = true;
  k.mlp.activation = Activation::silu;
  Architecture out;
  out.name = "llama";
  out.hidden = l.h;
  out.vocab = l.vocab;
  out.layers = {{k, l.layers}};
  return out;
}

// A recipe with the stack's own dtypes, one GPU, one micro-batch of one sequence.
inline Recipe recipe_for(const Stack& s, i64 seq, i64 micro_batch = 1) {
  Recipe r;
  r.stack = s.name;
  r.stack_generation = s.generation;
  r.seq = seq;
  r.micro_batch = micro_batch;
  r.global_batch = micro_batch;
  r.weight_dtype = s.weight_dtype;
  r.grad_dtype = s.grad_dtype;
  r.master_dtype = s.master_dtype;
  r.moment_dtype = s.moment_dtype;
  r.optimizer_implementation = s.optimizer_implementations.front();
  r.attention = s.kernels.front();
  r.loss = s.losses.front().kind;
  r.layout.schedule = s.schedules.front();
  return r;
}

// An analysed recipe that keeps its model alive.
struct Case {
  std::shared_ptr<const Model> model;
  Analysed a;

  const BlockCost& embedding() const { return a.blocks.front(); }
  const BlockCost& layer(std::size_t kind = 0) const { return a.blocks[1 + kind]; }
  const BlockCost& head() const { return a.blocks.back(); }
};

inline Result<Case> try_run(const Architecture& architecture, const Stack& s, const Recipe& r) {
  auto model = std::make_shared<const Model>(build_model(architecture));
  Result<Analysed> analysed = analyse_recipe(*model, s, r);
  if (!analysed) return analysed.error();
  return Case{std::move(model), std::move(analysed).value()};
}

// The same where a refusal is a fault of the test: it ends there.
inline Case run(const Architecture& architecture, const Stack& s, const Recipe& r) {
  Result<Case> out = try_run(architecture, s, r);
  if (!out) throw std::runtime_error(out.error().text());
  return std::move(out).value();
}

// A double that must be a whole number.
inline i64 whole(double v) {
  EXPECT_EQ(v, static_cast<double>(static_cast<i64>(v))) << "not a whole number";
  return static_cast<i64>(v);
}

inline i64 saved(const BlockCost& block) { return whole(block.saved_bytes()); }

// Forward FLOPs of a block on one GPU when every query sees `visible` keys.
inline i64 forward_flops(const BlockCost& block, i64 visible) {
  double flops = 0;
  for (const WorkItem& w : block.work) flops += w.forward_flops + w.per_key * static_cast<double>(visible);
  return whole(flops);
}

inline int collectives(const BlockCost& block, CollectiveKind kind, bool backward) {
  int n = 0;
  for (const CollectiveItem& c : block.collectives) n += c.kind == kind && c.backward == backward ? 1 : 0;
  return n;
}

// Bytes of one term of a stage's ledger at a moment.
inline i64 term_bytes(const Analysed& a, const Stage& stage, Moment moment, Term term) {
  double bytes = 0;
  for (const Line& line : lines_at(a, stage, moment)) bytes += line.term == term ? line.bytes() : 0;
  return whole(bytes);
}

// Weights, gradients and optimizer of a stage.
inline i64 state_bytes(const Analysed& a, const Stage& stage) {
  return term_bytes(a, stage, Moment::init, Term::weights) + term_bytes(a, stage, Moment::init, Term::gradients) +
         term_bytes(a, stage, Moment::init, Term::optimizer);
}

}  // namespace preflop::test
