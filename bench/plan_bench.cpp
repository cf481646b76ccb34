// The search: whole spaces on one core, with what was looked at as counters.
#include <benchmark/benchmark.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "src/adapt/question.hpp"
#include "src/search/cell.hpp"

namespace preflop {
namespace {

const Catalogues& catalogues() {
  static const Catalogues kLoaded = std::move(Catalogues::load()).value();
  return kLoaded;
}

// One question, as the command line would ask it.
struct Job {
  const char* name;
  const char* model;
  const char* on;
  std::map<std::string, std::string, std::less<>> keys;
};

const std::vector<Job>& jobs() {
  static const std::vector<Job> kJobs = {
      {"llama3_70b_2048", "llama3-70b", "2048xh100-sxm", {}},
      {"llama3_405b_16384", "llama3-405b", "16384xh100-sxm", {{"global_batch", "2048"}}},
      {"llama3_405b_16384_pp16", "llama3-405b", "16384xh100-sxm", {{"global_batch", "2048"}, {"pp", "16"}}},
      {"deepseek_v3_2048", "deepseek-v3", "2048xh100-sxm", {{"global_batch", "15360"}, {"seq", "4096"}}},
      {"deepseek_v3_2048_pp16",
       "deepseek-v3",
       "2048xh100-sxm",
       {{"global_batch", "15360"}, {"seq", "4096"}, {"pp", "16"}}},
      // As wide as Calculon's search of the same job (SC'23): tp, pp, dp, vpp, micro-batch, recomputation, sharding.
      {"gpt3_175b_4096", "gpt3-175b", "4096xa100-80", {{"global_batch", "4096"}, {"seq", "2048"}}},
  };
  return kJobs;
}

// A question holds on to what it was drafted from.
template <class Run>
void with_question(const Job& job, benchmark::State& state, const Run& run) {
  Request request;
  request.model = job.model;
  request.on = job.on;
  request.keys = job.keys;
  const auto drafted = draft(request, catalogues());
  if (!drafted) return state.SkipWithError(drafted.error().text().c_str());
  const auto question = ask(request, *drafted);
  if (!question) return state.SkipWithError(question.error().text().c_str());
  run(*question);
}

// The whole search, tables and all, as `plan` runs it on one core.
void search(benchmark::State& state, const Question& question) {
  SearchResult found;
  for (auto _ : state) {
    const Space space = make_space(question);
    found = search_all(question, space, PlanOptions{Objective::time, {}, 5});
  }
  state.counters["space"] = static_cast<double>(found.space);
  state.counters["pruned"] = static_cast<double>(found.pruned);
  state.counters["checked"] = static_cast<double>(found.checked);
  state.counters["priced"] = static_cast<double>(found.priced);
  state.counters["rows"] = static_cast<double>(found.rows);
}

// The tabulated path alone: every legal plan of a space, memory and time, with the tables filled. No bound of time
// spares any; those whose states alone do not fit are excluded and not counted.
void tabulated(benchmark::State& state, const Question& question) {
  struct Count : Cells::Sink {
    std::uint64_t priced_plans = 0;
    double fastest = std::numeric_limits<double>::infinity();
    void priced(const Priced& p, std::int64_t) override {
      ++priced_plans;
      fastest = std::min(fastest, p.seconds + p.needed);
    }
    void short_of_memory(const Priced&) override {}
    double nearest_needed() const override { return 0; }
  } count;
  const Space space = make_space(question);
  Tables tables(question, space);
  Cells cells(question, space, tables, count);
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
  state.counters["rows"] = static_cast<double>(tables.rows_filled());
  state.counters["priced"] = static_cast<double>(count.priced_plans) / static_cast<double>(rounds);
  state.counters["priced/s"] = benchmark::Counter(static_cast<double>(count.priced_plans), benchmark::Counter::kIsRate);
  state.counters["s/plan"] = benchmark::Counter(static_cast<double>(count.priced_plans),
                                                benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Memory alone: at most 300 ns a plan.
void tabulated_memory(benchmark::State& state, const Question& question) {
  Question memory = question;
  memory.cluster.memory_only = true;
  tabulated(state, memory);
}

const bool kRegistered = [] {
  using Bench = void (*)(benchmark::State&, const Question&);
  for (const auto& [kind, bench] : {std::pair<std::string, Bench>{"plan_", search},
                                    {"tabulated_", tabulated},
                                    {"tabulated_memory_", tabulated_memory}}) {
    for (const Job& job : jobs()) {
      const auto run = [bench = bench, &job](benchmark::State& state) {
        with_question(job, state, [&](const Question& question) { bench(state, question); });
      };
      benchmark::RegisterBenchmark((kind + job.name).c_str(), run)->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace preflop
