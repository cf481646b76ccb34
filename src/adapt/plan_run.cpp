#include "src/adapt/plan_run.hpp"

#include <algorithm>
#include <utility>

#include "src/adapt/command_line.hpp"
#include "src/adapt/open_numerics.hpp"
#include "src/adapt/plan_miss.hpp"
#include "src/adapt/plan_order.hpp"
#include "src/adapt/plan_stack.hpp"
#include "src/adapt/recipe_keys.hpp"
#include "src/base/text.hpp"
#include "src/machine/cluster.hpp"
#include "src/search/switch_gain.hpp"
#include "src/search/why.hpp"
#include "src/stack/software.hpp"
#include "src/step/time.hpp"

namespace preflop {

namespace {

constexpr std::size_t kLooksAlike = 8;  // plans looked for beside each one shown: many differ in the loss alone

std::string no_time_of(const Estimate& e) {
  return e.cluster.memory_only ? "nothing but its memory is given" : missing_rates(e.recipe, e.cluster);
}

// Where batches differ: the one of most clusters, and where it is another.
std::string differing_batches(const Plan& plan) {
  std::vector<const Cluster*> among;
  for (const Estimate& e : plan.clusters) among.push_back(&e.cluster);
  struct Batch {
    std::int64_t sequences = 0, clusters = 0;
    std::string names;
  };
  std::vector<Batch> batches;
  for (const Estimate& e : plan.clusters) {
    const auto same = std::find_if(batches.begin(), batches.end(),
                                   [&](const Batch& known) { return known.sequences == e.recipe.global_batch; });
    Batch& batch = same == batches.end() ? batches.emplace_back(Batch{e.recipe.global_batch, 0, ""}) : *same;
    batch.names +=
        (batch.clusters++ > 0 ? ", " : "") + text::grouped(e.cluster.gpus) + " x " + machine_name(e.cluster, among);
  }
  if (batches.size() < 2) return "";
  std::stable_sort(batches.begin(), batches.end(),
                   [](const Batch& a, const Batch& b) { return a.clusters > b.clusters; });
  std::string out = "The batch differs, as not every number of GPUs can share it out, and steps with it: " +
                    text::grouped(batches.front().sequences) + " sequences, but ";
  for (std::size_t i = 1; i < batches.size(); ++i)
    out += (i > 1 ? "; " : "") + text::grouped(batches[i].sequences) + " on " + batches[i].names;
  return out + ".";
}

}  // namespace

struct PlanRun::Work {
  // One of the clusters asked about.
  struct Candidate {
    std::string as;                // what was written
    bool posed = false;            // understood, under any numerics
    std::optional<Error> refused;  // else why not
    bool timed = false;            // some plan of it has a time
    std::string untimed;           // else what lacks
    bool unknown_memory = false;
  };
  const Catalogues& catalogues;
  Request request;
  PlanAsk asked;
  bool opens = false;                 // numerics are searched, too
  std::vector<Candidate> candidates;  // the clusters
  std::vector<Request> requests;      // one for each cluster and each choice of what is open
  std::vector<std::size_t> of;        // of each request: its candidate
  Plan plan;
  std::vector<std::unique_ptr<Offer>> offers;  // those that were searched
  SharedDraws draws;
  SearchResult all;                        // of all clusters: what was looked at and refused
  std::size_t at = 0;                      // of requests
  std::optional<LongestSequence> longest;  // of this cluster, while it is looked for
  std::unique_ptr<Offer> current;
  PendingSearch pending;

  Work(const Catalogues& c, const Request& r, PlanAsk a) : catalogues(c), request(r), asked(std::move(a)) {}

