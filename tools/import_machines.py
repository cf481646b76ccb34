#!/usr/bin/env python3
"""Writes data/gpus.csv, data/platforms.csv and data/sources.csv from collected hardware tables.

    tools/import_machines.py TABLES [OUT]

TABLES holds hardware.csv, hardware-sources.csv, platforms.csv and ids.csv; OUT is data/ by default.
The output is long: one row a datum (id, field, value, unit, rung, source). Units are the natural ones;
the loader converts them. `source` is a key of sources.csv or a text of its own. Names, decisions
between disagreeing sources and notes are in the tables below. Running it twice gives the same bytes.
"""
import csv
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent
STAS = "stas00/ml-engineering@744d01e"
AICONF = "ai-dynamo/aiconfigurator@095f58a"

# Column of hardware.csv -> field, unit.
GPU_FIELDS = {
    "fp32_tflops": ("fp32_flops", "TFLOP/s"),
    "tf32_tflops": ("tf32_flops", "TFLOP/s"),
    "fp16_tflops": ("fp16_flops", "TFLOP/s"),
    "bf16_tflops": ("bf16_flops", "TFLOP/s"),
    "fp8_tflops": ("fp8_flops", "TFLOP/s"),
    "fp4_tflops": ("fp4_flops", "TFLOP/s"),
    "int8_tops": ("int8_ops", "TOP/s"),
    "mamf_bf16_tflops": ("matmul_bf16_flops", "TFLOP/s"),
    "mamf_fp8_tflops": ("matmul_fp8_flops", "TFLOP/s"),
    "mamf_fp4_tflops": ("matmul_fp4_flops", "TFLOP/s"),
    "mem_nominal_gb": ("nominal_bytes", "GB"),
    "nvidia_smi_total_mib": ("smi_bytes", "MiB"),
    "driver_total_gib": ("capacity_bytes", "GiB"),
    "mem_bw_gbs": ("memory_bandwidth", "GB/s"),
    "l2_mib": ("l2_bytes", "MiB"),
    "scaleup_gbs_per_dir": ("scaleup_bandwidth", "GB/s"),
    "scaleup_domain": ("scaleup_domain", "1"),
    "nic_gbps_per_gpu": ("scaleout_bandwidth", "Gbit/s"),
    "pcie_gen": ("pcie_generation", "1"),
    "tdp_w": ("tdp_watts", "W"),
    "sm_or_cu": ("sm_count", "1"),
    "boost_mhz": ("boost_hz", "MHz"),
}
PLATFORM_FIELDS = {
    "gpus_per_node": ("gpus_per_node", "1"),
    "scaleup_domain_gpus": ("scaleup_domain", "1"),
    "scaleup_gbs_per_dir_per_gpu": ("scaleup_bandwidth", "GB/s"),
    "nics_per_node": ("nics_per_node", "1"),
    "nic_gbps": ("nic_bandwidth", "Gbit/s"),
    "scaleout_gbs_per_dir_per_gpu": ("scaleout_bandwidth", "GB/s"),
    "host_ram_gib": ("host_bytes", "GiB"),
    "cpu_gpu_gbs_per_dir_per_gpu": ("host_link_bandwidth", "GB/s"),
    "node_power_kw": ("node_watts", "kW"),
}

# Values that the ladder computes (src/machine/ladder.cpp), so they are not data: R1 capacity from
# nvidia-smi's total, R4 halved rates from the sparse headline.
BY_LADDER = {
    ("h100-96", "capacity_bytes"), ("h20", "capacity_bytes"), ("gh200-96", "capacity_bytes"),
    ("rtx5090", "bf16_flops"), ("rtx5090", "fp16_flops"), ("rtx5090", "fp8_flops"),
}

