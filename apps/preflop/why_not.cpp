// preflop why-not: what a layout is against the best one: illegal, short of memory, or slower, and why.
#include "apps/preflop/command.hpp"
#include "apps/preflop/input.hpp"
#include "apps/preflop/io.hpp"
#include "apps/preflop/search.hpp"
#include "src/adapt/import/import.hpp"
#include "src/adapt/plan_miss.hpp"
#include "src/adapt/plan_run.hpp"
#include "src/adapt/recipe_keys.hpp"
#include "src/search/space.hpp"
#include "src/view/plan.hpp"

namespace preflop::cli {

std::vector<Flag> why_not_flags() {
  std::vector<Flag> out = asking_flags();
  out.push_back({"max-memory", "SIZE", "on the device: 72GiB", "search"});
  return out;
}

namespace {

// Limits of the run that the layout is held against, understood as plan understands them.
Result<PlanLimits> limits_of(const Args& args, const Request& request, const PlanWords& words, const Catalogues& all) {
  PlanWords limited = words;
  limited.within = args.value("within");
  limited.budget = args.value("budget");
  const Result<PlanAsk> asked = read_plan_words(request, limited, all);
  if (!asked) return asked.error();
  return asked->limits;
}

}  // namespace

Result<int> run_why_not(const Args& args) {
  Result<Request> request = read_request(args, args.words.empty() ? "" : args.words[0]);
  if (!request) return request.error();
  Result<Catalogues> catalogues = catalogues_of(args);
  if (!catalogues) return catalogues.error();
  if (Status s = settle(*request, *catalogues); !s) return s.error();
  Request with = *request;
  std::vector<std::string> flags;
  // The keys of a layout that are given are what is asked about.
  for (const char* key : kPlannedKeys) {
    if (with.keys.contains(key)) flags.push_back(flag_of(key));
  }
  if (flags.empty()) return Error{"why-not", "no layout to ask about", "for example --tp 4 --pp 2"};
  // Both on one stack: the one that estimate would take for the layout.
  const auto drafted = draft(with, *catalogues);
  if (!drafted) return placed(drafted.error(), *request);
  with.keys.emplace("stack", drafted->stack->full_name());
  PlanWords words;
  words.max_memory = args.value("max-memory");
  if (!request->on.empty()) words.on = {request->on};
  const Result<PlanLimits> limits = limits_of(args, with, words, *catalogues);
  if (!limits) return limits.error();
  const Result<Plan> asked = make_plan(with, words, *catalogues, search_parallel);
  if (!asked) return placed(asked.error(), *request);
  Request open = with;
  for (const char* key : kPlannedKeys) open.keys.erase(key);
  // Both of one batch, which is the layout's own where none is given.
  if (!asked->plans.empty())
    open.keys.emplace("global_batch", std::to_string(asked->plans.front().recipe.global_batch));
  const Result<Plan> best = make_plan(open, words, *catalogues, search_parallel);
  if (!best) return best.error();
  WhyNot answer = why_not(*asked, *best, flags);
  if (answer.asked) {
    const Miss miss = miss_of_run(*answer.asked, *limits);
    if (miss.times > 1) answer.misses = miss.why;
  }
  if (Status s = emit(args, [&] { return why_not_json_value(answer); }, [&] { return why_not_text(answer); }); !s)
    return s.error();
  return kDone;
}

}  // namespace preflop::cli
