// A request whose layout is open becomes the question that the search answers: given sizes are fixed, the
// global batch is one for all layouts.
#pragma once

#include <functional>

#include "src/adapt/request.hpp"
#include "src/search/plan.hpp"

namespace preflop {

// The global batch: what was given, else 4 Mi tokens, to the nearest number of whole micro-batches on
// every rank (in multiples of pp where stages interleave). Sets it for the recipe's layout.
using SetBatch = std::function<void(Recipe&)>;
Result<SetBatch> batch_rule(const Request& request, const Recipe& recipe, bool& given);

// The batch of a cluster, whatever the layout: of what is given or assumed, the nearest that many layouts share out.
// `recipe` is the one asked about, with the sizes that are given.
std::int64_t shared_batch(const SetBatch& set_batch, Recipe recipe, std::int64_t gpus, bool given);
// The line of recipe.assumed for a batch that was not given.
void assume_batch(const Request& request, Recipe& recipe);

// `draft` must outlive the question.
Result<Question> ask(const Request& request, const Draft& draft);

// The keys of a request that say how the cluster is used; without any of them `estimate` plans.
bool leaves_layout_open(const Request& request);

// Lines of recipe.assumed for what a plan chose.
void assume_planned(const Question& question, Recipe& recipe, const std::string& how);

}  // namespace preflop
