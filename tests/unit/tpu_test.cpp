// TPUs: which software runs there, what its remat policies run again, and how a torus is shared.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/adapt/row_request.hpp"
#include "src/cost/price.hpp"
#include "src/validate/summary.hpp"
#include "src/validate/validate.hpp"
#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

using Keys = std::map<std::string, std::string, std::less<>>;

const Catalogues& catalogues() {
  static const Catalogues loaded = Catalogues::load().value();
  return loaded;
}

Result<Problem> posed(const std::string& model, const std::string& on, Keys keys = {}) {
  Request r;
  r.model = model;
  r.on = on;
  r.keys = std::move(keys);
  return pose(r, catalogues());
}

std::string refusal(const std::string& on, const Keys& keys) {
  const auto p = posed("llama2-7b", on, keys);
  return p ? "" : p.error().text();
}

TEST(Tpu, RunsMaxTextAndNoSoftwareOfGpus) {
  for (const Gpu& gpu : catalogues().machines.gpus()) {
    const bool tpu = gpu.arch == "tpu";
    for (const Stack& s : catalogues().stacks.all()) {
      const bool anywhere = s.name == "textbook";
      EXPECT_EQ(s.runs_on(gpu.arch), anywhere || (s.name == "maxtext" ? tpu || gpu.vendor == "NVIDIA" : !tpu))
          << s.name << " on " << gpu.id;
    }
    if (!tpu) continue;
    const auto p = posed("llama2-7b", "256x" + gpu.id, {{"tp", "1"}});
    ASSERT_TRUE(p.ok()) << gpu.id << ": " << p.error().text();
    const Recipe& r = p->analysed.recipe;
    EXPECT_EQ(r.stack, "maxtext");
    EXPECT_EQ(r.attention, AttentionKernel::splash);
    EXPECT_EQ(std::count(r.assumed.begin(), r.assumed.end(), "stack=maxtext (what runs on TPUs)"), 1);
    EXPECT_TRUE(estimate<double>(p->analysed, p->cluster).step.has_value()) << gpu.id;
    EXPECT_EQ(refusal("256x" + gpu.id, {{"stack", "megatron"}}),
              "--stack: stack megatron does not run on " + gpu.id + "; maxtext or textbook");
  }
  EXPECT_NE(refusal("8xmi300x", {{"stack", "maxtext"}}).find("stack maxtext does not run on mi300x"),
            std::string::npos);
}

TEST(Tpu, KernelsOfOtherChipsAreRefused) {
  EXPECT_EQ(refusal("8xtpu-v5p", {{"attention", "cudnn"}}),
            "--attention: cudnn does not run on tpu-v5p (tpu); splash or unfused");
  EXPECT_EQ(refusal("8xh100-sxm", {{"stack", "maxtext"}, {"attention", "splash"}}),
            "--attention: splash does not run on h100-sxm (sm90); cudnn or unfused");
  const auto h100 = posed("llama2-7b", "8xh100-sxm", {{"stack", "maxtext"}, {"tp", "1"}});
  ASSERT_TRUE(h100.ok());
  EXPECT_EQ(h100->analysed.recipe.attention, AttentionKernel::cudnn);
}

TEST(Tpu, RematPoliciesAreKnownByName) {
  const std::string said = refusal("8xtpu-v5p", {{"recompute", "minimal_offloaded"}});
  EXPECT_NE(said.find("module of stack maxtext 'minimal_offloaded'"), std::string::npos) << said;
  EXPECT_NE(refusal("8xtpu-v5p", {{"recompute", "custom"}}).find("save_dot_with_context_except_mlp"),
            std::string::npos);
  double kept = 1e18;
  // From what keeps most to what keeps least.
  for (const char* policy :
       {"none", "minimal_with_context", "minimal", "save_dot_except_mlp", "save_qkv_proj", "full"}) {
    const auto p = posed("llama2-7b", "8xtpu-v5p", {{"recompute", policy}, {"tp", "1"}});
    ASSERT_TRUE(p.ok()) << p.error().text();
    const double bytes = p->analysed.blocks[1].saved_bytes();
    EXPECT_LT(bytes, kept) << policy;
    kept = bytes;
  }
  // On the host: as little stays as with full recomputation, and the products are not run again. The transfer counts
  // where compute does not hide it: wide models compute longer than they transfer.
  for (const auto& [model, hidden_away] : {std::pair("maxtext-64b", true), std::pair("gpt2", false)}) {
    const auto with = [&](const char* policy) {
      return posed(model, "256xtpu-v5p", {{"recompute", policy}, {"tp", "1"}, {"seq", "1024"}}).value();
    };
    const Problem keep = with("save_qkv_proj"), move = with("qkv_proj_offloaded"), all = with("full");
    EXPECT_EQ(move.analysed.blocks[1].saved_bytes(), all.analysed.blocks[1].saved_bytes());
    const auto step = [](const Problem& p) { return *estimate<double>(p.analysed, p.cluster).step; };
    const auto offload = step(move).breakdown[static_cast<int>(Lost::offload)]->number();
    EXPECT_EQ(offload == 0, hidden_away) << model;
    EXPECT_NEAR(step(move).seconds.number() - offload, step(keep).seconds.number(),
                1e-12 * step(keep).seconds.number());
    EXPECT_LT(step(keep).seconds.number(), step(all).seconds.number());
  }
}

