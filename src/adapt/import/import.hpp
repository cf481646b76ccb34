// Recipes from files: an earlier result of this program, a Megatron launch script, a torchtitan, DeepSpeed,
// accelerate or nanotron configuration. What a file does not say stays open; what it says and we cannot read is
// an error, never a guess.
#pragma once

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
std::string whole_layers(const std::string& method, const std::string& layers);

// What the comment line "# preflop: key=value ..." of an export says.
void read_rest_line(std::string_view text, Request& out);

// Words of a shell script as the shell would see them: comments and continuations removed, quotes taken off,
// variables and arrays of the script replaced. A variable from outside stays "" unless it has a default.
std::vector<std::string> shell_words(std::string_view script);

// "Et*4|(t*4|)*14tmL": layers of stages, or how many virtual stages a rank has.
void read_stage_layout(std::string_view layout, std::int64_t pp, Request& out);

// Completes what a file says beside the request's cluster and model; a range of clusters leaves what the file alone
// says. Errors: sizes that do not divide.
Status settle(Request& request, const Catalogues& catalogues);

// An error about a key that a file says names the line of the file; one about what is not built names the framework.
Error placed(Error error, const Request& request);

}  // namespace preflop
