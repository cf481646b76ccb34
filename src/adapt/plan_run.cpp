#include "src/adapt/plan_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "src/adapt/question.hpp"
#include "src/base/text.hpp"
#include "src/run/estimate.hpp"
#include "src/run/forecast.hpp"
#include "src/search/why.hpp"

namespace preflop {

namespace {

// What one cluster has to offer.
struct Offer {
  Draft draft;
  Question question;
  Space space;
  SearchResult found;
};

Limits step_limits(const PlanAsk& asked, const Question& q) {
  Limits out;
  out.allow_tight = asked.limits.allow_tight;
  out.device_bytes = asked.limits.max_memory.value_or(0);
  if (!q.recipe.tokens || (!asked.limits.within && !asked.limits.budget)) return out;
  // The whole run must end in time, and for the money: a step takes at most this.
  double run = asked.limits.within.value_or(std::numeric_limits<double>::infinity());
  if (asked.limits.budget && q.recipe.run.price) {
    constexpr double kHour = 3600;
    const double per_second = q.recipe.run.price->value * static_cast<double>(q.cluster.gpus) / kHour;
    run = std::min(run, *asked.limits.budget / per_second);
  }
  const Recipe& r = q.recipe;
  const double checkpoint = summarise(*q.model).params_total.real() *
                            (width(r.weight_dtype) + width(r.master_dtype) + 2 * width(r.moment_dtype));
  const double steps =
      std::ceil(*q.recipe.tokens / (static_cast<double>(q.recipe.global_batch) * static_cast<double>(q.recipe.seq)));
  out.seconds = run / (steps * usual_stretch(r.run, q.cluster, checkpoint));
  return out;
}

Result<std::unique_ptr<Offer>> pose_offer(const Request& request, const Catalogues& catalogues) {
  auto out = std::make_unique<Offer>();
  auto drafted = draft(request, catalogues);
  if (!drafted) return drafted.error();
  out->draft = std::move(drafted).value();
  auto question = ask(request, out->draft);
  if (!question) return question.error();
  out->question = std::move(question).value();
  if (Status s = prepare(out->question); !s) return s.error();
  out->space = make_space(out->question);
  return out;
}

Result<Estimate> estimate_of(const Offer& offer, const Found& found) {
  auto analysed = analyse_plan(offer.question, offer.space, found.priced.ordinal);
  if (!analysed) return analysed.error();
  assume_planned(offer.question, analysed->recipe, "planned");
  return estimate<double>(*analysed, offer.question.cluster);
}

// Do two plans differ in what a table of plans shows? Of those that do not, the best stands for all.
bool same_shape(const Recipe& a, const Recipe& b) {
  const auto shape = [](const Recipe& r) {
    const Layout& l = r.layout;
    return std::tuple(l.tp, l.cp, l.pp, l.vpp, l.dp, l.ep, l.etp, l.zero, r.micro_batch, r.recompute.kind,
                      r.recompute.modules);
  };
  return shape(a) == shape(b);
}

// The best plans of one cluster, each of another shape.
Result<std::vector<Estimate>> best_of(const Offer& offer, std::size_t top) {
  std::vector<Recipe> shapes;
  std::vector<Estimate> out;
  for (const Found& found : offer.found.best) {
    if (out.size() == top) break;
    const auto recipe = recipe_at(offer.question, offer.space, offer.space.position(found.priced.ordinal));
    if (!recipe || std::any_of(shapes.begin(), shapes.end(), [&](const Recipe& r) { return same_shape(r, *recipe); }))
      continue;
    shapes.push_back(*recipe);
    auto e = estimate_of(offer, found);
    if (!e) return e.error();
    out.push_back(std::move(e).value());
  }
  return out;
}

// Largest first by what the objective compares between clusters.
double cost_of(Objective objective, const Estimate& e) {
  const double seconds = e.step ? e.step->seconds.number() /
                                      (static_cast<double>(e.recipe.global_batch) * static_cast<double>(e.recipe.seq))
                                : 0;
  const double gpus = static_cast<double>(e.cluster.gpus);
  const StageMemory<double>& peak = e.memory.stages[e.memory.peak_stage];
  switch (objective) {
    case Objective::gpus:
      return gpus;
    case Objective::cost:
    case Objective::gpu_hours:
      return seconds * gpus;
    case Objective::energy:
      return seconds * gpus * e.cluster.datum("tdp_watts").value.value_or(1);
    case Objective::memory:
      return (peak.allocated + peak.context).number();
    case Objective::micro_batch:
      return -static_cast<double>(e.recipe.micro_batch);
    case Objective::seq:
      return -static_cast<double>(e.recipe.seq);
    case Objective::time:
      break;
  }
  return seconds;
}

void add_space(SpaceReport& sum, const SearchResult& found) {
  const SpaceReport one = report(found);
  sum.space += one.space;
  sum.pruned += one.pruned;
  sum.checked += one.checked;
  sum.priced += one.priced;
  for (const SpaceReport::Rejected& r : one.rejected) {
    const auto same =
        std::find_if(sum.rejected.begin(), sum.rejected.end(), [&](const auto& s) { return s.reason == r.reason; });
    if (same == sum.rejected.end())
      sum.rejected.push_back(r);
    else
      same->count += r.count;
  }
  std::stable_sort(sum.rejected.begin(), sum.rejected.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
}

void mark_front(Plan& plan) {
  for (std::size_t i = 0; i < plan.clusters.size(); ++i) {
    const auto beats = [&](const Estimate& a, const Estimate& b) {
      const double ta = cost_of(Objective::time, a), tb = cost_of(Objective::time, b);
      return a.cluster.gpus <= b.cluster.gpus && ta <= tb && (a.cluster.gpus < b.cluster.gpus || ta < tb);
    };
    bool beaten = false;
    for (const Estimate& other : plan.clusters) beaten = beaten || beats(other, plan.clusters[i]);
    if (!beaten) plan.pareto.push_back(i);
  }
}

void keep_nearest(Plan& plan, const Offer& offer) {
  const bool slow = offer.found.slow.has_value();
  const std::optional<Found>& near = slow                ? offer.found.slow
                                     : offer.found.tight ? offer.found.tight
                                                         : offer.found.nearest;
  if (!near) return;
  const auto e = estimate_of(offer, *near);
  if (!e) return;
  std::string why;
  if (slow) why = "slower than the limit";
  if (!slow && offer.found.tight) why = "fits, but tightly (--allow-tight)";
  if (why.empty()) {
    const double margin = e->memory.margin ? e->memory.margin->number() : 0;
    why = margin < 0 ? "short of memory by " + text::gib(-margin) : "above --max-memory";
  }
  const auto short_by = [](const Estimate& x) { return x.memory.margin ? -x.memory.margin->number() : 0.0; };
  if (plan.nearest && short_by(*plan.nearest) <= short_by(*e)) return;
  plan.nearest = *e;
  plan.nearest_why = why;
}

// The longest sequence that any layout fits: doubled until none does, then halved in on.
class LongestSequence {
 public:
  // The length to try; none: found, or not even the shortest fits.
  std::optional<std::int64_t> next() const {
    if (doubling_ && high_ <= kLongest) return high_;
    if (low_ == 0 || high_ - low_ <= kGrain || high_ > kLongest) return std::nullopt;
    return (low_ + high_) / (2 * kGrain) * kGrain;
  }
  void tell(bool fits) {
    const std::int64_t tried = *next();
    (fits ? low_ : high_) = tried;
    if (doubling_ && fits)
      high_ = 2 * tried;
    else
      doubling_ = false;
  }
  std::int64_t found() const { return low_; }  // 0: none fits

 private:
  static constexpr std::int64_t kGrain = 1024, kLongest = std::int64_t{1} << 22;
  std::int64_t low_ = 0, high_ = kGrain;
  bool doubling_ = true;
};

}  // namespace

struct PlanRun::Work {
  const Catalogues& catalogues;
  Request request;
  PlanAsk asked;
  Plan plan;
  std::vector<std::unique_ptr<Offer>> offers;  // those that were searched
  std::optional<Error> refused;                // a cluster of several that cannot be asked about
  std::size_t at = 0;                          // of asked.on
  std::optional<LongestSequence> longest;      // of this cluster, while it is looked for
  std::unique_ptr<Offer> current;
  PendingSearch pending;

