// Laws of experts: their shards sum to the whole under ep x etp x edp, ep = 1 is silent, and the two limits
// in which a mixture is an ordinary MLP.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "src/machine/cluster.hpp"
#include "src/step/memory.hpp"
#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

i64 pick(i64 low, i64 high) { return *rc::gen::inRange<i64>(low, high + 1); }
i64 power(i64 most) { return i64{1} << pick(0, most); }

struct Moe {
  i64 h = 256, heads = 8, kv = 8, d = 32, experts = 16, top_k = 2, width = 128, shared = 0, layers = 2;
};

Architecture moe(const Moe& m) {
  Architecture a = llama({.h = m.h, .heads = m.heads, .kv = m.kv, .d = m.d, .f = m.width, .layers = m.layers});
  ExpertSpec e;
  e.count = m.experts;
  e.top_k = m.top_k;
  e.width = m.width;
  e.shared_width = m.shared;
  a.layers[0].kind.experts = e;
  a.layers[0].kind.mlp = {};
  return a;
}

// Weights of a block on one GPU: all, or those of one kind.
i64 weights(const BlockCost& block, bool expert) {
  i64 n = 0;
  for (const WeightItem& w : block.weights) n += w.expert() == expert ? w.volume.elements.get() : 0;
  return n;
}

// Forward FLOPs of the products with a tag group.
double flops(const BlockCost& block, std::string_view wanted) {
  double out = 0;
  for (const WorkItem& w : block.work) out += group(w.tag) == wanted ? w.forward_flops : 0;
  return out;
}

Recipe recipe(i64 tp, i64 cp, i64 dp, i64 ep, i64 etp) {
  Recipe r = recipe_for(stack("megatron"), 512);
  r.layout.tp = tp;
  r.layout.cp = cp;
  r.layout.dp = dp;
  r.layout.ep = ep;
  r.layout.etp = etp;
  r.layout.sp = tp > 1;
  r.layout.zero = 1;
  r.global_batch = dp;
  return r;
}

// Over the ranks of a stage: every expert parameter edp times, every FLOP of the experts once per token,
// every optimizer byte of an expert once.
RC_GTEST_PROP(Experts, ShardsSumToTheWhole, ()) {
  const i64 tp = power(2), cp = power(1), dp = power(3);
  const i64 ranks = tp * cp * dp;
  const i64 ep = std::min<i64>(power(4), ranks);
  const i64 etp = std::min<i64>(power(2), ranks / ep);
  const Moe m{.top_k = pick(1, 4), .shared = 64 * pick(0, 2)};
  const Case whole = run(moe(m), stack("megatron"), recipe(1, 1, 1, 1, 1));
  const Case part = run(moe(m), stack("megatron"), recipe(tp, cp, dp, ep, etp));
  const i64 edp = part.a.recipe.layout.edp();
  RC_ASSERT(ep * etp * edp == ranks);
  RC_ASSERT(weights(part.layer(), true) * ep * etp == weights(whole.layer(), true));
  // dp x the tokens of one sequence are on the stage's ranks.
  RC_ASSERT(flops(part.layer(), "exp") * static_cast<double>(ranks) ==
            flops(whole.layer(), "exp") * static_cast<double>(dp));
  RC_ASSERT(flops(part.layer(), "shared") * static_cast<double>(tp * cp) == flops(whole.layer(), "shared"));
  RC_ASSERT(flops(part.layer(), "moe") * static_cast<double>(tp * cp) == flops(whole.layer(), "moe"));  // router
  double expert_states = 0;
  for (const Line& line : lines_at(part.a, part.a.stages[0], Moment::init)) {
    if (line.term == Term::optimizer && line.what == "master weight" && line.tag.substr(0, 3) == "exp")
      expert_states += line.bytes();
  }
  RC_ASSERT(expert_states * static_cast<double>(ranks) == 4.0 * static_cast<double>(weights(whole.layer(), true)) * 2);
}

// Rows sent and received: as many as top-k says, whatever the mesh.
RC_GTEST_PROP(Experts, DispatchMovesTopKCopies, ()) {
  const i64 tp = power(2), dp = power(3);
  const i64 ep = std::min<i64>(power(4), tp * dp);
  const Moe m{.top_k = pick(1, 4)};
  const Case c = run(moe(m), stack("megatron"), recipe(tp, 1, dp, ep, 1));
  int exchanges = 0;
  for (const CollectiveItem& item : c.layer().collectives) {
    if (item.kind != CollectiveKind::all_to_all) continue;
    ++exchanges;
    RC_ASSERT(item.group == Group::ep);
    RC_ASSERT(item.volume.elements.get() == 512 / tp * m.top_k * m.h);
  }
  RC_ASSERT(exchanges == (ep > 1 ? 4 : 0));  // dispatch, combine, and their backward passes
}