# R3, same die and memory: the value is read off another GPU. (id, field): (parent, why).
SAME_CHIP = {
    ("a100-pcie-40", "capacity_bytes"): ("a100-40", ""),
    ("a100-pcie-80", "capacity_bytes"): ("a100-80", ""),
    ("a800", "capacity_bytes"): ("a100-80", ""),
    ("a800", "smi_bytes"): ("a100-80", ""),
    ("a800", "memory_bandwidth"): ("a100-80", "aiwiki.ai/wiki/nvidia_a800: memory as on the A100"),
    ("a800", "l2_bytes"): ("a100-80", ""),
    ("a800", "tdp_watts"): ("a100-80", ""),
    ("a800", "pcie_generation"): ("a100-80", ""),
    ("a800", "bf16_flops"): ("a100-80", "no primary source; hmc-tech.com gives TF32 155.94 for the A800"),
    ("a800", "fp16_flops"): ("a100-80", ""),
    ("h100-pcie", "smi_bytes"): ("h100-sxm", ""),
    ("h800", "smi_bytes"): ("h100-sxm", ""),
    ("h800", "memory_bandwidth"): ("h100-sxm", "philisun.com H800 vs H100 agrees"),
    ("h800", "l2_bytes"): ("h100-sxm", ""),
    ("h800", "tdp_watts"): ("h100-sxm", "a blog's 550 W firmware cap (electronnexus.com) is not followed"),
    ("h800", "bf16_flops"): ("h100-sxm", "no document states the H800's own"),
    ("h800", "fp16_flops"): ("h100-sxm", "no document states the H800's own"),
    ("h800", "fp8_flops"): ("h100-sxm", "no document states the H800's own"),
    ("h800", "matmul_bf16_flops"): ("h100-sxm", ""),
    ("gh200-144", "capacity_bytes"): ("h200", ""),
    ("gh200-96", "matmul_bf16_flops"): ("gh200-144", "measured on the 900 W, 141 GiB version"),
    ("gh200-96", "matmul_fp8_flops"): ("gh200-144", "measured on the 900 W, 141 GiB version"),
    ("gb300", "boost_hz"): ("b300", "nvidia-smi's maximum SM clock"),
    ("h200", "bf16_sparse_headline"): ("h100-sxm", ""),
    ("h200", "fp8_sparse_headline"): ("h100-sxm", ""),
}

# Rungs below exact whose value stands in the tables: (rung, text that names the rule).
BELOW_EXACT = {
    ("h100-pcie", "capacity_bytes"): ("same_chip", "R3: the 80 GB H100; low end of its range 79.10-79.25 GiB"),
    ("h800", "capacity_bytes"): ("same_chip", "R3: the 80 GB H100; low end of its range 79.10-79.25 GiB"),
    ("a100-pcie-80", "scaleout_bandwidth"):
        ("class_rule", f"25 GB/s a GPU between nodes; an assumption of {AICONF} systems/a100_pcie.yaml"),
    ("h100-pcie", "scaleout_bandwidth"):
        ("class_rule", f"50 GB/s a GPU between nodes; an assumption of {AICONF} systems/h100_pcie.yaml"),
    ("l4", "scaleout_bandwidth"):
        ("class_rule", f"25 GB/s a GPU between nodes; an assumption of {AICONF} systems/l4.yaml"),
    ("rtxpro6000", "scaleout_bandwidth"):
        ("class_rule", f"50 GB/s a GPU between nodes; an assumption of {AICONF} systems/rtx_pro_6000_server.yaml"),
    ("a800", "scaleout_bandwidth"): ("class_rule", "R3: network of the A100 platforms"),
    ("mi325x", "scaleout_bandwidth"): ("class_rule", "R3: 400 Gbit/s a GPU, as MI300X platforms"),
    ("mi355x", "scaleout_bandwidth"): ("class_rule", "R3: 400 Gbit/s a GPU, as MI300X platforms"),
    ("b300", "l2_bytes"): ("same_chip", f"R3: L2 of the Blackwell die; {STAS} compute/accelerator cache table (GB200)"),
    ("gb300", "sm_count"): ("class_rule",
                            f"SM count of GB200; B300 ships with 148 and 152 SMs ({STAS} training/performance)"),
    ("l40s", "boost_hz"): ("class_rule", "clock from the peak: 142 SMs x 1024 x f = 362.05 TFLOP/s"),
    ("v100-16", "boost_hz"): ("class_rule", "clock from the peak: 640 tensor cores x 128 x f = 125 TFLOP/s"),
    ("rtx3090", "tf32_flops"): ("class_rule", "TF32 is half of BF16 on GA10x; hmc-tech.com A40"),
    ("a6000", "tf32_flops"): ("class_rule", "TF32 is half of BF16 on GA10x; hmc-tech.com A40"),
    ("rtx5090", "tf32_flops"): ("class_rule", "TF32 is half of BF16 on GeForce, as on the RTX 4090"),
    ("v100-16", "capacity_bytes"):
        ("class_rule", "15.75 GiB of a 16 GB card; Morizeyao/GPT2-Chinese issue 215 does not name the GPU"),
}

