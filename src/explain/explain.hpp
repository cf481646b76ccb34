// The derivation of any number of an estimate: the same formulas run over Traced numbers.
//
// A term is a path of the JSON ("step.seconds", "memory.stages[0].activations"), or one of a stage's
// members without the stage ("memory.activations"), which means the stage with the peak.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/result.hpp"
#include "preflop/traced.hpp"
#include "src/step/memory.hpp"

namespace preflop {

struct Explanation {
  std::string term;   // as asked
  std::string path;   // of the JSON
  std::string unit;   // "B", "s", ...; empty for a pure number
  std::string about;  // which stage and moment, for memory; may be empty
  double value = 0;   // the estimate's own, to the bit
  TracePtr tree;
};

// Errors: no such term (did you mean), a number that this estimate does not know.
Result<Explanation> explain(std::string_view term, const Analysed& analysed, const Cluster& cluster);

struct TermLine {
  std::string term;
  std::string unit;
  std::string says;  // one line for people
  std::optional<double> value;
};
// Every term of an estimate, in the order of the contract; stages as one entry each, for the peak stage.
std::vector<TermLine> explainable(const Analysed& analysed, const Cluster& cluster);

}  // namespace preflop
