// Random legal architectures and recipes for properties. Every draw is legal by construction, for tp of 1,
// 2, 4 and 8, so that a property may vary one parallel size and keep the rest.
#pragma once

#include <rapidcheck.h>

#include <ostream>
#include <vector>

#include "tests/support/engine.hpp"

namespace preflop::test {

inline i64 pick(i64 low, i64 high) { return *rc::gen::inRange<i64>(low, high + 1); }
template <class T>
T one_of(const std::vector<T>& choices) {
  return *rc::gen::elementOf(choices);
}
inline bool coin() { return *rc::gen::arbitrary<bool>(); }

inline LayerKind draw_kind() {
  LayerKind k;
  k.attention.heads = 8 * pick(1, 4);
  k.attention.kv_heads = one_of<i64>({1, 2, 4, 8, k.attention.heads.get()});
  k.attention.head_dim = one_of<i64>({16, 64, 96, 128});
  k.attention.query_bias = k.attention.key_bias = k.attention.value_bias = coin();
  k.attention.out_bias = coin();
  k.attention.qk_norm = one_of<QkNorm>({QkNorm::none, QkNorm::none, QkNorm::head, QkNorm::per_head, QkNorm::full});
  k.attention.rope = coin();
  if (coin()) k.attention.window = pick(1, 600);
  k.attention.dropout = coin() ? 0.1 : 0;
  k.mlp.width = 8 * pick(1, 300);
  k.mlp.gated = coin();
  k.mlp.bias = coin();
  k.norm = one_of<NormKind>({NormKind::rms, NormKind::layer, NormKind::layer_no_bias, NormKind::layer_no_weight});
  k.placement = one_of<NormPlacement>({NormPlacement::pre, NormPlacement::post, NormPlacement::sandwich,
                                       NormPlacement::shared_pre, NormPlacement::split_pre});
  k.dropout = coin() ? 0.1 : 0;
  return k;
}

// A state space that any tp up to 8 and any cp up to 4 can share out.
inline StateSpace draw_state_space(ScanKind kind) {
  StateSpace s;
  s.kind = kind;
  s.heads = 32 * pick(1, 3);
  s.dim = 8 * pick(1, 8);
  s.groups = one_of<i64>({8, 16});
  if (s.heads.get() % s.groups.get() != 0) s.groups = 8;
  s.state = 16 * pick(1, 8);
  s.conv = pick(2, 4);
  s.chunk = one_of<i64>({64, 128, 256});
  s.conv_bias = coin();
  s.bias = coin();
  return s;
}

// A layer of the same ends that mixes by a state space, or has one sublayer alone, on a stack that runs it.
inline LayerKind draw_hybrid_kind(const Stack& s) {
  LayerKind k = draw_kind();
  k.placement = one_of<NormPlacement>({NormPlacement::pre, NormPlacement::sandwich});
  if (!s.scans.empty() && *rc::gen::inRange(0, 3) != 0) {
    k.state_space = draw_state_space(s.scans.size() > 1 && coin() ? ScanKind::gated_delta : ScanKind::mamba2);
    k.attention = {};
    if (coin()) k.feeds_forward = false;
  } else if (coin()) {
    k.feeds_forward = false;
  } else {
    k.mixes = false;
    k.attention = {};
  }
  if (!k.feeds_forward) k.mlp = {};
  return k;
}

inline Architecture draw_architecture(int most_kinds = 3) {
  Architecture a;
  a.name = "drawn";
  a.hidden = 8 * pick(1, 200);
  a.vocab = pick(1, 70000);
  const i64 kinds = pick(1, most_kinds);
  for (i64 i = 0; i < kinds; ++i) a.layers.push_back({draw_kind(), pick(1, 6)});
  a.has_final_norm = coin();
  a.embedding_norm = coin();
  a.embedding_dropout = coin() ? 0.1 : 0;
  if (coin()) {
    a.positions = Positions::learned;
    a.position_rows = pick(1, 4096);
  }
  a.tied = coin();
  a.head_bias = coin();
  return a;
}

inline Recipe draw_recipe(const Architecture& a, const Stack& s) {
  Recipe r = recipe_for(s, 64 * pick(1, 16), pick(1, 3));  // 64 = 2 cp tp at most
  Layout& l = r.layout;
  l.tp = one_of<i64>({1, 2, 4, 8});
  l.cp = one_of<i64>({1, 2, 4});
  l.dp = one_of<i64>({1, 2, 3, 8});
  l.sp = coin();
  l.pp = pick(1, std::min<i64>(a.layer_count(), 6));
  l.zero = one_of(s.zero_allowed);
  i64 micro_batches = pick(1, 9);
  if (s.name == "textbook" && coin()) l.schedule = "gpipe";
  if (s.name == "megatron" && l.pp > 1 && a.layer_count() % (2 * l.pp) == 0 && coin()) {
    l.vpp = 2;
    l.schedule = "interleaved";
    micro_batches *= l.pp;
  }
  r.global_batch = micro_batches * r.micro_batch * l.dp;
  r.attention = one_of(s.kernels);
  const bool whole_sequences = std::count(s.refuses.begin(), s.refuses.end(), "cp-unfused") > 0;
  if (r.attention == AttentionKernel::unfused && whole_sequences) l.cp = 1;
  std::vector<LossKind> losses;
  for (const LossRule& rule : s.losses) losses.push_back(rule.kind);
  r.loss = one_of(losses);
  r.recompute.kind = one_of<RecomputeKind>({RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full});
  r.precision = one_of<std::string>({"bf16", "fp32"});
  return r;
}

// Of full recomputation perhaps some layers only, where the stack can.
inline Recompute draw_layers(Recompute r, const Stack& s) {
  if (r.kind != RecomputeKind::full || s.recompute_layers.empty() || coin()) return r;
  r.which = one_of(s.recompute_layers);
  r.layers = pick(1, 3);
  return r;
}
// The same, units of layers only where they divide every (virtual) stage.
inline Recompute draw_layers(const Recipe& recipe, const Architecture& a, const Stack& s) {
  Recompute r = draw_layers(recipe.recompute, s);
  const i64 chunks = recipe.layout.pp * recipe.layout.vpp, each = a.layer_count() / chunks;
  if (r.units() && (a.layer_count() % chunks != 0 || each % r.layers != 0)) r.layers = 1;
  return r;
}

// Something on the host, where the stack and the rest of the recipe allow it.
inline Offload draw_offload(const Recipe& r, const Stack& s) {
  Offload o;
  if (s.offloads("all") && coin()) {
    o.optimizer = 1;
    o.params = true;
  } else if (s.offloads("optimizer") && r.layout.zero > 0 && coin()) {
    o.optimizer = s.offloads("optimizer-part") ? one_of<double>({0.25, 0.5, 1}) : 1;
  }
  if (s.offloads("activations") && r.layout.pp == 1 && r.recompute.kind == RecomputeKind::none && coin())
    o.activations = one_of<i64>({1, 2, Offload::kAllLayers});
  return o;
}

// What a failing property prints.
inline std::ostream& operator<<(std::ostream& out, const Recipe& r) {
  const Layout& l = r.layout;
  return out << r.stack << " tp " << l.tp << " cp " << l.cp << " dp " << l.dp << " pp " << l.pp << " vpp " << l.vpp
             << " sp " << l.sp << " zero " << l.zero << " " << l.schedule << " seq " << r.seq << " micro "
             << r.micro_batch << " global " << r.global_batch << " attention " << static_cast<int>(r.attention)
             << " loss " << static_cast<int>(r.loss) << " recompute " << static_cast<int>(r.recompute.kind) << ":"
             << r.recompute.layers << " " << r.precision;
}

struct Draw {
  Architecture architecture;
  Recipe recipe;
  const Stack* stack = nullptr;

  Case analysed() const { return analysed(recipe); }
  Case analysed(const Recipe& other) const { return test::run(architecture, *stack, other); }
};

inline Draw draw(int most_kinds = 3) {
  Draw d;
  d.stack = &stack(one_of<std::string>({"textbook", "megatron"}));
  d.architecture = draw_architecture(most_kinds);
  d.recipe = draw_recipe(d.architecture, *d.stack);
  RC_LOG() << d.recipe << "\n";
  return d;
}

}  // namespace preflop::test
