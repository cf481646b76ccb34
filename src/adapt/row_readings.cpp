// What a row measured: one reading for each quantity, never none.
#include "src/adapt/row_readings.hpp"

#include <array>

#include "src/base/decimal.hpp"
#include "src/base/units.hpp"

namespace preflop {

namespace {

using From = Reading::From;
constexpr double kTera = 1e12;
constexpr double kPercent = 100;

double number(const Row& row, std::string_view key) {
  const std::string* cell = row.cell(key);
  if (cell == nullptr) return 0;
  const auto value = parse_decimal(*cell);
  return value ? *value : 0;
}

struct TimeColumn {
  std::string_view name;
  From from;
  double unit;
};
// The order in which they count where a source says nothing else.
constexpr std::array kTime = {
    TimeColumn{"step_s", From::seconds, 1}, TimeColumn{"tok_s_gpu", From::tokens_per_second_per_gpu, 1},
    TimeColumn{"samples_s", From::samples_per_second, 1}, TimeColumn{"tflops_gpu", From::tflops_per_gpu, kTera},
    TimeColumn{"mfu", From::mfu, 1 / kPercent}};

bool measures_time(const Row& row) {
  for (const TimeColumn& column : kTime) {
    if (row.has(column.name)) return true;
  }
  return false;
}

const TimeColumn* time_column(const Row& row, const SourceRules& rules) {
  const std::string_view preferred = row.flag("tok-quantised")   ? "tflops_gpu"
                                     : row.flag("tok-disagrees") ? "step_s"
                                                                 : std::string_view(rules.time);
  const TimeColumn* first = nullptr;
  for (const TimeColumn& column : kTime) {
    if (!row.has(column.name)) continue;
    if (column.name == preferred) return &column;
    if (first == nullptr) first = &column;
  }
  return first;
}

void add_time(const Row& row, const SourceRules& rules, std::vector<Reading>& out) {
  const TimeColumn* column = time_column(row, rules);
  if (column == nullptr) return;
  Reading reading{"time.step_seconds", column->from, number(row, column->name) * column->unit, {}, 0};
  if (column->from == From::tflops_per_gpu || column->from == From::mfu) {
    const std::string* own = row.cell("convention");
    reading.convention = own != nullptr ? *own : rules.convention.empty() ? "unknown" : rules.convention;
    if (column->from == From::mfu) reading.peak_flops = number(row, "peak_tflops") * kTera;
  }
  out.push_back(std::move(reading));
}

void add_memory(const Row& row, const SourceRules& rules, std::vector<Reading>& out) {
  std::string kind = row.has("mem_kind") ? *row.cell("mem_kind") : "";
  if ((kind.empty() || row.is_assumed("mem_kind")) && !rules.memory.empty()) kind = rules.memory;
  if (kind.empty()) kind = "reserved";
  const auto add = [&](const std::string& what, double bytes) {
    const std::string metric = "memory." + what;
    for (const Reading& r : out) {
      if (r.metric == metric) return;
    }
    out.push_back({metric, From::bytes, bytes, {}, 0});
  };
  if (row.has("peak_bytes"))
    add(kind, number(row, "peak_bytes"));
  else if (row.has("peak_mem_gib"))
    add(kind, number(row, "peak_mem_gib") * kGiB);
  if (row.has("reserved_gib")) add("reserved", number(row, "reserved_gib") * kGiB);
  if (row.has("device_gib") && !row.flag("no-result")) add("device", number(row, "device_gib") * kGiB);
}

}  // namespace

std::vector<Reading> row_readings(const Row& row, const SourceRules& rules) {
  std::vector<Reading> out;
  if (row.flag("whole-run")) return {{"time.step_seconds", From::nothing, 0, {}, 0}};
  if (row.flag("no-result")) return {{"memory.allocated", From::nothing, 0, {}, 0}};
  const std::string* oom = row.cell("oom");
  if (oom != nullptr && *oom == "yes") return {{"fit.verdict", From::verdict, 0, {}, 0}};
  add_time(row, rules, out);
  add_memory(row, rules, out);
  if (!out.empty() || row.flag("ran") || oom != nullptr) out.push_back({"fit.verdict", From::verdict, 1, {}, 0});
  if (out.empty())
    out.push_back(
        {row.has("run_hours") || measures_time(row) ? "time.step_seconds" : "fit.verdict", From::nothing, 0, {}, 0});
  return out;
}

}  // namespace preflop
