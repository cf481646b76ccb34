// The forecast of a run as text of at most 80 columns. Empty without a run.
#pragma once

#include <string>

#include "preflop/estimate.hpp"

namespace preflop {

std::string run_text(const Estimate& estimate);

// "restarting": a loss in words.
const char* words(RunLoss loss);

// "$1.38M".
std::string dollars(double usd);

}  // namespace preflop
