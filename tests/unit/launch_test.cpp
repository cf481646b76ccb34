// Launch files as frameworks run them: what a plan switches on stands in the file as an option, what the framework
// cannot run is refused by name, and what a script says is read or named.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "src/adapt/export/export.hpp"
#include "src/adapt/import/import.hpp"
#include "src/adapt/shape_string.hpp"
#include "src/base/csv.hpp"
#include "src/base/embedded.hpp"

namespace preflop {
namespace {

using Keys = std::map<std::string, std::string, std::less<>>;

const Catalogues& catalogues() {
  static const Catalogues kLoaded = std::move(Catalogues::load()).value();
  return kLoaded;
}

// The file, or "refused: WHY".
std::string written(const char* format, const std::string& model, const std::string& on, const Keys& keys) {
  Request asked;
  asked.model = model;
  asked.on = on;
  asked.keys = keys;
  const auto problem = pose(asked, catalogues());
  EXPECT_TRUE(problem.ok()) << (problem ? "" : problem.error().text());
  if (!problem) return "not posed";
  const auto out = export_to(format, *problem, asked);
  return out ? out->text : "refused: " + out.error().text();
}

bool says(const std::string& all, const std::string& part) { return all.find(part) != std::string::npos; }

struct Switched {
  const char* model;
  Keys keys;
  const char* option;  // what the file says
  const char* key;     // and its remark then need not
};

TEST(Launch, SwitchesOfThePlanAreOptionsOfMegatron) {
  const Switched cases[] = {
      {"llama3-70b",
       {{"tp", "8"}, {"cuda_graph", "full_iteration"}},
       "--cuda-graph-impl full_iteration",
       "cuda_graph="},
      {"llama3-70b",
       {{"tp", "8"}, {"cuda_graph", "local"}},
       "--cuda-graph-impl local --cuda-graph-modules attn mlp",
       "cuda_graph="},
      {"qwen3-30b-a3b",
       {{"ep", "8"}, {"cuda_graph", "transformer_engine"}, {"cuda_graph_scope", "attn,moe_router"}},
       "--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router",
       "cuda_graph"},
      {"llama3-70b", {{"tp", "8"}, {"tp_overlap", "true"}}, "--tp-comm-overlap", "tp_overlap="},
      {"qwen3-30b-a3b", {{"ep", "8"}, {"ep_overlap", "true"}}, "--overlap-moe-expert-parallel-comm", "ep_overlap="},
      {"llama3-70b", {{"tp", "8"}, {"optimizer", "muon"}}, "--optimizer muon", "optimizer="},
      {"llama3-70b", {{"tp", "8"}, {"optimizer", "lion"}}, "--optimizer lion", "optimizer="},
      {"llama3-70b", {{"tp", "8"}, {"optimizer", "sgd"}}, "--optimizer sgd --sgd-momentum 0", "optimizer="},
      {"llama3-70b", {{"tp", "8"}, {"optimizer", "sgd-momentum"}}, "--optimizer sgd --lr", "optimizer="},
  };
  for (const Switched& c : cases) {
    Keys keys = c.keys;
    keys["stack"] = "megatron";
    const std::string text = written("megatron", c.model, "64xh100-sxm", keys);
    EXPECT_TRUE(says(text, c.option)) << c.option << "\n" << text;
    EXPECT_FALSE(says(text.substr(0, text.find("torchrun")), c.key)) << text;
    const std::string without = written("megatron", c.model, "64xh100-sxm", {{"stack", "megatron"}});
    EXPECT_FALSE(says(without, c.option)) << without;
  }
}

TEST(Launch, ExchangesBesideComputeOnlyWhereThePlanHasThem) {
  const Keys on = {{"stack", "megatron"}, {"tp", "8"}},
             off = {{"stack", "megatron"}, {"tp", "8"}, {"dp_overlap", "false"}};
  EXPECT_TRUE(
      says(written("megatron", "llama3-70b", "64xh100-sxm", on), "--overlap-grad-reduce --overlap-param-gather"));
  EXPECT_FALSE(says(written("megatron", "llama3-70b", "64xh100-sxm", off), "--overlap-"));
  const std::string bridge = written("megatron-bridge", "llama3-70b", "64xh100-sxm", off);
  EXPECT_TRUE(says(bridge, "overlap_grad_reduce = False")) << bridge;
  EXPECT_TRUE(says(bridge, "overlap_param_gather = False")) << bridge;
}

// Megatron-LM asserts it (training/arguments.py:1119-1170).
TEST(Launch, MegatronFsdpAsksForConnectionsAndACheckpointFormatOfItsOwn) {
  const std::string fsdp = written("megatron", "llama3-8b", "8xh100-sxm", {{"stack", "megatron-fsdp"}});
  EXPECT_FALSE(says(fsdp, "CUDA_DEVICE_MAX_CONNECTIONS=1")) << fsdp;
  EXPECT_TRUE(says(fsdp, "unset CUDA_DEVICE_MAX_CONNECTIONS")) << fsdp;
  EXPECT_TRUE(says(fsdp, "--ckpt-format fsdp_dtensor")) << fsdp;
  const std::string plain = written("megatron", "llama3-8b", "8xh100-sxm", {{"stack", "megatron"}});
  EXPECT_TRUE(says(plain, "export CUDA_DEVICE_MAX_CONNECTIONS=1")) << plain;
  EXPECT_FALSE(says(plain, "--ckpt-format")) << plain;
}

TEST(Launch, MegatronRefusesByNameWhatItHasNoOptionFor) {
  for (const auto& [keys, what] : {std::pair{Keys{{"stack", "textbook"}, {"optimizer", "adamw-8bit"}}, "adamw-8bit"},
                                   std::pair{Keys{{"stack", "textbook"}, {"optimizer", "adafactor"}}, "adafactor"}}) {
    const std::string text = written("megatron", "llama3-8b", "8xh100-sxm", keys);
    EXPECT_TRUE(text.starts_with("refused") && says(text, what)) << text;
  }
}

const std::string kScript =
    "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 "
    "--num-attention-heads 32 --vocab-size 32000 --normalization RMSNorm --swiglu --disable-bias-linear "
    "--position-embedding-type rope --micro-batch-size 1 --global-batch-size 128 --seq-length 4096 --bf16 ";

Request read(const std::string& more, const std::string& script = kScript) {
  const auto out = import_megatron(script + more, "run.sh");
  EXPECT_TRUE(out.ok()) << more << ": " << (out ? "" : out.error().text());
  return out ? *out : Request{};
}

TEST(Launch, OptionsOfMegatronAreRead) {
  const std::string moe = "--num-experts 8 --moe-ffn-hidden-size 1024 ";
  const struct {
    std::string options;
    const char* key;
    const char* value;  // "": the key stays open
  } cases[] = {
      {"--cuda-graph-impl full_iteration", "cuda_graph", "full_iteration"},
      {"--cuda-graph-impl local --cuda-graph-modules attn mlp", "cuda_graph_scope", "attn,mlp"},
      {"--cuda-graph-impl local --cuda-graph-scope attn", "cuda_graph_scope", "attn"},
      {"--cuda-graph-impl local --cuda-graph-scope full_iteration", "cuda_graph", "full_iteration"},
      {"--cuda-graph-impl none", "cuda_graph", ""},
      {"--external-cuda-graph", "cuda_graph", "transformer_engine"},
      {"--tp-comm-overlap", "tp_overlap", "true"},
      {"", "dp_overlap", "false"},
      {"--overlap-grad-reduce", "dp_overlap", ""},
      {"--use-torch-fsdp2", "dp_overlap", ""},
      {moe + "--overlap-moe-expert-parallel-comm", "ep_overlap", "true"},
      {moe + "--moe-token-dispatcher-type alltoall", "dispatcher", "alltoall"},
      {moe + "--moe-token-dispatcher-type flex", "dispatcher", "deepep"},
      {moe + "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep", "dispatcher", "hybridep"},
      {"--moe-token-dispatcher-type alltoall", "dispatcher", ""},  // and no experts
      {"--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 15 --decoder-last-pipeline-num-layers 17",
       "layers_per_stage", "15,17"},
      {"--pipeline-model-parallel-size 4 --decoder-last-pipeline-num-layers 5", "layers_per_stage", "9,9,9,5"},
      {"--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 5", "layers_per_stage", "5,9,9,9"},
      {"--num-layers 31 --pipeline-model-parallel-size 4 --account-for-loss-in-pipeline-split", "layers_per_stage",
       "8,8,8,7"},
      {"--mtp-num-layers 1", "mtp", "1"},
      {"--optimizer adam", "optimizer", "adamw"},
      {"--optimizer sgd", "optimizer", "sgd-momentum"},
      {"--optimizer sgd --sgd-momentum 0.0", "optimizer", "sgd"},
      {"--optimizer dist_muon", "optimizer", "muon"},
      {"--optimizer lion", "optimizer", "lion"},
      {"--train-iters 1000", "tokens", "524288000"},
      {"--train-samples 1000", "tokens", "4096000"},
      {"--main-params-dtype fp16", "master_dtype", "fp16"},
  };
  for (const auto& c : cases) {
    const Request found = read(c.options);
    const auto at = found.keys.find(c.key);
    EXPECT_EQ(at == found.keys.end() ? "" : at->second, c.value) << c.options << " " << c.key;
    EXPECT_EQ(found.not_read, std::vector<std::string>{}) << c.options;
  }
  const Request old = read("--model-parallel-size 4 --batch-size 2 --num-layers 2", "pretrain_gpt.py ");
  EXPECT_EQ(old.keys.at("tp"), "4");
  EXPECT_EQ(old.keys.at("micro_batch"), "2");
}

// Which layers have experts, and which see a window: as Python lists or every Nth.
TEST(Launch, LayersThatAlternateAreRead) {
  const std::string moe = "--num-experts 8 --moe-ffn-hidden-size 1024 --moe-layer-freq ", window = "--window-size ";
  for (const auto& [options, keys] : std::vector<std::pair<std::string, std::string>>{
           {moe + "1", "expert_ffn=1024"},
           {moe + "'([0]*3+[1]*29)'", "dense_first=3"},
           {moe + "'[0]*3+[1]*29'", "dense_first=3"},
           {moe + "'([0,1])*16'", "experts_every=2"},
           {moe + "'([0]+[1])*16'", "experts_every=2"},
           {window + "127,0", "window=128"},
           {window + "'(127, 0)' --window-attn-skip-freq 4", "window=128,full_every=4"},
           {window + "127,0 --window-attn-skip-freq '([1]*3+[0])*8'", "window=128,full_every=4"},
           {window + "127,0 --window-attn-skip-freq '[1]*32'", "window=128"},
           {window + "-1,0", "dropout=0.1"},
           {"--multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512",
            "kv_lora=512,q_lora=1536,nope_dim=128,rope_dim=64,value_dim=128"}}) {
    const Request found = read(options);
    EXPECT_TRUE(found.model.ends_with("," + keys)) << options << ": " << found.model;
    Request whole = found;
    whole.on = "8xh100-sxm";
    const auto problem = pose(whole, catalogues());
    EXPECT_TRUE(problem.ok()) << options << ": " << (problem ? "" : problem.error().text());
  }
  for (const char* odd : {"'[1]*3+[0]*29'", "2", "'[1]*31'", "'[1'", "'[1]*99999999999'", "'((((([1]'", "x", "''[]"}) {
    const auto out = import_megatron(kScript + moe + odd, "run.sh");
    ASSERT_FALSE(out.ok()) << odd;
    EXPECT_TRUE(says(out.error().what, "--moe-layer-freq")) << out.error().text();
  }
  const auto stages =
      import_megatron(kScript + "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 4", "run.sh");
  ASSERT_FALSE(stages.ok());
  EXPECT_TRUE(says(stages.error().what, "first stage")) << stages.error().text();
}

TEST(Launch, WhatNobodyReadsIsNamed) {
  using Names = std::vector<std::string>;
  const std::string usual =
      "--lr 1 --save x --data-path a b --tokenizer-type NullTokenizer --log-interval 10 "
      "--tensorboard-dir x --eval-iters 10 --wandb-project p --weight-decay 0.1 ";
  EXPECT_EQ(read(usual).not_read, Names{});
  EXPECT_EQ(read(usual + "--tensor-model-parallel-sise 8 --fp8-param-gather").not_read,
            (Names{"--fp8-param-gather", "--tensor-model-parallel-sise"}));
  EXPECT_EQ(read("--optimizer soap").not_read, Names{"--optimizer soap"});
  EXPECT_EQ(read("--num-experts 8 --moe-token-dispatcher-type allgather").not_read,
            Names{"--moe-token-dispatcher-type allgather"});
  EXPECT_EQ(read("--cp-comm-type all_gather").not_read, Names{"--cp-comm-type all_gather"});
  // Of the launcher's own options none is the training script's.
  EXPECT_EQ(read("", "srun --ntasks 8 --mpi pmix " + kScript).not_read, Names{});
}

// The options alone, without the remark, describe every model that is exported.
TEST(Launch, OptionsAloneDescribeTheModel) {
  int exported = 0;
  for (const CatalogueModel& listed : catalogues().models.list()) {
    Request asked;
    asked.model = listed.id;
    asked.on = "1024xb200";
    asked.keys = {{"stack", "megatron"}, {"tp", "1"}};
    const auto problem = pose(asked, catalogues());
    if (!problem) continue;
    const auto out = export_to("megatron", *problem, asked);
    if (!out) continue;
    ++exported;
    const Architecture& a = problem->architecture;
    const std::size_t remark = out->text.find("# preflop:");
    std::string text = out->text;
    text.erase(remark, text.find('\n', remark) - remark);
    const auto read = import_megatron(text, "run.sh");
    ASSERT_TRUE(read.ok()) << listed.id << ": " << read.error().text();
    const auto back = read_shape(read->model, "MODEL");
    ASSERT_TRUE(back.ok()) << listed.id << ": " << back.error().text();
    const bool same = std::equal(back->layers.begin(), back->layers.end(), a.layers.begin(), a.layers.end(),
                                 [](const LayerRun& x, LayerRun y) {
                                   // How many steps a scan takes at a time is Megatron-LM's own.
                                   if (x.kind.state_space && y.kind.state_space)
                                     y.kind.state_space->chunk = x.kind.state_space->chunk;
                                   return x.kind == y.kind && x.count == y.count;
                                 });
    EXPECT_TRUE(same) << listed.id << " " << read->model;
    EXPECT_TRUE(back->vocab == a.vocab && back->hidden == a.hidden && back->tied == a.tied &&
                back->positions == a.positions && back->final_norm == a.final_norm &&
                back->position_rows == a.position_rows)
        << listed.id << " " << read->model;
  }
  EXPECT_GT(exported, 30);
}

// Every option that an export writes is read whatever else the script says.
TEST(Launch, WhatIsWrittenIsReadBesideAnything) {
  const auto csv = Csv::parse(embedded("launch_options.csv"), "data/launch_options.csv");
  ASSERT_TRUE(csv.ok());
  for (const char* beside :
       {"", "--fp8-format hybrid", "--fp4-format e2m1", "--fp16", "--use-megatron-fsdp", "--checkpoint-activations",
        "--num-experts 8 --moe-ffn-hidden-size 64", "--recompute-granularity full", "--optimizer-cpu-offload",
        "--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*8|t*8|t*8|t*8L'",
        "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 8", "--train-samples 100",
        "--cuda-graph-impl full_iteration", "--attention-backend flash", "--position-embedding-type rope",
        "--multi-latent-attention", "--hybrid-override-pattern 'M*M*M*M*M*M*M*M*M*M*M*M*M*M*M*M*'"}) {
    int read_here = 0;
    for (std::size_t i = 0; i < csv->rows(); ++i) {
      const auto cell = [&](const char* column) { return std::string(csv->at(i, std::string_view(column))); };
      if (cell("format") != "megatron") continue;
      const std::string choices = cell("choices"), option = cell("option");
      const std::string value = cell("type") == "flag" ? ""
                                : choices.empty()      ? "1"
                                                       : choices.substr(0, choices.find('|'));
      std::string script = kScript;
      if (std::string(beside) == "--fp16" || option == "--fp16") script.erase(script.find("--bf16"), 6);
      const auto out = import_megatron(script + beside + " " + option + " " + value, "run.sh");
      if (!out) continue;  // refused by name
      ++read_here;
      for (const std::string& name : out->not_read)
        EXPECT_TRUE(name.find(' ') != std::string::npos) << beside << " " << option << ": " << name;
    }
    EXPECT_GT(read_here, 60) << beside;
  }
}

// Fields without a default (nanotron src/nanotron/config: "required") that its parser asks for.
TEST(Launch, NanotronHasWhatItsParserAsksFor) {
  const Keys keys = {{"stack", "nanotron"}, {"tp", "2"}};
  const std::string adam = written("nanotron", "llama3-8b", "8xh100-sxm", keys);
  for (const char* part : {"  init_method:\n    std: ", "  weight_decay: ", "  optimizer_factory:\n    name: adamW\n",
                           "    adam_beta1: ", "    adam_beta2: ", "    adam_eps: ", "    torch_adam_is_fused: true",
                           "  learning_rate_scheduler:\n    learning_rate: "})
    EXPECT_TRUE(says(adam, part)) << part << "\n" << adam;
  Keys sgd = keys;
  sgd["optimizer"] = "sgd";
  const std::string plain = written("nanotron", "llama3-8b", "8xh100-sxm", sgd);
  EXPECT_TRUE(says(plain, "name: sgd\n") && !says(plain, "adam_")) << plain;
  EXPECT_EQ(import_yaml(plain, "x.yaml")->keys.at("optimizer"), "sgd");
  EXPECT_TRUE(says(written("nanotron", "qwen2.5-7b", "8xh100-sxm", keys), "attention_bias: true"));
}

TEST(Launch, NanotronRefusesByNameWhatItCannotRun) {
  const std::tuple<const char*, Keys, const char*> cases[] = {
      {"nemotron-h-56b", {{"tp", "8"}, {"zero", "1"}}, "decoder"},
      {"gemma2-9b", {{"zero", "1"}}, "decoder"},
      {"gpt3-175b", {{"tp", "8"}, {"zero", "1"}}, "decoder"},
      {"llama3-8b", {{"precision", "fp8-delayed"}}, "fp8-delayed"},
      {"llama3-8b", {{"optimizer", "muon"}}, "muon"},
      {"llama3-8b", {{"offload", "optimizer"}}, "offloading"},
      {"llama3-8b", {{"cp", "2"}}, "checkpoint"},
      {"llama3-8b", {{"moment_dtype", "bf16"}}, "moments in bf16"}};
  for (const auto& [model, asked, what] : cases) {
    Keys keys = asked;
    keys["stack"] = "megatron";
    if (std::string(model) == "gemma2-9b") keys["stack"] = "textbook";
    const std::string text = written("nanotron", model, "64xh100-sxm", keys);
    EXPECT_TRUE(text.starts_with("refused") && says(text, what)) << model << " " << what << ": " << text;
  }
}

// A format without a word for a scaled precision would run in bf16: it refuses, and names what it has.
TEST(Launch, ScaledPrecisionsAreSaidOrRefused) {
  const std::tuple<const char*, const char*, const char*, const char*> cases[] = {
      {"torchtitan", "megatron-fsdp", "fp8-tensorwise", "refused"},
      {"torchtitan", "megatron-fsdp", "fp8-blockwise", "refused"},
      {"torchtitan", "torchtitan", "fp8-rowwise", "recipe_name=\"rowwise\""},
      {"accelerate", "megatron-fsdp", "fp8-tensorwise", "fp8_backend: ao"},
      {"accelerate", "megatron-fsdp", "fp8-delayed", "fp8_backend: te"},
      {"accelerate", "torchtitan", "fp8-rowwise", "refused"},
      {"accelerate", "megatron-fsdp", "mxfp8", "refused"},
      {"deepspeed", "megatron-fsdp", "mxfp8", "refused"},
      {"nanotron", "megatron", "mxfp8", "refused"},
      {"slurm", "megatron-fsdp", "mxfp8", "precision=mxfp8"}};
  for (const auto& [format, stack, precision, said] : cases) {
    const std::string text = written(format, "llama3-8b", "8xb200", {{"stack", stack}, {"precision", precision}});
    EXPECT_TRUE(says(text, said)) << format << " " << precision << "\n" << text;
    EXPECT_TRUE(std::string(said) != "refused" || (says(text, precision) && says(text, "bf16"))) << text;
  }
}

TEST(Launch, DeepSpeedSaysWhatIsOnTheHostAndWhoShardsTogether) {
  const auto keys = [](const std::string& zero) {
    const auto out = import_deepspeed("{\"zero_optimization\": {\"stage\": 3, " + zero + "}}", "ds.json");
    EXPECT_TRUE(out.ok()) << zero;
    return out ? *out : Request{};
  };
  for (const auto& [zero, wanted] : std::vector<std::pair<std::string, std::string>>{
           {R"("offload_optimizer": {"device": "cpu"})", "optimizer"},
           {R"("offload_optimizer": {"device": "cpu", "ratio": 0.5})", "optimizer=0.5"},
           {R"("offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"})", "optimizer,params"},
           {R"("cpu_offload": true)", "optimizer"}})
    EXPECT_EQ(keys(zero).keys.at("offload"), wanted) << zero;
  EXPECT_FALSE(keys(R"("offload_param": {"device": "none"})").keys.contains("offload"));
  EXPECT_EQ(keys(R"("offload_param": {"device": "nvme"})").not_read,
            std::vector<std::string>{"zero_optimization.offload_param.device nvme"});
  const Request hpz = keys(R"("zero_hpz_partition_size": 8)");
  EXPECT_FALSE(hpz.keys.contains("hsdp"));
  EXPECT_EQ(hpz.not_read, std::vector<std::string>{"zero_optimization.zero_hpz_partition_size 8"});
  EXPECT_EQ(keys(R"("mics_shard_size": 8)").keys.at("hsdp"), "8");
  for (const auto& [stack, offload] :
       {std::pair{"textbook", "optimizer"}, std::pair{"textbook", "optimizer=0.5"},
        std::pair{"textbook", "optimizer,params"}, std::pair{"megatron-deepspeed", "activations"}}) {
    const std::string host = written("deepspeed", "llama3-8b", "8xh100-sxm",
                                     {{"stack", stack},
                                      {"zero", std::string(stack) == "textbook" ? "3" : "1"},
                                      {"recompute", "full"},
                                      {"offload", offload}});
    const auto back = import_deepspeed(host, "ds.json");
    ASSERT_TRUE(back.ok()) << host;
    EXPECT_EQ(back->keys.at("offload"), offload) << host;
  }
}

// What is not written here yet is not the framework's fault.
TEST(Launch, RefusalsSayWhoseTheLackIs) {
  for (const auto& [model, stack] : {std::pair{"deepseek-v3", "megatron"}, std::pair{"gpt-oss-20b", "megatron"}}) {
    const std::string text = written("megatron", model, "256xh100-sxm", {{"stack", stack}, {"ep", "8"}});
    EXPECT_TRUE(text.starts_with("refused") && says(text, "is not written yet")) << text;
  }
}
}  // namespace
}  // namespace preflop