# Headline peaks of vendors that count 2:4 sparsity: (id, field): (value, source).
HEADLINES = {
    ("h100-sxm", "bf16_sparse_headline"): ("1979", f"{STAS} compute/accelerator/README.md"),
    ("h100-sxm", "fp8_sparse_headline"): ("3958", f"{STAS} compute/accelerator/README.md"),
    ("b200", "fp4_sparse_headline"): ("18000", f"{STAS} compute/accelerator/README.md"),
    ("mi355x", "fp8_sparse_headline"): ("10100", f"{STAS} compute/accelerator/README.md"),
    ("l40s", "bf16_sparse_headline"): ("733", f"{STAS} compute/accelerator/README.md"),
    ("l4", "bf16_sparse_headline"): ("242", "marin DEVICE_FLOPS (mosaicml/composer speed_monitor.py)"),
    ("l4", "fp8_sparse_headline"): ("485", "marin DEVICE_FLOPS (mosaicml/composer speed_monitor.py)"),
    ("rtx5090", "bf16_sparse_headline"): ("838", "pocketmags Linux Format May 2025: FP16 accumulate"),
    ("rtx5090", "fp8_sparse_headline"): ("1676", "pocketmags Linux Format May 2025: half of 3352 FP4"),
    ("rtx5090", "fp4_sparse_headline"): ("3352", "pocketmags Linux Format May 2025"),
    ("a6000", "bf16_sparse_headline"): ("309.7", "pytorch/torchtitan torchtitan/tools/utils.py"),
    ("rtx6000ada", "bf16_sparse_headline"): ("724.1", "marin DEVICE_FLOPS (mosaicml/composer speed_monitor.py)"),
}

# Why a value is missing, where more is known than "no source".
UNKNOWN = {
    ("h100-96", "matmul_bf16_flops"): "the 500 W limit and HBM2e make the H100 SXM's rate no guide",
    ("gh200-96", "scaleout_bandwidth"): "the network depends on the builder",
    ("gh200-144", "scaleout_bandwidth"): "the network depends on the builder",
    ("gh200-144", "scaleup_domain"): "1, 2 or 32, depending on the system",
    ("rtx5090", "smi_bytes"): "R2 does not cover GDDR7: RTX PRO 6000 is 0.4 % below its sticker, not 12 MiB",
    ("rtx6000ada", "memory_bandwidth"): "no source read states it",
}

