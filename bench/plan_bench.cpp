// The search: whole spaces on one core, with what was looked at as counters.
#include <benchmark/benchmark.h>

#include <limits>

#include "src/adapt/question.hpp"
#include "src/search/cell.hpp"

namespace preflop {
namespace {

const Catalogues& catalogues() {
  static const Catalogues kLoaded = std::move(Catalogues::load()).value();
  return kLoaded;
}

void search(benchmark::State& state, const char* model, const char* on,
            std::map<std::string, std::string, std::less<>> keys) {
  Request request;
  request.model = model;
  request.on = on;
  request.keys = std::move(keys);
  const auto drafted = draft(request, catalogues());
  if (!drafted) return state.SkipWithError(drafted.error().text().c_str());
  auto question = ask(request, *drafted);
  if (!question) return state.SkipWithError(question.error().text().c_str());
  SearchResult found;
  for (auto _ : state) {
    const Space space = make_space(*question);
    found = search_all(*question, space, PlanOptions{Objective::time, {}, 5});
  }
  const auto rate = [](std::uint64_t n) {
    return benchmark::Counter(static_cast<double>(n), benchmark::Counter::kIsIterationInvariantRate);
  };
  state.counters["space"] = static_cast<double>(found.space);
  state.counters["pruned"] = static_cast<double>(found.pruned);
  state.counters["checked"] = static_cast<double>(found.checked);
  state.counters["priced"] = static_cast<double>(found.priced);
  state.counters["rows"] = static_cast<double>(found.rows);
  state.counters["priced/s"] = rate(found.priced);
}

// The tabulated path alone: every plan of a space, memory and time, with the tables filled. No bound spares any.
void tabulated(benchmark::State& state, const char* model, const char* on,
               std::map<std::string, std::string, std::less<>> keys) {
  struct Count : Cells::Sink {
    std::uint64_t priced_plans = 0;
    double fastest = std::numeric_limits<double>::infinity();
    void priced(const Priced& p, std::int64_t) override {
      ++priced_plans;
      fastest = std::min(fastest, p.seconds);
    }
    void short_of_memory(const Priced&) override {}
    double nearest_needed() const override { return 0; }
  } count;
  Request request;
  request.model = model;
  request.on = on;
  request.keys = std::move(keys);
  const auto drafted = draft(request, catalogues());
  if (!drafted) return state.SkipWithError(drafted.error().text().c_str());
  auto question = ask(request, *drafted);
  if (!question) return state.SkipWithError(question.error().text().c_str());
  const Space space = make_space(*question);
  Tables tables(*question, space);
  Cells cells(*question, space, tables, count);
  const auto all = [&] {
    for (std::uint64_t cell = 0; cell < cells.count(); ++cell) cells.look(cell);
  };
  all();
  count.priced_plans = 0;
  std::uint64_t rounds = 0;
  for (auto _ : state) {
    all();
    ++rounds;
    benchmark::DoNotOptimize(count.fastest);
  }
  state.counters["space"] = static_cast<double>(space.size());
  state.counters["priced"] = static_cast<double>(count.priced_plans) / static_cast<double>(rounds);
  state.counters["priced/s"] = benchmark::Counter(static_cast<double>(count.priced_plans), benchmark::Counter::kIsRate);
}

void tabulated_405b_16384(benchmark::State& state) {
  tabulated(state, "llama3-405b", "16384xh100-sxm", {{"global_batch", "2048"}});
}
BENCHMARK(tabulated_405b_16384)->Unit(benchmark::kMillisecond);

void tabulated_405b_16384_pp16(benchmark::State& state) {
  tabulated(state, "llama3-405b", "16384xh100-sxm", {{"global_batch", "2048"}, {"pp", "16"}});
}
BENCHMARK(tabulated_405b_16384_pp16)->Unit(benchmark::kMillisecond);

void tabulated_deepseek_v3_2048(benchmark::State& state) {
  tabulated(state, "deepseek-v3", "2048xh100-sxm", {{"global_batch", "15360"}, {"seq", "4096"}});
}
BENCHMARK(tabulated_deepseek_v3_2048)->Unit(benchmark::kMillisecond);

void plan_llama3_70b_2048(benchmark::State& state) { search(state, "llama3-70b", "2048xh100-sxm", {}); }
BENCHMARK(plan_llama3_70b_2048)->Unit(benchmark::kMillisecond);

void plan_llama3_405b_16384(benchmark::State& state) {
  search(state, "llama3-405b", "16384xh100-sxm", {{"global_batch", "2048"}});
}
BENCHMARK(plan_llama3_405b_16384)->Unit(benchmark::kMillisecond);

void plan_deepseek_v3_2048(benchmark::State& state) {
  search(state, "deepseek-v3", "2048xh100-sxm", {{"global_batch", "15360"}, {"seq", "4096"}});
}
BENCHMARK(plan_deepseek_v3_2048)->Unit(benchmark::kMillisecond);

// As wide as Calculon's search of the same job (SC'23): tp, pp, dp, vpp, micro-batch, recomputation, sharding.
void plan_gpt3_175b_4096(benchmark::State& state) {
  search(state, "gpt3-175b", "4096xa100-80", {{"global_batch", "4096"}, {"seq", "2048"}});
}
BENCHMARK(plan_gpt3_175b_4096)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace preflop
