// What is refused, under which flag, for which reason, and what would be valid.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/engine.hpp"

namespace preflop::test {
namespace {

// Every whole number of a text.
std::set<std::int64_t> numbers_of(const std::string& text) {
  std::set<std::int64_t> out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') continue;
    std::int64_t n = 0;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) n = 10 * n + (text[i] - '0');
    out.insert(n);
  }
  return out;
}

// 24 query heads, 8 kv heads, 12 layers, sequences of 1024.
Architecture model() {
  return llama({.h = 768, .heads = 24, .kv = 8, .d = 32, .f = 2048, .layers = 12, .vocab = 32001});
}

Recipe legal(const char* stack_name) {
  Recipe r = recipe_for(stack(stack_name), 1024);
  r.layout.tp = 2;
  r.layout.dp = 4;
  r.layout.zero = stack(stack_name).zero_allowed.front();
  r.global_batch = 64;
  return r;
}

struct Refusal {
  const char* stack;
  std::function<void(Recipe&)> change;
  const char *flag, *reason, *valid;
};

TEST(Legality, EveryRefusalHasFlagReasonAndWhatIsValid) {
  const Refusal table[] = {
      {"megatron", [](Recipe& r) { r.layout.tp = 5; }, "--tp", "24 query heads", "1, 2, 3, 4, 6, 8, 12, 24"},
      {"megatron", [](Recipe& r) { r.layout.tp = 48; }, "--tp", "query heads", "24"},
      {"megatron", [](Recipe& r) { r.layout.tp = 12; }, "--tp", "8 kv heads", "multiple of 8"},
      {"megatron", [](Recipe& r) { r.layout.tp = 0; }, "--tp", "0", "1 or more"},
      {"megatron", [](Recipe& r) { r.layout.pp = -1; }, "--pp", "-1", "1 or more"},
      {"megatron", [](Recipe& r) { r.layout.dp = 0; }, "--dp", "0", "1 or more"},
      {"megatron", [](Recipe& r) { r.layout.cp = 0; }, "--cp", "0", "1 or more"},
      {"megatron", [](Recipe& r) { r.micro_batch = 0; }, "--micro-batch", "0", "1 or more"},
      {"megatron", [](Recipe& r) { r.global_batch = 0; }, "--global-batch", "0", "1 or more"},
      {"megatron", [](Recipe& r) { r.seq = 0; }, "--seq", "0", "1 or more"},
      {"megatron", [](Recipe& r) { r.layout.ep = 2; }, "--ep", "no experts", "1"},
      {"megatron", [](Recipe& r) { r.layout.etp = 2; }, "--etp", "no experts", "1"},
      {"megatron", [](Recipe& r) { r.layout.hsdp = 3; }, "--hsdp", "does not divide", "1, 2, 4"},
      {"megatron", [](Recipe& r) { r.layout.zero = 2; }, "--zero", "does not run stage 2", "0 or 1"},
      {"megatron", [](Recipe& r) { r.layout.zero = 3; }, "--zero", "does not run stage 3", "0 or 1"},
      {"megatron", [](Recipe& r) { r.layout.schedule = "gpipe"; }, "--schedule", "gpipe", "1f1b"},
      {"megatron", [](Recipe& r) { r.layout.schedule = "1f1"; }, "--schedule", "1f1", "1f1b"},
      {"megatron", [](Recipe& r) { r.attention = AttentionKernel::sdpa; }, "--attention", "no sdpa attention", "cudnn"},
      {"megatron", [](Recipe& r) { r.loss = LossKind::chunked; }, "--loss", "no chunked loss", "fused"},
      {"megatron", [](Recipe& r) { r.recompute = {RecomputeKind::modules, 0, {"mpl"}}; }, "--recompute", "mpl", "mlp"},
      {"megatron", [](Recipe& r) { r.recompute = {RecomputeKind::full, 3, {}, RecomputeLayers::every}; }, "--recompute",
       "megatron does not run selective-layer:3", "full:N"},
      {"megatron", [](Recipe& r) { r.layout.sp = true, r.seq = 1023; }, "--seq", "1023 tokens", "multiple of 2"},
      {"megatron", [](Recipe& r) { r.layout.cp = 3; }, "--seq", "2 x cp", "multiple of 6"},
      {"megatron", [](Recipe& r) { r.layout.cp = 3, r.layout.sp = true; }, "--seq", "2 x cp x tp", "multiple of 12"},
      {"megatron", [](Recipe& r) { r.global_batch = 63; }, "--global-batch", "63", "multiple of 4"},
      {"megatron", [](Recipe& r) { r.micro_batch = 3; }, "--global-batch", "micro-batch 3 x dp 4", "multiple of 12"},
      {"megatron", [](Recipe& r) { r.layout.vpp = 2, r.layout.schedule = "interleaved"; }, "--vpp", "pipeline", "--pp"},
      {"megatron", [](Recipe& r) { r.layout.pp = 2, r.layout.vpp = 2; }, "--schedule", "--vpp is 2", "interleaved"},
      {"megatron", [](Recipe& r) { r.layout.pp = 2, r.layout.schedule = "interleaved"; }, "--schedule",
       "virtual stages", "--vpp"},
      {"megatron", [](Recipe& r) { r.layout.pp = 3, r.layout.vpp = 2, r.layout.schedule = "interleaved"; },
       "--global-batch", "not a multiple of 3", "multiples of 3"},
      {"megatron", [](Recipe& r) { r.layout.pp = 13; }, "--pp", "12 layers", "at most 12"},
      {"megatron", [](Recipe& r) { r.layout.pp = 4, r.layout.vpp = 4, r.layout.schedule = "interleaved"; }, "--vpp",
       "12 layers", "at most 12"},
      {"megatron", [](Recipe& r) { r.layout.pp = 2, r.layout.vpp = 5, r.layout.schedule = "interleaved"; }, "--vpp",
       "do not divide the 12 layers", "of 14 with embedding and loss as slots: 1, 2, 3, 4, 6, 7, 12, 14"},
      {"megatron", [](Recipe& r) { r.layout.pp = 2, r.layout.layers_per_stage = {6, 5}; }, "--layers-per-stage",
       "11 layers", "sum to 12"},
      {"megatron", [](Recipe& r) { r.layout.pp = 2, r.layout.layers_per_stage = {12}; }, "--layers-per-stage",
       "1 stages", "2 counts"},
      {"megatron", [](Recipe& r) { r.layout.pp = 2, r.layout.layers_per_stage = {12, 0}; }, "--layers-per-stage",
       "0 layers", "1 layer or more"},
      {"megatron", [](Recipe& r) { r.layout.pp = 2, r.layout.layers_per_stage = {13, -1}; }, "--layers-per-stage",
       "-1 layers", "1 layer or more"},
      {"textbook", [](Recipe& r) { r.layout.zero = 4; }, "--zero", "textbook does not run stage 4", "0, 1, 2 or 3"},
      {"textbook", [](Recipe& r) { r.attention = AttentionKernel::cudnn; }, "--attention", "no cudnn attention",
       "unfused"},
      {"textbook", [](Recipe& r) { r.loss = LossKind::fused; }, "--loss", "no fused loss", "plain"},
      {"megatron", [](Recipe& r) { r.seq = i64{1} << 52; }, "model", "2^53", "smaller"},
      {"megatron@2021", [](Recipe& r) { r.layout.sp = true; }, "--sp", "megatron@2021 has no sequence", "--no-sp"},
      {"megatron@2021", [](Recipe& r) { r.layout.cp = 2; }, "--cp", "no context parallelism", "1"},
      {"megatron@2021", [](Recipe& r) { r.layout.zero = 1; }, "--zero", "megatron@2021 does not run stage 1", "0"},
      {"megatron@2021", [](Recipe& r) { r.recompute = {RecomputeKind::selective, 0, {}}; }, "--recompute",
       "whole layers only", "full"},
      {"megatron@2022", [](Recipe& r) { r.recompute = {RecomputeKind::modules, 0, {"mlp"}}; }, "--recompute", "mlp",
       "core_attn"},
      {"megatron-deepspeed", [](Recipe& r) { r.layout.cp = 2; }, "--cp", "no context parallelism", "1"},
      {"megatron@nemo-24.11", [](Recipe& r) { r.loss = LossKind::fused; }, "--loss", "no fused loss", "plain"},
      {"megatron@2020", [](Recipe& r) { r.precision = "fp8-delayed"; }, "--precision", "does not run fp8-delayed",
       "fp16"},
      {"megatron@2022", [](Recipe& r) { r.precision = "mxfp8"; }, "--precision", "does not run mxfp8", "fp16"},
      {"megatron", [](Recipe& r) { r.tp_overlap = true; }, "--tp-overlap", "with sequence parallelism only", "--sp"},
      {"torchtitan", [](Recipe& r) { r.tp_overlap = true; }, "--tp-overlap", "in compiled layers only", "--compile"},
      {"megatron-fsdp", [](Recipe& r) { r.optimizer = "muon"; }, "--optimizer", "does not run muon", "adamw, sgd"},
  };
  for (const Refusal& row : table) {
    Recipe r = legal(row.stack);
    ASSERT_TRUE(try_run(model(), stack(row.stack), r).ok());
    row.change(r);
    const Result<Case> out = try_run(model(), stack(row.stack), r);
    ASSERT_FALSE(out.ok()) << row.stack << " " << row.flag << " " << row.reason;
    EXPECT_EQ(out.error().where, row.flag) << out.error().text();
    EXPECT_NE(out.error().what.find(row.reason), std::string::npos)
        << out.error().text() << "\nexpected: " << row.reason;
    EXPECT_NE((out.error().what + "; " + out.error().valid).find(row.valid), std::string::npos)
        << out.error().text() << "\nexpected: " << row.valid;
    EXPECT_FALSE(out.error().valid.empty()) << out.error().text();
  }
}

