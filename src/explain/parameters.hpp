// Parameter counts as a sum over the operators' weights.
#pragma once

#include <string_view>

#include "preflop/traced.hpp"
#include "src/model/model.hpp"

namespace preflop {

// `which` is total, active or embedding. Ends in the same number as summarise().
Traced traced_parameters(const Model& model, std::string_view which);

}  // namespace preflop
