#include "src/adapt/plan_run.hpp"

#include <utility>

#include "src/adapt/command_line.hpp"
#include "src/adapt/open_numerics.hpp"
#include "src/adapt/plan_offer.hpp"
#include "src/adapt/recipe_keys.hpp"
#include "src/base/text.hpp"
#include "src/search/switch_gain.hpp"
#include "src/search/why.hpp"
#include "src/stack/software.hpp"

namespace preflop {

namespace {

constexpr std::size_t kLooksAlike = 8;  // plans looked for beside each one shown: many differ in the loss alone

// One for each cluster and each choice of what is open.
Result<std::vector<Request>> requests_of(const Request& request, const std::string& open,
                                         const std::vector<std::string>& on, const Catalogues& catalogues) {
  std::vector<Request> out;
  for (const std::string& cluster : on) {
    Request one = request;
    if (!cluster.empty()) one.on = cluster;
    auto all = opened(one, open, catalogues);
    if (!all) return all.error();
    for (Request& r : *all) out.push_back(std::move(r));
  }
  return out;
}

}  // namespace

struct PlanRun::Work {
  const Catalogues& catalogues;
  Request request;
  PlanAsk asked;
  bool opens = false;             // numerics are searched, too
  std::vector<Request> requests;  // one for each cluster and each choice of what is open
  Plan plan;
  std::vector<std::unique_ptr<Offer>> offers;  // those that were searched
  SharedDraws draws;
  SearchResult all;                        // of all clusters: what was looked at and refused
  std::optional<Error> refused;            // a cluster of several that cannot be asked about
  std::size_t at = 0;                      // of requests
  std::optional<LongestSequence> longest;  // of this cluster, while it is looked for
  std::unique_ptr<Offer> current;
  PendingSearch pending;

  Work(const Catalogues& c, const Request& r, PlanAsk a) : catalogues(c), request(r), asked(std::move(a)) {}