GPU_NOTES = {
    "a100-40": ["NIC rate is AWS p4d's (4 x 100 Gbit/s for 8 GPUs); DGX A100 has 200 Gbit/s a GPU, see platforms"],
    "a100-80": ["driver totals seen: 79.14, 79.15, 79.21, 79.25 GiB", "liquid-cooled (CTS) versions draw up to 500 W"],
    "a100-pcie-40": ["NVLink only between bridged pairs; otherwise PCIe 4 x16"],
    "a800": ["export variant of the A100; NVLink 400 GB/s in all instead of 600"],
    "h100-sxm": ["1979 (bf16) and 3958 (fp8) TFLOP/s are the vendor's sparse figures",
                 "1830 MHz gives 989 TFLOP/s; nvidia-smi's 1980 MHz is the maximum, not what is held under load",
                 "a burst grid of bf16 products reaches 846 TFLOP/s; the sustained figure is used"],
    "h100-pcie": ["114 SMs x 4096 x 1620 MHz = 756 TFLOP/s; 1755 MHz is the maximum clock"],
    "h100-nvl": ["power limit configurable, 350-400 W"],
    "h100-96": ["500 W by default, so its true peak lies below the 989 that its users divide by"],
    "h800": ["NVLink about 160 GB/s achieved of 200 (DeepEP)"],
    "h20": ["a 141 GB version (H20-3e) exists"],
    "h200": ["driver totals seen: 139.72, 139.80, 139.81 GiB", "the best bf16 rate is listed as the H100's"],
    "gh200-96": ["NVLink-C2C to Grace: 450 GB/s per direction", "the scale-up domain is 1, 2 or 32 by system"],
    "b200": ["180 GB sold of 192 GB on board", "a DGX B200 can be capped at 700 W a GPU; sustained large products "
             "then reach about 0.49 of peak"],
    "b300": ["sold as 270 GB: the driver shows 267.69 GiB of 288", "int8 is cut on this chip: 153.5 TOP/s; copies of "
             "the fp8 figure are wrong", "fp4 is given as 12600, 14000 and 15000: 12600 kept, the others do not say "
             "whether they are sparse", "TDP 1100 W by MLPerf entries, 1000 W elsewhere"],
    "gb200": ["some reports divide by 2450 (bf16) or 4900 (fp8): compare peaks before comparing MFU"],
    "gb300": ["int8 165 TOP/s: copies of the fp8 figure are wrong"],
    "l40s": ["733 bf16 is sparse", "no NVLink; inline ECC costs 6.25 % of the 48 GB"],
    "l4": ["widely copied 242 (bf16) and 485 (fp8) are sparse", "the 72 W limit holds products to 0.59 of peak"],
    "rtx3090": ["FP32 accumulation runs at half rate (R4)"],
    "rtx4090": ["FP32 accumulation runs at half rate (R4): 165.2, not 330.3", "no NVLink; no peer-to-peer in the stock driver",
                "measured products exceed the sheet because real clocks exceed the boost clock"],
    "rtx5090": ["FP32 accumulation runs at half rate (R4); measured 222-242 TFLOP/s supports 209.5, not 419"],
    "rtxpro6000": ["workstation edition; the server edition is rated 467.8 TFLOP/s in bf16",
                   "FP32 accumulation at full rate"],
    "a10": ["the A10G of AWS is a lower bin: 70 TFLOP/s dense by AWS, against 125 here"],
    "v100-16": ["no bf16; fp16 tensor peak 125", "the document with 15.75 GiB does not name the GPU"],
    "v100-32": ["no bf16; the PCIe card's fp16 peak is 112"],
    "t4": ["no bf16"],
    "mi250x": ["two devices of 64 GB: halve every value per device"],
    "mi300x": ["l2_bytes is the 256 MiB Infinity Cache; L2 is 4 MiB per XCD", "191.69 GiB also seen",
               "xGMI: 64 GB/s per pair, 7 links"],
    "mi325x": ["l2_bytes is the Infinity Cache"],
    "mi355x": ["l2_bytes is the Infinity Cache", "10.1 PFLOP/s is sparse for fp8 and dense for fp4"],
    "tpu-v5p": ["ICI 1200 GB/s in both directions together; 300 per direction in older tables is wrong"],
    "gaudi2": ["21 of 24 ports in the node (262.5 GB/s), 3 out (37.5 GB/s)"],
    "gaudi3": ["21 of 24 ports in the node: 525 GB/s; 600 counts the 3 that leave it",
               "the white paper's 1835 TFLOP/s is at 1750 MHz; parts ship at 1600 MHz"],
    "trn1": ["820 GiB/s of memory bandwidth = 880 GB/s", "trn1n has 100 Gbit/s a chip"],
    "trn2": ["512 GB/s within the 16-chip instance; 640 counts the links to other instances of an UltraServer"],
}
PLATFORM_NOTES = {
    "dgx-h100": ["memory printed as 2.0 TB, entered as 2048 GiB"],
    "dgx-b200": ["the power cap of the GPUs can be set below 1000 W"],
    "gb200-nvl72": ["a node is one tray of 4 GPUs and 2 Grace; 18 trays share one NVLink domain"],
    "gb300-nvl72": ["a node is one tray of 4 GPUs; 18 trays share one NVLink domain; 135 kW a rack"],
    "hgx-h100-8": ["memory of HGX builds varies from 1.0 to 2.0 TB"],
    "aws-p3-16xl": ["not fully connected: a pair has 25 or 50 GB/s"],
    "aws-g5-48xl": ["its GPU is the A10G"],
    "azure-nd-a100-v4": ["front-end network 24 Gbit/s"],
    "a100-pcie-8": ["collectives over PCIe collapse at 8 ranks: 0.42 of 30 GB/s (SimuMax)"],
    "gh200-node": ["NVLink domain 1, 2 or 32 and the NICs depend on the builder"],
    "tpu-v5p-pod": ["the largest job is 6144 chips"],
    "aws-trn2-48xl": ["UltraServer: 64 chips, 64 GB/s between its four instances"],
    "hls-gaudi2": ["3 of 24 ports a card leave the node"],
    "hls-gaudi3": ["3 of 24 ports a card leave the node"],
}
# Fields that are a rule on these platforms, and the rule.
PLATFORM_RULE = {
    "hgx-a800": "network of DGX A100 (R3)",
    "aws-p6e-gb200": "28.8 Tbit/s of 72 GPUs divided evenly",
    "h100-nvl-8": "bridge bandwidth of the H100 PCIe (R3)",
    "gh200-node": "Grace memory by the product name GH200 480GB",
    "azure-nd-a100-v4": "200 Gbit/s HDR a GPU, as DGX A100",
    "azure-nd-h100-v5": "400 Gbit/s NDR a GPU, as DGX H100",
    "azure-nd-h200-v5": "400 Gbit/s NDR a GPU, as DGX H200",
    "azure-nd-mi300x-v5": "400 Gbit/s NDR a GPU, as other 8-GPU nodes",
    "azure-nd-gb200-v6": "400 Gbit/s a GPU, as GB200 NVL72",
    "lambda-1cc-h100": "400 Gbit/s NDR a GPU, as DGX H100",
    "lambda-1cc-b200": "400 Gbit/s NDR a GPU, as DGX B200",
    "mi300x-8": "400 Gbit/s a GPU; the 8 NICs are those of Azure ND MI300X v5",
    "mi325x-8": "8 NICs of 400 Gbit/s, as MI300X platforms (R3)",
    "mi355x-8": "8 NICs of 400 Gbit/s, as MI300X platforms (R3)",
}
PLATFORM_SOURCE = {
    "a100-pcie-8": f"PCIe 4 x16 of {STAS} network/README.md; SimuMax a100_pcie",
    "hgx-h20": "NVIDIA/nccl issue 1244 (2 nodes of 8 H20, 400 Gbit/s)",
    "dgx-2": "marin DEVICE_FLOPS; cli99/llm-analysis v100-sxm-32gb.json; 16 GPUs by product",
    "azure-nd-a100-v4": "MicrosoftDocs/azure-compute-docs ndma100v4-series-specs.md",
    "azure-nd-h100-v5": "MicrosoftDocs/azure-compute-docs ndh100v5-series-specs.md",
    "azure-nd-h200-v5": "MicrosoftDocs/azure-compute-docs nd-h200-v5-series-specs.md",
    "azure-nd-mi300x-v5": "MicrosoftDocs/azure-compute-docs ndmi300xv5-series-specs.md",
    "azure-nd-gb200-v6": "MicrosoftDocs/azure-compute-docs nd-gb200-v6-series-specs.md",
    "lambda-1cc-h100": "api-evangelist/lambda-labs plans (lambda.ai/instances, 2026-09-20)",
    "lambda-1cc-b200": "api-evangelist/lambda-labs plans (lambda.ai/instances, 2026-09-20)",
    "rtx4090-8": f"PCIe 4 x16 of {STAS} network/README.md",
    "gh200-node": f"nvidia-smi (GH200 480GB); {STAS} network/README.md",
}
for _one in ("l4-1", "rtx3090-1", "rtx4090-1", "rtx5090-1", "rtx6000ada-1"):
    PLATFORM_SOURCE[_one] = f"one card in one host; PCIe x16 rates of {STAS} network/README.md"

