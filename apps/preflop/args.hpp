// The command line of one command: flags by name, and what stands without one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "preflop/result.hpp"

namespace preflop::cli {

struct Flag {
  std::string name;   // "micro-batch", without dashes
  std::string value;  // grammar of its value; empty: a switch
  std::string help;
  std::string group;
  bool repeatable = false;
  bool negatable = false;  // a switch with --no-NAME: its value is "true" or "false"
  std::string later = {};  // a reason: known, but refused
};

struct Args {
  std::map<std::string, std::vector<std::string>> values;  // a plain switch has one empty value
  std::vector<std::string> words;

  bool has(const std::string& name) const { return values.contains(name); }
  // The value of a flag that was given, else "".
  std::string value(const std::string& name) const {
    const auto at = values.find(name);
    return at == values.end() ? "" : at->second.front();
  }
};

// --name value, --name=value, -q -v -o -h; "--" ends the flags; "-" is a word. Errors: unknown (did you
// mean), no value, a value for a switch, given twice, --x together with --no-x, too many words.
Result<Args> parse_args(const std::vector<std::string>& args, const std::vector<Flag>& flags,
                        const std::vector<std::string>& words);

}  // namespace preflop::cli