TEST(Legality, FullyShardedDataParallelSplitsNothingElse) {
  for (const char* name : {"fsdp1", "foundry"}) {
    for (const auto size : {&Layout::tp, &Layout::pp, &Layout::cp}) {
      Recipe r = recipe_for(stack(name), 1024);
      r.layout.zero = 3;
      EXPECT_TRUE(try_run(model(), stack(name), r).ok()) << name;
      r.layout.*size = 2;
      const Result<Case> out = try_run(model(), stack(name), r);
      ASSERT_FALSE(out.ok()) << name;
      EXPECT_NE(out.error().what.find(" has no "), std::string::npos) << out.error().text();
    }
  }
}

// What Megatron-LM asserts of the overlap of the experts' exchange, and of recomputation beside delayed scaling.
TEST(Legality, SwitchesThatExcludeChoices) {
  Architecture a = model();
  a.layers[0].kind.experts = ExpertSpec{
      .count = 8, .top_k = 2, .width = 64, .groups = 0, .top_groups = 0, .shared_width = 0, .latent = std::nullopt};
  struct Row {
    std::function<void(Recipe&)> change;
    const char *flag, *valid;  // an empty flag: legal
  };
  const auto modules = [](Recipe& r, std::vector<std::string> m) {
    r.recompute = {RecomputeKind::modules, 0, std::move(m)};
  };
  const auto overlap = [](Recipe& r) { r.ep_overlap = true; };
  const auto delayed = [](Recipe& r) { r.precision = "fp8-delayed"; };
  const auto chunks = [](Recipe& r, i64 vpp) {
    r.layout.pp = 2;
    r.layout.vpp = vpp;
    r.layout.schedule = vpp > 1 ? "interleaved" : "1f1b";
  };
  const RecomputeKind full = RecomputeKind::full, selective = RecomputeKind::selective;
  const Row table[] = {
      {[&](Recipe& r) { overlap(r), r.recompute = {full, 0, {}}; }, "", ""},
      {[&](Recipe& r) { overlap(r), modules(r, {"moe"}); }, "--ep-overlap", "--no-ep-overlap"},
      {[&](Recipe& r) { overlap(r), chunks(r, 1); }, "--ep-overlap", "--vpp of 2 or more"},
      {[&](Recipe& r) { delayed(r), modules(r, {"moe_act"}); }, "--recompute", "another --precision"},
      {[&](Recipe& r) { delayed(r), modules(r, {"core_attn", "layernorm"}); }, "--recompute", "other modules"},
      {[&](Recipe& r) { overlap(r), r.recompute = {selective, 0, {}}; }, "", ""},
      {[&](Recipe& r) { overlap(r), modules(r, {"moe_act"}); }, "", ""},
      {[&](Recipe& r) { overlap(r), chunks(r, 2); }, "", ""},
      {[&](Recipe& r) { r.recompute = {full, 0, {}}, chunks(r, 1); }, "", ""},
      {[&](Recipe& r) { delayed(r), r.recompute = {full, 0, {}}; }, "", ""},
      {[&](Recipe& r) { delayed(r), modules(r, {"moe"}); }, "", ""},
  };
  for (const Row& row : table) {
    Recipe r = legal("megatron");
    r.layout.sp = true;
    r.layout.ep = 4;
    row.change(r);
    const Result<Case> out = try_run(a, stack("megatron"), r);
    EXPECT_EQ(out.ok(), row.flag[0] == '\0') << row.flag << " " << (out ? "" : out.error().text());
    if (out) continue;
    EXPECT_EQ(out.error().where, row.flag) << out.error().text();
    EXPECT_NE(out.error().valid.find(row.valid), std::string::npos) << out.error().text();
  }
}

