// The families with state spaces or linear attention.
#pragma once

#include "src/adapt/hf_config_family.hpp"

namespace preflop {

void read_mamba2(ConfigReader& c, Architecture& a);
void read_mamba_lm(ConfigReader& c, Architecture& a);
void read_nemotron_h(ConfigReader& c, Architecture& a);
void read_granite_hybrid(ConfigReader& c, Architecture& a);
void read_qwen3_next(ConfigReader& c, Architecture& a);

}  // namespace preflop
