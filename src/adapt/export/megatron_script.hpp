// A launch script of Megatron-LM while it is written.
#pragma once

#include <string>
#include <vector>

#include "src/adapt/export/export.hpp"

namespace preflop {

// Lines of options; each is remembered as written.
struct MegatronScript {
  Exported out;
  std::string line;
  void option(const std::string& key, const std::string& value = "") {
    out.options.emplace_back(key, value);
    line += " " + key + (value.empty() ? "" : " " + value);
  }
  void size(const std::string& key, std::int64_t value) { option(key, std::to_string(value)); }
  void end() {
    if (!line.empty()) out.text += " \\\n " + line;
    line.clear();
  }
};

// Has it layers with a state space, or with one sublayer alone?
bool is_hybrid(const Architecture& a);
// The experts of its layers; null: it has none.
const ExpertSpec* experts_of(const Architecture& a);
// The parts of --cuda-graph-scope that the model has.
std::vector<std::string> graph_modules(const Architecture& a, const Recipe& r);
// The options that describe the model. Errors: layers that no options are written for yet.
Status model_options(MegatronScript& s, const Architecture& a);
void expert_options(MegatronScript& s, const Architecture& a, const Recipe& r);

}  // namespace preflop
