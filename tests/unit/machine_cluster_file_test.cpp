#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <sstream>

#include "preflop/machine.hpp"

namespace preflop {
namespace {

const MachineCatalogue& catalogue() {
  static const MachineCatalogue loaded = [] {
    Result<MachineCatalogue> result = MachineCatalogue::load();
    return result.ok() ? *result : MachineCatalogue();
  }();
  return loaded;
}

Cluster good(std::string_view text) {
  Result<Cluster> cluster = cluster_from_toml(text, "c.toml", catalogue());
  EXPECT_TRUE(cluster.ok()) << (cluster.ok() ? "" : cluster.error().text());
  return cluster.ok() ? *cluster : Cluster();
}

std::string bad(std::string_view text) {
  Result<Cluster> cluster = cluster_from_toml(text, "c.toml", catalogue());
  return cluster.ok() ? "accepted" : cluster.error().text();
}

TEST(ClusterFile, NamesAsInOn) {
  const Cluster c = good("gpus = 64\ngpu = \"H100\"\n");
  EXPECT_EQ(c.gpu.id, "h100-sxm");
  EXPECT_EQ(c.nodes(), 8);
  EXPECT_EQ(c.assumed, std::vector<std::string>{"platform=dgx-h100"});
  EXPECT_EQ(good("gpus = 64\ngpus_per_node = 4\ngpu = \"h100\"\nplatform = \"gcp-a3-high\"\n").nodes(), 16);
}

TEST(ClusterFile, OverridesABase) {
  const Cluster c = good(
      "gpus = 16\n[gpu]\nbase = \"h100-sxm\"\nname = \"H100 at 500 W\"\ntdp_watts = \"500 W\"\nsource = \"our runs\"\n"
      "[platform]\nbase = \"dgx-h100\"\nscaleout_bandwidth = \"200 Gbit/s\"\ngpus_per_node = 4\n");
  EXPECT_EQ(c.gpu.id, "h100-at-500-w");
  EXPECT_EQ(c.datum("tdp_watts").value, 500);
  EXPECT_EQ(c.datum("tdp_watts").rung, Rung::given);
  EXPECT_EQ(c.datum("tdp_watts").source, "given: c.toml:5:13; our runs");
  EXPECT_EQ(c.datum("bf16_flops").value, 989e12);
  EXPECT_EQ(c.datum("scaleout_bandwidth").value, 25e9);
  EXPECT_EQ(c.nodes(), 4);
}

TEST(ClusterFile, WithoutABaseOnlyWhatIsGivenIsKnown) {
  const Cluster c = good("gpus = 2\n[gpu]\nvendor = \"NVIDIA\"\narch = \"sm90\"\nsmi_bytes = \"81559 MiB\"\n");
  EXPECT_EQ(c.gpu.id, "custom");
  EXPECT_EQ(c.datum("capacity_bytes").rung, Rung::class_rule);  // R1
  EXPECT_FALSE(c.datum("bf16_flops").value.has_value());
  EXPECT_EQ(c.gpus_per_node, 2);
  EXPECT_FALSE(c.assumed.empty());
}

TEST(ClusterFile, ErrorsNameLineAndColumn) {
  EXPECT_EQ(bad("gpus = 64\ngpu = \"h100sxm\"\n"), "c.toml:2:7: unknown GPU 'h100sxm'; did you mean h100-sxm?");
  EXPECT_EQ(bad("gpus = 0\ngpu = \"h100\"\n"), "c.toml:1:8: the gpus is zero; a whole number from 1 to 10,000,000");
  EXPECT_EQ(
      bad("gpus = 12\ngpu = \"h100\"\n"),
      "c.toml:1:8: 12 GPUs do not fill nodes of 8; 8 or 16 GPUs, or another node size, such as gpus_per_node = 6");
  EXPECT_NE(bad("gpus = 8\n").find("no gpu is given"), std::string::npos);
  EXPECT_NE(bad("gpu = \"h100\"\n").find("no gpus"), std::string::npos);
  EXPECT_EQ(bad("gpus = 8\n[gpu]\nbase = \"h100\"\nbf16_flop = \"1 TFLOP/s\"\n").rfind("c.toml:4:", 0), 0u);
  const auto gpu = [](const std::string& line) { return bad("gpus = 8\n[gpu]\nbase = \"h100\"\n" + line + "\n"); };
  EXPECT_NE(gpu("bf16_flops = 989").find("c.toml:4:14: bf16_flops = '989' has no unit"), std::string::npos);
  EXPECT_NE(gpu("bf16_flops = \"989 GB\"").find("c.toml:4:14"), std::string::npos);
  EXPECT_NE(gpu("bf16_flops = \"-1 TFLOP/s\"").find("out of bounds"), std::string::npos);
  EXPECT_NE(gpu("bf16_flops = \"many TFLOP/s\"").find("not a number"), std::string::npos);
  EXPECT_NE(gpu("bf16_flops = inf").find("c.toml:4:14"), std::string::npos);
  EXPECT_NE(gpu("sm_count = 1.5").find("not whole"), std::string::npos);
  EXPECT_NE(gpu("sm_count = [1]").find("c.toml:4:"), std::string::npos);
  EXPECT_NE(gpu("name = 5").find("c.toml:4:"), std::string::npos);
  EXPECT_NE(bad("gpus = 8\ngpu = [1]\n").find("c.toml:2:"), std::string::npos);
  EXPECT_NE(bad("gpus = 8\ngpu = \"h100\"\nplatform = \"dgx-h10\"\n").find("c.toml:3:12"), std::string::npos);
  EXPECT_NE(bad("gpus = \n").find("c.toml:1"), std::string::npos);
}

// The example of the documentation is a cluster.
TEST(ClusterFile, TheDocumentedExampleReads) {
  std::ifstream file("docs/cluster-files.md");
  if (!file) GTEST_SKIP() << "docs/ is not here";
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  const std::size_t start = page.find("```toml\n") + 8;
  const Cluster c = good(page.substr(start, page.find("```", start) - start));
  EXPECT_EQ(c.nodes(), 8);
  EXPECT_EQ(c.datum("matmul_bf16_flops").value, 620e12);
}

RC_GTEST_PROP(ClusterFileProperty, AnyTextIsAClusterOrAnError, (const std::string& text)) {
  Result<Cluster> c = cluster_from_toml(text, "c.toml", catalogue());
  if (!c) RC_ASSERT(!c.error().what.empty());
}

}  // namespace
}  // namespace preflop
