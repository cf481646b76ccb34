#include "src/stack/stack_reader.hpp"
#include "src/view/json.hpp"
#include "src/view/plan.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

// One line of the front of time against GPUs and cost.
Json point(const Estimate& e) {
  Json out = {{"gpu", e.cluster.gpu.id},
              {"gpus", e.cluster.gpus},
              {"gpus_per_node", e.cluster.gpus_per_node},
              {"platform", e.cluster.platform.id},
              {"recipe", Json::object()}};
  out["step_seconds"] = e.step ? json_number(e.step->seconds.number()) : Json(nullptr);
  out["mfu"] = e.step ? json_number(e.step->mfu.number()) : Json(nullptr);
  out["ideal_seconds"] = e.run ? json_number(e.run->ideal.number()) : Json(nullptr);
  out["gpu_hours"] = e.run ? json_number(e.run->gpu_hours.number()) : Json(nullptr);
  out["p50_seconds"] = e.run ? json_number(e.run->p50.number()) : Json(nullptr);
  out["expected_seconds"] = e.run ? json_number(e.run->expected.number()) : Json(nullptr);
  out["cost_usd"] = e.run && e.run->cost ? json_number(e.run->cost->number()) : Json(nullptr);
  const Layout& l = e.recipe.layout;
  out["recipe"] = {{"tp", l.tp},
                   {"pp", l.pp},
                   {"vpp", l.vpp},
                   {"cp", l.cp},
                   {"ep", l.ep},
                   {"etp", l.etp},
                   {"dp", l.dp},
                   {"zero", l.zero},
                   {"global_batch", e.recipe.global_batch},
                   {"micro_batch", e.recipe.micro_batch},
                   {"recompute", recompute_text(e.recipe.recompute)}};
  return out;
}

// Null: not made by a search.
Json command_at(const std::vector<std::string>& commands, std::size_t i) {
  return i < commands.size() && !commands[i].empty() ? Json(commands[i]) : Json(nullptr);
}

}  // namespace

Json plan_json_value(const Plan& plan) {
  Json rejected = Json::object();
  Json examples = Json::object();
  for (const SpaceReport::Rejected& r : plan.space.rejected) {
    rejected[r.reason] = r.count;
    examples[r.reason] = r.example;
  }
  Json plans = Json::array();
  for (std::size_t i = 0; i < plan.plans.size(); ++i) {
    plans.push_back(estimate_json_value(plan.plans[i]));
    plans.back()["command"] = command_at(plan.commands, i);
  }
  Json clusters = Json::array();
  for (std::size_t i = 0; i < plan.clusters.size(); ++i) {
    clusters.push_back(point(plan.clusters[i]));
    clusters.back()["command"] = command_at(plan.cluster_commands, i);
  }
  Json pareto = Json::array();
  for (const std::size_t i : plan.pareto) pareto.push_back(clusters[i]);
  return {{"schema", "preflop.plan/1"},
          {"objective", name(plan.objective)},
          {"space",
           {{"space", plan.space.space},
            {"pruned", plan.space.pruned},
            {"checked", plan.space.checked},
            {"priced", plan.space.priced},
            {"rejected", std::move(rejected)},
            {"examples", std::move(examples)}}},
          {"plans", std::move(plans)},
          {"pareto", std::move(pareto)},
          {"scaling", std::move(clusters)},
          {"nearest_why", plan.nearest ? Json(plan.nearest_why) : Json(nullptr)},
          {"nearest", plan.nearest ? estimate_json_value(*plan.nearest) : Json(nullptr)},
          {"why", Json(plan.why)},
          {"notes", Json(plan.notes)},
          {"opened_would_gain", Json(plan.gains)},
          {"switches_would_gain", Json(plan.switches)}};
}

}  // namespace preflop