# References put in our own words.
SOURCE_TEXT = {
    "facts/user-cases.md (OOM logs 31.74 and 31.75 GiB)": "out-of-memory logs of V100 32 GB: 31.74 and 31.75 GiB",
    "OOM logs \"total capacity of 267.69 GiB\" (3 public repositories; 8-GPU nodes, smi 275040 MiB matches rule R1)":
        "out-of-memory logs of 8-GPU nodes: 267.69 GiB of 275040 MiB",
    "power and RAM/NVMe maxima: pcnews.ru on the DGX A100 user guide (6500 W, up to 2 TB, up to 30 TB); NIC: "
    "ai-dynamo/aiconfigurator@095f58a systems/*.yaml a100_sxm inter_node_bw 25 GB/s; links: "
    "stas00/ml-engineering@744d01e network/README.md":
        f"pcnews.ru on the DGX A100 user guide (6500 W); {AICONF} systems/a100_sxm.yaml; {STAS} network/README.md",
    "NVLink: aiwiki.ai/wiki/nvidia_a800; NIC as DGX A100 (class rule)": "aiwiki.ai/wiki/nvidia_a800",
    "same files": "public files naming RTX A6000, 49140 MiB",
    "same tensor-core rate as bf16 (stas TFLOPS table)": f"{STAS} compute/accelerator/README.md: fp16 as bf16",
    "identical compute to A100 (no primary source found)": "export variant of the A100; no primary source",
    "800 Gbps EFA / 16 chips": "AWS: 800 Gbit/s EFA over 16 chips",
    "3352 sparse FP4 / 2": "pocketmags Linux Format May 2025: half of 3352 sparse",
}
CUTS = [
    ("(row source of 2026-11-29 first pass) ", ""),
    ("compute/accelerator/README.md (TFLOPS, memory, cache, clock, power tables), network/README.md (NVLink/NIC tables)",
     "compute/accelerator and network READMEs"),
    ("aic-core/src/aiconfigurator_core/", ""),
    ("llm_analysis/gpu_configs/*.json", "gpu_configs"),
    ("MicrosoftDocs/azure-compute-docs articles/virtual-machines/sizes/gpu-accelerated/includes/",
     "MicrosoftDocs/azure-compute-docs "),
    ("marin DEVICE_FLOPS table (derived from mosaicml/composer callbacks/speed_monitor.py)",
     "marin DEVICE_FLOPS (mosaicml/composer speed_monitor.py)"),
    ("karpathy/llm.c llmc/mfu.h gpu_db (tensor cores / 4, MHz)", "karpathy/llm.c llmc/mfu.h"),
    ("modal-labs/modal-client PR 2797 (nvidia-smi totals of all its GPU types)", "modal-labs/modal-client PR 2797"),
    ("zzc0721/torch-performance-test-data@9d82827 database.md (best of square sizes 1024-10240, random data)",
     "zzc0721/torch-performance-test-data@9d82827 database.md"),
    ("stas network/README.md", f"{STAS} network/README.md"),
    ("stas training/performance/README.md", f"{STAS} training/performance/README.md"),
    (" -- WRONG, replaced", ""),
]


