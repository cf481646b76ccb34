#include "tools/fit/rows.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "src/base/embedded.hpp"
#include "src/validate/validate.hpp"

namespace preflop::fit {

double Run::predict(const TimeParameters& parameters, Known known) const {
  if (known == Known::tables) {
    const auto step = step_estimate<double>(problem.analysed, problem.cluster, compute, parameters);
    return step ? step->seconds.number() : 0;
  }
  Cluster bare = problem.cluster;
  bare.gpu.id = "unseen";
  if (known == Known::new_architecture) bare.gpu.arch = "unseen";
  for (const char* field :
       {"matmul_bf16_flops", "matmul_fp8_flops", "matmul_fp4_flops", "sustained_bf16_flops", "sustained_fp8_flops"}) {
    bare.gpu.data.erase(field);
    bare.platform.data.erase(field);
  }
  const auto step = step_estimate<double>(problem.analysed, bare, compute, parameters);
  return step ? step->seconds.number() : 0;
}

namespace {

// Rows that say themselves that something was wrong with them: scored, not fitted.
bool trusted(const Row& row) {
  static constexpr const char* kFlags[] = {"outlier",     "config-mismatch", "regression",
                                           "gpu-guessed", "simulated",       "power-unstated"};
  return std::none_of(std::begin(kFlags), std::end(kFlags), [&](const char* flag) { return row.flag(flag); });
}

std::string layout_key(const Recipe& r) {
  const Layout& l = r.layout;
  std::string out = r.precision + " " + r.stack + "@" + r.stack_generation;
  for (const std::int64_t n : {l.tp, l.cp, l.pp, l.vpp, l.ep, l.etp, r.micro_batch, r.seq})
    out += " " + std::to_string(n);
  return out;
}

Result<bool> add(const Row& row, const std::string& stem, const SourceRules& rules, const RowWords& words,
                 const Catalogues& catalogues, Validator& validator, std::vector<Run>& out) {
  std::vector<Entry> entries;
  validator.add(row, stem, entries);
  const auto time = std::find_if(entries.begin(), entries.end(), [](const Entry& e) {
    return e.metric == "time.step_seconds" && !e.skip && e.measured && e.predicted;
  });
  if (time == entries.end()) return false;
  const RowRequest request = row_request(row, rules, words, catalogues);
  auto problem = row_problem(request, catalogues);
  if (!problem) return problem.error();
  Run run;
  run.id = row.id;
  run.source = stem;
  run.moe = request.moe;
  run.measured = *time->measured;
  run.problem = std::move(problem).value();
  run.model = run.problem.model->name;
  run.gpu = run.problem.cluster.gpu.id;
  run.group = stem + " " + run.model + " " + run.gpu + " " + layout_key(run.problem.analysed.recipe);
  run.fitted = trusted(row);
  run.apart = stands_apart(request.stack);
  run.full = fills_memory(memory_estimate<double>(run.problem.analysed, run.problem.cluster));
  run.compute = compute_estimate<double>(run.problem.analysed, *find_convention("palm"));
  out.push_back(std::move(run));
  return true;
}

}  // namespace

bool is_apart(const Parameter& p) {
  return p.owner == "arch tpu" || p.owner.starts_with("gpu tpu-") || p.owner.starts_with("stack maxtext");
}

Result<std::vector<Run>> load(const Catalogues& catalogues, bool apart) {
  const auto words = RowWords::load();
  if (!words) return words.error();
  const auto rules = source_rules();
  if (!rules) return rules.error();
  auto validator = Validator::make(catalogues, *words);
  if (!validator) return validator.error();
  std::vector<Run> out;
  for (std::string_view path : embedded_paths()) {
    if (!path.starts_with("measured/")) continue;
    const auto table = RowTable::parse(embedded(path), path, *words);
    if (!table) return table.error();
    const auto rule = rules->find(table->stem());
    const SourceRules own = rule == rules->end() ? SourceRules() : rule->second;
    for (std::size_t i = 0; i < table->size(); ++i) {
      const auto added = add(table->row(i), table->stem(), own, *words, catalogues, *validator, out);
      if (!added) return added.error();
    }
  }
  std::erase_if(out, [&](const Run& run) { return run.apart != apart; });
  std::map<std::string, double> sizes;
  for (const Run& run : out) sizes[run.group] += 1;
  for (Run& run : out) run.weight = 1 / std::sqrt(sizes[run.group]);
  return out;
}

}  // namespace preflop::fit
