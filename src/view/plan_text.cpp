#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/text.hpp"
#include "src/machine/cluster.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/step/memory.hpp"
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

std::string memory_cell(const Estimate& e) { return text::fixed(needed_at_most(e.memory).number() / 1073741824.0, 1); }

// Step times with as many digits as tell those apart that differ, up to five: "1.27 min".
std::vector<std::string> step_cells(const std::vector<Estimate>& plans) {
  constexpr double kMinute = 60, kHour = 3600;
  constexpr int kMostDigits = 4;
  const auto cell = [&](double s, int digits) {
    if (s >= kHour) return text::fixed(s / kHour, digits) + " h";
    if (s >= kMinute) return text::fixed(s / kMinute, digits) + " min";
    return s >= 1 ? text::fixed(s, digits) + " s" : text::fixed(s * 1e3, digits - 1) + " ms";
  };
  std::vector<std::string> out;
  for (const Estimate& e : plans) out.push_back(e.step ? text::seconds(e.step->seconds.number()) : "-");
  const auto alike = [&] {
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        const bool same = out[i] == out[k] && plans[i].step && plans[k].step;
        if (same && plans[i].step->seconds.number() != plans[k].step->seconds.number()) return true;
      }
    }
    return false;
  };
  for (int digits = 2; digits <= kMostDigits && alike(); ++digits) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (plans[i].step) out[i] = cell(plans[i].step->seconds.number(), digits);
    }
  }
  return out;
}

// What the objective compares, where no other column says it; `head` empty: one does.
struct ObjectiveColumn {
  std::string head;
  std::string (*cell)(const Estimate&) = nullptr;
};

// Of the median run, as `--within` and `--budget` compare it.
std::string days(const Estimate& e) { return e.run ? text::seconds(e.run->p50.number()) : "-"; }
std::string gpu_hours(const Estimate& e) { return e.run ? text::count(std::round(e.run->gpu_hours.number())) : "-"; }
std::string cost(const Estimate& e) { return e.run && e.run->cost ? text::dollars(e.run->cost->number()) : "-"; }

// A given MFU counts by the convention it was given in.
std::string mfu_cell(const Estimate& e) {
  return e.step ? text::percent(e.recipe.mfu.value_or(e.step->mfu.number())) : "-";
}

// Without a run: of a billion tokens.
std::string hours_of_tokens(const Estimate& e) {
  constexpr double kTokens = 1e9, kHour = 3600;
  if (!e.step) return "-";
  const double hours = kTokens / e.step->tokens_per_second.number() * static_cast<double>(e.cluster.gpus) / kHour;
  return text::fixed(hours, hours < 100 ? 2 : 1);
}
std::string energy(const Estimate& e) {
  return e.run && e.run->energy_kwh ? energy_words(e.run->energy_kwh->number()) : "-";
}

ObjectiveColumn objective_column(const Plan& plan) {
  const bool runs =
      std::any_of(plan.plans.begin(), plan.plans.end(), [](const Estimate& e) { return e.run.has_value(); });
  switch (plan.objective) {
    case Objective::cost:
      return runs ? ObjectiveColumn{"cost", cost} : ObjectiveColumn{"GPU-h/Btok", hours_of_tokens};
    case Objective::gpu_hours:
      return runs ? ObjectiveColumn{"GPU-hours", gpu_hours} : ObjectiveColumn{"GPU-h/Btok", hours_of_tokens};
    case Objective::energy:
      return runs ? ObjectiveColumn{"energy", energy} : ObjectiveColumn{};
    default:
      return {};
  }
}

// What the machines of a plan are called, that no two share a name.
std::string machine_of(const Plan& plan, const Estimate& e) {
  std::vector<const Cluster*> among;
  for (const Estimate& c : plan.clusters) among.push_back(&c.cluster);
  return machine_name(e.cluster, among);
}

bool several_machines(const Plan& plan) {
  return std::any_of(plan.clusters.begin(), plan.clusters.end(),
                     [&](const Estimate& e) { return !same_machine(e.cluster, plan.clusters.front().cluster); });
}

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
  const bool machines = any([&](const Estimate& e) { return !same_machine(e.cluster, plan.plans.front().cluster); });
  if (machines) table.column("machine");
  const auto batch = [](const Estimate& e) { return e.recipe.global_batch; };
  const bool batches = any([&](const Estimate& e) { return batch(e) != batch(plan.plans.front()); });
  if (open) table.column("numerics");
  for (const char* head : {"tp", "pp", "vpp"}) table.column(head, right);
  if (context) table.column("cp", right);
  if (experts) table.column("ep", right).column("etp", right);
  for (const char* head : {"dp", "zero", "mb"}) table.column(head, right);
  if (batches) table.column("batch", right);
  table.column("recompute").column("GiB", right).column("step", right).column("MFU", right);
  const ObjectiveColumn objective = objective_column(plan);
  if (!objective.head.empty()) table.column(objective.head, right);
  const std::vector<std::string> steps = step_cells(plan.plans);
  std::size_t rank = 0;
  for (const Estimate& e : plan.plans) {
    const Layout& l = e.recipe.layout;
    std::vector<std::string> row = {std::to_string(++rank)};
    if (many) row.push_back(text::grouped(e.cluster.gpus));
    if (machines) row.push_back(machine_of(plan, e));
    if (open) row.push_back(numerics(e));
    for (const std::int64_t n : {l.tp, l.pp, l.vpp}) row.push_back(one(n));
    if (context) row.push_back(one(l.cp));
    if (experts) row.insert(row.end(), {one(l.ep), one(l.etp)});
    row.insert(row.end(), {one(l.dp), std::to_string(l.zero), std::to_string(e.recipe.micro_batch)});
    if (batches) row.push_back(text::grouped(batch(e)));
    row.insert(row.end(), {recompute_text(e.recipe.recompute), memory_cell(e), steps[rank - 1], mfu_cell(e)});
    if (!objective.head.empty()) row.push_back(objective.cell(e));
    table.row(std::move(row));
  }
  return table.str();
}

