// Two results of this program, read back from their JSON, line by line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "preflop/result.hpp"

namespace preflop {

// The numbers of both, by path, those that differ: estimates, or the first plans of two plans. Errors: neither,
// or two kinds.
struct Comparison {
  struct Line {
    std::string path;
    std::string a, b;  // as text; "-" where one has none
    double ratio = 0;  // b / a; 0 where it means nothing
  };
  std::string what_a, what_b;  // "llama3-70b on 64 x h100-sxm"
  std::vector<Line> lines;
};
Result<Comparison> compare_json(const nlohmann::json& a, const nlohmann::json& b);
nlohmann::json compare_json_value(const Comparison& comparison);
std::string compare_text(const Comparison& comparison, bool everything);

}  // namespace preflop