// Stacks whose expert layers are not built, and releases that had none.
TEST(Legality, ExpertsWhereAStackHasThem) {
  Architecture a = model();
  a.layers[0].kind.experts = ExpertSpec{
      .count = 8, .top_k = 2, .width = 64, .groups = 0, .top_groups = 0, .shared_width = 0, .latent = std::nullopt};
  const auto runs = [&](const char* name) {
    Recipe r = recipe_for(stack(name), 1024);
    r.layout.zero = stack(name).zero_allowed.back();
    r.layout.dp = r.global_batch = 8;
    r.layout.ep = stack(name).experts ? 8 : 1;
    const Result<Case> out = try_run(a, stack(name), r);
    if (!out) {
      EXPECT_EQ(out.error().where, "--stack") << out.error().text();
    }
    return out.ok();
  };
  for (const char* name :
       {"foundry", "foundry@2023-07", "fsdp1", "megatron@2020", "megatron@2021", "torchtitan", "nanotron"})
    EXPECT_FALSE(runs(name)) << name;
  for (const char* name : {"megatron@2022", "megatron@2023", "megatron@nemo-24.03", "megatron", "megatron-fsdp"})
    EXPECT_TRUE(runs(name)) << name;
}

// Until core 0.10 experts are cut as the rest is.
TEST(Legality, ExpertsOfOldReleasesAreCutAsTheRest) {
  Architecture a = model();
  a.layers[0].kind.experts = ExpertSpec{
      .count = 8, .top_k = 2, .width = 64, .groups = 0, .top_groups = 0, .shared_width = 0, .latent = std::nullopt};
  for (const char* name : {"megatron@nemo-24.11", "megatron@nemo-25.02"}) {
    Recipe r = recipe_for(stack(name), 1024);
    r.layout.tp = r.layout.ep = 2;
    r.layout.dp = 4;
    r.layout.sp = true;
    r.global_batch = 64;
    const Result<Case> apart = try_run(a, stack(name), r);
    EXPECT_EQ(apart.ok(), stack(name).own_etp) << name;
    if (!apart) {
      EXPECT_EQ(apart.error().where, "--etp");
    }
    r.layout.etp = 2;
    EXPECT_TRUE(try_run(a, stack(name), r).ok()) << name;
  }
}

