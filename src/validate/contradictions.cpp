#include "src/validate/contradictions.hpp"

#include "src/base/csv.hpp"
#include "src/base/embedded.hpp"

namespace preflop {

Result<std::map<std::string, Contradiction, std::less<>>> contradictions() {
  const auto csv = Csv::parse(embedded("contradictions.csv"), "data/contradictions.csv");
  if (!csv) return csv.error();
  std::map<std::string, Contradiction, std::less<>> out;
  for (std::size_t i = 0; i < csv->rows(); ++i)
    out[std::string(csv->at(i, "row"))] = {std::string(csv->at(i, "against")), std::string(csv->at(i, "reason"))};
  return out;
}

}  // namespace preflop
