// The keys of the whole run: how long it trains, and what is assumed about failures, checkpoints, money and energy.
#pragma once

#include "src/adapt/request.hpp"
#include "src/model/model.hpp"

namespace preflop {

// Tokens or samples, and where there are any, every setting of the run: given, or the published default, which is
// listed in recipe.assumed. recipe.seq is set. Errors: values out of range or that contradict each other, run keys
// without tokens.
Status read_run(const Request& request, const RunData& data, const Cluster& cluster, const Model& model,
                Recipe& recipe);

// The number of sequences of the run, padded or packed.
double run_sequences(const Recipe& recipe);

// "2026-03-01". Errors: no such day.
Result<Date> parse_date(std::string_view text, std::string_view where);

}  // namespace preflop
