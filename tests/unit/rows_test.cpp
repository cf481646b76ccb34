// Rows of measured runs: reading tables, names as people write them, and what a row becomes.
#include "src/adapt/rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/adapt/row_request.hpp"

namespace preflop {
namespace {

const RowWords& words() {
  static const RowWords kWords = RowWords::load().value();
  return kWords;
}
const Catalogues& catalogues() {
  static const Catalogues kCatalogues = Catalogues::load().value();
  return kCatalogues;
}

Row first_row(const std::string& text) {
  const auto table = RowTable::parse(text, "mine.csv", words());
  EXPECT_TRUE(table.ok()) << (table ? "" : table.error().text());
  return table ? table->row(0) : Row{};
}
std::string fault(const std::string& text) {
  const auto table = RowTable::parse(text, "mine.csv", words());
  return table ? "" : table.error().text();
}
RowRequest request(const std::string& text, const SourceRules& rules = {}) {
  return row_request(first_row(text), rules, words(), catalogues());
}
std::string key(const RowRequest& r, const std::string& name) {
  const auto it = r.request.keys.find(name);
  return it == r.request.keys.end() ? "" : it->second;
}
bool has(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

constexpr const char* kPlain =
    "id,stack,model,gpu,gpus,precision,seq,gbs,mbs,tp,pp,vpp,cp,zero,seq_parallel,recompute,step_s\n";

TEST(Rows, ReadsWindowsLineEndsByteOrderMarkAndQuotes) {
  const Row row =
      first_row("\xEF\xBB\xBFid,gpu,gpus,model,\"step_s\"\r\n\"a,\"\"b\"\"\", h100-sxm ,8,llama3-8b,1.5\r\n");
  EXPECT_EQ(row.id, "a,\"b\"");
  EXPECT_EQ(*row.cell("gpu"), "h100-sxm");
  EXPECT_EQ(*row.cell("step_s"), "1.5");
  EXPECT_EQ(row.where, "mine.csv:2");
}

TEST(Rows, FaultsNameLineAndColumn) {
  EXPECT_EQ(fault("id,gpu,model,step_s\na,h100-sxm,llama3-8b,fast\n"),
            "mine.csv:2:22: step_s 'fast' is not a number; valid: a number without unit or separators, or nothing");
  EXPECT_NE(
      fault("id,gpu,model,tp,step_s\na,h100-sxm,llama3-8b,1.5,1\n").find("mine.csv:2:22: tp '1.5' is no whole number"),
      std::string::npos);
  EXPECT_NE(fault("id,gpu,model,tp,step_s\na,h100-sxm,llama3-8b,0,1\n").find("is zero"), std::string::npos);
  EXPECT_NE(fault("id,gpu,model,step_s\na,h100-sxm,llama3-8b,-2\n").find("is negative"), std::string::npos);
  EXPECT_NE(fault("id,gpu,model,step_s\na,h100-sxm,llama3-8b,nan\n").find("not a number"), std::string::npos);
  EXPECT_NE(fault("id,gpu,model,oom\na,h100-sxm,llama3-8b,perhaps\n").find("neither yes nor no"), std::string::npos);
  EXPECT_NE(fault("id,gpu,model,step_s\n,h100-sxm,llama3-8b,2\n").find("mine.csv:2: id is empty"), std::string::npos);
}

TEST(Rows, MissingColumnsAndForeignUnitsAreRefused) {
  EXPECT_NE(fault("gpu,model,step_s\nh100-sxm,llama3-8b,1\n").find("'id'"), std::string::npos);
  EXPECT_NE(fault("id,gpu,step_s\na,h100-sxm,1\n").find("neither a column model"), std::string::npos);
  EXPECT_NE(fault("id,gpu,model\na,h100-sxm,llama3-8b\n").find("no column that measures"), std::string::npos);
  EXPECT_NE(fault("id,gpu,model,peak_mem_gb\na,h100-sxm,llama3-8b,70\n").find("valid: peak_mem_gib"),
            std::string::npos);
  EXPECT_NE(fault("id,gpu,model,step_ms\na,h100-sxm,llama3-8b,70\n").find("valid: step_s"), std::string::npos);
}

TEST(Rows, OtherColumnsAreNotReadAndSaidSo) {
  const auto table = RowTable::parse("id,gpu,model,step_s,mood\na,h100-sxm,llama3-8b,1,good\n", "mine.csv", words());
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table->warnings().size(), 1U);
  EXPECT_NE(table->warnings()[0].find("'mood'"), std::string::npos);
}

TEST(Rows, TextInTheNumbersOfPeopleIsNotStatedAndListed) {
  const Row row = first_row("id,gpu,model,gpus,step_s,notes\na,H100,llama3-8b,128-512,1,x\n");
  EXPECT_FALSE(row.has("gpus"));
  EXPECT_TRUE(has(row.unknown, "gpus=128-512 (no number)"));
}

TEST(Rows, VocabularySetsKeysAndKeepsWhatStands) {
  const Row row = first_row(
      "id,framework,gpu,model,precision,grad_dtype,step_s\n"
      "a,megatron-bridge v0.3.0 (NeMo container 26.02),H100,llama3-8b,\"bf16, fp32 gradient accumulation\",bf16,1\n");
  EXPECT_EQ(*row.cell("stack"), "megatron@nemo-26.02");
  EXPECT_EQ(*row.cell("gpu"), "h100-sxm");
  EXPECT_TRUE(row.is_assumed("gpu"));
  EXPECT_EQ(*row.cell("precision"), "bf16");
  EXPECT_EQ(*row.cell("grad_dtype"), "bf16");  // the cell wins over the string
}

TEST(Rows, UnseenStringsTakeWhatTheySayOrTheDefaultAndAreListed) {
  const Row row = first_row(
      "id,framework,gpu,model,sharding,recompute,optimizer,precision,step_s\n"
      "a,torchtitan v9.9 (nightly),H100-SXM-80GB,llama3-8b,ZeRO-2 of some kind,selective: "
      "whatever,FusedAdam,wishful,1\n");
  EXPECT_EQ(*row.cell("stack"), "torchtitan");
  EXPECT_EQ(*row.cell("zero"), "2");
  EXPECT_EQ(*row.cell("recompute"), "selective");
  EXPECT_EQ(*row.cell("optimizer"), "adamw");
  EXPECT_FALSE(row.has("precision"));
  EXPECT_TRUE(has(row.unknown, "precision=wishful (not known: the default)"));
  EXPECT_TRUE(has(row.unknown, "sharding=ZeRO-2 of some kind (not known: read by its parts)"));
}

TEST(RowRequest, AStatedRowHasNothingAssumed) {
  const RowRequest r =
      request(std::string(kPlain) + "a,megatron,llama3-8b,h100-sxm,64,bf16,8192,128,1,2,4,4,1,1,yes,none,3.5\n");
  EXPECT_TRUE(r.assumed.empty()) << r.assumed.front();
  EXPECT_FALSE(r.skip) << r.skip.reason;
  EXPECT_TRUE(r.states_enough);
  EXPECT_EQ(r.request.on, "64xh100-sxm");
  EXPECT_EQ(r.request.model, "llama3-8b");
  EXPECT_EQ(key(r, "sp"), "true");
  EXPECT_EQ(key(r, "vpp"), "4");
  EXPECT_TRUE(pose(r.request, catalogues()).ok());
}

TEST(RowRequest, EmptyVppIsNotOne) {
  const std::string row = "a,megatron,llama3-8b,h100-sxm,64,bf16,8192,128,1,2,4,,1,1,yes,none,3.5\n";
  const RowRequest r = request(kPlain + row);
  EXPECT_EQ(key(r, "vpp"), "8");  // a layer a chunk: 32 layers over 4 stages
  EXPECT_TRUE(has(r.assumed, "vpp=8"));
  // 10 micro-batches are no multiple of pp: it cannot have interleaved
  const RowRequest odd =
      request(std::string(kPlain) + "a,megatron,llama3-8b,h100-sxm,64,bf16,8192,80,1,2,4,,1,1,yes,none,3.5\n");
  EXPECT_EQ(key(odd, "vpp"), "1");
}

// Without expert sizes of their own, Megatron's experts are split as the rest is.
TEST(RowRequest, EmptyEtpIsTp) {
  const std::string head = "id,stack,model,gpu,gpus,seq,gbs,mbs,tp,pp,ep,etp,folding,step_s\n";
  const auto row = [&](const char* cells) {
    return request(head + "a,megatron,mixtral-8x22b,h100-sxm," + cells + ",1\n");
  };
  EXPECT_EQ(key(row("128,4096,1024,1,4,1,8,,"), "etp"), "4");
  EXPECT_TRUE(has(row("128,4096,1024,1,4,1,8,,").assumed, "etp=4"));
  EXPECT_EQ(key(row("128,4096,1024,1,4,1,8,1,"), "etp"), "");
  EXPECT_FALSE(has(row("128,4096,1024,1,4,1,8,1,").assumed, "etp=1"));
  EXPECT_EQ(key(row("128,4096,1024,1,4,1,8,,yes"), "etp"), "");
  EXPECT_TRUE(has(row("128,4096,1024,1,4,1,8,,yes").assumed, "etp=1"));
  EXPECT_EQ(key(row("128,4096,1024,1,4,8,8,,"), "etp"), "");  // 16 ranks a stage: 8 x 4 cannot be
  const auto posed = pose(row("128,4096,1024,1,4,1,8,,").request, catalogues());
  ASSERT_TRUE(posed.ok()) << posed.error().text();
  EXPECT_EQ(posed->analysed.recipe.layout.etp, 4);
}

TEST(RowRequest, OldMegatronHadNoFlashAttention) {
  const std::string head = "id,stack,model,gpu,gpus,seq,gbs,mbs,tp,step_s\n";
  EXPECT_EQ(key(request(head + "a,megatron@2022,gpt3-175b,a100-80,64,2048,64,1,8,1\n"), "attention"), "unfused");
  EXPECT_EQ(key(request(head + "a,megatron@2023,gpt3-175b,a100-80,64,2048,64,1,8,1\n"), "attention"), "unfused");
  EXPECT_EQ(key(request(head + "a,megatron@nemo-24.07,gpt3-175b,a100-80,64,2048,64,1,8,1\n"), "attention"), "");
}

TEST(RowRequest, StagesOfSlots) {
  const std::string head = "id,stack,model,gpu,gpus,seq,gbs,mbs,pp,vpp,dp,schedule,split,vocab,step_s\n";
  const RowRequest plain =
      request(head + "a,megatron@2023,gpt-zb-1.5b,a100-80,8,1024,144,6,8,1,1,1f1b,slots,50257,1\n");
  EXPECT_EQ(key(plain, "layers_per_stage"), "2,3,3,3,3,3,3,2");
  const RowRequest chunks =
      request(head + "a,megatron@2023,gpt-zb-1.5b,a100-80,8,1024,144,6,8,3,1,interleaved,slots,50257,1\n");
  EXPECT_EQ(key(chunks, "layers_per_stage"), "");
  const auto posed = pose(chunks.request, catalogues());
  EXPECT_TRUE(posed.ok()) << (posed ? "" : posed.error().text());
}

TEST(RowRequest, ModelsThatDifferBecomeShapes) {
  const std::string head = "id,stack,model,layers,kv_heads,vocab,gpu,gpus,seq,gbs,mbs,step_s\n";
  const RowRequest cut = request(head + "a,megatron,llama3-70b,12,,,b200,8,4096,16,1,1\n");
  EXPECT_NE(cut.request.model.find("llama:layers=12,hidden=8192,heads=64,kv_heads=8"), std::string::npos)
      << cut.request.model;
  EXPECT_EQ(cut.model, "llama3-70b, 12 layers");
  const RowRequest same = request(head + "a,megatron,llama3-70b,80,8,128256,b200,8,4096,16,1,1\n");
  EXPECT_EQ(same.request.model, "llama3-70b");
  // a model whose vocabulary no source states: the row's, else Megatron's padded one, assumed
  EXPECT_NE(request(head + "a,megatron,gpt2-2b,,,50304,v100-32,2,1024,8,8,1\n").request.model.find("vocab=50304"),
            std::string::npos);
  const RowRequest padded = request(head + "a,megatron,gpt2-2b,,,,v100-32,2,1024,8,8,1\n");
  EXPECT_NE(padded.request.model.find("vocab=51200"), std::string::npos);
  EXPECT_TRUE(has(padded.assumed, "vocab=51200"));
}

// A model whose experts are as many copies of a dense MLP, and one cut to its first layers.
TEST(RowRequest, ExpertsFromCells) {
  const std::string head = "id,stack,model,layers,experts,topk,moe_ffn,dense_layers,gpu,gpus,seq,gbs,mbs,step_s\n";
  const std::string upcycled = request(head + "a,megatron,llama3-70b,,8,2,,,h100-sxm,8,4096,8,1,1\n").request.model;
  EXPECT_NE(upcycled.find("experts=8,top_k=2,expert_ffn=28672"), std::string::npos) << upcycled;
  const std::string cut = request(head + "a,megatron,deepseek-v3,4,,,,1,h100-sxm,8,4096,8,1,1\n").request.model;
  EXPECT_NE(cut.find("layers=4,"), std::string::npos) << cut;
  EXPECT_NE(cut.find("dense_first=1"), std::string::npos) << cut;
  EXPECT_TRUE(request(head + "a,megatron,deepseek-v3,4,,,,1,h100-sxm,8,4096,8,1,1\n").moe);
}

TEST(RowRequest, ChunksWithoutAPipelineAreNoChunks) {
  const RowRequest r = request(
      "id,stack,model,gpu,gpus,seq,gbs,mbs,tp,pp,vpp,step_s\na,megatron,llama3-8b,h100-sxm,8,8192,64,1,1,1,5,1\n");
  EXPECT_EQ(key(r, "vpp"), "");
  EXPECT_TRUE(has(r.not_modelled, "vpp=5 (no pipeline)"));
}

TEST(RowRequest, LearnedPositionsFollowTheSequence) {
  const RowRequest r =
      request("id,stack,model,gpu,gpus,seq,gbs,mbs,step_s\na,foundry,mpt-7b-x,h100-sxm,8,4096,8,1,1\n");
  EXPECT_EQ(r.skip.reason, "model unknown: mpt-7b-x");
  const RowRequest gpt =
      request("id,stack,model,gpu,gpus,seq,gbs,mbs,step_s\na,megatron,gpt3-175b,h100-sxm,8,4096,8,1,1\n");
  EXPECT_NE(gpt.request.model.find("seq=4096"), std::string::npos);
  EXPECT_EQ(
      request("id,stack,model,gpu,gpus,seq,gbs,mbs,step_s\na,megatron,gpt3-175b,h100-sxm,8,2048,8,1,1\n").request.model,
      "gpt3-175b");
}

TEST(RowRequest, ModelsFromCellsAlone) {
  const std::string head = "id,stack,model,layers,hidden,heads,ffn,vocab,gpu,gpus,seq,gbs,mbs,step_s\n";
  EXPECT_EQ(request(head + "a,megatron,gpt:,40,5120,40,20480,50304,h100-sxm,8,2048,8,1,1\n").request.model,
            "gpt:layers=40,hidden=5120,heads=40,ffn=20480,vocab=50304,seq=2048");
  const RowRequest unseen = request(head + "a,megatron,our-own-13b,40,5120,40,13824,32000,h100-sxm,8,2048,8,1,1\n");
  EXPECT_TRUE(unseen.request.model.starts_with("llama:"));
  EXPECT_TRUE(has(unseen.assumed, "model=llama"));
  EXPECT_EQ(request(head + "a,megatron,,,,,,,h100-sxm,8,2048,8,1,1\n").skip.reason, "model or shape");
  EXPECT_EQ(request(head + "a,megatron,our-own-13b,,,,,,h100-sxm,8,2048,8,1,1\n").skip.reason,
            "model unknown: our-own-13b");
}

TEST(RowRequest, WhatIsNotBuiltIsSkippedByName) {
  const std::string head = "id,stack,model,gpu,gpus,precision,seq,gbs,mbs,lora,step_s\n";
  const auto reason = [&](const std::string& row) {
    const RowRequest r = request(head + row);
    if (r.skip) return r.skip.reason;
    const auto posed = pose(r.request, catalogues());
    return posed ? "" : skip_of(posed.error(), r.request).reason;
  };
  EXPECT_EQ(reason("a,torchtune,llama3-8b,h100-sxm,8,bf16,8192,8,1,,1\n"), "stack not built: torchtune");
  EXPECT_EQ(reason("a,megatron,jamba-v0.1,h100-sxm,8,bf16,8192,8,1,,1\n"),
            "architecture not built: state-space or linear-attention layers");
  const auto& keys = request_keys();
  const auto lora =
      std::find_if(keys.begin(), keys.end(), [](const Key& k) { return std::string_view(k.name) == "lora"; });
  if (*lora->not_built != '\0') {
    EXPECT_EQ(reason("a,megatron,llama3-8b,h100-sxm,8,bf16,8192,8,1,yes,1\n"), "not built: low-rank adapters");
  }
}

TEST(RowRequest, MissingCellsAreNamed) {
  const std::string head = "id,stack,model,gpu,gpus,seq,gbs,mbs,mp,dp,step_s\n";
  EXPECT_EQ(request(head + "a,megatron,llama3-8b,,8,8192,8,1,,,1\n").skip.reason, "gpu");
  EXPECT_EQ(request(head + "a,megatron,llama3-8b,h100-sxm,,8192,8,1,,,1\n").skip.reason, "gpu count");
  EXPECT_EQ(request(head + "a,megatron,llama3-8b,h100-sxm,8,,8,1,,,1\n").skip.reason, "sequence length");
  EXPECT_EQ(request(head + "a,megatron,llama3-8b,h100-sxm,8,8192,16,,,,1\n").skip.reason, "micro-batch");
  EXPECT_EQ(request(head + "a,megatron,llama3-8b,h100-sxm,8,8192,8,1,4,,1\n").skip.reason, "tp, pp");
  EXPECT_EQ(request(head + "a,megatron,llama3-8b,abacus,8,8192,8,1,,,1\n").skip.reason, "GPU unknown: abacus");
  const RowRequest follows = request(head + "a,megatron,llama3-8b,h100-sxm,8,8192,8,,,,1\n");  // 8 ranks, 8 sequences
  EXPECT_EQ(key(follows, "micro_batch"), "1");
  EXPECT_FALSE(follows.skip) << follows.skip.reason;
}

TEST(RowRequest, GpuNamesWithMoreBehindThem) {
  const RowRequest r = request(
      "id,stack,model,gpu,gpus,seq,gbs,mbs,step_s\na,megatron,llama3-8b,NVIDIA H100-SXM-80GB-HBM3 "
      "(Eos),8,8192,8,1,1\n");
  EXPECT_EQ(r.request.on, "8xh100-sxm");
}

TEST(RowRequest, ABatchThatIsNotStated) {
  const RowRequest r =
      request("id,stack,model,gpu,gpus,seq,mbs,peak_mem_gib\na,megatron,llama3-8b,h100-sxm,8,8192,2,60\n");
  EXPECT_EQ(key(r, "global_batch"), "16");
  EXPECT_TRUE(has(r.assumed, "gbs=16"));
}

TEST(RowRequest, CellsThatNoKeyTakesAreNamed) {
  const RowRequest r = request(
      "id,stack,model,gpu,gpus,seq,gbs,mbs,cuda_graph,graph_scope,dispatcher,packing,step_s\na,megatron,llama3-8b,h100-"
      "sxm,8,8192,"
      "8,1,full_iteration,attn,none,squad,1\n");
  EXPECT_TRUE(has(r.not_modelled, "graph_scope=attn"));
  EXPECT_EQ(key(r, "cuda_graph"), "full_iteration");
  EXPECT_EQ(key(r, "dispatcher"), "");
  EXPECT_FALSE(has(r.not_modelled, "dispatcher=none"));
  EXPECT_TRUE(has(r.not_modelled, "packing=squad (taken as full sequences)"));
}

TEST(RowRequest, GraphsOfPartsSayWhichParts) {
  const RowRequest r = request(
      "id,stack,model,gpu,gpus,seq,gbs,mbs,cuda_graph,graph_scope,step_s\na,megatron,llama3-8b,h100-sxm,8,8192,8,1,"
      "transformer_engine,\"attn,mlp\",1\n");
  EXPECT_EQ(key(r, "cuda_graph_scope"), "attn,mlp");
  EXPECT_TRUE(r.not_modelled.empty());
}

TEST(RowRequest, PackedSamplesAttendWithinThemselves) {
  const RowRequest r = request(
      "id,stack,model,gpu,gpus,seq,gbs,mbs,packing,mean_length,step_s\na,megatron,llama3-8b,h100-sxm,8,4096,8,1,squad,"
      "206,1\n");
  EXPECT_EQ(key(r, "packing"), "on");
  EXPECT_EQ(key(r, "mean_length"), "206");
  EXPECT_TRUE(r.not_modelled.empty());
}

TEST(Readings, OneForEachQuantity) {
  const RowRequest r = request(
      "id,model,gpu,gpus,seq,gbs,mbs,step_s,tok_s_gpu,peak_mem_gib,mem_kind,reserved_gib,device_gib\na,llama3-8b,h100-"
      "sxm,8,8192,8,1,2,4000,60,allocated,66,70\n");
  std::vector<std::string> metrics;
  for (const Reading& reading : r.readings) metrics.push_back(reading.metric);
  EXPECT_EQ(metrics, (std::vector<std::string>{"time.step_seconds", "memory.allocated", "memory.reserved",
                                               "memory.device", "fit.verdict"}));
  EXPECT_EQ(r.readings[0].value, 2);  // step_s counts before tokens/s
  EXPECT_EQ(r.readings[1].value, 60.0 * (1 << 30));
}

TEST(Readings, TheKindOfMemory) {
  const std::string head = "id,model,gpu,gpus,seq,gbs,mbs,peak_mem_gib,mem_kind\na,llama3-8b,h100-sxm,8,8192,8,1,60,";
  EXPECT_EQ(request(head + "\n").readings[0].metric, "memory.reserved");
  EXPECT_TRUE(has(request(head + "\n").assumed, "mem_kind=reserved"));
  SourceRules bloom;
  bloom.memory = "device";
  EXPECT_EQ(request(head + "unknown\n", bloom).readings[0].metric, "memory.device");
  EXPECT_EQ(request(head + "nvidia-smi\n").readings[0].metric, "memory.device");
}

TEST(Readings, OutOfMemoryAndNothing) {
  const std::string head = "id,model,gpu,gpus,seq,gbs,mbs,step_s,oom\na,llama3-8b,h100-sxm,8,8192,8,1,";
  const RowRequest oom = request(head + ",yes\n");
  ASSERT_EQ(oom.readings.size(), 1U);
  EXPECT_EQ(oom.readings[0].metric, "fit.verdict");
  EXPECT_EQ(oom.readings[0].value, 0);
  const RowRequest nothing = request(head + ",\n");
  ASSERT_EQ(nothing.readings.size(), 1U);
  EXPECT_EQ(nothing.skip.reason, "nothing measured");
}

TEST(Readings, TokensThatAreRoundedGiveWay) {
  const RowRequest r = request(
      "id,model,gpu,gpus,seq,gbs,mbs,tok_s_gpu,tflops_gpu,convention,flags\na,llama3-8b,h100-sxm,8,8192,8,1,6288,700,"
      "bridge,tok-quantised\n");
  EXPECT_EQ(r.readings[0].from, Reading::From::tflops_per_gpu);
  EXPECT_EQ(r.readings[0].convention, "bridge");
}

}  // namespace
}  // namespace preflop