std::string scaling_table(const Plan& plan) {
  if (plan.clusters.size() < 2) return "";
  text::Table table(text::kColumns, 2);
  const auto right = text::Table::Align::right;
  const bool kinds = several_machines(plan);
  table.column("GPUs", right);
  if (kinds) table.column("machine");
  table.column("best layout")
      .column("step", right)
      .column("MFU", right)
      .column("run", right)
      .column("GPU-hours", right)
      .column("cost", right)
      .column("");
  const std::vector<std::string> steps = step_cells(plan.clusters);
  for (std::size_t i = 0; i < plan.clusters.size(); ++i) {
    const Estimate& e = plan.clusters[i];
    const bool front = std::find(plan.pareto.begin(), plan.pareto.end(), i) != plan.pareto.end();
    const Layout& l = e.recipe.layout;
    std::string layout;
    for (const auto& [label, size] :
         {std::pair("tp ", l.tp), std::pair("pp ", l.pp), std::pair("dp ", l.dp), std::pair("ep ", l.ep)}) {
      if (size > 1) layout += (layout.empty() ? "" : " ") + std::string(label) + std::to_string(size);
    }
    if (layout.empty()) layout = "one GPU";
    std::vector<std::string> row = {text::grouped(e.cluster.gpus)};
    if (kinds) row.push_back(machine_of(plan, e));
    row.insert(row.end(), {layout, steps[i], mfu_cell(e), days(e), gpu_hours(e), cost(e), front ? "*" : ""});
    table.row(std::move(row));
  }
  const char* key = plan.pareto.empty() ? "" : " (* nothing faster with no more GPUs and money)";
  return "\nBest of each cluster" + std::string(key) + "\n" + table.str();
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

// The command line, broken before its flags as a shell goes on reading.
std::string command_text(const std::string& command) {
  constexpr std::size_t kHang = 5;
  std::string out, line;
  for (std::size_t from = 0; from < command.size();) {
    const std::size_t end = std::min(command.find(" --", from + 1), command.size());
    const std::string words = command.substr(from, end - from);
    if (!line.empty() && line.size() + words.size() + 2 > text::kColumns) {
      out += line + " \\\n";
      line = std::string(kHang, ' ') + words;
    } else {
      line += line.empty() ? "  " + words : words;
    }
    from = end;
  }
  return out + line + "\n";
}

std::string commands_text(const Plan& plan, bool everything) {
  std::string out;
  for (std::size_t i = 0; i < plan.commands.size() && (everything || i == 0); ++i) {
    if (plan.commands[i].empty()) continue;
    out += i > 0 ? "#" + std::to_string(i + 1) + " again:\n" : "The first again:\n";
    out += command_text(plan.commands[i]);
  }
  return out.empty() ? out : "\n" + out;
}

std::string headline(const Plan& plan) {
  if (plan.plans.empty()) {
    std::string out = "No plan found";
    if (plan.nearest)
      out += ". Nearest on " + text::grouped(plan.nearest->cluster.gpus) + " x " + plan.nearest->cluster.gpu.id + ": " +
             layout_line(plan.nearest->recipe) + "; " + plan.nearest_why;
    else if (plan.space.priced > 0 && !plan.notes.empty())
      return out + ".";  // the notes say why
    else if (!plan.space.rejected.empty())
      out += ": no layout is legal. " + plan.space.rejected.front().example;
    return out + ".";
  }
  const Estimate& e = plan.plans.front();
  std::string out = e.model.name + " on " + text::grouped(e.cluster.gpus) + " x " + machine_of(plan, e) + ": " +
                    layout_line(e.recipe);
  if (!e.step) out += "; no time is known";
  if (e.step)
    out += ", " + text::seconds(e.step->seconds.number()) + " a step, MFU " + mfu_cell(e) +
           (e.recipe.mfu ? " as given (" + e.recipe.mfu_convention + ")" : std::string());
  if (e.run) {
    out += ", " + days(e) + " at the median for " + text::count(e.run->tokens.number()) + " tokens, " + gpu_hours(e) +
           " GPU-hours";
    if (e.run->cost) out += ", " + cost(e);
  }
  return out + ".";
}

bool takes_time(Objective o) { return o != Objective::memory && o != Objective::micro_batch && o != Objective::seq; }

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
  if (brief && !plan.plans.empty()) return out;
  if (!plan.plans.empty()) {
    const Recipe& r = plan.plans.front().recipe;
    // Without a time nothing is the best by it: least memory comes first.
    const bool timeless = !plan.plans.front().step && takes_time(plan.objective);
    out += "\n" +
           paragraph("Best by " + std::string(timeless ? "memory" : name(plan.objective)) + ", " + stack_text(r) +
                     ", " + text::grouped(r.global_batch) + (r.global_batch == 1 ? " sequence of " : " sequences of ") +
                     text::grouped(r.seq) + " tokens a step, " + r.precision + ":");
    out += plans_table(plan) + commands_text(plan, everything);
  }
  if (!plan.notes.empty() && !brief) out += "\n";
  for (const std::string& note : plan.notes) out += paragraph(note);
  if (brief) return out;
  if (!plan.why.empty()) out += "\n";
  for (const std::string& line : plan.why) out += paragraph(line);
  out += scaling_table(plan);
  out += space_text(plan, everything);
  for (const std::string& gain : plan.switches) out += paragraph(gain);
  for (const std::string& gain : plan.gains) out += paragraph(gain);
  return out + assumed_text(plan);
}

}  // namespace preflop