TEST(Legality, AModelBeyondCountingIsRefused) {
  Architecture a = model();
  a.layers[0].count = i64{1} << 40;
  for (LayerRun& run : a.layers) run.kind.mlp.width = i64{1} << 40;
  a.layers[0].count = 1;
  a.hidden = i64{1} << 40;
  const Result<Case> out = try_run(a, stack("megatron"), recipe_for(stack("megatron"), 1024));
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.error().text().find("2^53"), std::string::npos);
}

TEST(Legality, AnyVocabularyIsCutWithPadding) {
  for (const char* name : {"textbook", "megatron"}) {
    for (i64 tp : {1, 2, 4, 8}) {
      Recipe r = legal(name);
      r.layout.tp = tp;
      const Result<Case> out = try_run(model(), stack(name), r);
      ASSERT_TRUE(out.ok()) << out.error().text();
      const i64 step = (std::string(name) == "megatron" ? 128 : 1) * tp;
      EXPECT_EQ(out->head().extents[Axis::vocab].get(), (32001 + step - 1) / step * step);
    }
  }
}

TEST(Split, EvenElseSlotsElseFirstAndLast) {
  struct Row {
    i64 layers, pp, vpp;
    std::vector<i64> split;
    const char* how;
  };
  const Row table[] = {
      {12, 4, 1, {3, 3, 3, 3}, ""},
      {126, 16, 1, {7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7}, "embedding and loss count as slots"},
      {14, 4, 1, {3, 4, 4, 3}, "embedding and loss count as slots"},
      {80, 3, 1, {27, 27, 26}, "first and last stage hold the rest"},
      {61, 8, 1, {7, 8, 8, 8, 8, 8, 8, 6}, "first and last stage hold the rest"},
      {7, 2, 1, {4, 3}, "first and last stage hold the rest"},
      {14, 4, 2, {3, 4, 4, 3}, "embedding and loss count as slots"},
  };
  for (const Row& row : table) {
    Layout l;
    l.pp = row.pp;
    l.vpp = row.vpp;
    const Result<Split> split = split_layers(row.layers, l, stack("megatron"));
    ASSERT_TRUE(split.ok()) << split.error().text();
    EXPECT_EQ(split->layers, row.split) << row.layers << " over " << row.pp;
    EXPECT_EQ(split->how, row.how);
  }
  // DeepSeek-V3 with a multi-token prediction layer, as Megatron-Bridge lays it out.
  const Row with_prediction[] = {
      {61, 4, 4, {16, 16, 16, 13}, ""},         {61, 8, 1, {8, 8, 8, 8, 8, 8, 8, 5}, ""}, {61, 2, 8, {32, 29}, ""},
      {61, 8, 2, {8, 8, 8, 8, 8, 8, 8, 5}, ""}, {61, 8, 4, {7, 8, 8, 8, 8, 8, 8, 6}, ""},  // "Et|(tt|)*30mL": the last
                                                                                           // virtual stage has no layer
  };
  for (const Row& row : with_prediction) {
    Layout l;
    l.pp = row.pp;
    l.vpp = row.vpp;
    const Result<Split> split = split_layers(row.layers, l, stack("megatron"), 1);
    ASSERT_TRUE(split.ok()) << split.error().text();
    EXPECT_EQ(split->layers, row.split) << row.layers << " over " << row.pp << " x " << row.vpp;
  }
  // The same layers without the prediction, and over stages that they divide by no rule.
  for (const Row& row : {Row{61, 4, 4, {16, 16, 16, 13}, ""}, Row{61, 8, 4, {7, 8, 8, 8, 8, 8, 8, 6}, ""}}) {
    Layout l;
    l.pp = row.pp;
    l.vpp = row.vpp;
    const Result<Split> split = split_layers(row.layers, l, stack("megatron"));
    ASSERT_TRUE(split.ok()) << split.error().text();
    EXPECT_EQ(split->layers, row.split) << row.layers << " over " << row.pp << " x " << row.vpp;
    EXPECT_EQ(split->chunks.size(), static_cast<std::size_t>(row.pp * row.vpp));
    Stack before = stack("megatron");
    before.stage_layouts = false;
    EXPECT_FALSE(split_layers(row.layers, l, before).ok());
  }
  Stack even_only = stack("megatron");
  even_only.uneven_stages = false;
  Layout l;
  l.pp = 5;
  const Result<Split> refused = split_layers(12, l, even_only);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().where, "--pp");
  EXPECT_EQ(refused.error().valid, "a divisor of 12: 1, 2, 3, 4, 6, 12");
}

