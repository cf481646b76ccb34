#include "src/adapt/plan_offer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "src/adapt/plan_miss.hpp"
#include "src/adapt/question.hpp"
#include "src/base/text.hpp"
#include "src/machine/cluster.hpp"
#include "src/run/estimate.hpp"
#include "src/run/forecast.hpp"
#include "src/search/seed.hpp"
#include "src/step/memory.hpp"

namespace preflop {

namespace {

// Do two plans differ in what a table of plans shows? Of those that do not, the best stands for all. Stages of sharding
// that share nothing and cost the same are one plan: ranked alike, the lowest comes first.
struct Shape {
  Recipe recipe;
  Priced priced;
};
bool same_shape(const Model& model, const Shape& a, const Shape& b) {
  const auto shape = [](const Recipe& r) {
    const Layout& l = r.layout;
    return std::tuple(l.tp, l.cp, l.pp, l.vpp, l.dp, l.ep, l.etp, r.micro_batch, r.recompute.kind, r.recompute.modules);
  };
  const auto costs = [](const Priced& p) { return std::tuple(p.seconds, p.needed, p.device); };
  const Layout &x = a.recipe.layout, &y = b.recipe.layout;
  const bool one_stage = x.zero == y.zero || (!can_shard(model, x) && costs(a.priced) == costs(b.priced));
  return one_stage && shape(a.recipe) == shape(b.recipe);
}

}  // namespace

Result<Estimate> estimate_of(const Offer& offer, const Found& found, SharedDraws& draws, bool with_run) {
  auto analysed = analyse_plan(offer.question, offer.space, found.priced.ordinal);
  if (!analysed) return analysed.error();
  assume_planned(offer.question, analysed->recipe, "planned");
  if (analysed->recipe.tokens) {
    if (Status s = check_run(*analysed, offer.question.cluster); !s) return s.error();
  }
  if (!with_run) analysed->recipe.tokens.reset();
  Estimate out = estimate<double>(*analysed, offer.question.cluster, &draws);
  out.recipe.tokens = offer.question.recipe.tokens;
  return out;
}

Limits step_limits(const PlanAsk& asked, const Question& q) {
  Limits out;
  out.allow_tight = asked.limits.allow_tight;
  out.device_bytes = asked.limits.max_memory.value_or(0);
  if (!q.recipe.tokens || (!asked.limits.within && !asked.limits.budget)) return out;
  // The whole run must end in time, and for the money: a step takes at most this.
  double run = asked.limits.within.value_or(std::numeric_limits<double>::infinity());
  if (asked.limits.budget && q.recipe.run.price) {
    constexpr double kHour = 3600;
    const std::optional<Sourced>& spares = q.recipe.run.spares;
    const double paid = static_cast<double>(q.cluster.gpus) +
                        (spares ? spares->value * static_cast<double>(q.cluster.gpus_per_node) : 0);
    const double per_second = q.recipe.run.price->value * paid / kHour;
    run = std::min(run, *asked.limits.budget / per_second);
  }
  const Recipe& r = q.recipe;
  const double checkpoint = summarise(*q.model).params_total.real() *
                            (width(r.weight_dtype) + width(r.master_dtype) + 2 * width(r.moment_dtype));
  const double steps =
      std::ceil(*q.recipe.tokens / (static_cast<double>(q.recipe.global_batch) * static_cast<double>(q.recipe.seq)));
  // The usual stretch is near the median's: what is a little slower is looked at, too, and best_of() decides.
  constexpr double kNear = 1.05;
  out.seconds = kNear * run / (steps * usual_stretch(r.run, q.cluster, checkpoint));
  return out;
}

Result<std::unique_ptr<Offer>> pose_offer(const Request& request, const Catalogues& catalogues) {
  auto out = std::make_unique<Offer>();
  out->request = request;
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

Result<std::vector<Estimate>> best_of(const Offer& offer, const PlanLimits& limits, std::size_t top,
                                      SharedDraws& draws) {
  std::vector<Shape> shapes;
  std::vector<Estimate> out;
  std::optional<Error> refused;
  for (const Found& found : offer.found.best) {
    if (out.size() == top) break;
    const auto recipe = recipe_at(offer.question, offer.space, offer.space.position(found.priced.ordinal));
    if (!recipe) continue;
    const Shape shape{*recipe, found.priced};
    const auto known = [&](const Shape& s) { return same_shape(*offer.question.model, s, shape); };
    const bool again = std::any_of(shapes.begin(), shapes.end(), known);
    shapes.push_back(shape);  // again, too: what costs as much as this one does not as the best of its shape
    if (again) continue;
    auto e = estimate_of(offer, found, draws, out.empty() || limits.within || limits.budget);
    if (!e && !refused) refused = e.error();
    if (!e) continue;
    if (miss_of_run(*e, limits).times <= 1) out.push_back(std::move(e).value());
  }
  if (out.empty() && refused) return *refused;
  return out;
}

Status complete(std::vector<Estimate>& plans, const std::vector<std::unique_ptr<Offer>>& offers, SharedDraws& draws) {
  for (Estimate& e : plans) {
    if (e.run || !e.recipe.tokens) continue;
    const Offer* of = offer_of(e, offers);
    if (of == nullptr) continue;
    const Question& q = of->question;
    const auto analysed = analyse_recipe(*q.model, *q.stack, e.recipe);
    if (!analysed) return analysed.error();
    e = estimate<double>(*analysed, q.cluster, &draws);
  }
  return Nothing{};
}

const Offer* offer_of(const Estimate& e, const std::vector<std::unique_ptr<Offer>>& offers) {
  for (const auto& offer : offers) {
    const Question& q = offer->question;
    if (same_cluster(q.cluster, e.cluster) && q.recipe.precision == e.recipe.precision &&
        q.recipe.optimizer == e.recipe.optimizer)
      return offer.get();
  }
  return nullptr;
}

std::string gain_of_batch(const Offer& offer, const Estimate& best) {
  constexpr double kWorthSaying = 0.05;
  const auto assumed = [](const std::string& line) { return line.starts_with("global_batch="); };
  const std::vector<std::string>& lines = best.recipe.assumed;
  if (!best.step || best.recipe.mfu || std::none_of(lines.begin(), lines.end(), assumed)) return "";
  Question twice = offer.question;
  Recipe& r = twice.recipe;
  r.global_batch *= 2;
  const double tokens = static_cast<double>(r.global_batch) * static_cast<double>(r.seq);
  if (r.tokens && *r.tokens < tokens) return "";
  // A plan that is found at once, as good as the best or nearly.
  const double seconds = seconds_reached(twice, make_space(twice), Objective::time, {}, 1);
  const double less = 1 - seconds / 2 / best.step->seconds.number();
  if (!(less >= kWorthSaying)) return "";
  return "With --global-batch " + std::to_string(r.global_batch) +
         ", twice the batch that is assumed, these GPUs take " + text::percent(less) + " less time for a token.";
}

}  // namespace preflop
