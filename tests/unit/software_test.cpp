// Switches of the software: every stack either has one, and then it counts for something, or refuses it by its flag.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "src/adapt/request.hpp"
#include "src/cost/parameters.hpp"
#include "src/run/estimate.hpp"
#include "src/step/compute.hpp"
#include "src/step/time.hpp"

namespace preflop {
namespace {

using Keys = std::map<std::string, std::string, std::less<>>;

const Catalogues& catalogues() {
  static const Catalogues loaded = Catalogues::load().value();
  return loaded;
}

struct Row {
  const char *word, *flag;
  Keys off, on;
  bool experts = false;
};

// The sizes under which each switch has something to act on.
const std::vector<Row>& rows() {
  static const Keys kTensor = {{"tp", "2"}}, kNone = {}, kExperts = {{"ep", "8"}};
  const auto with = [](Keys keys, const char* key, const char* value) {
    keys[key] = value;
    return keys;
  };
  static const std::vector<Row> kRows = {
      {"compile", "--compile", {{"compile", "false"}}, {{"compile", "true"}}},
      {"cuda-graphs", "--cuda-graph", kNone, {{"cuda_graph", "full_iteration"}}},
      {"cp-a2a", "--cp-comm", {{"cp", "2"}}, {{"cp", "2"}, {"cp_comm", "a2a"}}},
      {"dp-overlap-off", "--no-dp-overlap", kNone, {{"dp_overlap", "false"}}},
      {"tp-overlap", "--tp-overlap", kTensor, with(kTensor, "tp_overlap", "true")},
      {"fp8-attention",
       "--fp8-attention",
       {{"precision", "fp8-delayed"}},
       {{"precision", "fp8-delayed"}, {"fp8_attention", "true"}}},
      {"ep-overlap", "--ep-overlap", kExperts, with(kExperts, "ep_overlap", "true"), true},
      {"fused-experts", "--fused-experts", kExperts, with(kExperts, "fused_experts", "true"), true}};
  return kRows;
}

Result<Estimate> estimated(const Stack& stack, const Keys& keys, bool experts) {
  Request r;
  r.model = experts ? "qwen3-30b-a3b" : "llama3-8b";
  r.on = "64xh100-sxm";
  r.keys = keys;
  r.keys["stack"] = stack.full_name();
  r.keys.emplace("tp", "1");  // a layout that is not planned
  r.keys["recompute"] = "full";
  // Where layers can be compiled an overlap may need that.
  if (std::find(stack.software.begin(), stack.software.end(), "compile") != stack.software.end())
    r.keys.emplace("compile", "true");
  r.keys["global_batch"] = "64";
  const auto problem = pose(r, catalogues());
  if (!problem) return problem.error();
  return estimate<double>(problem->analysed, problem->cluster);
}

TEST(Software, AStackHasASwitchOrRefusesItByItsFlag) {
  for (const Stack& stack : catalogues().stacks.all()) {
    for (const Row& row : rows()) {
      if (row.experts && !stack.experts) continue;
      const auto off = estimated(stack, row.off, row.experts);
      if (!off) continue;  // a size that the stack lacks
      const auto on = estimated(stack, row.on, row.experts);
      const bool has = std::find(stack.software.begin(), stack.software.end(), row.word) != stack.software.end();
      ASSERT_EQ(on.ok(), has) << stack.full_name() << " " << row.word << (on ? "" : ": " + on.error().text());
      if (!has) {
        EXPECT_EQ(on.error().where, row.flag);
        EXPECT_NE(on.error().what.find(stack.full_name()), std::string::npos) << on.error().text();
        EXPECT_FALSE(on.error().valid.empty());
        continue;
      }
      const bool says = std::any_of(on->warnings.begin(), on->warnings.end(),
                                    [&](const std::string& w) { return w.starts_with(row.flag); });
      EXPECT_NE(on->step->seconds.number() != off->step->seconds.number(), says)
          << stack.full_name() << " " << row.word;
    }
  }
}

TEST(Software, ASwitchWithoutItsSizeIsSaid) {
  const Stack& stack = **catalogues().stacks.find("megatron");
  for (const auto& [key, value, flag] :
       {std::tuple("cp_comm", "a2a", "--cp-comm"), std::tuple("tp_overlap", "true", "--tp-overlap")}) {
    const auto e = estimated(stack, {{key, value}, {"tp", "1"}}, false);
    ASSERT_TRUE(e.ok()) << e.error().text();
    EXPECT_TRUE(std::any_of(e->warnings.begin(), e->warnings.end(),
                            [f = flag](const std::string& w) { return w.starts_with(f) && w.ends_with(" is 1"); }));
  }
  const auto quiet = estimated(stack, {{"tp", "2"}}, false);
  ASSERT_TRUE(quiet.ok());
  EXPECT_TRUE(quiet->warnings.empty());
}

TEST(Software, SwitchesOfExpertsAreOfModelsWithExperts) {
  const Stack& stack = **catalogues().stacks.find("megatron");
  for (const auto& [key, value] : {std::pair("ep_overlap", "true"), std::pair("fused_experts", "true"),
                                   std::pair("dispatcher", "deepep"), std::pair("imbalance", "1.5")}) {
    const auto e = estimated(stack, {{key, value}}, false);
    ASSERT_FALSE(e.ok()) << key;
    EXPECT_EQ(e.error().what, "the model has no experts");
  }
}

TEST(Software, HeadsThatCannotBeDealtAreRefused) {
  const Stack& stack = **catalogues().stacks.find("megatron");
  EXPECT_TRUE(estimated(stack, {{"tp", "2"}, {"cp", "4"}, {"cp_comm", "a2a"}}, false).ok());
  const auto e = estimated(stack, {{"tp", "4"}, {"cp", "4"}, {"cp_comm", "a2a"}}, false);
  ASSERT_FALSE(e.ok());
  EXPECT_EQ(e.error().where, "--cp");
  EXPECT_NE(e.error().what.find("8 kv heads"), std::string::npos) << e.error().text();
}

// What is chosen where nothing is given runs the model, if the stack of large jobs does.
TEST(Software, ADefaultStackRunsTheModel) {
  const auto refused = [](const CatalogueModel& model, const char* on, const std::string& stack) {
    Request r;
    r.model = model.id;
    r.on = on;
    r.keys = {{"stack", stack}, {"tp", "1"}, {"recompute", "full"}};
    const auto problem = pose(r, catalogues());
    return !problem.ok() && problem.error().where == "--stack";
  };
  int hybrids = 0;
  for (const CatalogueModel& model : catalogues().models.list()) {
    if (!model.not_built.empty()) continue;
    for (const char* on : {"1xh100-sxm", "64xh100-sxm", "512xh100-sxm"}) {
      Request r;
      r.model = model.id;
      r.on = on;
      const auto drafted = draft(r, catalogues());
      ASSERT_TRUE(drafted.ok()) << model.id << ": " << drafted.error().text();
      const auto& layers = drafted->architecture.layers;
      hybrids += std::any_of(layers.begin(), layers.end(), [](const LayerRun& l) { return l.kind.state_space; });
      const std::string picked = drafted->stack->full_name();
      if (refused(model, on, picked)) {
        EXPECT_TRUE(refused(model, on, "megatron")) << model.id << " on " << on << ": " << picked;
      }
    }
  }
  EXPECT_GT(hybrids, 3);
}

// What is asked for by name decides before sizes do: where megatron is the default, a stage that it lacks is another's.
TEST(Software, ADefaultStackRunsTheStageThatIsAskedFor) {
  for (const char* zero : {"0", "1", "2", "3"}) {
    for (const char* pp : {"1", "2"}) {
      for (const char* on : {"8xh100-sxm", "512xh100-sxm"}) {
        Request r;
        r.model = "llama3-8b";
        r.on = on;
        r.keys = {{"zero", zero}, {"pp", pp}, {"tp", "2"}, {"global_batch", "512"}, {"recompute", "full"}};
        const auto problem = pose(r, catalogues());
        EXPECT_TRUE(problem.ok()) << on << " zero " << zero << " pp " << pp << ": " << problem.error().text();
      }
    }
  }
}

// A type is stored where some option of the stack stores it.
TEST(Software, MomentsAreKeptInTypesOfTheStack) {
  for (const Stack& stack : catalogues().stacks.all()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8}) {
      const auto e = estimated(stack, {{"moment_dtype", name(dtype)}}, false);
      const bool has = std::find(stack.moments.begin(), stack.moments.end(), dtype) != stack.moments.end();
      EXPECT_EQ(e.ok(), has) << stack.full_name() << " " << name(dtype) << (e ? "" : ": " + e.error().text());
    }
  }
  const Stack& stack = **catalogues().stacks.find("textbook");
  for (const char* key : {"weight_dtype", "grad_dtype", "master_dtype", "moment_dtype"}) {
    for (const char* dtype : {"fp4", "int8", "tf32"}) EXPECT_FALSE(estimated(stack, {{key, dtype}}, false).ok());
  }
}