  Candidate& candidate() { return candidates[of[at]]; }
  bool limited() const { return asked.limits.within || asked.limits.budget; }
  void pose(const std::string& open);
  Status next();
  Status probe(Request& request);
  Status search(std::unique_ptr<Offer> offer, Objective objective, std::size_t top);
  Status keep();
  Status finish();
  void explain(const Offer& offer, const Estimate& first);
  void say_left_out();
  void say_longest(const Offer& offer, const Estimate& best);
};

// One request for each cluster and each choice of what is open.
void PlanRun::Work::pose(const std::string& open) {
  std::vector<Request> clusters;
  for (const PlanAsk::Asked& on : asked.on) {
    candidates.emplace_back().as = on.as;
    Request one = request;
    one.on = on.file ? "" : on.as;
    one.cluster = on.file;
    clusters.push_back(std::move(one));
  }
  plan.notes = asked.again;
  const std::string shared = share_stack(clusters, catalogues);
  if (!shared.empty()) plan.notes.push_back(shared);
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    auto all = opened(clusters[i], open, catalogues);
    if (!all) {
      candidates[i].refused = all.error();
      continue;
    }
    for (Request& r : *all) {
      requests.push_back(std::move(r));
      of.push_back(i);
    }
  }
}

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
      const Status s = probe(here);
      if (s && pending.question != nullptr) return s;
      if (!s) {
        longest.reset();
        candidate().refused = s.error();
        continue;
      }
    }
    auto offer = pose_offer(here, catalogues);
    if (offer) return search(std::move(offer).value(), asked.objective, asked.top);
    candidate().refused = offer.error();
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
  candidate().posed = true;
  const bool found = !best->empty();
  if (found && best->front().step) candidate().timed = true;
  if (found && !best->front().step) candidate().untimed = no_time_of(best->front());
  // A limit of the run that cannot be checked is not met.
  if (limited()) std::erase_if(*best, [](const Estimate& e) { return !e.step; });
  if (!best->empty()) {
    candidate().unknown_memory = best->front().memory.verdict == Verdict::unknown;
    keep_cluster(plan, best->front());
  }
  for (Estimate& e : *best) plan.plans.push_back(std::move(e));
  if (!found) keep_nearest_of(plan, o, draws);
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
  if (offers.empty()) {
    for (const Candidate& p : candidates) {
      if (p.refused) return *p.refused;
    }
  }
  say_left_out();
  choose(plan, asked.top);
  if (plan.plans.empty()) return Nothing{};
  if (const std::string batches = differing_batches(plan); !batches.empty()) plan.notes.push_back(batches);
  if (Status s = complete(plan.plans, offers, draws); !s) return s;
  plan.commands = command_lines(plan.plans, offers);
  plan.cluster_commands = command_lines(plan.clusters, offers);
  const std::optional<Estimate> missed = std::exchange(plan.nearest, std::nullopt);
  const Estimate& first = plan.plans.front();
  if (const Offer* o = offer_of(first, offers)) {
    explain(*o, first);
    const bool by_seconds = asked.objective != Objective::memory && asked.objective != Objective::seq &&
                            asked.objective != Objective::micro_batch;
    const std::string gain = by_seconds ? gain_of_batch(*o, first) : "";
    if (!gain.empty()) plan.gains.push_back(gain);
    if (asked.objective == Objective::seq) say_longest(*o, first);
  }
  if (missed) {
    std::vector<const Cluster*> among = {&missed->cluster};
    for (const Estimate& e : plan.clusters) among.push_back(&e.cluster);
    plan.why.push_back("Of the clusters without a plan " + text::grouped(missed->cluster.gpus) + " x " +
                       machine_name(missed->cluster, among) + " comes nearest: " + plan.nearest_why + ".");
  }
  if (!opens && requests.size() == 1 && text_of(request, "precision") == nullptr) {
    const std::string gain =
        gain_of_opening(*offers.front(), plan.plans.front(), step_limits(asked, offers.front()->question), catalogues);
    if (!gain.empty()) plan.gains.push_back(gain);
  }
  return Nothing{};
}

// Clusters that are not compared, or not in everything.
void PlanRun::Work::say_left_out() {
  const auto any = [&](auto&& is) { return std::any_of(candidates.begin(), candidates.end(), is); };
  const bool timed = any([](const Candidate& p) { return p.timed; });
  const bool known = any([](const Candidate& p) { return p.posed && !p.unknown_memory; });
  const std::string limits = std::string(asked.limits.within ? "--within" : "") +
                             (asked.limits.within && asked.limits.budget ? " and " : "") +
                             (asked.limits.budget ? "--budget" : "");
  std::string unordered;
  for (const Candidate& p : candidates) {
    if (!p.posed && p.refused) plan.notes.push_back(p.as + " is left out: " + p.refused->text() + ".");
    if (p.unknown_memory)
      plan.notes.push_back("How much memory a GPU of " + p.as +
                           " has is not known: " + (known ? "it is left out." : "nothing says that its plans fit."));
    if (p.timed || p.untimed.empty()) continue;
    if (limited())
      plan.notes.push_back(p.as + " is left out: " + limits + " cannot be checked, for no time is known: " + p.untimed +
                           ".");
    else if (timed)
      plan.notes.push_back("No time is known of " + p.as + ", which cannot be the fastest: " + p.untimed + ".");
    else
      unordered += (unordered.empty() ? "" : "; ") + p.untimed;
  }
  if (unordered.empty()) return;
  const bool ordered = asked.objective == Objective::memory || asked.objective == Objective::micro_batch ||
                       asked.objective == Objective::seq;
  plan.notes.push_back("No time is known" +
                       std::string(ordered ? "" : ", so what needs least memory comes first; none is the fastest") +
                       ": " + unordered + ".");
}

void PlanRun::Work::say_longest(const Offer& offer, const Estimate& best) {
  if (best.recipe.seq >= LongestSequence::kLongest)
    plan.notes.push_back(text::grouped(LongestSequence::kLongest) +
                         " tokens are the longest sequence that is tried: longer ones may fit.");
  const auto& most = offer.draft.architecture.max_seq;
  if (most && most->get() < best.recipe.seq)
    plan.notes.push_back("The model's own maximum is " + text::grouped(most->get()) +
                         " tokens: beyond it its positions have to be extended.");
}

PlanRun::PlanRun(std::unique_ptr<Work> work) : work_(std::move(work)) {}
PlanRun::~PlanRun() = default;

Result<std::unique_ptr<PlanRun>> PlanRun::begin(const Request& request, const PlanWords& words,
                                                const Catalogues& catalogues) {
  auto asked = read_plan_words(request, words, catalogues);
  if (!asked) return asked.error();
  auto work = std::make_unique<Work>(catalogues, request, std::move(asked).value());
  work->pose(words.open);
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