  Status next();
  Status probe(Request& request);
  Status search(std::unique_ptr<Offer> offer, Objective objective, std::size_t top);
  Status keep();
  Status finish();
  void explain(const Offer& offer, const Estimate& first);
};

Status PlanRun::Work::search(std::unique_ptr<Offer> offer, Objective objective, std::size_t top) {
  current = std::move(offer);
  PlanAsk as = asked;
  as.objective = objective;
  pending = {&current->question, &current->space, {objective, step_limits(as, current->question), top * kLooksAlike}};
  return Nothing{};
}

// Tries lengths that cannot even be asked about, and stops at one that a search must decide (`current` is set);
// without one, puts the longest into the request.
Status PlanRun::Work::probe(Request& here) {
  if (!longest) longest.emplace();
  while (const auto seq = longest->next()) {
    Request one = here;
    one.keys["seq"] = std::to_string(*seq);
    auto offer = pose_offer(one, catalogues);
    if (offer) return search(std::move(offer).value(), Objective::memory, 1);
    longest->tell(false);
  }
  if (longest->found() == 0) return Error{"--objective", "not even 1,024 tokens fit", "more or larger GPUs"};
  here.keys["seq"] = std::to_string(longest->found());
  longest.reset();
  return Nothing{};
}

// Poses the next search, or completes the plan.
Status PlanRun::Work::next() {
  pending = {};
  for (; at < requests.size(); ++at) {
    Request here = requests[at];
    if (asked.objective == Objective::seq) {
      if (Status s = probe(here); !s || pending.question != nullptr) return s;
    }
    auto offer = pose_offer(here, catalogues);
    if (offer) return search(std::move(offer).value(), asked.objective, asked.top);
    if (requests.size() == 1) return offer.error();
    refused = offer.error();
  }
  return finish();
}

// The best of a cluster that was searched.
Status PlanRun::Work::keep() {
  const Offer& o = *current;
  std::vector<SearchResult> both;
  both.push_back(std::move(all));
  both.push_back(o.found);
  all = merge(std::move(both), 1);
  plan.space = report(all);
  auto best = best_of(o, asked.limits, asked.top, draws);
  if (!best) return best.error();
  const bool nothing = best->empty();
  if (!nothing) keep_cluster(plan, best->front());
  for (Estimate& e : *best) plan.plans.push_back(std::move(e));
  if (nothing) keep_nearest_of(plan, o, draws);
  offers.push_back(std::move(current));
  return Nothing{};
}

// Why the first is the first, and what its software leaves unused.
void PlanRun::Work::explain(const Offer& offer, const Estimate& first) {
  const Limits limits = step_limits(asked, offer.question);
  plan.why = explain_plan(offer.question, plan.plans, {asked.objective, limits});
  for (std::string& idle : idle_switches(*offer.question.stack, first.recipe))
    plan.why.push_back(std::move(idle) + ".");
  const std::string gain = gain_of_switches(offer.question, first.recipe, limits);
  if (!gain.empty()) plan.switches.push_back(gain);
}

Status PlanRun::Work::finish() {
  if (offers.empty() && refused) return *refused;
  choose(plan, asked.top);
  if (plan.plans.empty()) return Nothing{};
  if (Status s = complete(plan.plans, offers, draws); !s) return s;
  plan.commands = command_lines(plan.plans, offers);
  plan.cluster_commands = command_lines(plan.clusters, offers);
  const std::optional<Estimate> missed = std::exchange(plan.nearest, std::nullopt);
  for (const auto& o : offers) {
    const Estimate& first = plan.plans.front();
    if (!is_of(first, *o)) continue;
    explain(*o, first);
    const bool by_seconds = asked.objective != Objective::memory && asked.objective != Objective::seq &&
                            asked.objective != Objective::micro_batch;
    const std::string gain = by_seconds ? gain_of_batch(*o, first) : "";
    if (!gain.empty()) plan.gains.push_back(gain);
    break;
  }
  if (missed)
    plan.why.push_back("Of the clusters without a plan " + text::grouped(missed->cluster.gpus) + " x " +
                       missed->cluster.gpu.id + " comes nearest: " + plan.nearest_why + ".");
  if (!opens && requests.size() == 1 && text_of(request, "precision") == nullptr) {
    const std::string gain =
        gain_of_opening(*offers.front(), plan.plans.front(), step_limits(asked, offers.front()->question), catalogues);
    if (!gain.empty()) plan.gains.push_back(gain);
  }
  return Nothing{};
}

PlanRun::PlanRun(std::unique_ptr<Work> work) : work_(std::move(work)) {}
PlanRun::~PlanRun() = default;

Result<std::unique_ptr<PlanRun>> PlanRun::begin(const Request& request, const PlanWords& words,
                                                const Catalogues& catalogues) {
  auto asked = read_plan_words(request, words, catalogues);
  if (!asked) return asked.error();
  auto work = std::make_unique<Work>(catalogues, request, std::move(asked).value());
  auto requests = requests_of(request, words.open, work->asked.on, catalogues);
  if (!requests) return requests.error();
  work->requests = std::move(requests).value();
  work->opens = !words.open.empty();
  work->plan.objective = work->asked.objective;
  work->plan.limits = work->asked.limits;
  if (Status s = work->next(); !s) return s.error();
  return std::unique_ptr<PlanRun>(new PlanRun(std::move(work)));
}

const PendingSearch* PlanRun::pending() const { return work_->pending.question == nullptr ? nullptr : &work_->pending; }

Status PlanRun::give(SearchResult found) {
  Work& w = *work_;
  if (w.longest) {
    w.longest->tell(!found.best.empty());
    return w.next();
  }
  w.current->found = std::move(found);
  if (Status s = w.keep(); !s) return s;
  ++w.at;
  return w.next();
}

std::size_t PlanRun::clusters() const { return work_->requests.size(); }
std::size_t PlanRun::clusters_done() const { return work_->at; }
Plan PlanRun::take() { return std::move(work_->plan); }

Result<Plan> make_plan(const Request& request, const PlanWords& words, const Catalogues& catalogues,
                       const Searcher& search) {
  auto run = PlanRun::begin(request, words, catalogues);
  if (!run) return run.error();
  while (const PendingSearch* next = (*run)->pending()) {
    if (Status s = (*run)->give(search(*next->question, *next->space, next->options)); !s) return s.error();
  }
  return (*run)->take();
}

}  // namespace preflop
