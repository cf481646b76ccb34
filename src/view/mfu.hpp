// `preflop mfu`: utilisation by convention as text of at most 80 columns and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "src/run/utilisation.hpp"
#include "src/view/text.hpp"

namespace preflop {

// {schema: preflop.mfu/1, model, cluster, recipe (as in preflop.estimate/1), measured {..}, peak {..},
//  mfu, mfu_convention, conventions {name: {..}}, predicted {..}, unexplained, likely_causes [{kind, text}],
//  warnings}. Ratios are fractions, rates SI; unknown = null.
nlohmann::json mfu_json_value(const Utilisation& use, const Estimate& estimate);

std::string mfu_text(const Utilisation& use, const Estimate& estimate, const TextOptions& options);

}  // namespace preflop
