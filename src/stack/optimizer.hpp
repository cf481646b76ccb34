// Optimizers as data (data/optimizers.csv): which states they keep, of which weights, how wide.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "preflop/recipe.hpp"
#include "preflop/result.hpp"
#include "src/model/operators.hpp"

namespace preflop {

// One state that an optimizer keeps.
struct OptimizerSlot {
  enum class Over : std::uint8_t {
    all,       // every weight
    large,     // matrices, routers and tables
    small,     // norms and biases
    hidden,    // matrices of layers
    rest,      // all but these
    factored,  // of `large`: one element a row and one a column
  };
  std::string name;  // "first moment"
  double width = 0;  // bytes per element; 0 = the recipe's moment_dtype
  Over over = Over::all;
  std::string source;

  bool covers(Tag tag, Role role) const;
  double bytes(Dtype moment) const { return width > 0 ? width : preflop::width(moment); }
};

struct Optimizer {
  std::string name;
  std::vector<std::string> also;  // other names
  std::string says;
  std::vector<OptimizerSlot> slots;  // none: it keeps no state
  std::string source;                // of the first line
};

// Errors: a line of the table that does not read, with its place.
Result<std::vector<Optimizer>> read_optimizers(std::string_view csv, std::string_view file);
// Those of this build.
const std::vector<Optimizer>& optimizers();
// By name or other name; case and separators are ignored. Errors: unknown (did you mean).
Result<const Optimizer*> find_optimizer(std::string_view name);

// Bytes per parameter of the states of every weight: what no sharding or selection changes.
double width_over_all(const Optimizer& optimizer, Dtype moment);

}  // namespace preflop
