#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "preflop/machine.hpp"
#include "src/machine/cluster.hpp"

namespace preflop {
namespace {

const MachineCatalogue& catalogue() {
  static const MachineCatalogue loaded = [] {
    Result<MachineCatalogue> result = MachineCatalogue::load();
    return result.ok() ? *result : MachineCatalogue();
  }();
  return loaded;
}

Cluster good(std::string_view spec) {
  Result<Cluster> cluster = catalogue().cluster(spec);
  EXPECT_TRUE(cluster.ok()) << spec << ": " << (cluster.ok() ? "" : cluster.error().text());
  return cluster.ok() ? *cluster : Cluster();
}

std::string bad(std::string_view spec) {
  Result<Cluster> cluster = catalogue().cluster(spec);
  return cluster.ok() ? "accepted" : cluster.error().text();
}

TEST(ClusterSpec, CountsAccelerators) {
  const Cluster c = good("64xh100-sxm");
  EXPECT_EQ(c.gpu.id, "h100-sxm");
  EXPECT_EQ(c.platform.id, "dgx-h100");
  EXPECT_EQ(c.gpus, 64);
  EXPECT_EQ(c.gpus_per_node, 8);
  EXPECT_EQ(c.nodes(), 8);
  EXPECT_FALSE(c.memory_only);
  EXPECT_EQ(c.assumed, std::vector<std::string>{"platform=dgx-h100"});
  EXPECT_EQ(good("16xdgx-h100").nodes(), 2);
  EXPECT_TRUE(good("16xdgx-h100").assumed.empty());
}

TEST(ClusterSpec, BareNames) {
  EXPECT_EQ(good("dgx-h100").gpus, 8);
  EXPECT_EQ(good("gb200-nvl72").gpus, 4);  // a node is a tray
  EXPECT_EQ(good("h100").gpus, 1);
  EXPECT_EQ(good("3090").gpu.id, "rtx3090");
  EXPECT_EQ(good("MI300X").gpu.id, "mi300x");
  EXPECT_EQ(good(" 8 x h100 ").gpus, 8);
}

TEST(ClusterSpec, NamesWithCountsSlashesAndCrosses) {
  EXPECT_EQ(good("8xmi300x").gpus, 8);
  EXPECT_EQ(good("16x3090/8").nodes(), 2);
  EXPECT_EQ(good("8x MI300X platform").platform.id, "mi300x-8");
  EXPECT_EQ(good("16x8x MI300X platform").gpus, 16);
  EXPECT_EQ(good("16xV100 SXM2/3 32GB").gpu.id, "v100-32");
  EXPECT_EQ(good("32xV100 SXM2/3 32GB/16").nodes(), 2);
  EXPECT_EQ(good("1Kxh100").gpus, 1000);
}

TEST(ClusterSpec, NodeSize) {
  const Cluster c = good("64xh100-sxm/4");
  EXPECT_EQ(c.gpus_per_node, 4);
  EXPECT_EQ(c.nodes(), 16);
  EXPECT_EQ(c.datum("scaleup_domain").value, 4);
  EXPECT_EQ(c.datum("scaleup_domain").rung, Rung::given);
  EXPECT_EQ(good("4xh100").gpus_per_node, 4);  // less than a node is one node
  EXPECT_EQ(good("4xh100").nodes(), 1);
  EXPECT_EQ(good("72xgb200/2").datum("scaleup_domain").value, 72);  // the rack's, whatever the tray
}

TEST(ClusterSpec, OwnValuesWinOverTheGpus) {
  EXPECT_EQ(good("16xa100-40").datum("scaleout_bandwidth").value, 25e9);  // DGX A100, not p4d's 6.25
  EXPECT_EQ(good("16xaws-p4d").datum("scaleout_bandwidth").value, 6.25e9);
  EXPECT_EQ(good("8xh100").datum("bf16_flops").value, 989e12);
  EXPECT_FALSE(good("8xh100").datum("no_such_field").value.has_value());
}

TEST(ClusterSpec, EveryRungBelowExactIsAssumed) {
  EXPECT_EQ(good("16xa800").assumed,
            (std::vector<std::string>{"platform=hgx-a800", "capacity_bytes=79.15 GiB (same chip: R3: as a100-80)",
                                      "memory_bandwidth=2039 GB/s (same chip: R3: as a100-80)",
                                      "bf16_flops=312 TFLOP/s (same chip: R3: as a100-80)",
                                      "scaleout_bandwidth=25 GB/s (class rule: network of DGX A100 (R3))"}));
  const Cluster one = good("rtx5090");
  ASSERT_EQ(one.assumed.size(), 2u);
  EXPECT_EQ(
      one.assumed[1],
      "bf16_flops=209.5 TFLOP/s (class rule: R4: a quarter of the 838 TFLOP/s headline (sparse, fp16 accumulate))");
  EXPECT_EQ(good("8xrtx4090").assumed[1], "gpus_per_node=1 (rtx4090-1 is one GPU; 8xrtx4090/8 is one node)");
  EXPECT_EQ(good("8xtrn3").assumed[1], "gpus_per_node=8 (not known for aws-trn3: taken as one node)");
}

TEST(ClusterSpec, MemoryOnly) {
  const Cluster c = good("1x80GB");
  EXPECT_TRUE(c.memory_only);
  EXPECT_EQ(c.gpus, 1);
  EXPECT_EQ(c.datum("capacity_bytes").value, 80e9);
  EXPECT_EQ(c.datum("capacity_bytes").rung, Rung::given);
  EXPECT_FALSE(c.datum("bf16_flops").value.has_value());
  EXPECT_FALSE(c.datum("bf16_flops").source.empty());
  EXPECT_EQ(good("8x80GiB").datum("capacity_bytes").value, 80 * 1073741824.0);
  EXPECT_EQ(good("8x80GiB").nodes(), 1);
  EXPECT_EQ(good("16x79.1 GiB/8").nodes(), 2);
  EXPECT_EQ(good("24gib").gpus, 1);
}

// The same GPU in other machines is another cluster; the same machine under another name is not.
TEST(ClusterSpec, MachinesAreToldApart) {
  const Cluster gpu = good("64xh100-sxm"), platform = good("64xdgx-h100"), nodes = good("64xh100-sxm/4");
  EXPECT_TRUE(same_cluster(gpu, platform));
  EXPECT_FALSE(same_cluster(gpu, nodes));
  EXPECT_FALSE(same_cluster(gpu, good("128xh100-sxm")));
  EXPECT_TRUE(same_machine(gpu, good("128xh100-sxm")));
  EXPECT_TRUE(same_machine(gpu, good("4xh100-sxm")));  // a part of a node
  EXPECT_FALSE(same_machine(gpu, good("64xh200")));
  Cluster cooler = gpu;
  cooler.gpu.data["tdp_watts"].value = 500;
  EXPECT_FALSE(same_machine(gpu, cooler));

  const Cluster google = good("64xgcp-a3-high"), oracle = good("64xoci-h100"), h200 = good("64xh200");
  const auto names = [](const std::vector<const Cluster*>& all) {
    std::vector<std::string> out;
    for (const Cluster* c : all) out.push_back(machine_name(*c, all));
    return out;
  };
  EXPECT_EQ(names({&gpu, &h200}), (std::vector<std::string>{"h100-sxm", "h200"}));
  EXPECT_EQ(names({&google, &oracle, &h200}), (std::vector<std::string>{"gcp-a3-high", "oci-h100", "h200"}));
  EXPECT_EQ(names({&gpu, &nodes}), (std::vector<std::string>{"dgx-h100/8", "dgx-h100/4"}));
  EXPECT_EQ(names({&gpu, &cooler}), (std::vector<std::string>{"dgx-h100/8 (1)", "dgx-h100/8 (2)"}));
}

TEST(ClusterSpec, Errors) {
  const std::string whole = "; a whole number from 1 to 10,000,000";
  EXPECT_EQ(bad("0xh100"), "--on: the count is zero" + whole);
  EXPECT_EQ(bad("-8xh100"), "--on: the count '-8' is negative" + whole);
  EXPECT_EQ(bad("2.5xh100"), "--on: the count '2.5' is not a whole number" + whole);
  EXPECT_EQ(bad("xh100"), "--on: the count is missing" + whole);
  EXPECT_EQ(bad("10000001xh100"), "--on: the count '10000001' is too large" + whole);
  EXPECT_EQ(bad("99999999999999999999xh100").rfind("--on: the count ", 0), 0u);
  EXPECT_EQ(bad("1..8xh100"), "--on: count '1..8' is a range; ranges LO..HI are only in plan; here one number");
  EXPECT_EQ(bad("8xh100/0"), "--on: the node size is zero" + whole);
  EXPECT_EQ(bad("8xh100/-2"), "--on: the node size '-2' is negative" + whole);
  EXPECT_EQ(bad("8xh100/"), "--on: the node size is missing" + whole);
  EXPECT_EQ(bad("8xh100/many"), "--on: the node size 'many' is not a whole number" + whole);
  EXPECT_EQ(bad("12xh100-sxm"),
            "--on: 12 GPUs do not fill nodes of 8; 8 or 16 GPUs, or another node size, such as 12xh100-sxm/6");
  EXPECT_EQ(bad("13xh100/4"),
            "--on: 13 GPUs do not fill nodes of 4; 12 or 16 GPUs, or another node size, such as 13xh100/1");
  EXPECT_EQ(
      bad("12xdgx-h100"),
      "--on: 12 GPUs do not fill nodes of 8; 96xdgx-h100 for 12 nodes, 8 or 16 GPUs, or another node size, such as "
      "12xdgx-h100/6");
  EXPECT_NE(bad("12xdgx-h100/5").find("; 60xdgx-h100/5 for 12 nodes, "), std::string::npos);
  EXPECT_NE(bad("8xh100-sx").find("h100-sxm"), std::string::npos);
  EXPECT_NE(bad("8xdgx-h10").find("dgx-h100"), std::string::npos);
  EXPECT_EQ(bad("aws-trn3"),
            "--on: how many GPUs a node of aws-trn3 has is unknown; give a count, such as 16xaws-trn3");
  EXPECT_NE(bad("").find("no cluster is given"), std::string::npos);
  EXPECT_NE(bad("8x").find("names no GPU or platform"), std::string::npos);
  EXPECT_NE(bad("1x80G").find("--on"), std::string::npos);
  EXPECT_NE(bad("1x80G"), "accepted");
  EXPECT_NE(bad("1x0GB").find("1 GB to 10 TB"), std::string::npos);
  EXPECT_NE(bad(std::string(5000, 'x')).find("longer than"), std::string::npos);
}

void check_sound(const std::string& spec) {
  Result<Cluster> c = catalogue().cluster(spec);
  if (!c) {
    RC_ASSERT(!c.error().what.empty());
    return;
  }
  RC_ASSERT(c->gpus >= 1 && c->gpus <= 10'000'000);
  RC_ASSERT(c->gpus_per_node >= 1 && c->gpus_per_node <= c->gpus);
  RC_ASSERT(c->gpus % c->gpus_per_node == 0);
  for (const auto& [field, datum] : c->gpu.data) {
    if (datum.value) RC_ASSERT(std::isfinite(*datum.value) && *datum.value > 0);
  }
}

RC_GTEST_PROP(ClusterSpecProperty, AnyTextIsAClusterOrAnError, (const std::string& text)) { check_sound(text); }

RC_GTEST_PROP(ClusterSpecProperty, AnyMixOfPiecesIsAClusterOrAnError, ()) {
  const std::vector<std::string> pieces = {"8",       "64",  "x",        "X",  "/",           "-",   ".",      "..",
                                           "h100",    "sxm", "dgx-h100", "80", "GB",          "Gi",  "mi300x", " ",
                                           "rtx4090", "1e3", "0",        "K",  "gb200-nvl72", "\xff"};
  std::string text;
  for (const std::string& piece : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces)))
    text += piece;
  check_sound(text);
}

RC_GTEST_PROP(ClusterSpecProperty, FullNodesAlwaysBuild, ()) {
  const Platform& platform = *rc::gen::elementOf(catalogue().platforms());
  const auto node = platform.datum("gpus_per_node").value;
  RC_PRE(node.has_value());
  const auto nodes = *rc::gen::inRange(1, 1000);
  const auto gpus = nodes * static_cast<std::int64_t>(*node);
  Result<Cluster> c = catalogue().cluster(std::to_string(gpus) + "x" + platform.id);
  RC_ASSERT(c.ok());
  RC_ASSERT(c->nodes() == nodes);
}

}  // namespace
}  // namespace preflop
