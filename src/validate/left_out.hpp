// Memory of rows whose model no parameter and no band has seen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/validate/validate.hpp"

namespace preflop {

// Rows whose residuals make one band: of one stack and quantity, and of one architecture where the stack has a band of
// its own for it. Fractions throughout.
struct LeftOut {
  std::string like;    // "megatron-deepspeed device sm70"; "all": every row of the metric
  std::string metric;  // memory.allocated, ...
  std::string fitted;  // parameters that were fitted to rows of the group, separated by ", "; empty: none
  std::size_t rows = 0, models = 0;
  double band = 0;          // half-width in data/stacks; of "all" the median over its rows
  double band_of_rows = 0;  // what conformal_half_width() makes of these rows; of "all" the median over its rows
  double mape = 0, coverage = 0;
  // Of the rows whose group has other models, each predicted with its parameter fitted to rows of the others (the
  // median of what they would need), inside the band that the others make.
  std::size_t left_out = 0;
  std::optional<double> left_out_mape, left_out_coverage, left_out_half_width;  // of the last one the median
};
// By metric and name, "all" first. Only memory; rows without a band are left out of it.
std::vector<LeftOut> left_out(const std::vector<Entry>& entries);

// Split-conformal: of n values |measured / predicted - 1| the ceil(0.8 (n + 1))-th smallest, the largest at most.
// Nothing of no values.
std::optional<double> conformal_half_width(std::vector<double> misses);

}  // namespace preflop
