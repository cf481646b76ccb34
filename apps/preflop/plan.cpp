// preflop plan: reads the question, searches with every core, re-evaluates the best and prints.
#include "src/view/plan.hpp"

#include <algorithm>

#include "apps/preflop/command.hpp"
#include "apps/preflop/input.hpp"
#include "apps/preflop/io.hpp"
#include "apps/preflop/search.hpp"
#include "src/adapt/command_line.hpp"
#include "src/adapt/import/import.hpp"
#include "src/adapt/plan_run.hpp"

namespace preflop::cli {

std::vector<Flag> plan_flags() {
  std::vector<Flag> out;
  for (Flag& flag : asking_flags()) {
    if (flag.name == "on") {
      flag.repeatable = true;
      flag.help = "COUNTx(GPU or PLATFORM)[/PER_NODE], LO..HIxGPU, or a cluster TOML; may be repeated";
    }
    out.push_back(std::move(flag));
  }
  for (Flag& flag : std::vector<Flag>{
           {"objective", "NAME", "time, cost, gpu-hours, energy, memory, gpus, seq or micro-batch", "search"},
           {"within", "TIME", "of the whole run, with failures: 20d, 36h", "search"},
           {"budget", "USD", "of the whole run: 2M$", "search"},
           {"max-memory", "SIZE", "on the device: 72GiB", "search"},
           {"allow-tight", "", "also plans for which the allocator may reserve more than there is", "search"},
           {"open", "KEY,..", "numerics that may change: precision, optimizer", "search"},
           {"top", "K", "plans shown (5)", "search"},
           {"timing", "", "where the time went, on stderr", "output"}}) {
    if (std::none_of(out.begin(), out.end(), [&](const Flag& f) { return f.name == flag.name; }))
      out.push_back(std::move(flag));
  }
  return out;
}

Result<int> run_plan(const Args& args) {
  Timing timing;
  PlanWords words;
  for (const auto& [flag, slot] : {std::pair("objective", &words.objective), std::pair("within", &words.within),
                                   std::pair("budget", &words.budget), std::pair("max-memory", &words.max_memory),
                                   std::pair("open", &words.open), std::pair("top", &words.top)})
    *slot = args.value(flag);
  words.allow_tight = args.has("allow-tight");
  const auto ons = args.values.find("on");
  if (ons != args.values.end()) words.on = ons->second;
  Result<Request> request = read_request(args, args.words.empty() ? "" : args.words[0]);
  if (!request) return request.error();
  if (words.on.empty() && !request->cluster) words.on = {request->on};  // of --recipe or --from
  for (const std::string& on : words.on) {
    if (!on.ends_with(".toml")) continue;
    Result<std::string> text = read_text(on, "--on");
    if (!text) return text.error();
    words.files[on] = ConfigText{std::move(text).value(), on};
  }
  Result<Catalogues> catalogues = catalogues_of(args);
  if (!catalogues) return catalogues.error();
  if (Status s = settle(*request, *catalogues); !s) return s.error();
  timing.lap("reading");
  Result<Plan> plan = make_plan(*request, words, *catalogues, search_parallel);
  if (!plan) return placed(plan.error(), *request);
  if (args.has("data-dir")) {
    const std::string overlay = " --data-dir " + shell_word(args.value("data-dir"));
    for (std::vector<std::string>* commands : {&plan->commands, &plan->cluster_commands}) {
      for (std::string& command : *commands) command += overlay;
    }
  }
  timing.lap("search");
  if (Status s = emit(
          args, [&] { return plan_json_value(*plan); },
          [&] { return plan_text(*plan, args.has("quiet"), args.has("verbose")); });
      !s)
    return s.error();
  timing.lap("output");
  if (args.has("timing")) complain(timing.text());
  return plan->plans.empty() ? kNoPlan : kDone;
}

}  // namespace preflop::cli
