// A derivation ready to print: a name once, equal terms counted, intermediate arithmetic as a formula.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "preflop/traced.hpp"

namespace preflop {

// Equal nodes have equal signatures: what they say, and how they were made.
class Signatures {
 public:
  std::uint64_t of(const TraceNode& node);

 private:
  std::map<const TraceNode*, std::uint64_t> known_;
};

// The inputs of a sum or a maximum, the largest first, equal ones counted.
struct TermGroup {
  const TraceNode* node;
  std::size_t count;
};
std::vector<TermGroup> grouped_inputs(const TraceNode& node, Signatures& signatures);

// Through names and sums of one term down to what makes the number.
const TraceNode& body(const TraceNode& node);
// The outermost name of a node, empty if it has none.
const std::string& label(const TraceNode& node);
// Its unit: stated, or that of its operands multiplied out ("B" / "B/s" is "s").
std::string unit_of(const TraceNode& node);

// A formula over named numbers: its text with names, the same with numbers, and what it is made of.
struct Formula {
  std::string names;
  std::string numbers;
  std::vector<const TraceNode*> operands;  // distinct, in order of appearance
};
Formula formula(const TraceNode& node, Signatures& signatures);

}  // namespace preflop