// The more of a layer CUDA graphs hold, the less the host makes the GPU wait: no graphs, each part more, the iteration.
TEST(Software, EachPartInGraphsTakesWorkOffTheHost) {
  const Stack& stack = **catalogues().stacks.find("megatron@nemo-25.09");
  const auto launch = [&](const char* graphs, const char* scope, bool experts) {
    Keys keys = {{"cuda_graph", graphs}, {"micro_batch", "1"}, {"seq", "1024"}};
    if (experts) keys["ep"] = "8";
    if (*scope != '\0') keys["cuda_graph_scope"] = scope;
    const auto e = estimated(stack, keys, experts);
    return e && e->step ? e->step->breakdown[static_cast<int>(Lost::launch)]->number() : -1.0;
  };
  for (const bool experts : {false, true}) {
    double before = launch("none", "", experts);
    ASSERT_GT(before, 0);
    for (const char* scope : experts ? std::initializer_list<const char*>{"moe_router", "moe_router,moe_preprocess",
                                                                          "attn,moe_router,moe_preprocess"}
                                     : std::initializer_list<const char*>{"mlp", "attn,mlp"}) {
      const double now = launch("transformer_engine", scope, experts);
      EXPECT_GE(now, 0);
      EXPECT_LT(now, before) << scope;
      before = now;
    }
    EXPECT_EQ(launch("transformer_engine", "", experts), before);  // all of a layer that can be
    EXPECT_LT(launch("full_iteration", "", experts), before);
  }
}

