// The ladder of a missing value: exact, else the same chip's, else a class rule, else unknown with the
// reason. Each rule is a named function that answers with a Datum: its rung, and a source that begins
// with the rule. A rule that does not cover a GPU answers with rung unknown and why.
#pragma once

#include "preflop/machine.hpp"

namespace preflop::ladder {

// R1: the driver's total is nvidia-smi's less 0.55 GiB (0.25 to 1.05 seen on 16 cards; the remainder is
// more even than any ratio).
Datum r1_capacity_from_smi(const Gpu& gpu);

// R2: nvidia-smi's total from the sticker, whose GB are GiB: all of it on A100, 0.9956 on the H100
// family to 96 GB, 0.937 on data-centre cards with GDDR6 and inline ECC, 12 MiB less on GeForce and RTX
// workstation cards with GDDR6. Not H200, Blackwell or GDDR7: their stickers do not tell.
Datum r2_smi_from_sticker(const Gpu& gpu);

// R2 for AMD: the driver shows the sticker's GiB less 0.02.
Datum r2_capacity_amd(const Gpu& gpu);

// R3: die and memory are those of another GPU, so its value holds.
Datum r3_same_chip(const Gpu& parent, std::string_view field, std::string_view why);

// R4: GeForce tensor products that accumulate in fp32 run at half the rate of fp16 accumulation, and
// the headline is sparse with fp16 accumulation: a quarter of it. field: bf16_flops, fp16_flops, fp8_flops.
Datum r4_half_rate(const Gpu& gpu, std::string_view field);

// R5: where the vendor counts 2:4 sparsity (NVIDIA from sm80), its headline is twice the dense rate, four
// times where R4 holds (1979 and 989; 242 and 121; 733 and 362; 838 and 209.5).
// field: bf16_sparse_headline, fp8_sparse_headline.
Datum r5_sparse_headline(const Gpu& gpu, std::string_view field);

// R6: the memory of a TPU, and of a chip of any vendor that has no rule above (not NVIDIA, not AMD), is its sheet's GB
// of 1e9 bytes, the least that the sheet can mean.
Datum r6_capacity_from_sheet(const Gpu& gpu);

// The reason for a value that no rung gives.
Datum unknown(const Gpu& gpu, std::string_view field);

// Fills what the rules give and the reasons for the rest, for every field of a GPU. Stated values stay.
void complete(Gpu& gpu);

}  // namespace preflop::ladder
