#include "src/adapt/open_numerics.hpp"

#include <algorithm>

#include "src/adapt/recipe_keys.hpp"
#include "src/base/text.hpp"
#include "src/run/estimate.hpp"
#include "src/search/why.hpp"
#include "src/stack/chip.hpp"
#include "src/stack/optimizer.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

const std::vector<std::string> kOpen = {"precision", "optimizer"};

std::vector<std::string> values_of(const std::string& key, const Stack& stack, const Gpu& gpu) {
  if (key == "precision") return precisions_here(stack, gpu);
  std::vector<std::string> out;
  if (!stack.optimizers.empty()) return stack.optimizers;
  for (const Optimizer& o : optimizers()) out.push_back(o.name);
  return out;
}

}  // namespace

Result<std::vector<Request>> opened(const Request& request, const std::string& open, const Catalogues& catalogues) {
  std::vector<Request> out = {request};
  if (open.empty()) return out;
  const auto drafted = draft(request, catalogues);
  if (!drafted) return drafted.error();
  for (const std::string& key : parts_of(open)) {
    if (std::find(kOpen.begin(), kOpen.end(), key) == kOpen.end())
      return text::unknown_name("--open", "key that can be opened", key, kOpen);
    if (text_of(request, key) != nullptr)
      return Error{"--open", key + " is given as " + *text_of(request, key), "one of --" + key + " and --open"};
    std::vector<Request> more;
    for (const Request& one : out) {
      for (const std::string& value : values_of(key, *drafted->stack, drafted->cluster.gpu)) {
        Request with = one;
        with.keys[key] = value;
        more.push_back(std::move(with));
      }
    }
    out = std::move(more);
  }
  return out;
}

std::string gain_of_opening(const Offer& offer, const Estimate& best, const Limits& limits,
                            const Catalogues& catalogues) {
  if (!best.step || best.recipe.mfu) return "";
  const double now = best.step->seconds.number();
  double least = now;
  std::string fastest;
  for (const std::string& precision : scaled_precision_names()) {
    if (precision == best.recipe.precision) continue;
    Request with = offer.request;  // its sequence, too, where that was looked for
    with.keys["precision"] = precision;
    const auto drafted = draft(with, catalogues);
    if (!drafted) continue;  // not on this stack, or not on this GPU
    Recipe recipe = drafted->recipe;
    recipe.layout = best.recipe.layout;
    recipe.micro_batch = best.recipe.micro_batch;
    recipe.global_batch = best.recipe.global_batch;
    recipe.recompute = best.recipe.recompute;
    recipe.loss = best.recipe.loss;
    const auto analysed = analyse_recipe(*drafted->model, *drafted->stack, recipe);
    if (!analysed) continue;
    const Estimate e = bare_estimate<double>(*analysed, drafted->cluster);
    if (!e.step || e.memory.verdict == Verdict::no || !broken_limits(e, limits).empty() ||
        !(e.step->seconds.number() < least))
      continue;
    least = e.step->seconds.number();
    fastest = precision;
  }
  if (fastest.empty()) return "";
  return "With --open precision: " + fastest + " on the best layout takes " + text::seconds(least) + " a step, " +
         text::percent(1 - least / now) + " less.";
}

}  // namespace preflop
