// Recipes from files: an earlier result of this program, a Megatron launch script, a torchtitan, DeepSpeed,
// accelerate or nanotron configuration. What a file does not say stays open; what it says and we cannot read is
// an error, never a guess.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "preflop/result.hpp"
#include "src/adapt/request.hpp"

namespace preflop {

// An estimate, or the plan of a rank (from 1) in a plan.
Result<Request> import_result(std::string_view text, const std::string& file, std::size_t rank = 1);

// Any of the formats, told apart by name and content.
Result<Request> import_file(std::string_view text, const std::string& file);

Result<Request> import_megatron(std::string_view text, const std::string& file);
Result<Request> import_python(std::string_view text, const std::string& file);      // torchtitan, Megatron-Bridge
Result<Request> import_torchtitan(std::string_view text, const std::string& file);  // its older TOML
Result<Request> import_deepspeed(std::string_view text, const std::string& file);
Result<Request> import_yaml(std::string_view text, const std::string& file);  // accelerate, nanotron

// Takes out of a file's recipe what follows from others of its values, where `given` (flags; its cluster and model,
// too) says otherwise of those: dp of the rest of the layout, the split of the pipeline, what a size of 1 leaves empty.
void make_way(Request& file, const Request& given);

// What Megatron's options of full recomputation say: block or uniform, and of how many layers.
// Layers of the stages, and how many virtual ones, of Megatron's layout string "Et*4|t*4|tmL".
// Returns false where it is none of `pp` stages.
bool read_layout(std::string_view layout, std::int64_t pp, Request& out);
std::string whole_layers(const std::string& method, const std::string& layers);

// What the comment line "# preflop: key=value ..." of an export says.
void read_rest_line(std::string_view text, Request& out);

// Words of a shell script as the shell would see them: comments and continuations removed, quotes taken off,
// variables and arrays of the script replaced. A variable from outside stays "" unless it has a default.
std::vector<std::string> shell_words(std::string_view script);

// "a.b: 8" of the YAML that launchers write: nested and flow mappings, scalars, comments. Errors name the line.
Result<std::map<std::string, std::string>> flat_yaml(std::string_view text, const std::string& file);

}  // namespace preflop
