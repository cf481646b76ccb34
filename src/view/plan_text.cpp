#include <algorithm>
#include <cmath>

#include "src/base/text.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/view/json.hpp"
#include "src/view/plan.hpp"
#include "src/view/run_text.hpp"

namespace preflop {

namespace {

constexpr std::size_t kReasons = 5;

std::string paragraph(const std::string& body, std::size_t indent = 0) {
  std::string out;
  bool first = true;
  for (const std::string& line : text::wrapped(body, text::kColumns - indent - 2)) {
    out += std::string(indent + (first ? 0 : 2), ' ') + line + "\n";
    first = false;
  }
  return out;
}

std::string one(std::int64_t n) { return n > 1 ? std::to_string(n) : "-"; }

std::string memory_cell(const Estimate& e) {
  const StageMemory<double>& s = e.memory.stages[e.memory.peak_stage];
  return text::fixed((s.allocated + s.context).number() / 1073741824.0, 1);
}

// Of the median run, as `--within` and `--budget` compare it.
std::string days(const Estimate& e) { return e.run ? text::seconds(e.run->p50.number()) : "-"; }
std::string gpu_hours(const Estimate& e) { return e.run ? text::count(std::round(e.run->gpu_hours.number())) : "-"; }
std::string cost(const Estimate& e) { return e.run && e.run->cost ? dollars(e.run->cost->number()) : "-"; }

std::string plans_table(const Plan& plan) {
  const bool many = plan.clusters.size() > 1;
  const auto any = [&](auto&& says) { return std::any_of(plan.plans.begin(), plan.plans.end(), says); };
  const bool experts = any([](const Estimate& e) { return e.recipe.layout.ep * e.recipe.layout.etp > 1; });
  const bool context = any([](const Estimate& e) { return e.recipe.layout.cp > 1; });
  const auto numerics = [](const Estimate& e) { return e.recipe.precision + " " + e.recipe.optimizer; };
  const bool open = any([&](const Estimate& e) { return numerics(e) != numerics(plan.plans.front()); });
  text::Table table(text::kColumns, 0);
  const auto right = text::Table::Align::right;
  table.column("#", right);
  if (many) table.column("GPUs", right);
  if (open) table.column("numerics");
  for (const char* head : {"tp", "pp", "vpp"}) table.column(head, right);
  if (context) table.column("cp", right);
  if (experts) table.column("ep", right).column("etp", right);
  for (const char* head : {"dp", "zero", "mb"}) table.column(head, right);
  table.column("recompute").column("GiB", right).column("step", right).column("MFU", right);
  int rank = 0;
  for (const Estimate& e : plan.plans) {
    const Layout& l = e.recipe.layout;
    std::vector<std::string> row = {std::to_string(++rank)};
    if (many) row.push_back(text::grouped(e.cluster.gpus));
    if (open) row.push_back(numerics(e));
    for (const std::int64_t n : {l.tp, l.pp, l.vpp}) row.push_back(one(n));
    if (context) row.push_back(one(l.cp));
    if (experts) row.insert(row.end(), {one(l.ep), one(l.etp)});
    row.insert(row.end(), {one(l.dp), std::to_string(l.zero), std::to_string(e.recipe.micro_batch),
                           recompute_text(e.recipe.recompute), memory_cell(e),
                           e.step ? text::seconds(e.step->seconds.number()) : "-",
                           e.step ? text::percent(e.step->mfu.number()) : "-"});
    table.row(std::move(row));
  }
  return table.str();
}

std::string scaling_table(const Plan& plan) {
  if (plan.clusters.size() < 2) return "";
  text::Table table(text::kColumns, 2);
  const auto right = text::Table::Align::right;
  const auto other = [&](const Estimate& e) { return e.cluster.gpu.id != plan.clusters.front().cluster.gpu.id; };
  const bool kinds = std::any_of(plan.clusters.begin(), plan.clusters.end(), other);
  table.column("GPUs", right);
  if (kinds) table.column("GPU");
  table.column("best layout")
      .column("step", right)
      .column("MFU", right)
      .column("run", right)
      .column("GPU-hours", right)
      .column("cost", right)
      .column("");
  for (std::size_t i = 0; i < plan.clusters.size(); ++i) {
    const Estimate& e = plan.clusters[i];
    const bool front = std::find(plan.pareto.begin(), plan.pareto.end(), i) != plan.pareto.end();
    const Layout& l = e.recipe.layout;
    std::string layout = "tp " + std::to_string(l.tp) + " pp " + std::to_string(l.pp) + " dp " + std::to_string(l.dp);
    if (l.ep > 1) layout += " ep " + std::to_string(l.ep);
    std::vector<std::string> row = {text::grouped(e.cluster.gpus)};
    if (kinds) row.push_back(e.cluster.gpu.id);
    row.insert(row.end(),
               {layout, e.step ? text::seconds(e.step->seconds.number()) : "-",
                e.step ? text::percent(e.step->mfu.number()) : "-", days(e), gpu_hours(e), cost(e), front ? "*" : ""});
    table.row(std::move(row));
  }
  return "\nBest of each cluster (* nothing faster with no more GPUs and money)\n" + table.str();
}

std::string space_text(const Plan& plan, bool everything) {
  const SpaceReport& s = plan.space;
  std::string out = "\n" + paragraph("Of " + text::grouped(static_cast<long long>(s.space)) + " layouts " +
                                     text::grouped(static_cast<long long>(s.priced)) + " were priced one by one and " +
                                     text::grouped(static_cast<long long>(s.pruned)) +
                                     " excluded by a rule or a bound. Most often refused because:");
  text::Table table(text::kColumns, 2);
  table.column("", text::Table::Align::right).column("");
  std::size_t shown = 0;
  for (const SpaceReport::Rejected& r : s.rejected) {
    if (!everything && ++shown > kReasons) break;
    table.row({text::grouped(static_cast<long long>(r.count)), r.example});
  }
  out += table.str();
  if (!everything && s.rejected.size() > kReasons)
    out += "  and " + std::to_string(s.rejected.size() - kReasons) + " more reasons: -v\n";
  return out;
}

std::string headline(const Plan& plan) {
  if (plan.plans.empty()) {
    std::string out = "No plan found";
    if (plan.nearest)
      out += ". Nearest on " + text::grouped(plan.nearest->cluster.gpus) + " x " + plan.nearest->cluster.gpu.id + ": " +
             layout_line(plan.nearest->recipe) + "; " + plan.nearest_why;
    else if (!plan.space.rejected.empty())
      out += ": no layout is legal. " + plan.space.rejected.front().example;
    return out + ".";
  }
  const Estimate& e = plan.plans.front();
  std::string out =
      e.model.name + " on " + text::grouped(e.cluster.gpus) + " x " + e.cluster.gpu.id + ": " + layout_line(e.recipe);
  if (e.step)
    out += ", " + text::seconds(e.step->seconds.number()) + " a step, MFU " + text::percent(e.step->mfu.number());
  if (e.run) {
    out += ", " + days(e) + " for " + text::count(e.run->tokens.number()) + " tokens, " + gpu_hours(e) + " GPU-hours";
    if (e.run->cost) out += ", " + cost(e);
  }
  return out + ".";
}

std::string assumed_text(const Plan& plan) {
  if (plan.plans.empty()) return "";
  std::string out;
  for (const std::string& line : plan.plans.front().recipe.assumed) {
    if (line.starts_with("stack=") || line.starts_with("global_batch=") || line.starts_with("seq="))
      out += (out.empty() ? "" : "; ") + line;
  }
  return out.empty() ? "" : "\n" + paragraph("Assumed: " + out + ".");
}

}  // namespace

std::string layout_line(const Recipe& r) {
  const Layout& l = r.layout;
  std::string out;
  const auto add = [&](const char* label, std::int64_t n, bool shown) {
    if (shown) out += (out.empty() ? "" : " x ") + std::string(label) + " " + std::to_string(n);
  };
  add("tp", l.tp, l.tp > 1);
  add("cp", l.cp, l.cp > 1);
  add("pp", l.pp, l.pp > 1);
  add("dp", l.dp, true);
  if (l.vpp > 1) out += ", vpp " + std::to_string(l.vpp);
  if (l.ep > 1) out += ", ep " + std::to_string(l.ep);
  if (l.etp > 1) out += ", etp " + std::to_string(l.etp);
  out += ", zero " + std::to_string(l.zero);
  if (l.hsdp > 0) out += " within " + std::to_string(l.hsdp);
  out += ", micro-batch " + std::to_string(r.micro_batch);
  if (r.recompute.kind != RecomputeKind::none) out += ", recompute " + recompute_text(r.recompute);
  return out;
}

std::string plan_text(const Plan& plan, bool brief, bool everything) {
  std::string out = paragraph(headline(plan));
  if (brief) return out;
  if (!plan.plans.empty()) {
    const Recipe& r = plan.plans.front().recipe;
    out += "\n" + paragraph("Best by " + std::string(name(plan.objective)) + ", " + stack_text(r) + ", " +
                            text::grouped(r.global_batch) + " sequences of " + text::grouped(r.seq) +
                            " tokens a step, " + r.precision + ":");
    out += plans_table(plan);
  }
  if (!plan.why.empty()) out += "\n";
  for (const std::string& line : plan.why) out += paragraph(line);
  out += scaling_table(plan);
  out += space_text(plan, everything);
  for (const std::string& gain : plan.gains) out += paragraph(gain);
  return out + assumed_text(plan);
}

}  // namespace preflop
