// From flags to a posed problem: reads the files that flags name.
#pragma once

#include <memory>

#include "apps/preflop/command.hpp"
#include "src/adapt/request.hpp"

namespace preflop::cli {

// Flags of the recipe, from the one table of keys.
std::vector<Flag> recipe_flags();

// `model` is the MODEL argument, "" when it is not given.
Result<Request> read_request(const Args& args, const std::string& model);

// MODEL: a file or folder that is there, stdin, or a name.
Status read_model(const std::string& model, Request& out);

struct Posed {
  std::unique_ptr<Catalogues> catalogues;  // the problem points into them
  Problem problem;
};
Result<Posed> pose_request(const Args& args, const std::string& model, Timing& timing);

Result<std::map<std::string, std::string>> overlays_of(const Args& args);
// The catalogues, with the files of --data-dir over them.
Result<Catalogues> catalogues_of(const Args& args);

}  // namespace preflop::cli