// XLA makes again what the backward pass reads and nothing else: the last product of a layer only where something
// keeps its result.
TEST(Tpu, WhatNothingReadsIsNotRunAgain) {
  const auto again = [](const char* stack_name, const char* model, Tag tag) {
    const auto p = posed(model, stack_name == std::string("maxtext") ? "8xtpu-v5p" : "8xh100-sxm",
                         {{"stack", stack_name}, {"recompute", "full"}, {"tp", "1"}});
    if (!p) {
      ADD_FAILURE() << p.error().text();
      return false;
    }
    const auto& work = p->analysed.blocks[1].work;
    const auto it = std::find_if(work.begin(), work.end(), [&](const WorkItem& w) { return w.tag == tag; });
    return it != work.end() && it->replayed;
  };
  for (const char* model : {"llama2-7b", "maxtext-22b", "gpt2"}) {
    EXPECT_FALSE(again("maxtext", model, Tag::mlp_down)) << model;
    EXPECT_TRUE(again("torchtitan", model, Tag::mlp_down)) << model;
    for (const Tag tag : {Tag::attn_q, Tag::core_attention, Tag::attn_out, Tag::mlp_up, Tag::mlp_act})
      EXPECT_TRUE(again("maxtext", model, tag)) << model;
  }
  EXPECT_TRUE(again("maxtext", "gemma2-2b", Tag::mlp_down));  // a norm reads it
}

TEST(Tpu, GroupsShareTheAxesOfATorus) {
  const auto p = posed("llama2-7b", "64xtpu-v5p", {{"tp", "4"}});
  ASSERT_TRUE(p.ok()) << p.error().text();
  const Prices<double> prices =
      preflop::prices<double>(p->cluster, *p->stack, p->analysed.recipe, TimeParameters::built_in());
  EXPECT_EQ(prices.torus, 3);
  EXPECT_EQ(prices.slice, 64);
  const auto rate = [&](double size, double stride) { return prices.bandwidth({size, stride}).number(); };
  EXPECT_DOUBLE_EQ(rate(64, 1), prices.scaleup.number());
  EXPECT_DOUBLE_EQ(rate(4, 1), prices.scaleup.number() / 3);       // one axis of 4 x 4 x 4
  EXPECT_DOUBLE_EQ(rate(2, 1), prices.scaleup.number() / 3);       // never less
  EXPECT_DOUBLE_EQ(rate(16, 4), prices.scaleup.number() * 2 / 3);  // the two others
  for (double n = 2; n < 64; n *= 2) EXPECT_LE(rate(n, 1), rate(2 * n, 1));
  const auto h100 = posed("llama2-7b", "8xh100-sxm", {{"tp", "4"}});
  ASSERT_TRUE(h100.ok());
  const Prices<double> switched =
      preflop::prices<double>(h100->cluster, *h100->stack, h100->analysed.recipe, TimeParameters::built_in());
  EXPECT_DOUBLE_EQ(switched.bandwidth({2, 1}).number(), switched.scaleup.number());
}