// What the messages call valid is what the rule takes, and (but for stages given one by one) all of it.
TEST(Split, MessagesQuoteTheRule) {
  Stack slots = stack("megatron");
  slots.stage_layouts = false;
  Stack even_only = slots;
  even_only.uneven_stages = false;
  int said = 0;
  for (const Stack* s : {&slots, &even_only}) {
    for (const std::int64_t layers : {12, 32, 80, 94, 118}) {
      const auto legal = [&](std::int64_t pp, std::int64_t vpp) {
        Layout l;
        l.pp = pp;
        l.vpp = vpp;
        return split_layers(layers, l, *s);
      };
      for (std::int64_t pp = 2; pp <= 16; ++pp) {
        std::set<std::int64_t> taken;
        for (std::int64_t vpp = 2; vpp * pp <= layers + 8; ++vpp) {
          if (legal(pp, vpp).ok()) taken.insert(pp * vpp);
        }
        for (std::int64_t vpp = 2; vpp * pp <= layers + 8; ++vpp) {
          const Result<Split> split = legal(pp, vpp);
          if (split.ok()) continue;
          const std::string& valid = split.error().valid;
          const std::set<std::int64_t> numbers = numbers_of(valid);
          ++said;
          for (const std::int64_t chunks : taken) {
            const bool among =
                numbers.contains(chunks) || (valid.starts_with("pp x vpp of at most") && chunks <= layers);
            EXPECT_TRUE(among) << chunks << " chunks of " << layers << " layers are taken, but: " << valid;
          }
          for (const std::int64_t chunks : numbers) {
            if (chunks % pp != 0 || chunks / pp < 2 || valid.starts_with("pp x vpp of at most")) continue;
            EXPECT_TRUE(taken.contains(chunks)) << chunks << " chunks of " << layers << " layers: " << valid;
          }
        }
      }
    }
  }
  EXPECT_GT(said, 100);
}

}  // namespace
}  // namespace preflop::test
