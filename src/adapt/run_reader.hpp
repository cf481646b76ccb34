// What the readers of run keys share: the request, the defaults, and how an assumption is noted.
#pragma once

#include "src/adapt/run_keys.hpp"

namespace preflop {

class RunReader {
 public:
  RunReader(const Request& request, const RunData& data, const Cluster& cluster, Recipe& recipe)
      : request_(request), data_(data), cluster_(cluster), recipe_(recipe) {}

  const RunData& data() const { return data_; }
  const Cluster& cluster() const { return cluster_; }
  Recipe& recipe() { return recipe_; }
  RunSettings& run() { return recipe_.run; }

  const std::string* given(std::string_view key) const;
  // Notes "key=value (why)" and the value as the flag takes it.
  void assume(std::string_view key, const std::string& value, const std::string& why);

  Result<std::optional<bool>> on_off(std::string_view key) const;

  // A setting that the flag gives in one of these grammars, else the default of the data file (`text_of` writes it
  // as the flag takes it).
  Status seconds(const char* key, Sourced& out);
  Status share(const char* key, Sourced& out);
  // Only what was given; more than 0.
  Status optional_seconds(const char* key, std::optional<Sourced>& out);

 private:
  const Request& request_;
  const RunData& data_;
  const Cluster& cluster_;
  Recipe& recipe_;
};

Status read_length(RunReader& in, const Model& model);
Status read_hazards(RunReader& in);  // failures, restarts, spares, maintenance
Status read_checkpoints(RunReader& in);
Status read_overheads(RunReader& in);  // evaluation, stalls, batch ramp
Status read_money(RunReader& in);      // price, energy, limits, start, seed

}  // namespace preflop
