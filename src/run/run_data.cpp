#include "src/run/run_data.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "src/base/csv.hpp"
#include "src/base/embedded.hpp"
#include "src/base/math.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"

namespace preflop {

namespace {

constexpr double kDay = 86400;
constexpr double kPerThousandDays = 1 / (1000 * kDay);

struct Unit {
  std::string_view name;
  double si;
};
constexpr std::array kUnits = {Unit{"", 1},
                               Unit{"%", 0.01},
                               Unit{"s", 1},
                               Unit{"min", 60},
                               Unit{"GB/s", 1e9},
                               Unit{"per day", 1 / kDay},
                               Unit{"USD/TB-month", 1e-12 / (kDay * 365 / 12)},
                               Unit{"per unplanned", 1},
                               Unit{"per 1000 node-days", kPerThousandDays}};

Result<Csv> table(const std::map<std::string, std::string>& overlays, const char* file,
                  std::initializer_list<std::string_view> columns) {
  const auto overlay = overlays.find(file);
  Result<Csv> csv = Csv::parse(overlay == overlays.end() ? embedded(file) : std::string_view(overlay->second), file);
  if (!csv) return csv;
  for (std::string_view column : columns) {
    if (const auto there = csv->need(column); !there) return there.error();
  }
  return csv;
}

Result<double> number(const Csv& csv, std::size_t row, std::string_view column) {
  const std::string where = csv.where(row, *csv.find(column));
  if (csv.at(row, "source").empty()) return Error{csv.where(row), "a value without a source", "name the document"};
  return parse_real(csv.at(row, column), where);
}

std::string with_date(const Csv& csv, std::size_t row) {
  const std::string_view date = csv.at(row, "date");
  return std::string(csv.at(row, "source")) + (date.empty() ? "" : " (" + std::string(date) + ")");
}

Status read_defaults(const Csv& csv, RunData& out) {
  for (std::size_t i = 0; i < csv.rows(); ++i) {
    const auto value = number(csv, i, "value");
    if (!value) return value.error();
    const Unit* unit = nullptr;
    for (const Unit& u : kUnits) {
      if (u.name == csv.at(i, "unit")) unit = &u;
    }
    if (unit == nullptr)
      return Error{csv.where(i, *csv.find("unit")), "no unit " + text::quoted(csv.at(i, "unit")), "s, min, %, GB/s"};
    out.defaults[std::string(csv.at(i, "key"))] = {*value * unit->si, with_date(csv, i)};
  }
  return Nothing{};
}

Status read_fleets(const Csv& csv, RunData& out) {
  for (std::size_t i = 0; i < csv.rows(); ++i) {
    if (csv.at(i, "used") != "yes") continue;
    const auto value = number(csv, i, "per_1000_node_days");
    if (!value) return value.error();
    if (*value <= 0) return Error{csv.where(i), "a rate of 0 has no logarithm", "more than 0"};
    out.fleets.push_back({std::string(csv.at(i, "fleet")), *value * kPerThousandDays, with_date(csv, i)});
  }
  if (out.fleets.empty()) return Error{csv.file(), "no fleet is used", "at least one row with used = yes"};
  return Nothing{};
}

Status read_prices(const Csv& csv, RunData& out) {
  for (std::size_t i = 0; i < csv.rows(); ++i) {
    const auto usd = number(csv, i, "usd");
    if (!usd) return usd.error();
    out.prices.push_back({std::string(csv.at(i, "gpu")), std::string(csv.at(i, "kind")), *usd,
                          std::string(csv.at(i, "date")), std::string(csv.at(i, "source"))});
  }
  return Nothing{};
}

Status read_places(const Csv& csv, RunData& out) {
  constexpr double kGrams = 1e-3;
  for (std::size_t i = 0; i < csv.rows(); ++i) {
    const auto grams = number(csv, i, "g_per_kwh");
    if (!grams) return grams.error();
    out.places.push_back({std::string(csv.at(i, "place")), *grams * kGrams,
                          std::string(csv.at(i, "source")) + " (" + std::string(csv.at(i, "year")) + ")"});
  }
  return Nothing{};
}

}  // namespace

Result<RunData> RunData::load(const std::map<std::string, std::string>& overlays) {
  RunData out;
  const auto read = [&](const char* file, std::initializer_list<std::string_view> columns,
                        Status (*rows)(const Csv&, RunData&)) -> Status {
    const auto csv = table(overlays, file, columns);
    if (!csv) return csv.error();
    return rows(*csv, out);
  };
  Status s = read("run_defaults.csv", {"key", "value", "unit", "date", "source"}, read_defaults);
  if (s) s = read("failures.csv", {"fleet", "per_1000_node_days", "used", "date", "source"}, read_fleets);
  if (s) s = read("prices.csv", {"gpu", "kind", "usd", "date", "source"}, read_prices);
  if (s) s = read("grid.csv", {"place", "g_per_kwh", "year", "source"}, read_places);
  if (!s) return s.error();
  return out;
}

const Sourced& RunData::value(std::string_view key) const {
  static const Sourced none;
  const auto it = defaults.find(key);
  return it == defaults.end() ? none : it->second;
}

const Price* RunData::price(std::string_view gpu, std::string_view kind) const {
  for (const Price& p : prices) {
    if (p.gpu == gpu && p.kind == kind) return &p;
  }
  return nullptr;
}

const Place* RunData::place(std::string_view name) const {
  const std::string wanted = text::normalise_name(name);
  for (const Place& p : places) {
    if (p.name == wanted) return &p;
  }
  return nullptr;
}

Sourced RunData::hardware_rate() const {
  double sum = 0;
  std::string names;
  for (const Fleet& f : fleets) {
    sum += math::log(f.rate);
    names += (names.empty() ? "" : ", ") + f.name + " " + text::fixed(f.rate / kPerThousandDays, 2);
  }
  return {math::exp(sum / static_cast<double>(fleets.size())),
          "geometric mean of published hardware failures per 1,000 node-days, data/failures.csv: " + names};
}

double RunData::rate_spread() const {
  const auto n = static_cast<double>(fleets.size());
  if (n < 2) return 0;
  const double centre = math::log(hardware_rate().value);
  double squares = 0;
  for (const Fleet& f : fleets) squares += (math::log(f.rate) - centre) * (math::log(f.rate) - centre);
  return std::sqrt(squares / (n - 1));
}

}  // namespace preflop
