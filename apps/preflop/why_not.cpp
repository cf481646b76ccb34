// preflop why-not: what a layout is against the best one: illegal, short of memory, or slower, and why.
#include "apps/preflop/command.hpp"
#include "apps/preflop/input.hpp"
#include "apps/preflop/io.hpp"
#include "apps/preflop/search.hpp"
#include "src/adapt/plan_run.hpp"
#include "src/search/space.hpp"
#include "src/view/plan.hpp"

namespace preflop::cli {

std::vector<Flag> why_not_flags() {
  std::vector<Flag> out;
  for (Flag& flag : estimate_flags()) {
    if (flag.name != "check" && flag.name != "timing") out.push_back(std::move(flag));
  }
  return out;
}

Result<int> run_why_not(const Args& args) {
  const Result<Request> request = read_request(args, args.words.empty() ? "" : args.words[0]);
  if (!request) return request.error();
  Result<Catalogues> catalogues = catalogues_of(args);
  if (!catalogues) return catalogues.error();
  Request open = *request;
  bool any = false;
  // The keys of a layout that are given are what is asked about.
  for (const char* key : kPlannedKeys) any = open.keys.erase(key) > 0 || any;
  if (!any) return Error{"why-not", "no layout to ask about", "for example --tp 4 --pp 2"};
  PlanWords words;
  words.allow_tight = true;
  if (!request->on.empty()) words.on = {request->on};
  const Result<Plan> best = make_plan(open, words, *catalogues, search_parallel);
  if (!best) return best.error();
  const Result<Plan> asked = make_plan(*request, words, *catalogues, search_parallel);
  if (!asked) return asked.error();
  const WhyNot answer = why_not(*asked, *best);
  if (Status s = emit(args, [&] { return why_not_json_value(answer); }, [&] { return why_not_text(answer); }); !s)
    return s.error();
  return kDone;
}

}  // namespace preflop::cli
