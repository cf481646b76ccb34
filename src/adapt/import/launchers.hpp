// Launch files that a table reads for the most part: their parts.
#pragma once

#include "src/adapt/import/fields.hpp"
#include "src/adapt/import/import.hpp"

namespace preflop {

// "a.b: 8" of the YAML that launchers write: nested and flow mappings, scalars, lists of words, comments. Errors name
// the line.
Status read_yaml(std::string_view text, const std::string& file, Fields& out);

Result<Request> import_accelerate(std::string_view text, const std::string& file);
Result<Request> import_nanotron(std::string_view text, const std::string& file);

// What DeepSpeed keeps on the host; nothing where neither is there. Its own stack is not built.
void read_deepspeed_offload(const Fields& f, const std::string& optimizer, const std::string& params, Request& out);

}  // namespace preflop
