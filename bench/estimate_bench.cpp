// How long one estimate takes in process: catalogues loaded once, then requests.
#include <benchmark/benchmark.h>

#include "src/adapt/request.hpp"
#include "src/run/estimate.hpp"
#include "src/step/memory.hpp"

namespace preflop {
namespace {

const Catalogues& catalogues() {
  static const Catalogues kLoaded = std::move(Catalogues::load()).value();
  return kLoaded;
}

Request llama70b() {
  Request r;
  r.model = "llama3-70b";
  r.on = "64xh100-sxm";
  r.keys = {{"tp", "8"}, {"pp", "2"}};
  return r;
}

void load_catalogues(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Catalogues::load());
}
BENCHMARK(load_catalogues)->Unit(benchmark::kMicrosecond);

// Text to a checked recipe and its analysis.
void pose_request(benchmark::State& state) {
  const Request request = llama70b();
  for (auto _ : state) benchmark::DoNotOptimize(pose(request, catalogues()));
}
BENCHMARK(pose_request)->Unit(benchmark::kMicrosecond);

void estimate_recipe(benchmark::State& state) {
  const Result<Problem> problem = pose(llama70b(), catalogues());
  for (auto _ : state) benchmark::DoNotOptimize(estimate<double>(problem->analysed, problem->cluster));
}
BENCHMARK(estimate_recipe)->Unit(benchmark::kMicrosecond);

// 24 stages and 192 micro-batches: in closed form, and played event by event.
void estimate_stages(benchmark::State& state, const char* schedule) {
  Request request;
  request.model = "gpt3-175b";
  request.on = "96xa100-80";
  request.keys = {{"tp", "4"},
                  {"pp", "24"},
                  {"schedule", schedule},
                  {"seq", "2048"},
                  {"global_batch", "192"},
                  {"stack", "megatron@2023"}};
  const Result<Problem> problem = pose(request, catalogues());
  if (!problem) return state.SkipWithError(problem.error().text().c_str());
  for (auto _ : state) benchmark::DoNotOptimize(estimate<double>(problem->analysed, problem->cluster));
}
BENCHMARK_CAPTURE(estimate_stages, 1f1b, "1f1b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(estimate_stages, zb_1p, "zb-1p")->Unit(benchmark::kMicrosecond);

// Memory in full detail (every stage, moment and term), from a recipe: at most a millisecond.
void memory_detail(benchmark::State& state, const Request& request) {
  const Result<Problem> problem = pose(request, catalogues());
  const Analysed& a = problem->analysed;
  for (auto _ : state) {
    const Result<Analysed> again = analyse_recipe(*a.model, *a.stack, a.recipe);
    benchmark::DoNotOptimize(memory_estimate<double>(*again, problem->cluster));
  }
}
void memory_detail_70b(benchmark::State& state) { memory_detail(state, llama70b()); }
BENCHMARK(memory_detail_70b)->Unit(benchmark::kMicrosecond);
void memory_detail_405b(benchmark::State& state) {
  Request r;
  r.model = "llama3-405b";
  r.on = "16384xh100-sxm";
  r.keys = {{"tp", "8"}, {"pp", "16"}};
  memory_detail(state, r);
}
BENCHMARK(memory_detail_405b)->Unit(benchmark::kMicrosecond);
void memory_detail_deepseek_v3(benchmark::State& state) {
  Request r;
  r.model = "deepseek-v3";
  r.on = "2048xh100-sxm";
  r.keys = {{"pp", "16"}, {"ep", "64"}, {"seq", "4096"}};
  memory_detail(state, r);
}
BENCHMARK(memory_detail_deepseek_v3)->Unit(benchmark::kMicrosecond);

// Everything a user of the library waits for: request text to numbers.
void request_to_estimate(benchmark::State& state) {
  const Request request = llama70b();
  for (auto _ : state) {
    const Result<Problem> problem = pose(request, catalogues());
    benchmark::DoNotOptimize(estimate<double>(problem->analysed, problem->cluster));
  }
}
BENCHMARK(request_to_estimate)->Unit(benchmark::kMicrosecond);

void explain_recipe(benchmark::State& state) {
  const Result<Problem> problem = pose(llama70b(), catalogues());
  for (auto _ : state) benchmark::DoNotOptimize(estimate<Traced>(problem->analysed, problem->cluster));
}
BENCHMARK(explain_recipe)->Unit(benchmark::kMicrosecond);

// No layout given: the layout rule tries many.
void choose_layout(benchmark::State& state) {
  Request request = llama70b();
  request.on = "2048xh100-sxm";
  request.keys.clear();
  for (auto _ : state) benchmark::DoNotOptimize(pose(request, catalogues()));
}
BENCHMARK(choose_layout)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace preflop
