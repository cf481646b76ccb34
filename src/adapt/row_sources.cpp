#include "src/adapt/rows.hpp"
#include "src/base/embedded.hpp"

namespace preflop {

Result<std::map<std::string, SourceRules, std::less<>>> source_rules() {
  const auto table = Csv::parse(embedded("measured_sources.csv"), "measured_sources.csv");
  if (!table) return table.error();
  for (const char* column : {"file", "title", "time", "convention", "memory", "defaults", "largest"}) {
    if (const auto found = table->need(column); !found) return found.error();
  }
  std::map<std::string, SourceRules, std::less<>> out;
  for (std::size_t i = 0; i < table->rows(); ++i) {
    SourceRules& rules = out[std::string(table->at(i, "file"))];
    rules.title = table->at(i, "title");
    rules.time = table->at(i, "time");
    rules.convention = table->at(i, "convention");
    rules.memory = table->at(i, "memory");
    const std::string_view largest = table->at(i, "largest");
    if (!largest.empty() && largest != "micro-batch")
      return Error{table->where(i), "the largest of what? '" + std::string(largest) + "'", "micro-batch or nothing"};
    rules.largest_micro_batch = !largest.empty();
    const std::string_view defaults = table->at(i, "defaults");
    for (std::size_t begin = 0; begin < defaults.size();) {
      const std::size_t end = std::min(defaults.find(' ', begin), defaults.size());
      const std::string_view token = defaults.substr(begin, end - begin);
      const std::size_t equals = token.find('=');
      if (equals == std::string_view::npos) return Error{table->where(i), "defaults are not key=value", {}};
      rules.defaults.emplace_back(token.substr(0, equals), token.substr(equals + 1));
      begin = end + 1;
    }
  }
  return out;
}

}  // namespace preflop
