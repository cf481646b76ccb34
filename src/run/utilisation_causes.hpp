// Sentences on why a measured utilisation is what it is: each cause is checked against the numbers
// before it is named, and says what the number would be.
#pragma once

#include <vector>

#include "src/run/utilisation.hpp"

namespace preflop {

// The likeliest first: what the given peak is, what makes a value impossible, what lies between the
// prediction and the measurement.
std::vector<Cause> likely_causes(const Utilisation& u, const Analysed& a, const Estimate& e,
                                 const MachineCatalogue& machines);

}  // namespace preflop
