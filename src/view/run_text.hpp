// The forecast of a run as text of at most 80 columns. Empty without a run.
#pragma once

#include <string>

#include "preflop/estimate.hpp"

namespace preflop {

std::string run_text(const Estimate& estimate);

// "restarting": a loss in words.
const char* words(RunLoss loss);

// "12.3 MWh", "8.1 kWh".
std::string energy_words(double kwh);
// Whether limits of the run are met, a line each; empty without limits.
std::string limits_text(const Estimate& e);

}  // namespace preflop
