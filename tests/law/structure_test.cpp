// Properties that hold for every architecture, stack and layout.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/draw.hpp"

namespace preflop::test {
namespace {

i64 cut_by(const Volume& v) {
  i64 divisors = 1;
  for (int i = 0; i < v.size; ++i) divisors *= v.factors[static_cast<std::size_t>(i)].divisor;
  return divisors;
}

i64 whole_elements(const Volume& v) {
  i64 n = 1;
  for (int i = 0; i < v.size; ++i) n *= v.factors[static_cast<std::size_t>(i)].extent.get();
  return n;
}

double saved_by_layers(const Case& c) {
  double bytes = 0;
  for (std::size_t i = 1; i + 1 < c.a.blocks.size(); ++i) bytes += c.a.blocks[i].saved_bytes();
  return bytes;
}

i64 fullest_state(const Case& c) {
  i64 most = 0;
  for (const Stage& stage : c.a.stages) most = std::max(most, state_bytes(c.a, stage));
  return most;
}

// --- sharding ---

RC_GTEST_PROP(Shards, WeightsOfAllTpRanksSumToTheWholeAndItsReplicas, ()) {
  const Draw d = draw();
  const Case c = d.analysed();
  const i64 tp = d.recipe.layout.tp;
  for (const BlockCost& block : c.a.blocks) {
    for (const WeightItem& w : block.weights) {
      const i64 cut = cut_by(w.volume);
      RC_ASSERT(tp % cut == 0);
      RC_ASSERT(w.volume.elements.get() * cut == whole_elements(w.volume));  // tp / cut ranks hold the same piece
      const i64 kv = block.extents[Axis::kv_heads].get();
      const bool keys = w.tag == Tag::attn_k || w.tag == Tag::attn_v || w.tag == Tag::attn_k_norm;
      if (w.axes.has(Axis::kv_heads)) RC_ASSERT(keys && cut == std::min(tp, kv));
      if (!w.axes.has(Axis::kv_heads) && w.role == Role::matrix) RC_ASSERT(cut == tp);
    }
  }
}

RC_GTEST_PROP(Shards, FlopsOfAllRanksSumToTheWholeAndTheReplicatedKvHeads, ()) {
  const Draw d = draw();
  Recipe one = d.recipe;
  one.layout.tp = one.layout.cp = 1;
  const Case split = d.analysed(), whole_model = d.analysed(one);
  const i64 tp = d.recipe.layout.tp, cp = d.recipe.layout.cp;
  for (std::size_t b = 1; b + 1 < split.a.blocks.size(); ++b) {  // the head's padded vocabulary depends on tp
    const BlockCost& block = split.a.blocks[b];
    const i64 kv = block.extents[Axis::kv_heads].get();
    for (const WorkItem& w : block.work) {
      const auto same = [&](const WorkItem& other) { return other.tag == w.tag && other.kind == w.kind; };
      const auto& all = whole_model.a.blocks[b].work;
      const auto it = std::find_if(all.begin(), all.end(), same);
      if (w.kind == Kind::copy) continue;  // a copy may exist under cp only
      RC_ASSERT(it != all.end());
      const bool keys = w.tag == Tag::attn_k || w.tag == Tag::attn_v;
      const double replicas = keys && w.kind == Kind::product ? static_cast<double>(std::max<i64>(1, tp / kv)) : 1.0;
      const double ranks = static_cast<double>(tp * cp);
      RC_ASSERT(w.forward_flops * ranks == it->forward_flops * replicas);
      RC_ASSERT(w.per_key * ranks == it->per_key);
      RC_ASSERT(w.backward_passes == it->backward_passes);
    }
  }
}

RC_GTEST_PROP(Shards, SequenceParallelismMovesNoWeightAndNoFlop, ()) {
  const Draw d = draw();
  Recipe on = d.recipe, off = d.recipe;
  on.layout.sp = true;
  off.layout.sp = false;
  const Case with = d.analysed(on), without = d.analysed(off);
  for (std::size_t b = 0; b < with.a.blocks.size(); ++b) {
    for (std::size_t i = 0; i < with.a.blocks[b].work.size(); ++i) {
      RC_ASSERT(with.a.blocks[b].work[i].forward_flops == without.a.blocks[b].work[i].forward_flops);
      RC_ASSERT(with.a.blocks[b].work[i].per_key == without.a.blocks[b].work[i].per_key);
    }
    RC_ASSERT(with.a.blocks[b].saved_bytes() <= without.a.blocks[b].saved_bytes());
  }
  for (const Stage& stage : with.a.stages) RC_ASSERT(state_bytes(with.a, stage) == state_bytes(without.a, stage));
}

RC_GTEST_PROP(Shards, KeptTensorsOfOneRankAreNeverLessThanTheirShare, ()) {
  const Draw d = draw();
  Recipe one = d.recipe;
  one.layout.tp = one.layout.cp = 1;
  const Case split = d.analysed(), whole_model = d.analysed(one);
  const double ranks = static_cast<double>(d.recipe.layout.tp * d.recipe.layout.cp);
  RC_ASSERT(saved_by_layers(split) * ranks >= saved_by_layers(whole_model));
}

RC_GTEST_PROP(Silent, OneRankHasNoParallelism, ()) {
  const Draw d = draw();
  Recipe plain_recipe = d.recipe;
  Layout& l = plain_recipe.layout;
  l = Layout{};
  l.schedule = "1f1b";
  plain_recipe.global_batch = plain_recipe.micro_batch;  // one micro-batch: every schedule is the same
  Recipe loud = plain_recipe;
  loud.layout.sp = true;
  loud.layout.zero = d.stack->zero_allowed.back();
  if (d.stack->name == "textbook") loud.layout.schedule = "gpipe";
  const Case a = d.analysed(plain_recipe), b = d.analysed(loud);
  const MemoryEstimate<double> m = memory_estimate<double>(a.a, Cluster{}), n = memory_estimate<double>(b.a, Cluster{});
  RC_ASSERT(m.stages.size() == 1U);
  for (int t = 0; t < kTerms; ++t) RC_ASSERT(m.stages[0].terms[t] == n.stages[0].terms[t]);
  for (int t = 0; t < kMoments; ++t) RC_ASSERT(m.stages[0].moments[t] == n.stages[0].moments[t]);
  RC_ASSERT(m.stages[0].context == n.stages[0].context);
  for (const BlockCost& block : a.a.blocks) {
    RC_ASSERT(block.collectives.empty());
    for (const WeightItem& w : block.weights) RC_ASSERT(cut_by(w.volume) == 1);
    for (const SavedItem& s : block.saved) RC_ASSERT(cut_by(s.volume) == 1);
  }
}

RC_GTEST_PROP(Kept, IsLinearInTheMicroBatch, ()) {
  const Draw d = draw();
  Recipe three = d.recipe;
  three.micro_batch *= 3;
  three.global_batch *= 3;
  const Case one = d.analysed(), many = d.analysed(three);
  for (std::size_t b = 0; b < one.a.blocks.size(); ++b) {
    RC_ASSERT(3 * one.a.blocks[b].saved_bytes() == many.a.blocks[b].saved_bytes());
  }
}

RC_GTEST_PROP(Kept, FullRecomputationKeepsTheInputAndNothingElse, ()) {
  const Draw d = draw();
  Recipe r = d.recipe;
  r.recompute.kind = RecomputeKind::full;
  const Case full = d.analysed(r);
  r.recompute.kind = RecomputeKind::none;
  const Case none = d.analysed(r);
  r.recompute.kind = RecomputeKind::selective;
  const Case selective = d.analysed(r);
  const double width = r.precision == "fp32" ? 4 : 2;
  const Layout& l = r.layout;
  const double input =
      width * static_cast<double>(r.micro_batch * r.seq / (l.cp * (l.sp ? l.tp : 1))) * d.architecture.hidden.real();
  for (std::size_t b = 1; b + 1 < full.a.blocks.size(); ++b) {
    RC_ASSERT(full.a.blocks[b].saved_bytes() == input);
    RC_ASSERT(full.a.blocks[b].saved_bytes() <= selective.a.blocks[b].saved_bytes());
    RC_ASSERT(full.a.blocks[b].saved_bytes() <= none.a.blocks[b].saved_bytes());
    // Unfused, the core's own tensors are all that the policy gives up. (Repeated keys and values are such too, and
    // smaller than the merged product that stays in their place where there are many of them.)
    const AttentionSpec& attention = d.architecture.layers.front().kind.attention;
    if (r.attention == AttentionKernel::unfused && attention.heads == attention.kv_heads) {
      RC_ASSERT(selective.a.blocks[b].saved_bytes() <= none.a.blocks[b].saved_bytes());
    }
  }
}

// --- stages ---

RC_GTEST_PROP(Stages, HoldEveryLayerInOrderAndEachEndOnce, ()) {
  Draw d = draw();
  d.recipe.recompute = draw_layers(d.recipe, d.architecture, *d.stack);
  const Case c = d.analysed();
  RC_ASSERT(static_cast<i64>(c.a.stages.size()) == d.recipe.layout.pp);
  std::vector<i64> per_kind(c.model->blocks.size(), 0), expected(c.model->blocks.size(), 0);
  i64 embeddings = 0, heads = 0, sum = 0;
  std::vector<int> order;
  for (const Stage& stage : c.a.stages) {
    embeddings += stage.embedding ? 1 : 0;
    heads += stage.head ? 1 : 0;
    sum += stage.layer_count();
    for (const BlockRun& run : stage.layers) {
      RC_ASSERT(run.count >= 1);
      const int block = c.a.model->kind(run.block);
      per_kind[static_cast<std::size_t>(block)] += run.count;
      order.insert(order.end(), static_cast<std::size_t>(run.count), block);
    }
  }
  std::vector<int> model_order;
  for (const BlockRun& run : c.model->layers) {
    expected[static_cast<std::size_t>(run.block)] += run.count;
    model_order.insert(model_order.end(), static_cast<std::size_t>(run.count), run.block);
  }
  RC_ASSERT(per_kind == expected);
  RC_ASSERT(sum == d.architecture.layer_count());
  RC_ASSERT(embeddings == 1 && c.a.stages.front().embedding);
  RC_ASSERT(heads == 1 && c.a.stages.back().head);
  if (d.recipe.layout.vpp == 1) RC_ASSERT(order == model_order);
}

RC_GTEST_PROP(Stages, ParametersSumToTheModelPaddingAndTiedCopy, ()) {
  const Draw d = draw();
  const Case c = d.analysed();
  const i64 tp = d.recipe.layout.tp;
  // The model's own count; then what one rank holds more or less of it, weight by weight.
  i64 expected = 0;
  for (const BlockRun& run : c.model->layers) {
    for (const WeightItem& w : c.a.blocks[static_cast<std::size_t>(run.block)].weights)
      expected += run.count * w.volume.elements.get();
  }
  for (const BlockCost* end : {&c.embedding(), &c.head()}) {
    for (const WeightItem& w : end->weights) {
      if (w.owned || d.recipe.layout.pp > 1) expected += w.volume.elements.get();
    }
  }
  i64 held = 0;
  for (const Stage& stage : c.a.stages) held += stage_parameters(c.a, stage).get();
  RC_ASSERT(held == expected);
  if (tp > 1) return;
  const i64 step = d.stack->name == "megatron" ? 128 : 1;
  const i64 vocab = d.architecture.vocab.get(), padded = (vocab + step - 1) / step * step,
            h = d.architecture.hidden.get();
  const i64 copies = d.architecture.tied && d.recipe.layout.pp == 1 ? 1 : 2;
  const i64 tied_copy = d.architecture.tied && d.recipe.layout.pp > 1 ? vocab * h : 0;
  const i64 bias = d.architecture.head_bias ? padded - vocab : 0;
  RC_ASSERT(held == summarise(*c.model).params_total.get() + tied_copy + copies * (padded - vocab) * h + bias);
}

// --- memory ---

RC_GTEST_PROP(Memory, TermsSumToAllocatedAtEveryMomentAndThePeakIsTheLargest, ()) {
  const Draw d = draw();
  const Case c = d.analysed();
  const MemoryEstimate<double> memory = memory_estimate<double>(c.a, Cluster{});
  double highest = 0;
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    const StageMemory<double>& stage = memory.stages[i];
    double largest_moment = 0;
    for (int m = 0; m < kMoments; ++m) {
      const std::vector<Line> lines = lines_at(c.a, c.a.stages[i], static_cast<Moment>(m));
      RC_ASSERT(lines.empty() == !stage.moments[m].has_value());
      double sum = 0, by_term[kTerms] = {};
      for (const Line& line : lines) {
        RC_ASSERT(line.bytes() > 0);
        RC_ASSERT(!line.source.empty());
        sum += line.bytes();
        by_term[static_cast<int>(line.term)] += line.bytes();
      }
      if (lines.empty()) continue;
      RC_ASSERT(stage.moments[m]->number() == sum);
      largest_moment = std::max(largest_moment, sum);
      if (static_cast<Moment>(m) != stage.moment) continue;
      for (int t = 0; t < kTerms; ++t) RC_ASSERT(stage.terms[t].number() == by_term[t]);
    }
    double terms = 0;
    for (const Bytes<double>& term : stage.terms) terms += term.number();
    RC_ASSERT(terms == stage.allocated.number());
    RC_ASSERT(largest_moment == stage.allocated.number());
    RC_ASSERT(stage.moments[static_cast<int>(stage.moment)]->number() == stage.allocated.number());
    RC_ASSERT(stage.reserved >= stage.allocated);
    RC_ASSERT(stage.device.number() == stage.reserved.number() + stage.context.number());
    highest = std::max(highest, stage.allocated.number());
  }
  RC_ASSERT(memory.stages[memory.peak_stage].allocated.number() == highest);
}

RC_GTEST_PROP(Memory, MoreTensorParallelismNeverRaisesStates, ()) {
  const Draw d = draw();
  Recipe r = d.recipe;
  i64 before = -1;
  for (i64 tp : {1, 2, 4, 8}) {
    r.layout.tp = tp;
    const i64 now = fullest_state(d.analysed(r));
    RC_ASSERT(before < 0 || now <= before);
    before = now;
  }
}

RC_GTEST_PROP(Memory, MoreShardingNeverRaisesStates, ()) {
  const Draw d = draw();
  Recipe r = d.recipe;
  i64 before = -1;
  for (int zero : d.stack->zero_allowed) {
    r.layout.zero = zero;
    const i64 now = fullest_state(d.analysed(r));
    RC_ASSERT(before < 0 || now <= before);
    before = now;
  }
  const i64 per_rank = r.global_batch / r.layout.dp;
  for (i64 dp : {8, 16, 24, 96}) {
    r.layout.dp = dp;
    r.global_batch = per_rank * dp;
    const i64 now = fullest_state(d.analysed(r));
    RC_ASSERT(now <= before || d.recipe.layout.dp > dp);
    before = now;
  }
}

RC_GTEST_PROP(Memory, MoreStagesNeverRaiseStatesOfTheFullest, ()) {
  // For equal layers, and for any layers where both splits are even; else a stage may get the heavier ones.
  const Draw d = draw();
  const bool equal = d.architecture.layers.size() == 1;
  const i64 layers = d.architecture.layer_count();
  Recipe r = d.recipe;
  r.layout.vpp = 1;
  r.layout.schedule = "1f1b";
  for (i64 pp = 1; 2 * pp <= layers; ++pp) {
    if (!equal && layers % (2 * pp) != 0) continue;
    r.layout.pp = pp;
    const i64 before = fullest_state(d.analysed(r));
    r.layout.pp = 2 * pp;
    RC_ASSERT(fullest_state(d.analysed(r)) <= before);
  }
}

// --- schedules ---

RC_GTEST_PROP(InFlight, Schedules, ()) {
  Layout l;
  l.pp = pick(1, 32);
  const i64 m = l.pp * pick(1, 40);
  double above = 1e18;
  for (i64 stage = 0; stage < l.pp; ++stage) {
    l.schedule = "1f1b";
    l.vpp = 1;
    const double plain_flights = in_flight(l, stage, m);
    RC_ASSERT(plain_flights == static_cast<double>(std::min(l.pp - stage, m)));
    RC_ASSERT(plain_flights <= above);
    above = plain_flights;
    RC_ASSERT(in_flight(l, stage, 1) == 1.0);
    l.schedule = "gpipe";
    RC_ASSERT(in_flight(l, stage, m) == (l.pp > 1 ? static_cast<double>(m) : 1.0));
    if (l.pp == 1) continue;
    l.schedule = "interleaved";
    l.vpp = one_of<i64>({2, 4, 8});
    const double p = static_cast<double>(l.pp), v = static_cast<double>(l.vpp);
    const double flights = in_flight(l, stage, m);
    RC_ASSERT(flights >= 1.0 && flights <= static_cast<double>(m));
    RC_ASSERT(flights <= p + (p - 1) / v);
    // With micro-batches enough the first stage holds p (1 + (p - 1) / (p v)), arXiv:2205.05198 section 4.2.3.
    if (stage == 0) RC_ASSERT(flights == std::min(p + (p - 1) / v, static_cast<double>(m)));
  }
}

RC_GTEST_PROP(InFlight, InterleavedLogitsAreThoseOfOneMicroBatch, ()) {
  Draw d = draw(1);
  d.stack = &stack("megatron");
  d.architecture.layers[0].count = 8;
  Recipe r = recipe_for(*d.stack, d.recipe.seq, d.recipe.micro_batch);
  r.layout.pp = 4;
  r.global_batch = 16 * r.micro_batch;
  const Case one = d.analysed(r);
  r.layout.vpp = 2;
  r.layout.schedule = "interleaved";
  const Case two = d.analysed(r);
  RC_ASSERT(term_bytes(one.a, one.a.stages[3], Moment::loss, Term::logits) ==
            term_bytes(two.a, two.a.stages[3], Moment::loss, Term::logits));
}

}  // namespace
}  // namespace preflop::test
