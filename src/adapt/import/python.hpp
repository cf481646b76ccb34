// Configurations in Python: "config.a.b = value", one a line.
#pragma once

#include "src/adapt/import/fields.hpp"
#include "src/adapt/import/import.hpp"

namespace preflop {

// "a.b" -> value, without quotes and comments. Arguments of a call are fields of its own: "a.b = F(c=1)" is a.b.c, too.
void read_assignments(std::string_view text, Fields& out);

Result<Request> import_torchtitan_python(std::string_view text, const std::string& file);
Result<Request> import_bridge(std::string_view text, const std::string& file);

}  // namespace preflop
