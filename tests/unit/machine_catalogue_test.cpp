#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <set>
#include <sstream>

#include "preflop/machine.hpp"
#include "src/base/csv.hpp"
#include "src/base/embedded.hpp"
#include "src/machine/fields.hpp"
#include "src/machine/ladder.hpp"
#include "src/machine/rows.hpp"

namespace preflop {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

const MachineCatalogue& catalogue() {
  static const MachineCatalogue loaded = [] {
    Result<MachineCatalogue> result = MachineCatalogue::load();
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().text());
    return result.ok() ? *result : MachineCatalogue();
  }();
  return loaded;
}

const Gpu& gpu(std::string_view name) {
  Result<const Gpu*> found = catalogue().gpu(name);
  EXPECT_TRUE(found.ok()) << name;
  static const Gpu none;
  return found ? **found : none;
}

double value(std::string_view id, std::string_view field) { return gpu(id).datum(field).value.value_or(-1); }

TEST(MachineCatalogue, AllGpusAndPlatformsLoad) {
  EXPECT_EQ(catalogue().gpus().size(), 44u);
  EXPECT_EQ(catalogue().platforms().size(), 72u);
}

TEST(MachineCatalogue, NothingIsWrongWithIt) {
  for (const std::string& line : check_catalogue(catalogue())) ADD_FAILURE() << line;
}

TEST(MachineCatalogue, SpotValues) {
  EXPECT_EQ(value("h100-sxm", "bf16_flops"), 989e12);
  EXPECT_EQ(value("h100-sxm", "tf32_flops"), 494.5e12);
  EXPECT_EQ(value("h100-sxm", "capacity_bytes"), 85029615043.0);  // 79.19 GiB, in whole bytes
  EXPECT_EQ(value("h100-sxm", "memory_bandwidth"), 3350e9);
  EXPECT_EQ(value("h100-sxm", "scaleout_bandwidth"), 50e9);  // 400 Gbit/s
  EXPECT_EQ(value("h100-sxm", "boost_hz"), 1830e6);
  EXPECT_EQ(value("h200", "bf16_flops"), 989e12);
  EXPECT_NEAR(value("h200", "capacity_bytes"), 139.8 * kGiB, 1);
  EXPECT_EQ(value("b200", "bf16_flops"), 2250e12);
  EXPECT_NEAR(value("b200", "capacity_bytes"), 178.35 * kGiB, 1);
  EXPECT_EQ(value("b300", "int8_ops"), 153.5e12);
  EXPECT_EQ(value("a100-80", "bf16_flops"), 312e12);
  EXPECT_NEAR(value("a100-80", "capacity_bytes"), 79.15 * kGiB, 1);
  EXPECT_EQ(value("mi300x", "bf16_flops"), 1307.4e12);  // the nearest double, not a rounded product
  EXPECT_EQ(value("gaudi3", "scaleup_bandwidth"), 525e9);
  EXPECT_EQ(value("trn2", "scaleup_bandwidth"), 512e9);
  EXPECT_EQ(value("h100-sxm", "bf16_sparse_headline"), 1979e12);
  EXPECT_EQ(value("h200", "bf16_sparse_headline"), 1979e12);
  EXPECT_EQ(gpu("rtx4090").default_platform, "rtx4090-1");
  EXPECT_EQ(gpu("a100").id, "a100-80");
}

TEST(MachineCatalogue, PlatformValues) {
  Result<const Platform*> dgx = catalogue().platform("DGX_H100");
  ASSERT_TRUE(dgx.ok());
  EXPECT_EQ((*dgx)->gpu, "h100-sxm");
  EXPECT_EQ((*dgx)->datum("gpus_per_node").value, 8);
  EXPECT_EQ((*dgx)->datum("nic_bandwidth").value, 50e9);
  EXPECT_EQ((*dgx)->datum("node_watts").value, 10200);
  EXPECT_EQ((*dgx)->datum("host_bytes").value, 2048 * kGiB);
  EXPECT_EQ((*catalogue().platform("gb200-nvl72"))->datum("scaleup_domain").value, 72);
  EXPECT_EQ((*catalogue().platform("azure-nd-h100-v5"))->datum("nic_bandwidth").rung, Rung::class_rule);
  const Datum& missing = (*catalogue().platform("aws-trn3"))->datum("gpus_per_node");
  EXPECT_EQ(missing.rung, Rung::unknown);
  EXPECT_FALSE(missing.source.empty());
}