// The law of power was fitted to GPUs: no TPU's rate follows its watts.
TEST(Tpu, KeepsAShareOfItsPeakThatPowerDoesNotSet) {
  for (const Gpu& gpu : catalogues().machines.gpus()) {
    if (gpu.arch != "tpu") continue;
    const auto p = posed("llama2-7b", "8x" + gpu.id, {{"tp", "1"}});
    ASSERT_TRUE(p.ok()) << p.error().text();
    const Prices<double> prices =
        preflop::prices<double>(p->cluster, *p->stack, p->analysed.recipe, TimeParameters::built_in());
    const double share = TimeParameters::built_in().find({"arch tpu"}, "sheet_share")->value;
    EXPECT_NEAR(prices.layers.rate.number() / prices.peak.number(), share, 1e-12) << gpu.id;
  }
}

Row row_of(const std::string& csv) {
  static const RowWords words = RowWords::load().value();
  return RowTable::parse(csv, "rows.csv", words)->row(0);
}

TEST(Tpu, RowsStateTheBatchOfADeviceAndSlicesByTheirShards) {
  static const RowWords words = RowWords::load().value();
  const Row row = row_of(
      "id,stack,model,gpu,gpus,precision,seq,gbs,mbs,tp,pp,zero,hsdp,recompute,tflops_gpu,convention\n"
      "a,maxtext,maxtext-64b,tpu-v5p,128,bf16,2048,384,3,4,1,3,16,minimal,309,maxtext\n");
  const RowRequest r = row_request(row, {}, words, catalogues());
  ASSERT_FALSE(r.skip) << r.skip.reason;
  EXPECT_EQ(r.request.keys.at("micro_batch"), "12");  // 3 a device, over the 4 of tensor parallelism
  EXPECT_EQ(r.slice.value_or(0), 64);
  const auto p = row_problem(r, catalogues());
  ASSERT_TRUE(p.ok()) << p.error().text();
  EXPECT_EQ(p->analysed.recipe.micro_batches(), 1);
  EXPECT_EQ(*p->cluster.datum("scaleup_domain").value, 64);
}

TEST(Tpu, RowsStandApart) {
  static const RowWords words = RowWords::load().value();
  auto validator = Validator::make(catalogues(), words);
  ASSERT_TRUE(validator.ok());
  std::vector<Entry> entries;
  const std::string head = "id,stack,model,gpu,gpus,precision,seq,gbs,mbs,tp,recompute,step_s\n";
  for (const char* row : {"a,maxtext,llama2-7b,tpu-v5p,64,bf16,2048,64,1,1,full,1\n",
                          "b,maxtext,llama2-7b,h100-sxm,8,bf16,2048,8,1,1,full,1\n",
                          "c,torchtitan,llama2-7b,h100-sxm,8,bf16,2048,8,1,1,full,1\n"})
    validator->add(row_of(head + row), "mine", entries);
  const auto n = [&](const SummaryOptions& options, const std::string& source) {
    std::size_t rows = 0;
    for (const Summary& s : summarise(entries, options)) {
      if (s.metric == "time.step_seconds" && s.source == source) rows += s.n;
    }
    return rows;
  };
  EXPECT_EQ(n({}, "all"), 1U);
  EXPECT_EQ(n({}, "mine"), 1U);
  EXPECT_EQ(n({.apart = true}, "all"), 2U);
  EXPECT_EQ(n({.apart = true}, "all TPUs"), 1U);
  EXPECT_EQ(n({.apart = true}, "mine on tpu-v5p"), 1U);
  EXPECT_EQ(n({.apart = true}, "mine on h100-sxm"), 1U);
}

// "maxtext" until July 2025, "maxtext-causal" since: half of the attention.
TEST(Tpu, ConventionsOfMaxText) {
  const auto p = posed("llama2-7b", "8xtpu-v5p", {{"tp", "1"}, {"seq", "4096"}});
  ASSERT_TRUE(p.ok());
  const auto flops = [&](const char* name) {
    return flops_per_token<double>(p->analysed, *find_convention(name), false).number();
  };
  // 6 x (matrices of layers and head) + 12 L s h
  const double h = 4096, f = 11008, layers = 32, vocab = 32000;
  const double products = 6 * (layers * (4 * h * h + 3 * h * f) + h * vocab), attention = 12 * layers * 4096 * h;
  EXPECT_DOUBLE_EQ(flops("maxtext"), products + attention);
  EXPECT_DOUBLE_EQ(flops("maxtext-causal"), products + attention / 2);
}

}  // namespace
}  // namespace preflop::test