  Request request_here() const {
    Request out = request;
    if (!asked.on[at].empty()) out.on = asked.on[at];
    return out;
  }
  Status next();
  Status probe(Request& request);
  Status search(std::unique_ptr<Offer> offer, Objective objective, std::size_t top);
  Status keep();
  Status finish();
};

Status PlanRun::Work::search(std::unique_ptr<Offer> offer, Objective objective, std::size_t top) {
  current = std::move(offer);
  PlanAsk as = asked;
  as.objective = objective;
  pending = {&current->question, &current->space, {objective, step_limits(as, current->question), top}};
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
  for (; at < asked.on.size(); ++at) {
    Request here = request_here();
    if (asked.objective == Objective::seq) {
      if (Status s = probe(here); !s || pending.question != nullptr) return s;
    }
    auto offer = pose_offer(here, catalogues);
    if (offer) return search(std::move(offer).value(), asked.objective, asked.top);
    if (asked.on.size() == 1) return offer.error();
    refused = offer.error();
  }
  return finish();
}

// The best of a cluster that was searched.
Status PlanRun::Work::keep() {
  const Offer& o = *current;
  add_space(plan.space, o.found);
  auto best = best_of(o, asked.top);
  if (!best) return best.error();
  if (!best->empty()) plan.clusters.push_back(best->front());
  for (Estimate& e : *best) plan.plans.push_back(std::move(e));
  if (o.found.best.empty()) keep_nearest(plan, o);
  offers.push_back(std::move(current));
  return Nothing{};
}

Status PlanRun::Work::finish() {
  if (offers.empty() && refused) return *refused;
  std::stable_sort(plan.plans.begin(), plan.plans.end(), [&](const Estimate& a, const Estimate& b) {
    return cost_of(plan.objective, a) < cost_of(plan.objective, b);
  });
  if (plan.plans.size() > asked.top) plan.plans.resize(asked.top);
  mark_front(plan);
  if (plan.plans.empty()) return Nothing{};
  plan.nearest.reset();
  for (const auto& o : offers) {
    if (o->question.cluster.gpus != plan.plans.front().cluster.gpus ||
        o->question.cluster.gpu.id != plan.plans.front().cluster.gpu.id)
      continue;
    plan.why = explain_plan(o->question, plan.plans);
    break;
  }
  return Nothing{};
}

PlanRun::PlanRun(std::unique_ptr<Work> work) : work_(std::move(work)) {}
PlanRun::~PlanRun() = default;

Result<std::unique_ptr<PlanRun>> PlanRun::begin(const Request& request, const PlanWords& words,
                                                const Catalogues& catalogues) {
  auto asked = read_plan_words(request, words, catalogues);
  if (!asked) return asked.error();
  auto work = std::unique_ptr<Work>(new Work{catalogues, request, std::move(asked).value(), {}, {}, {}, 0, {}, {}, {}});
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

std::size_t PlanRun::clusters() const { return work_->asked.on.size(); }
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