TEST(MachineCatalogue, NamesIgnoreCaseAndSeparators) {
  for (const char* name :
       {"h100-sxm", "H100 SXM", "h100_sxm", "H100.SXM", "h100", "H100-SXM5-80GB", "nvidia h100 80gb hbm3"}) {
    EXPECT_EQ(gpu(name).id, "h100-sxm") << name;
  }
}

TEST(MachineCatalogue, EveryNameResolvesToItsOwner) {
  for (const Gpu& g : catalogue().gpus()) {
    std::vector<std::string> names = g.aliases;
    names.push_back(g.id);
    names.push_back(g.name);
    for (const std::string& name : names) EXPECT_EQ(gpu(name).id, g.id) << name;
  }
  for (const Platform& p : catalogue().platforms()) {
    for (const std::string& name : {p.id, p.name}) {
      Result<const Platform*> found = catalogue().platform(name);
      ASSERT_TRUE(found.ok()) << name;
      EXPECT_EQ((*found)->id, p.id);
    }
  }
}

// The collected list of names, where the checkout has it beside it.
TEST(MachineCatalogue, EveryCollectedNameResolves) {
  std::ifstream file("../shared/facts/ids.csv");
  if (!file) GTEST_SKIP() << "../shared/facts/ids.csv is not here";
  std::stringstream text;
  text << file.rdbuf();
  const std::string content = text.str();
  Result<Csv> csv = Csv::parse(content, "ids.csv");
  ASSERT_TRUE(csv.ok());
  int resolved = 0;
  for (std::size_t row = 0; row < csv->rows(); ++row) {
    const std::string_view kind = csv->at(row, "kind");
    if (kind != "gpu" && kind != "platform") continue;
    std::string names =
        std::string(csv->at(row, "canonical_id")) + " | " + std::string(csv->at(row, "aliases")) + " | ";
    for (std::size_t bar = names.find(" | "); bar != std::string::npos; bar = names.find(" | ")) {
      const std::string name = names.substr(0, bar);
      names.erase(0, bar + 3);
      const std::string id(csv->at(row, "canonical_id"));
      Result<Cluster> cluster = catalogue().cluster(name);
      if (name == "aws-trn3" || name == "AWS Trainium3") {  // its node size is not known
        EXPECT_FALSE(cluster.ok());
      } else {
        ASSERT_TRUE(cluster.ok()) << name << ": " << cluster.error().text();
        EXPECT_EQ(kind == "gpu" ? cluster->gpu.id : cluster->platform.id, id) << name;
      }
      ++resolved;
    }
  }
  EXPECT_GT(resolved, 300);
}

TEST(MachineCatalogue, UnknownNamesTeach) {
  Result<const Gpu*> found = catalogue().gpu("h100sxm");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().text().find("h100-sxm"), std::string::npos) << found.error().text();
  found = catalogue().gpu("");
  EXPECT_FALSE(found.ok());
  Result<const Platform*> platform = catalogue().platform("dgx-h10");
  ASSERT_FALSE(platform.ok());
  EXPECT_NE(platform.error().text().find("dgx-h100"), std::string::npos) << platform.error().text();
}

TEST(MachineCatalogue, LoadIsFast) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(MachineCatalogue::load().ok());
  const auto each = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / 10;
  RecordProperty("milliseconds", std::to_string(each));
  EXPECT_LT(each, 100) << "2 ms is the aim of an optimised build";  // loose: debug and sanitizer builds run this, too
}

