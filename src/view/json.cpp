#include "src/view/json.hpp"

#include "src/adapt/request.hpp"
#include "src/base/decimal.hpp"
#include "src/explain/paths.hpp"
#include "src/run/calendar.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

Json cluster_json(const Cluster& c) {
  return {{"gpu", c.gpu.id},    {"platform", c.platform.id.empty() ? Json(nullptr) : Json(c.platform.id)},
          {"gpus", c.gpus},     {"gpus_per_node", c.gpus_per_node},
          {"nodes", c.nodes()}, {"assumed", Json(c.assumed)}};
}

void put_layout(Json& out, const Recipe& r, const Estimate& e) {
  const Layout& l = r.layout;
  out["tp"] = l.tp;
  out["pp"] = l.pp;
  out["vpp"] = l.vpp;
  out["cp"] = l.cp;
  out["ep"] = l.ep;
  out["etp"] = l.etp;
  out["dp"] = l.dp;
  out["sp"] = l.sp;
  out["zero"] = l.zero;
  out["hsdp"] = l.hsdp > 0 ? Json(l.hsdp) : Json(nullptr);
  out["schedule"] = l.schedule;
  Json stages = Json::array();
  for (const auto& stage : e.memory.stages) stages.push_back(stage.layers);
  out["layers_per_stage"] = std::move(stages);
}

// A value of the run as its flag takes it: a number where it is one.
Json run_word(const std::string& text) {
  const Result<double> number = parse_decimal(text);
  return text.empty() ? Json(nullptr) : number ? json_number(*number) : Json(text);
}

// Every key of a recipe; those that are not built yet are null.
Json recipe_json(const Estimate& e) {
  const Recipe& r = e.recipe;
  Json out = Json::object();
  for (const Key& key : request_keys()) out[key.name] = nullptr;
  put_layout(out, r, e);
  out["seq"] = r.seq;
  out["micro_batch"] = r.micro_batch;
  out["global_batch"] = r.global_batch;
  out["mtp"] = r.mtp;
  out["capacity_factor"] = json_number(r.capacity_factor);
  out["imbalance"] = json_number(r.imbalance);
  out["precision"] = r.precision;
  out["optimizer"] = r.optimizer;
  out["weight_dtype"] = name(r.weight_dtype);
  out["grad_dtype"] = name(r.grad_dtype);
  out["master_dtype"] = name(r.master_dtype);
  out["moment_dtype"] = name(r.moment_dtype);
  out["recompute"] = recompute_text(r.recompute);
  out["offload"] = offload_text(r.offload);
  out["attention"] = name(r.attention);
  out["loss"] = name(r.loss);
  out["optimizer_implementation"] = r.optimizer_implementation;
  out["cp_comm"] = r.cp_comm;
  out["dispatcher"] = r.dispatcher;
  out["cuda_graph"] = r.cuda_graph;
  const bool parts = r.cuda_graph == "transformer_engine" || r.cuda_graph == "local";
  out["cuda_graph_scope"] = parts ? Json(r.cuda_graph_scope) : Json(nullptr);
  out["dp_overlap"] = r.dp_overlap;
  out["tp_overlap"] = r.tp_overlap;
  out["ep_overlap"] = r.ep_overlap;
  out["fused_experts"] = r.fused_experts;
  out["fp8_attention"] = r.fp8_attention;
  out["compile"] = r.compile;
  out["stack"] = stack_text(r);
  for (const auto& [key, text] : r.run.words) out[key] = run_word(text);
  out["tokens"] = r.tokens ? json_number(*r.tokens) : Json(nullptr);
  out["mfu"] = r.mfu ? json_number(*r.mfu) : Json(nullptr);
  out["mfu_convention"] = r.mfu ? Json(r.mfu_convention) : Json(nullptr);
  out["assumed"] = Json(r.assumed);
  return out;
}

// First and last day of the run, where the first is given.
void put_dates(Json& out, const Estimate& e) {
  const std::optional<Date> start = e.run ? e.recipe.run.start : std::nullopt;
  const auto day = [&](const Seconds<double>& s) { return Json(date_text(*start, s.number())); };
  out["start"] = start ? Json(date_text(*start, 0)) : Json(nullptr);
  out["end"] = nullptr;
  if (start)
    out["end"] = {{"expected", day(e.run->expected)},
                  {"p10", day(e.run->p10)},
                  {"p50", day(e.run->p50)},
                  {"p90", day(e.run->p90)}};
}

// What the walk over the numbers does not set.
void put_words(Json& out, const Estimate& e) {
  const MemoryEstimate<double>& m = e.memory;
  Json& memory = out["memory"];
  memory["verdict"] = m.verdict == Verdict::unknown ? Json(nullptr) : Json(name(m.verdict));
  memory["fits"] = m.verdict == Verdict::unknown ? Json(nullptr) : Json(m.verdict != Verdict::no);
  memory["peak_stage"] = m.peak_stage;
  memory["peak_moment"] = name(m.stages[m.peak_stage].moment);
  if (m.way_out.empty()) memory["way_out"] = Json::array();
  for (std::size_t i = 0; i < m.way_out.size(); ++i) memory["way_out"][i]["change"] = m.way_out[i].change;
  for (std::size_t i = 0; i < m.stages.size(); ++i) {
    Json& stage = memory["stages"][i];
    stage["stage"] = m.stages[i].stage;
    stage["layers"] = m.stages[i].layers;
    stage["moment"] = name(m.stages[i].moment);
  }
  out["compute"]["convention"] = e.compute.convention;
  out["step"]["mfu_convention"] = e.step ? Json(e.step->mfu_convention) : Json(nullptr);
  put_dates(out["run"], e);
}

}  // namespace

Json estimate_json_value(const Estimate& e) {
  Json out = Json::object();
  out["schema"] = "preflop.estimate/1";
  for_each_number(e, [&](const std::string& path, const std::optional<double>& value, const char*) {
    json_put(out, path, value ? json_number(*value) : Json(nullptr));
  });
  put_words(out, e);
  out["model"]["name"] = e.model.name;
  out["cluster"] = cluster_json(e.cluster);
  out["recipe"] = recipe_json(e);
  out["sources"] = Json(e.sources);
  out["warnings"] = Json(e.warnings);
  return out;
}

Json napkin_json_value(const Napkin& n) {
  const auto or_null = [](const auto& quantity) { return quantity ? json_number(quantity->number()) : Json(nullptr); };
  return {{"schema", "preflop.napkin/1"},
          {"state_bytes", json_number(n.state.number())},
          {"flops", or_null(n.flops)},
          {"cluster_flops_per_second", or_null(n.cluster)},
          {"ideal_seconds", or_null(n.ideal)},
          {"expected_low_seconds", or_null(n.expected_low)},
          {"expected_high_seconds", or_null(n.expected_high)},
          {"gpu_hours", or_null(n.gpu_hours)}};
}

}  // namespace preflop