def own_words(text):
    for old, new in CUTS:
        text = text.replace(old, new)
    for cut in (": 114 SMs", "; the same page", ": 128 GB/s x 4", ": 24 x 200GbE"):
        text = text.split(cut)[0]
    return SOURCE_TEXT.get(text, text)


class Sources:
    """Keys in the order of first use."""

    def __init__(self):
        self.keys = {}

    def key(self, text):
        return self.keys.setdefault(text, f"s{len(self.keys) + 1}")


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(header)
        out.writerows(rows)


def normalised(name):
    """As text::normalise_name: case ignored, a run of separators is one dash."""
    return re.sub(r"[-._ ]+", "-", name.lower()).strip("-")


def aliases(ids, kind, names):
    """Per id the aliases that are not the id, the name or another alias in other spelling."""
    out = {}
    for row in ids:
        if row["kind"] == kind:
            id_ = row["canonical_id"]
            seen = {normalised(id_), normalised(names[id_])}
            out[id_] = []
            for alias in row["aliases"].split(" | "):
                if normalised(alias) and normalised(alias) not in seen:
                    seen.add(normalised(alias))
                    out[id_].append(alias.strip())
    return out


def gpu_rows(tables, sources):
    cell = {}
    for row in read(tables / "hardware-sources.csv"):
        if row["used"] == "yes":
            cell[row["id"], row["field"]] = row["source"]
    gpus = read(tables / "hardware.csv")
    also = aliases(read(tables / "ids.csv"), "gpu", {g["canonical_id"]: g["name"] for g in gpus})
    for row in gpus:
        gpu = row["canonical_id"]
        text = {"name": row["name"], "vendor": row["vendor"], "arch": row["arch"], "memory": row["mem_type"],
                "fp32_accumulate": row["fp32_accumulate"], "default_platform": row["default_platform"]}
        for field, value in text.items():
            if value:
                yield [gpu, field, value, "text", "", ""]
        for alias in also[gpu]:
            yield [gpu, "alias", alias, "text", "", ""]
        rule_cells = set(row["class_rule_fields"].split())
        done = set()
        for column, (field, unit) in GPU_FIELDS.items():
            datum = (gpu, field)
            if datum in BY_LADDER:
                rule_cells.discard(column)
            elif datum in SAME_CHIP:
                parent, why = SAME_CHIP[datum]
                yield [gpu, field, parent, "gpu", "same_chip", why]
            elif datum in BELOW_EXACT:
                yield [gpu, field, row[column], unit, *BELOW_EXACT[datum]]
            elif row[column]:
                if column in rule_cells:
                    sys.exit(f"{gpu} {column}: a rule that no table here names")
                yield [gpu, field, row[column], unit, "exact", sources.key(own_words(cell[row["id"], column]))]
            elif datum in UNKNOWN:
                yield [gpu, field, "", "", "unknown", UNKNOWN[datum]]
            done.add(field)
        for (id_, field), (value, source) in HEADLINES.items():
            if id_ == gpu:
                yield [gpu, field, value, "TFLOP/s", "exact", sources.key(source)]
        for (id_, field), (parent, why) in SAME_CHIP.items():
            if id_ == gpu and field not in done:
                yield [gpu, field, parent, "gpu", "same_chip", why]
        for note in GPU_NOTES.get(gpu, []):
            yield [gpu, "note", note, "text", "", ""]