// Latent attention has a share of the host's work of its own, and no other attention takes it.
TEST(Software, LatentAttentionIssuesItsOwnNumberOfKernels) {
  TimeParameters twice = TimeParameters::built_in();
  std::size_t changed = 0;
  for (std::size_t i = 0; i < twice.all().size(); ++i) {
    if (twice.all()[i].field != "host_latent") continue;
    twice.set(i, 2 * twice.all()[i].value);
    ++changed;
  }
  ASSERT_GE(changed, 1U);
  for (const char* model : {"deepseek-v2-lite", "qwen3-30b-a3b"}) {
    Request r;
    r.model = model;
    r.on = "8xb200";
    r.keys = {{"stack", "megatron"}, {"ep", "8"},           {"seq", "1024"},
              {"micro_batch", "1"},  {"recompute", "full"}, {"global_batch", "64"}};
    const auto problem = pose(r, catalogues());
    ASSERT_TRUE(problem.ok()) << problem.error().text();
    const auto compute = compute_estimate<double>(problem->analysed, *find_convention("palm"));
    const auto as_is = step_estimate<double>(problem->analysed, problem->cluster, compute, TimeParameters::built_in());
    const auto more = step_estimate<double>(problem->analysed, problem->cluster, compute, twice);
    ASSERT_TRUE(as_is && more);
    EXPECT_EQ(more->seconds > as_is->seconds, std::string_view(model).starts_with("deepseek")) << model;
  }
}

TEST(Software, APartOfALayerIsInGraphsOfParts) {
  const Stack& stack = **catalogues().stacks.find("megatron");
  for (const char* graphs : {"none", "full_iteration"}) {
    const auto e = estimated(stack, {{"cuda_graph", graphs}, {"cuda_graph_scope", "attn"}}, false);
    ASSERT_FALSE(e.ok());
    EXPECT_EQ(e.error().where, "--cuda-graph-scope");
  }
  const auto e = estimated(stack, {{"cuda_graph", "local"}, {"cuda_graph_scope", "attn,atn"}}, false);
  ASSERT_FALSE(e.ok());
  EXPECT_NE(e.error().text().find("'atn'"), std::string::npos);
  EXPECT_NE(e.error().valid.find("attn"), std::string::npos);
}

}  // namespace
}  // namespace preflop
