// The published figures that a forecast starts from, read from data/: defaults, rates of failure, prices, grids.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/forecast.hpp"
#include "preflop/result.hpp"

namespace preflop {

struct Fleet {
  std::string name;
  double rate = 0;  // hardware failures per second and 8-GPU node
  std::string source;
};

struct Price {
  std::string gpu;   // canonical id
  std::string kind;  // on-demand, reserved, capacity-block
  double usd = 0;    // per GPU-hour
  std::string date;  // "2026-05"
  std::string source;
};

struct Place {
  std::string name;
  double kg_per_kwh = 0;
  std::string source;
};

struct RunData {
  std::map<std::string, Sourced, std::less<>> defaults;  // SI
  std::vector<Fleet> fleets;                             // those that count
  std::vector<Price> prices;
  std::vector<Place> places;

  // Overlays are the texts of the files of the same name in --data-dir; each replaces the built-in one.
  // Errors name file:line: a cell without source, a value that is no number or negative, an unknown unit.
  static Result<RunData> load(const std::map<std::string, std::string>& overlays = {});

  const Sourced& value(std::string_view key) const;  // of `defaults`; an empty Sourced for an unknown key
  const Price* price(std::string_view gpu, std::string_view kind) const;  // null: none known
  const Place* place(std::string_view name) const;

  // The centre of the fleets' rates (geometric mean) and the standard deviation of their logarithm.
  Sourced hardware_rate() const;
  double rate_spread() const;
};

}  // namespace preflop