TEST(Experts, OneRankOfExpertsIsSilent) {
  const Case alone = run(moe({}), stack("megatron"), recipe(1, 1, 4, 1, 1));
  EXPECT_TRUE(alone.layer().collectives.empty());
  EXPECT_EQ(alone.a.recipe.layout.edp(), 4);
  // With edp = dp, experts are sharded as everything else is: the states are those of a dense layer of the size.
  const i64 dense = stage_parameters(alone.a, alone.a.stages[0], Which::dense).get();
  const i64 expert = stage_parameters(alone.a, alone.a.stages[0], Which::expert).get();
  EXPECT_EQ(dense + expert, stage_parameters(alone.a, alone.a.stages[0]).get());
  EXPECT_EQ(state_bytes(alone.a, alone.a.stages[0]), (dense + expert) * 6 + (dense + expert) / 4 * 12);
}

TEST(Experts, GatherOverEtpHoldsTheRowsOfTheWholeGroup) {
  const Case c = run(moe({}), stack("megatron"), recipe(2, 1, 4, 2, 4));
  int gathers = 0, scatters = 0;
  for (const CollectiveItem& item : c.layer().collectives) {
    if (item.group != Group::etp) continue;
    gathers += item.kind == CollectiveKind::all_gather ? 1 : 0;
    scatters += item.kind == CollectiveKind::reduce_scatter ? 1 : 0;
    EXPECT_EQ(item.volume.elements.get(), 4 * (512 / 2 * 2) * 256);
  }
  EXPECT_EQ(gathers, 2);  // rows forward, gradients backward
  EXPECT_EQ(scatters, 2);
}

double model_flops(const Architecture& a, const char* convention) {
  const Case c = run(a, stack("megatron"), recipe(1, 1, 1, 1, 1));
  return flops_per_token<double>(c.a, *find_convention(convention), false).number();
}

i64 total(const Architecture& a) { return summarise(build_model(a)).params_total.get(); }
i64 active(const Architecture& a) { return summarise(build_model(a)).params_active.get(); }

RC_GTEST_PROP(Experts, AllOfThemAreOneMlpOfTheSummedWidth, ()) {
  const i64 experts = pick(1, 12), width = 8 * pick(1, 40);
  const Moe m{.experts = experts, .top_k = experts, .width = width};
  const Architecture a = moe(m);
  const Architecture dense =
      llama({.h = m.h, .heads = m.heads, .kv = m.kv, .d = m.d, .f = experts * width, .layers = m.layers});
  const i64 router = m.layers * m.h * experts;
  RC_ASSERT(total(a) - router == total(dense));
  RC_ASSERT(active(a) == total(a));
  RC_ASSERT(model_flops(a, "bridge") == model_flops(dense, "bridge"));  // bridge counts no router
  const double routed = model_flops(a, "korthikanti") - model_flops(dense, "korthikanti");
  RC_ASSERT(std::abs(routed - 6.0 * static_cast<double>(router)) < 1e-6 * 6.0 * static_cast<double>(router));
}

TEST(Experts, OneWithTopOneIsTheDenseBlock) {
  const Architecture a = moe({.experts = 1, .top_k = 1, .width = 512});
  const Architecture dense = llama({.h = 256, .heads = 8, .kv = 8, .d = 32, .f = 512, .layers = 2});
  const Case x = run(a, stack("megatron"), recipe(1, 1, 1, 1, 1));
  const Case y = run(dense, stack("megatron"), recipe(1, 1, 1, 1, 1));
  EXPECT_EQ(total(a), total(dense) + 2 * 256);
  EXPECT_EQ(flops(x.layer(), "exp"), flops(y.layer(), "mlp"));
  // Saved: the permuted rows, where the MLP reads the norm's result itself, and the router's scratch.
  EXPECT_EQ(saved(x.layer()), saved(y.layer()) + 2 * 512 * 256 + 16 * 512);
}

TEST(Experts, CapacityIsAWholeNumberOfRowsOfEachExpert) {
  Recipe r = recipe(1, 1, 1, 1, 1);
  const Moe m{.experts = 12, .top_k = 5};
  EXPECT_EQ(run(moe(m), stack("megatron"), r).layer().extents[Axis::routed].get(), 512 * 5);
  r.capacity_factor = 1;  // 213.3 rows an expert
  EXPECT_EQ(run(moe(m), stack("megatron"), r).layer().extents[Axis::routed].get(), 214 * 12);
  r.capacity_factor = 1.5;
  EXPECT_EQ(run(moe(m), stack("megatron"), r).layer().extents[Axis::routed].get(), 320 * 12);
  r.capacity_factor = 0;
  r.imbalance = 1.25;
  EXPECT_EQ(run(moe(m), stack("megatron"), r).layer().extents[Axis::routed].get(), 3200);
}

