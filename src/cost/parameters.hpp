// Parameters of time: laws of kernels per GPU, shares of what a link or a memory delivers, habits of a
// stack's software. They are data (data/time.csv): few, physical, each with its source; `fitted` ones
// are set by tools/fit from data/measured and keep the prior that they started from.
//
// An owner is "gpu h100-sxm", "arch sm90", "gpu *", "stack maxtext on tpu", "stack megatron@nemo-25.02",
// "stack megatron" or "stack *". A value is looked up from the most to the least special owner.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/machine.hpp"
#include "src/stack/stack.hpp"

namespace preflop {

struct Parameter {
  std::string owner, field;
  double value = 0;
  std::string unit;
  bool fitted = false;
  double prior = 0, low = 0, high = 0;  // fitted only: where the fit starts and may go
  double weight = 0;                    // fitted only: how far (relative) it may stray from the prior, 1 sigma
  std::string source;
};

class TimeParameters {
 public:
  // Errors name file:line:column: an unknown column, a number that is none, a repeated (owner, field), a
  // fitted value outside its bounds.
  static Result<TimeParameters> parse(std::string_view csv, std::string_view file);
  // The embedded ones; a fault in them is found by a test.
  static const TimeParameters& built_in();

  const std::vector<Parameter>& all() const { return rows_; }
  void set(std::size_t index, double value) { rows_[index].value = value; }
  // Of the first owner that has the field; null when none has.
  const Parameter* find(const std::vector<std::string>& owners, std::string_view field) const;
  // The same bytes that were parsed when nothing was set.
  std::string csv() const;

 private:
  std::vector<Parameter> rows_;
  std::map<std::string, std::size_t, std::less<>> index_;  // "owner\nfield"
};

// Who speaks for a machine and for a stack, most special first.
std::vector<std::string> gpu_owners(const Gpu& gpu);
std::vector<std::string> stack_owners(const Stack& stack, const Gpu& gpu);

}  // namespace preflop
