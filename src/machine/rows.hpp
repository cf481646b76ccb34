// Reads the long rows of gpus.csv and platforms.csv: id, field, value, unit, rung, source. One datum a
// row; unit `text` marks names, aliases and notes; unit `gpu` with rung same_chip names the GPU whose
// value holds; rung `unknown` states why there is no value. Rows of one id need not be adjacent.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "preflop/machine.hpp"

namespace preflop {

// sources.csv: a datum's source is a key of it, or a text of its own.
using SourceTable = std::map<std::string, std::string, std::less<>>;
Result<SourceTable> read_sources(std::string_view csv, std::string_view file);

// Adds rows to what is there: values and texts of the same id are replaced, aliases and notes join.
// Errors name file:line:column.
Status read_gpus(std::string_view csv, std::string_view file, const SourceTable& sources, std::vector<Gpu>& gpus);
Status read_platforms(std::string_view csv, std::string_view file, const SourceTable& sources,
                      std::vector<Platform>& platforms);

// Puts the parents' values into data that stand as same_chip without a value (R3).
Status resolve_same_chip(std::vector<Gpu>& gpus);

}  // namespace preflop
