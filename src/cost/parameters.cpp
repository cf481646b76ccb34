#include "src/cost/parameters.hpp"

#include "src/base/csv.hpp"
#include "src/base/decimal.hpp"
#include "src/base/embedded.hpp"

namespace preflop {

namespace {

constexpr const char* kFile = "time.csv";
constexpr const char* kColumns[] = {"owner", "field", "value", "unit", "prior", "low", "high", "sigma", "source"};

std::string key(std::string_view owner, std::string_view field) {
  return std::string(owner) + "\n" + std::string(field);
}

Result<double> number(const Csv& csv, std::size_t row, std::string_view column) {
  const std::string_view text = csv.at(row, column);
  const auto value = parse_decimal(text);
  if (value) return *value;
  return Error{csv.where(row), "'" + std::string(text) + "' under " + std::string(column) + " is no number", "0.8"};
}

}  // namespace

Result<TimeParameters> TimeParameters::parse(std::string_view text, std::string_view file) {
  const auto csv = Csv::parse(text, file);
  if (!csv) return csv.error();
  for (const char* column : kColumns) {
    if (const auto at = csv->need(column); !at) return at.error();
  }
  TimeParameters out;
  for (std::size_t i = 0; i < csv->rows(); ++i) {
    Parameter p;
    p.owner = csv->at(i, "owner");
    p.field = csv->at(i, "field");
    p.unit = csv->at(i, "unit");
    p.source = csv->at(i, "source");
    const auto value = number(*csv, i, "value");
    if (!value) return value.error();
    p.value = *value;
    p.fitted = !csv->at(i, "prior").empty();
    if (p.fitted) {
      double* const bounds[] = {&p.prior, &p.low, &p.high, &p.weight};
      constexpr const char* kBounds[] = {"prior", "low", "high", "sigma"};
      for (int b = 0; b < 4; ++b) {
        const auto bound = number(*csv, i, kBounds[b]);
        if (!bound) return bound.error();
        *bounds[b] = *bound;
      }
      if (p.value < p.low || p.value > p.high || p.weight <= 0)
        return Error{csv->where(i), p.owner + " " + p.field + " is outside its bounds",
                     "low <= value <= high, sigma > 0"};
    }
    if (p.source.empty())
      return Error{csv->where(i), p.owner + " " + p.field + " has no source", "where it comes from"};
    if (!out.index_.emplace(key(p.owner, p.field), out.rows_.size()).second)
      return Error{csv->where(i), p.owner + " " + p.field + " stands twice", "one row each"};
    out.rows_.push_back(std::move(p));
  }
  return out;
}

const TimeParameters& TimeParameters::built_in() {
  static const Result<TimeParameters> kParsed = parse(embedded(kFile), "data/time.csv");
  static const TimeParameters kNone;
  return kParsed ? *kParsed : kNone;
}

const Parameter* TimeParameters::find(const std::vector<std::string>& owners, std::string_view field) const {
  for (const std::string& owner : owners) {
    const auto it = index_.find(key(owner, field));
    if (it != index_.end()) return &rows_[it->second];
  }
  return nullptr;
}

std::string TimeParameters::csv() const {
  std::string out;
  for (const char* column : kColumns) out += std::string(out.empty() ? "" : ",") + column;
  out += "\n";
  for (const Parameter& p : rows_) {
    out += p.owner + "," + p.field + "," + shortest(p.value) + "," + p.unit + ",";
    if (p.fitted)
      out += shortest(p.prior) + "," + shortest(p.low) + "," + shortest(p.high) + "," + shortest(p.weight);
    else
      out += ",,,";
    const bool quote = p.source.find_first_of(",\"") != std::string::npos;
    out += quote ? ",\"" + p.source + "\"\n" : "," + p.source + "\n";
  }
  return out;
}

std::vector<std::string> gpu_owners(const Gpu& gpu) { return {"gpu " + gpu.id, "arch " + gpu.arch, "gpu *"}; }

std::vector<std::string> stack_owners(const Stack& stack, const Gpu& gpu) {
  std::vector<std::string> out = {"stack " + stack.name + " on " + gpu.arch};
  if (!stack.generation.empty()) {
    out.push_back("stack " + stack.name + "@" + stack.generation);
    const std::string line = stack.generation.substr(0, stack.generation.find('-'));
    if (line != stack.generation) out.push_back("stack " + stack.name + "@" + line);
  }
  out.push_back("stack " + stack.name);
  out.emplace_back("stack *");
  return out;
}

}  // namespace preflop