TEST(Experts, IllegalMeshesSayWhy) {
  const auto error = [](const Moe& m, const Recipe& r) {
    const Result<Case> c = try_run(moe(m), stack("megatron"), r);
    return c.ok() ? std::string("legal") : c.error().text();
  };
  EXPECT_EQ(error({}, recipe(1, 1, 8, 8, 1)), "legal");
  EXPECT_NE(error({}, recipe(1, 1, 8, 3, 1)).find("--ep: 3 does not divide the 16 experts"), std::string::npos);
  EXPECT_NE(error({}, recipe(1, 1, 8, 16, 1)).find("does not divide tp x cp x dp = 8"), std::string::npos);
  EXPECT_NE(error({.width = 130}, recipe(1, 1, 8, 1, 4)).find("--etp: 4 does not divide the 130"), std::string::npos);
  Recipe no_sp = recipe(2, 1, 4, 2, 1);
  no_sp.layout.sp = false;
  EXPECT_NE(error({}, no_sp).find("sequence parallelism"), std::string::npos);
  Recipe light = recipe(1, 1, 1, 1, 1);
  light.imbalance = 0.5;
  EXPECT_NE(error({}, light).find("--imbalance"), std::string::npos);
}

// Multi-token prediction: a layer, a join and a head more on the last stage, weights of embedding and head shared.
TEST(MultiTokenPrediction, LivesOnTheLastStage) {
  Architecture a = moe({.layers = 4});
  Architecture b = a;
  b.mtp_layers = 1;
  Recipe r = recipe(1, 1, 2, 2, 1);
  r.layout.pp = 2;
  r.layout.layers_per_stage = {2, 2};
  r.global_batch = 16;
  const Case x = run(a, stack("megatron"), r), y = run(b, stack("megatron"), r);
  EXPECT_EQ(stage_parameters(x.a, x.a.stages[0]), stage_parameters(y.a, y.a.stages[0]));
  const i64 layer = weights(x.layer(), true) + weights(x.layer(), false);
  const i64 embedding_copy = 1024 * 256;  // the first stage has the embedding, the last one a copy
  EXPECT_EQ(stage_parameters(y.a, y.a.stages[1]).get(),
            stage_parameters(x.a, x.a.stages[1]).get() + layer + 2 * 256 * 256 + 3 * 256 + embedding_copy);
  EXPECT_EQ(total(a), total(b));  // a name counts the main model
  const MemoryEstimate<double> without = memory_estimate<double>(x.a, Cluster{}),
                               with = memory_estimate<double>(y.a, Cluster{});
  EXPECT_EQ(without.stages[0].allocated.number(), with.stages[0].allocated.number());
  EXPECT_LT(without.stages[1].allocated.number(), with.stages[1].allocated.number());
}

// NCCL's channels to every peer of the node that rows go to; where those are fewer than a communicator holds anyway, or
// go through buffers of a dispatcher's own, nothing more.
TEST(Dispatch, AnAllToAllHoldsChannelsToItsPeers) {
  const auto outside = [](i64 ep, i64 etp, const char* dispatcher, const char* on) {
    const Result<MachineCatalogue> machines = MachineCatalogue::load();
    Recipe r = recipe_for(stack("megatron"), 64);
    r.layout.dp = r.global_batch = 16;
    r.layout.tp = 2;
    r.layout.sp = true;
    r.layout.zero = 1;
    r.layout.ep = ep;
    r.layout.etp = etp;
    r.dispatcher = dispatcher;
    const Case c = run(moe({.experts = 32}), stack("megatron"), r);
    return memory_estimate<double>(c.a, machines->cluster(on).value()).stages[0].context.number();
  };
  const double peer = stack("megatron").exchange_peer_bytes.at("sm90").value;
  const double ring = stack("megatron").communicator_bytes.at("sm90").value;
  const auto more = [&](i64 ep, i64 etp, const char* on) {
    return outside(ep, etp, "alltoall", on) - outside(ep, etp, "deepep", on);
  };
  EXPECT_DOUBLE_EQ(more(8, 1, "32xh100-sxm"), 7 * peer - ring);
  EXPECT_DOUBLE_EQ(more(16, 1, "32xh100-sxm"), 7 * peer - ring);  // peers of other nodes are not counted
  EXPECT_DOUBLE_EQ(more(8, 2, "32xh100-sxm"), 3 * peer - ring);
  EXPECT_EQ(more(2, 1, "32xh100-sxm"), 0);
  EXPECT_EQ(more(8, 1, "32xb200"), 0);  // not known
}

}  // namespace
}  // namespace preflop::test
