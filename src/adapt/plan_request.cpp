#include "src/adapt/plan_request.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "src/adapt/open_numerics.hpp"
#include "src/adapt/recipe_keys.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/run/estimate.hpp"
#include "src/run/forecast.hpp"
#include "src/search/why.hpp"

namespace preflop {

namespace {

constexpr std::int64_t kMostClusters = 64;
constexpr std::size_t kLooksAlike = 8;  // plans looked for beside each one shown: many differ in the loss alone
constexpr std::int64_t kLongest = std::int64_t{1} << 22;

// A plan request that is understood, for one cluster after the other.
struct Asked {
  Objective objective = Objective::time;
  PlanLimits limits;
  std::size_t top = 5;
  std::vector<std::string> on;
};

Result<Objective> read_objective(const std::string& text) {
  if (text.empty()) return Objective::time;
  std::vector<std::string> names;
  for (int i = 0; i < kObjectives; ++i) {
    const Objective o = static_cast<Objective>(i);
    if (text == name(o)) return o;
    names.emplace_back(name(o));
  }
  return text::unknown_name("--objective", "objective", text, names);
}

Result<Asked> read_words(const Request& request, const PlanWords& words, const Catalogues& catalogues) {
  Asked out;
  const auto objective = read_objective(words.objective);
  if (!objective) return objective.error();
  out.objective = *objective;
  out.limits.allow_tight = words.allow_tight;
  if (!words.within.empty()) {
    const auto within = parse_duration(words.within, "--within");
    if (!within) return within.error();
    out.limits.within = within->number();
  }
  if (!words.budget.empty()) {
    const auto budget = parse_money(words.budget, "--budget");
    if (!budget) return budget.error();
    out.limits.budget = budget->number();
  }
  if (!words.max_memory.empty()) {
    const auto bytes = parse_bytes(words.max_memory, "--max-memory");
    if (!bytes) return bytes.error();
    out.limits.max_memory = bytes->number();
  }
  if (!words.top.empty()) {
    const auto top = parse_count(words.top, "--top");
    if (!top) return top.error();
    if (top->get() < 1 || top->get() > 1000) return Error{"--top", words.top + " plans", "1 to 1000"};
    out.top = static_cast<std::size_t>(top->get());
  }
  const bool limited = out.limits.within || out.limits.budget;
  if (limited && text_of(request, "tokens") == nullptr)
    return Error{"--tokens", "a limit of the whole run needs its length", "e.g. --tokens 1.4T"};
  if (out.objective == Objective::gpus && !limited)
    return Error{"--objective", "fewest GPUs need a limit", "--within 20d or --budget 2M$"};
  for (const std::string& on : words.on) {
    auto counts = cluster_counts(on, catalogues.machines);
    if (!counts) return counts.error();
    out.on.insert(out.on.end(), counts->begin(), counts->end());
  }
  if (out.on.empty() && !request.cluster) return Error{"--on", "no cluster given", "e.g. --on 64xh100-sxm"};
  if (out.on.empty()) out.on.emplace_back();
  if (static_cast<std::int64_t>(out.on.size()) > kMostClusters)
    return Error{"--on", std::to_string(out.on.size()) + " clusters", "at most " + std::to_string(kMostClusters)};
  return out;
}

// What one cluster has to offer.
struct Offer {
  Draft draft;
  Question question;
  Space space;
  SearchResult found;
};

Limits step_limits(const Asked& asked, const Question& q) {
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

Result<std::unique_ptr<Offer>> offer(const Request& request, const Asked& asked, const Catalogues& catalogues,
                                     const Searcher& search) {
  auto out = std::make_unique<Offer>();
  auto drafted = draft(request, catalogues);
  if (!drafted) return drafted.error();
  out->draft = std::move(drafted).value();
  auto question = ask(request, out->draft);
  if (!question) return question.error();
  out->question = std::move(question).value();
  if (Status s = prepare(out->question); !s) return s.error();
  out->space = make_space(out->question);
  out->found = search(out->question, out->space,
                      PlanOptions{asked.objective, step_limits(asked, out->question), asked.top * kLooksAlike});
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
Result<std::string> longest_sequence(const Request& request, const Asked& asked, const Catalogues& catalogues,
                                     const Searcher& search) {
  Asked least = asked;
  least.objective = Objective::memory;
  least.top = 1;
  const auto fits = [&](std::int64_t seq) {
    Request r = request;
    r.keys["seq"] = std::to_string(seq);
    const auto one = offer(r, least, catalogues, search);
    return one.ok() && !(*one)->found.best.empty();
  };
  std::int64_t low = 0, high = 1024;
  while (high <= kLongest && fits(high)) {
    low = high;
    high *= 2;
  }
  if (low == 0) return Error{"--objective", "not even 1,024 tokens fit", "more or larger GPUs"};
  while (high - low > 1024 && high <= kLongest) {
    const std::int64_t middle = (low + high) / 2048 * 1024;
    (fits(middle) ? low : high) = middle;
  }
  return std::to_string(low);
}

// The best of a cluster, whatever numerics are open.
void keep_cluster(Plan& plan, const Estimate& best) {
  for (Estimate& known : plan.clusters) {
    if (known.cluster.gpus != best.cluster.gpus || known.cluster.gpu.id != best.cluster.gpu.id) continue;
    if (best.step && (!known.step || cost_of(plan.objective, best) < cost_of(plan.objective, known))) known = best;
    return;
  }
  plan.clusters.push_back(best);
}

// The best `top` of all; where some take a known time, numerics without known rates are no answer.
void choose(Plan& plan, std::size_t top) {
  const auto timed = [](const Estimate& e) { return e.step.has_value(); };
  if (std::any_of(plan.plans.begin(), plan.plans.end(), timed)) std::erase_if(plan.plans, std::not_fn(timed));
  std::stable_sort(plan.plans.begin(), plan.plans.end(), [&](const Estimate& a, const Estimate& b) {
    return cost_of(plan.objective, a) < cost_of(plan.objective, b);
  });
  if (plan.plans.size() > top) plan.plans.resize(top);
}

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

Result<std::vector<std::string>> cluster_counts(const std::string& on, const MachineCatalogue& machines) {
  const std::size_t dots = on.find("..");
  const std::size_t x = on.find('x');
  if (dots == std::string::npos || x == std::string::npos || dots > x) return std::vector<std::string>{on};
  const auto range = parse_range(on.substr(0, x), "--on");
  if (!range) return range.error();
  const auto one = machines.cluster(std::to_string(range->high.get()) + on.substr(x));
  if (!one) return one.error();
  const std::int64_t node = std::max<std::int64_t>(1, one->gpus_per_node);
  std::vector<std::int64_t> counts = {range->low.get(), range->high.get()};
  for (std::int64_t n = node; n <= range->high.get(); n *= 2) {
    for (const std::int64_t count : {n, n / 2 * 3}) {
      if (count > range->low.get() && count < range->high.get() && count % node == 0) counts.push_back(count);
    }
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<std::string> out;
  for (const std::int64_t count : counts) out.push_back(std::to_string(count) + on.substr(x));
  return out;
}

Result<Plan> make_plan(const Request& request, const PlanWords& words, const Catalogues& catalogues,
                       const Searcher& search) {
  const auto asked = read_words(request, words, catalogues);
  if (!asked) return asked.error();
  Plan out;
  out.objective = asked->objective;
  out.limits = asked->limits;
  std::vector<std::unique_ptr<Offer>> offers;
  std::optional<Error> refused;
  const auto requests = requests_of(request, words.open, asked->on, catalogues);
  if (!requests) return requests.error();
  for (Request one : *requests) {
    if (asked->objective == Objective::seq) {
      const auto longest = longest_sequence(one, *asked, catalogues, search);
      if (!longest) return longest.error();
      one.keys["seq"] = *longest;
    }
    auto found = offer(one, *asked, catalogues, search);
    if (!found && requests->size() == 1) return found.error();
    if (!found) {
      refused = found.error();
      continue;
    }
    offers.push_back(std::move(found).value());
    const Offer& o = *offers.back();
    add_space(out.space, o.found);
    auto best = best_of(o, asked->top);
    if (!best) return best.error();
    if (!best->empty()) keep_cluster(out, best->front());
    for (Estimate& e : *best) out.plans.push_back(std::move(e));
    if (o.found.best.empty()) keep_nearest(out, o);
  }
  if (offers.empty() && refused) return *refused;
  choose(out, asked->top);
  mark_front(out);
  if (out.plans.empty()) return out;
  out.nearest.reset();
  for (const auto& o : offers) {
    if (o->question.cluster.gpus != out.plans.front().cluster.gpus ||
        o->question.cluster.gpu.id != out.plans.front().cluster.gpu.id ||
        o->question.recipe.precision != out.plans.front().recipe.precision ||
        o->question.recipe.optimizer != out.plans.front().recipe.optimizer)
      continue;
    out.why = explain_plan(o->question, out.plans);
    break;
  }
  if (words.open.empty() && text_of(request, "precision") == nullptr) {
    Request here = request;
    if (const std::string& on = asked->on.front(); asked->on.size() == 1 && !on.empty()) here.on = on;
    const std::string gain = gain_of_opening(here, out.plans.front(), catalogues);
    if (!gain.empty() && asked->on.size() == 1) out.gains.push_back(gain);
  }
  return out;
}

}  // namespace preflop
