#include "src/adapt/plan_run.hpp"

#include <algorithm>
#include <utility>

#include "src/adapt/command_line.hpp"
#include "src/adapt/open_numerics.hpp"
#include "src/adapt/plan_miss.hpp"
#include "src/adapt/plan_notes.hpp"
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
    bool met = false;       // some plan of it meets the limits
    std::size_t range = 0;  // the LO..HI that it is of; 0: none
    std::int64_t gpus = 0, node = 1;
    bool halved = false;  // looked at between two counts of its range
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
  int tightened = 0;  // times that the search of this request was posed anew under a shorter step

  Work(const Catalogues& c, const Request& r, PlanAsk a) : catalogues(c), request(r), asked(std::move(a)) {}

  Candidate& candidate() { return candidates[of[at]]; }
  bool limited() const { return asked.limits.within || asked.limits.budget; }
  void pose(const std::string& open);
  Status next();
  Status probe(Request& request);
  Status search(std::unique_ptr<Offer> offer, Objective objective, std::size_t top);
  bool meets(std::size_t top);
  bool tighten();
  bool refine();
  void say_halved();
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
    Candidate& here = candidates.emplace_back();
    here.as = on.as;
    here.range = on.range;
    here.gpus = on.cluster.gpus;
    here.node = std::max<std::int64_t>(1, on.cluster.gpus_per_node);
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
  tightened = 0;
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
    // Under a limit of the run the fastest decides, else what needs least memory.
    if (offer) return search(std::move(offer).value(), limited() ? Objective::time : Objective::memory, 1);
    longest->tell(false);
  }
  if (longest->found() == 0)
    return Error{"--objective",
                 limited() ? "no sequence of 1,024 tokens or more fits within the limits" : "not even 1,024 tokens fit",
                 limited() ? "more or larger GPUs, or a wider limit" : "more or larger GPUs"};
  here.keys["seq"] = std::to_string(longest->found());
  longest.reset();
  return Nothing{};
}

// Poses the next search, or completes the plan.
Status PlanRun::Work::next() {
  pending = {};
  for (; at < requests.size() || refine(); ++at) {
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

// Does any of the best that were found meet the limits of the run?
bool PlanRun::Work::meets(std::size_t top) {
  if (current->found.best.empty() || !limited()) return !current->found.best.empty();
  const auto best = best_of(*current, asked.limits, top, draws);
  return best && !best->empty() && best->front().step;
}

// Plans ordered by anything but time may all miss a limit of the run that slower ones do not reach: what is faster by
// as much as the fastest of them misses is looked for.
bool PlanRun::Work::tighten() {
  constexpr int kMost = 4;
  if (!limited() || wants_speed(asked.objective) || current->found.best.empty() || tightened == kMost ||
      meets(asked.top))
    return false;
  const auto fastest =
      std::min_element(current->found.best.begin(), current->found.best.end(),
                       [](const Found& a, const Found& b) { return a.priced.seconds < b.priced.seconds; });
  const auto e = estimate_of(*current, *fastest, draws);
  if (!e || !e->step || fastest->priced.seconds <= 0) return false;
  const Miss miss = miss_of_run(*e, asked.limits);
  if (miss.times <= 1) return false;
  pending.options.limits.seconds = fastest->priced.seconds / miss.times;
  ++tightened;
  return true;
}

// The fewest GPUs of a range: between the last count that does not do and the first that does, halved in on, a node
// apart. False where nothing is left between them.
bool PlanRun::Work::refine() {
  if (asked.objective != Objective::gpus || opens) return false;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& good = candidates[i];
    if (!good.met || good.range == 0) continue;
    std::int64_t below = 0;
    bool least = true;
    for (const Candidate& other : candidates) {
      if (other.range != good.range) continue;
      if (other.gpus < good.gpus && other.met) least = false;
      if (other.gpus < good.gpus && !other.met) below = std::max(below, other.gpus);
    }
    const std::int64_t nodes = (good.gpus - below) / good.node;
    if (!least || below == 0 || nodes < 2) continue;
    Candidate between = good;
    between.gpus = below + nodes / 2 * good.node;
    between.as = std::to_string(between.gpus) + good.as.substr(good.as.find('x'));
    between.posed = between.timed = between.met = between.unknown_memory = false;
    between.halved = true;
    between.refused.reset();
    between.untimed.clear();
    Request request = requests[static_cast<std::size_t>(std::find(of.begin(), of.end(), i) - of.begin())];
    request.on = between.as;
    candidates.push_back(std::move(between));
    requests.push_back(std::move(request));
    of.push_back(candidates.size() - 1);
    return true;
  }
  return false;
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
  if (!best) {  // its layouts fit, and none can go through the run that is asked for
    candidate().refused = best.error();
    return Nothing{};
  }
  candidate().posed = true;
  const bool found = !best->empty();
  if (found && best->front().step) candidate().timed = true;
  if (found && !best->front().step) candidate().untimed = no_time_of(best->front());
  // A limit of the run that cannot be checked is not met.
  if (limited()) std::erase_if(*best, [](const Estimate& e) { return !e.step; });
  if (!best->empty()) {
    candidate().met = true;
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
  if (asked.objective == Objective::gpus) {
    std::stable_sort(plan.clusters.begin(), plan.clusters.end(),
                     [](const Estimate& a, const Estimate& b) { return a.cluster.gpus < b.cluster.gpus; });
    say_halved();
  }
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
    const std::string gain = wants_speed(asked.objective) ? gain_of_batch(*o, first) : "";
    if (!gain.empty()) plan.gains.push_back(gain);
    if (asked.objective == Objective::seq) say_longest(*o, first);
    const std::string alone = opens ? "" : gain_alone(offers, plan, asked, catalogues);
    if (!alone.empty()) plan.notes.push_back(alone);
  }
  if (missed) plan.why.push_back(nearest_of_the_rest(plan, missed->cluster));
  if (!opens && requests.size() == 1 && text_of(request, "precision") == nullptr) {
    const std::string gain =
        gain_of_opening(*offers.front(), plan.plans.front(), step_limits(asked, offers.front()->question), catalogues);
    if (!gain.empty()) plan.gains.push_back(gain);
  }
  return Nothing{};
}

void PlanRun::Work::say_halved() {
  for (const Candidate& least : candidates) {
    const Candidate* below = nullptr;
    bool fewer = false, halved = false;
    for (const Candidate& other : candidates) {
      if (least.range == 0 || other.range != least.range) continue;
      halved = halved || other.halved;
      if (other.gpus >= least.gpus) continue;
      fewer = fewer || other.met;
      if (!other.met && (below == nullptr || other.gpus > below->gpus)) below = &other;
    }
    if (least.met && halved && !fewer && below != nullptr) plan.notes.push_back(fewest_by_halving(least.as, below->as));
  }
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
  const bool ordered = !wants_speed(asked.objective);
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
    w.current->found = std::move(found);
    w.longest->tell(w.meets(1));
    return w.next();
  }
  w.current->found = std::move(found);
  if (w.tighten()) return Nothing{};
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