// --- overlays ------------------------------------------------------------------------------------

constexpr const char* kHeader = "id,field,value,unit,rung,source\n";

Result<MachineCatalogue> with(const std::string& gpus, const std::string& platforms = "") {
  return MachineCatalogue::load(gpus.empty() ? "" : kHeader + gpus, platforms.empty() ? "" : kHeader + platforms);
}

TEST(MachineOverlay, ReplacesAndAdds) {
  Result<MachineCatalogue> loaded = with(
      "h100-sxm,bf16_flops,900,TFLOP/s,exact,our own measurement\n"
      "toy,name,Toy 48GB,text,,\ntoy,vendor,NVIDIA,text,,\ntoy,arch,sm89,text,,\ntoy,memory,GDDR6,text,,\n"
      "toy,default_platform,toy-box,text,,\ntoy,alias,Toy One,text,,\n"
      "toy,nominal_bytes,48,GB,exact,box\ntoy,bf16_flops,100,TFLOP/s,exact,box\ntoy,l2_bytes,l40s,gpu,same_chip,same "
      "die\n",
      "toy-box,name,Toy box,text,,\ntoy-box,gpu,toy,text,,\ntoy-box,gpus_per_node,2,1,exact,box\n");
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  EXPECT_EQ((*loaded->gpu("h100"))->datum("bf16_flops").value, 900e12);
  EXPECT_EQ((*loaded->gpu("h100"))->datum("bf16_flops").source, "our own measurement");
  EXPECT_EQ((*loaded->gpu("h800"))->datum("bf16_flops").value, 900e12);  // R3 follows its parent
  Result<Cluster> cluster = loaded->cluster("4xtoy-one");
  ASSERT_TRUE(cluster.ok()) << cluster.error().text();
  EXPECT_EQ(cluster->nodes(), 2);
  EXPECT_NEAR(*cluster->datum("capacity_bytes").value / kGiB, 48 * 0.937 - 0.55, 1e-6);  // R2, then R1
  for (const std::string& line : check_catalogue(*loaded)) {
    EXPECT_EQ(line, "h100-sxm: bf16_flops is above bf16_sparse_headline") << line;
  }
}

TEST(MachineOverlay, AmbiguousNamesNameBoth) {
  Result<MachineCatalogue> loaded = with("h200,alias,H100,text,,\n", "dgx-h200,alias,h20,text,,\n");
  ASSERT_TRUE(loaded.ok());
  Result<const Gpu*> found = loaded->gpu("h100");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().text(), "'h100' names two GPUs: h100-sxm and h200; write the one that is meant");
  Result<Cluster> cluster = loaded->cluster("8xh20");
  ASSERT_FALSE(cluster.ok());
  EXPECT_EQ(cluster.error().text(), "--on: 'h20' names both h20 and dgx-h200; write the one that is meant");
  EXPECT_EQ(check_catalogue(*loaded).size(), 2u);
}