def platform_rows(tables, sources):
    platforms = read(tables / "platforms.csv")
    also = aliases(read(tables / "ids.csv"), "platform", {p["id"]: p["name"] for p in platforms})
    for row in platforms:
        platform = row["id"]
        for field, column in (("name", "name"), ("gpu", "gpu"), ("scaleup_link", "scaleup_link"),
                              ("scaleout_fabric", "scaleout_fabric"), ("host_link", "cpu_gpu_link"),
                              ("local_nvme", "local_nvme")):
            if row[column]:
                yield [platform, field, row[column], "text", "", ""]
        for alias in also[platform]:
            yield [platform, "alias", alias, "text", "", ""]
        source = PLATFORM_SOURCE.get(platform, own_words(row["source"]))
        rule_cells = set(row["class_rule_fields"].split())
        for column, (field, unit) in PLATFORM_FIELDS.items():
            if not row[column]:
                continue
            if column in rule_cells:
                yield [platform, field, row[column], unit, "class_rule", PLATFORM_RULE[platform]]
            else:
                yield [platform, field, row[column], unit, "exact", sources.key(source)]
            if field == "scaleup_bandwidth" and " torus" in row["scaleup_link"]:
                axes = row["scaleup_link"].split("D torus")[0][-1]
                yield [platform, "torus_axes", axes, "1", "exact", sources.key(source)]
        for note in PLATFORM_NOTES.get(platform, []):
            yield [platform, "note", note, "text", "", ""]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tables = pathlib.Path(sys.argv[1])
    out = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "data"
    sources = Sources()
    header = ["id", "field", "value", "unit", "rung", "source"]
    write(out / "gpus.csv", header, list(gpu_rows(tables, sources)))
    write(out / "platforms.csv", header, list(platform_rows(tables, sources)))
    write(out / "sources.csv", ["id", "text"], [[key, text] for text, key in sources.keys.items()])


main()
