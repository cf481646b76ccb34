// An explanation for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/explain/explain.hpp"

namespace preflop {

// Formula, substituted numbers, sources, indented, at most 80 columns. Of long sums the largest terms
// are shown and the rest is summed on one line, unless `everything`.
std::string explain_text(const Explanation& explanation, bool everything);

// The same, line by line, for views that wrap and indent themselves.
struct ExplainLine {
  std::size_t indent = 0;  // two deeper than what the line belongs to
  std::string text;        // "weights = 1.2 GiB = ..", "source: .."
};
std::string explain_head(const Explanation& e);  // "memory.weights = 123 B = 1.2 GiB"
std::vector<ExplainLine> explain_lines(const Explanation& explanation, bool everything);

// {schema: preflop.explain/1, term, path, value, unit, tree {op, name, value, unit, detail, source, count, inputs}}.
// A part that several numbers are made of stands once, with an id; elsewhere {op, name, value, unit, same_as: id}.
nlohmann::json explain_json_value(const Explanation& explanation);

std::string term_list_text(const std::vector<TermLine>& terms);
nlohmann::json term_list_json(const std::vector<TermLine>& terms);

// A number with its unit as the derivation prints it: "23.0 GiB", "9.89e14 FLOP/s", "8,192".
std::string shown_number(double value, std::string_view unit);

}  // namespace preflop