TEST(MachineOverlay, ErrorsNameThePlace) {
  const auto error = [](const std::string& rows) {
    Result<MachineCatalogue> loaded = with(rows);
    return loaded.ok() ? std::string("accepted") : loaded.error().text();
  };
  EXPECT_EQ(error("h100-sxm,bf16_flop,900,TFLOP/s,exact,x\n").rfind("gpus.csv:2:", 0), 0u);
  EXPECT_NE(error("h100-sxm,bf16_flop,900,TFLOP/s,exact,x\n").find("bf16_flops"), std::string::npos);
  EXPECT_NE(error("h100-sxm,bf16_flops,900,GB/s,exact,x\n").find("TFLOP/s"), std::string::npos);
  EXPECT_NE(error("h100-sxm,bf16_flops,900,TFLOP/s,exact,\n").find("no source"), std::string::npos);
  EXPECT_NE(error("h100-sxm,bf16_flops,-900,TFLOP/s,exact,x\n").find("out of bounds"), std::string::npos);
  EXPECT_NE(error("h100-sxm,bf16_flops,nan,TFLOP/s,exact,x\n").find("not a number"), std::string::npos);
  EXPECT_NE(error("h100-sxm,bf16_flops,900,TFLOP/s,surely,x\n").find("rung"), std::string::npos);
  EXPECT_NE(error("h100-sxm,bf16_flops,h9000,gpu,same_chip,x\n").find("no GPU 'h9000'"), std::string::npos);
  EXPECT_NE(error("h100-sxm,bf16_flops,h800,gpu,same_chip,x\n").find("no value of its own"), std::string::npos);
  EXPECT_NE(error("H 100,bf16_flops,900,TFLOP/s,exact,x\n").find("not an id"), std::string::npos);
  EXPECT_NE(error("new,bf16_flops,900,TFLOP/s,exact,x\n").find("no row `name`"), std::string::npos);
  EXPECT_NE(error("h100-sxm,name,,text,,\n").find("empty"), std::string::npos);
  EXPECT_NE(error("h100-sxm,fp32_accumulate,third,text,,\n").find("full or half"), std::string::npos);
}

// --- the ladder ----------------------------------------------------------------------------------

TEST(Ladder, R1CapacityFromSmi) {
  const Datum& d = gpu("h20").datum("capacity_bytes");
  EXPECT_EQ(d.rung, Rung::class_rule);
  EXPECT_NEAR(*d.value / kGiB, 97871.0 / 1024 - 0.55, 1e-6);
  EXPECT_EQ(d.source.rfind("R1: nvidia-smi's 97871 MiB less 0.55 GiB", 0), 0u) << d.source;
  // It holds where both are measured: within the spread that is seen, 0.25 to 1.05 GiB.
  int pairs = 0;
  for (const Gpu& g : catalogue().gpus()) {
    const Datum& smi = g.datum("smi_bytes");
    const Datum& capacity = g.datum("capacity_bytes");
    if (smi.rung != Rung::exact || capacity.rung != Rung::exact) continue;
    EXPECT_NEAR((*smi.value - *capacity.value) / kGiB, 0.65, 0.40001) << g.id;
    ++pairs;
  }
  EXPECT_GT(pairs, 10);
}

TEST(Ladder, R2SmiFromSticker) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const auto smi = [](const char* id) { return ladder::r2_smi_from_sticker(gpu(id)); };
  EXPECT_NEAR(*smi("a100-80").value / kMiB, 81920, 0.5);
  EXPECT_NEAR(*smi("h100-sxm").value / kMiB, 81559, 1);
  EXPECT_NEAR(*smi("h20").value / kMiB, 97871, 1);
  EXPECT_NEAR(*smi("l4").value / kMiB, 23034, 15);
  EXPECT_NEAR(*smi("l40s").value / kMiB, 46068, 15);
  EXPECT_NEAR(*smi("rtx4090").value / kMiB, 24564, 0.5);
  EXPECT_NEAR(*smi("a6000").value / kMiB, 49140, 0.5);
  EXPECT_EQ(gpu("rtx3090").datum("smi_bytes").rung, Rung::class_rule);
  for (const char* id : {"h200", "b200", "b300", "gb300", "rtxpro6000", "mi300x", "tpu-v5p"}) {
    EXPECT_FALSE(smi(id).value.has_value()) << id;
    EXPECT_FALSE(smi(id).source.empty()) << id;
  }
  for (const char* id : {"mi300x", "mi325x", "mi355x"}) {
    EXPECT_NEAR(*ladder::r2_capacity_amd(gpu(id)).value, *gpu(id).datum("capacity_bytes").value, 1) << id;
  }
}

