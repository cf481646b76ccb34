// The command line that estimates a planned layout again: the same step, memory and verdict to the last bit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/adapt/plan_offer.hpp"

namespace preflop {

// "preflop estimate MODEL --on .. --tp 2 ..": what the request gave, and what the plan chose where it is not what
// `estimate` takes by itself. The batch in sequences and the stack by name always: their defaults go by the layout.
std::string command_line(const Offer& offer, const Recipe& recipe);

// "preflop plan MODEL --on .. --stack ..": what the request gave, on this stack.
std::string plan_command(const Request& request, const std::string& stack);

// Of every plan that one of the offers made; empty for others.
std::vector<std::string> command_lines(const std::vector<Estimate>& plans,
                                       const std::vector<std::unique_ptr<Offer>>& offers);

// A word as a POSIX shell reads it.
std::string shell_word(const std::string& word);

}  // namespace preflop
