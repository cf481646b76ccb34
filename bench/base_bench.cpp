// The base pieces that stand in the way of a millisecond: reading data files, maths, decimals.
#include <benchmark/benchmark.h>

#include <string>

#include "src/base/csv.hpp"
#include "src/base/decimal.hpp"
#include "src/base/json_read.hpp"
#include "src/base/math.hpp"
#include "src/base/units.hpp"

namespace preflop {
namespace {

void csv_150_kb(benchmark::State& state) {
  std::string text = "id,model,gpu,gpus,seq,step_seconds,source\n";
  while (text.size() < 150'000) text += "row-17,llama3-70b,h100-sxm,2048,8192,12.34,\"a paper, table 5\"\n";
  for (auto _ : state) benchmark::DoNotOptimize(Csv::parse(text, "bench.csv"));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(csv_150_kb)->Unit(benchmark::kMicrosecond);

void json_config(benchmark::State& state) {
  std::string text = "{\"hidden_size\": 8192";
  for (int i = 0; i < 40; ++i) text += ",\n \"key_" + std::to_string(i) + "\": " + std::to_string(i * 1000);
  text += "}";
  for (auto _ : state) benchmark::DoNotOptimize(read_json(text, "config.json"));
}
BENCHMARK(json_config)->Unit(benchmark::kMicrosecond);

void math_exp(benchmark::State& state) {
  double x = 0.1;
  for (auto _ : state) benchmark::DoNotOptimize(x = math::exp(-x));
}
BENCHMARK(math_exp);

void math_log(benchmark::State& state) {
  double x = 1.1;
  for (auto _ : state) benchmark::DoNotOptimize(x = math::log(x) + 7);
}
BENCHMARK(math_log);

void math_pow(benchmark::State& state) {
  double x = 1.1;
  for (auto _ : state) benchmark::DoNotOptimize(x = math::pow(x, 0.37) + 3);
}
BENCHMARK(math_pow);

void decimal(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_decimal("3.35e12"));
}
BENCHMARK(decimal);

void count_with_suffix(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_count("1.4T", "--tokens"));
}
BENCHMARK(count_with_suffix);

}  // namespace
}  // namespace preflop