TEST(Ladder, R3SameChip) {
  const Datum& d = gpu("a800").datum("capacity_bytes");
  EXPECT_EQ(d.rung, Rung::same_chip);
  EXPECT_EQ(d.value, gpu("a100-80").datum("capacity_bytes").value);
  EXPECT_EQ(d.source.rfind("R3: as a100-80", 0), 0u) << d.source;
  EXPECT_EQ(gpu("h800").datum("scaleup_bandwidth").value, 200e9);  // what differs is stated
  EXPECT_EQ(gpu("h800").datum("matmul_bf16_flops").rung, Rung::same_chip);
  EXPECT_EQ(gpu("h100-96").datum("matmul_bf16_flops").rung, Rung::unknown);
}

TEST(Ladder, R4HalfRate) {
  EXPECT_EQ(value("rtx5090", "bf16_flops"), 209.5e12);
  EXPECT_EQ(value("rtx5090", "fp16_flops"), 209.5e12);
  EXPECT_EQ(value("rtx5090", "fp8_flops"), 419e12);
  EXPECT_EQ(gpu("rtx5090").datum("bf16_flops").rung, Rung::class_rule);
  EXPECT_EQ(value("rtx4090", "bf16_flops"), 165.2e12);
  EXPECT_FALSE(ladder::r4_half_rate(gpu("a6000"), "bf16_flops").value.has_value());
}

TEST(Ladder, R5SparseHeadline) {
  EXPECT_EQ(value("a100-80", "bf16_sparse_headline"), 624e12);
  EXPECT_EQ(gpu("a100-80").datum("bf16_sparse_headline").rung, Rung::class_rule);
  for (const char* id : {"h100-sxm", "l40s", "l4", "a6000", "rtx5090", "rtx6000ada"}) {  // against what is stated
    const double stated = value(id, "bf16_sparse_headline");
    EXPECT_NEAR(*ladder::r5_sparse_headline(gpu(id), "bf16_sparse_headline").value / stated, 1, 0.015) << id;
  }
  EXPECT_FALSE(gpu("v100-32").datum("bf16_sparse_headline").value.has_value());
  EXPECT_FALSE(gpu("mi300x").datum("bf16_sparse_headline").value.has_value());
}

TEST(Ladder, UnknownSaysWhy) {
  EXPECT_EQ(gpu("v100-32").datum("bf16_flops").source, "the chip has no bf16 tensor rate; it has fp16_flops");
  EXPECT_EQ(gpu("a100-80").datum("fp8_flops").source, "the chip has no fp8 tensor rate");
  for (const char* id : {"tpu-v5p", "trn1", "trn2", "gaudi2", "gaudi3"}) {  // R6: the sheet's
    EXPECT_EQ(gpu(id).datum("capacity_bytes").rung, Rung::class_rule) << id;
    EXPECT_EQ(gpu(id).datum("capacity_bytes").value, gpu(id).datum("nominal_bytes").value) << id;
  }
  EXPECT_EQ(gpu("gh200-144").datum("scaleup_domain").source, "1, 2 or 32, depending on the system");
  for (const Gpu& g : catalogue().gpus()) {
    for (const MachineField& field : gpu_fields())
      EXPECT_FALSE(g.datum(field.name).source.empty()) << g.id << field.name;
  }
}

TEST(MachineFields, Units) {
  EXPECT_EQ(*to_si("1307.4", "TFLOP/s", FieldKind::flops), 1307.4e12);
  EXPECT_EQ(*to_si("400", "Gbit/s", FieldKind::bandwidth), 50e9);
  EXPECT_EQ(*to_si("1.2", "kW", FieldKind::watts), 1200);
  EXPECT_EQ(*to_si("79.19", "GiB", FieldKind::bytes), 85029615043.0);
  EXPECT_EQ(*to_si("1e3", "GB/s", FieldKind::bandwidth), 1e12);
  EXPECT_FALSE(to_si("1e308", "TFLOP/s", FieldKind::flops).ok());
  EXPECT_FALSE(to_si("5", "W", FieldKind::bytes).ok());
  EXPECT_FALSE(to_si("", "W", FieldKind::watts).ok());
}

}  // namespace
}  // namespace preflop
