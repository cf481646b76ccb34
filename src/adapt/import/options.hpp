// Options of a launch script, as its reader sees them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/result.hpp"
#include "src/adapt/import/import.hpp"

namespace preflop {

// Options with what follows them, up to the next option. It remembers which ones a reader asked for.
class Options {
 public:
  explicit Options(const std::vector<std::string>& words, int depth = 0);
  bool has(const std::string& key) const;
  std::string value(const std::string& key) const;  // the first word behind it
  std::vector<std::string> values(const std::string& key) const;
  std::int64_t number(const std::string& key) const;  // 0: none
  // Of two names the one that the script has, else the first.
  std::string either(const std::string& key, const std::string& other) const;
  // A value that its reader has no word for.
  void leave(const std::string& key) const { left_.insert(key + (value(key).empty() ? "" : " " + value(key))); }
  std::vector<std::string> all() const;
  void note(const std::string& what) const { left_.insert(what); }
  // Options of the training script that no reader asked for, but for those of data/launch_ignored.csv; values that
  // were left.
  std::vector<std::string> not_read() const;

 private:
  const std::vector<std::string>* find(const std::string& key) const;

  std::map<std::string, std::vector<std::string>> all_;
  std::set<std::string> of_script_;  // those behind the last word "x.py"; all without one
  mutable std::set<std::string> asked_, left_;
};

// "run.sh:3": the line that says the option last, outside comments.
std::string place_of(std::string_view text, const std::string& file, std::string_view option);

// Can the option matter to neither memory nor time (data/launch_ignored.csv)?
bool ignored_option(std::string_view format, std::string_view option);

// The model that the options of a Megatron launch describe, as a shape string; empty where they do not. Errors: kinds
// of layers that alternate as no shape string says.
Result<std::string> megatron_model(std::string_view script, const Options& o);

}  // namespace preflop
