// GPUs, reference platforms, clusters. All values in SI base units: bytes, bytes/s, FLOP/s, watts.
//
// Every value is a Datum: it has a source, or it is absent. Where a GPU lacks a value the ladder is
// exact, else the same chip's, else a class rule, else unknown; each rung below `exact` is printed as
// assumed wherever it is used.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/count.hpp"
#include "preflop/result.hpp"

namespace preflop {

enum class Rung : std::uint8_t { exact, same_chip, class_rule, given, unknown };

struct Datum {
  std::optional<double> value;  // empty exactly when rung is unknown
  Rung rung = Rung::unknown;
  std::string source;  // document; for same_chip and class_rule also which chip or rule; for unknown why
};

// Fields of a GPU, by their names in data/gpus.csv, converted to SI:
//   fp32_flops tf32_flops fp16_flops bf16_flops fp8_flops fp4_flops int8_ops   dense peaks, never sparse
//   matmul_bf16_flops matmul_fp8_flops matmul_fp4_flops                        best measured matmul rate
//   sustained_bf16_flops sustained_fp8_flops    rate that large products keep on this very machine, where it was
//                                               measured: a power limit or a cooler one shows here
//   capacity_bytes      what the driver reports as total memory
//   nominal_bytes       the sticker; smi_bytes: nvidia-smi's total
//   memory_bandwidth    bytes/s          l2_bytes
//   scaleup_bandwidth   bytes/s per direction and GPU inside the scale-up domain
//   scaleup_domain      GPUs             scaleout_bandwidth  bytes/s per direction and GPU
//   tdp_watts  sm_count  boost_hz  pcie_generation
//   bf16_sparse_headline fp8_sparse_headline fp4_sparse_headline               the vendor's 2:4-sparse figure
struct Gpu {
  std::string id;    // canonical: h100-sxm
  std::string name;  // H100 SXM5 80GB
  std::string vendor;
  std::string arch;                   // sm90, gfx942, tpu, ...
  std::string memory;                 // HBM3, GDDR6X, ...
  bool half_rate_accumulate = false;  // GeForce: tensor products that accumulate in fp32 run at half rate
  std::string default_platform;
  std::vector<std::string> aliases;
  std::map<std::string, Datum, std::less<>> data;
  std::vector<std::string> notes;

  // The datum of a field; rung unknown when there is none.
  const Datum& datum(std::string_view field) const;
};

// A named machine around a GPU. Fields, SI: gpus_per_node, scaleup_domain, scaleup_bandwidth,
// torus_axes (of scale-up links without switches), nics_per_node, nic_bandwidth (bytes/s each), scaleout_bandwidth
// (bytes/s per direction and GPU), host_bytes, host_link_bandwidth (bytes/s per direction and GPU), node_watts.
struct Platform {
  std::string id;    // dgx-h100
  std::string name;  // NVIDIA DGX H100
  std::string gpu;   // canonical GPU id
  std::string scaleup_link;
  std::string scaleout_fabric;
  std::string host_link;
  std::string local_nvme;
  std::vector<std::string> aliases;
  std::map<std::string, Datum, std::less<>> data;
  std::vector<std::string> notes;

  const Datum& datum(std::string_view field) const;
};

struct Cluster {
  Gpu gpu;
  Platform platform;
  std::int64_t gpus = 0;             // accelerators
  std::int64_t gpus_per_node = 0;    // <= gpus
  bool memory_only = false;          // `1x80GB`: a capacity and nothing else
  std::vector<std::string> assumed;  // e.g. "platform=dgx-h100", one line per rung below exact

  std::int64_t nodes() const { return (gpus + gpus_per_node - 1) / gpus_per_node; }
  // The cluster's own value of a field: the platform's where it has one, else the GPU's.
  const Datum& datum(std::string_view field) const;
};

// The catalogues of this build, overlaid by a data directory where one is given.
class MachineCatalogue {
 public:
  // Parses the embedded data; `overlay_gpus_csv` / `overlay_platforms_csv` are the texts of the files
  // of the same name in --data-dir (empty = none). Rows of an overlay replace data of the same id.
  static Result<MachineCatalogue> load(std::string_view overlay_gpus_csv = {},
                                       std::string_view overlay_platforms_csv = {});

  const std::vector<Gpu>& gpus() const { return gpus_; }
  const std::vector<Platform>& platforms() const { return platforms_; }

  // By id or alias; case and separators (dot, dash, underscore, space) ignored. Errors: unknown (did
  // you mean), ambiguous (naming the candidates).
  Result<const Gpu*> gpu(std::string_view name) const;
  Result<const Platform*> platform(std::string_view name) const;

  // The grammar of --on: COUNTx(GPU|PLATFORM)[/PER_NODE], a bare platform (one node), 1x80GB.
  Result<Cluster> cluster(std::string_view spec) const;

 private:
  std::vector<Gpu> gpus_;
  std::vector<Platform> platforms_;
};

// A cluster described in a file, by the keys of docs/cluster-files.md. Errors name file:line:column.
Result<Cluster> cluster_from_toml(std::string_view text, std::string_view file, const MachineCatalogue& catalogue);

// What is wrong with a catalogue, one line each, empty when nothing is: values without source or out
// of the bounds of their field, names that stand for two things, platforms without their GPU.
std::vector<std::string> check_catalogue(const MachineCatalogue& catalogue);

}  // namespace preflop
