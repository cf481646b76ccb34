// A Python function that sets attributes of a configuration object, line by line.
#pragma once

#include <string>

#include "src/adapt/export/export.hpp"

namespace preflop {

struct PythonConfig {
  Exported out;
  std::string object;  // "config", "cfg"
  // `value` as Python writes it: 8, True, "1F1B".
  void set(const std::string& path, const std::string& value) {
    out.options.emplace_back(path, value);
    out.text += "    " + object + "." + path + " = " + value + "\n";
  }
  void set(const std::string& path, std::int64_t value) { set(path, std::to_string(value)); }
  void set(const std::string& path, bool value) { set(path, std::string(value ? "True" : "False")); }
};

inline std::string quoted_python(const std::string& text) { return "\"" + text + "\""; }

}  // namespace preflop
