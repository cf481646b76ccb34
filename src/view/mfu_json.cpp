#include "src/view/json.hpp"
#include "src/view/mfu.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

const char* name_of(Measurement::Kind kind) {
  static constexpr const char* kNames[] = {"tokens_per_second", "tokens_per_second_per_gpu", "step_seconds",
                                           "tflops_per_gpu"};
  return kNames[static_cast<int>(kind)];
}

Json measured_json(const Utilisation& u) {
  return {{"given", name_of(u.measured.kind)},
          {"given_convention", u.measured.convention ? Json(u.measured.convention->name) : Json(nullptr)},
          {"tokens_per_second", json_number(u.tokens_per_second)},
          {"tokens_per_second_per_gpu", json_number(u.tokens_per_second_per_gpu)},
          {"step_seconds", json_number(u.step_seconds)}};
}

Json peak_json(const Peak& p) {
  Json known = Json::array();
  for (const KnownPeak& k : p.known) {
    known.push_back({{"gpu", k.gpu},
                     {"field", k.field},
                     {"flops", json_number(k.value)},
                     {"sparse", k.sparse},
                     {"source", or_null(k.source)}});
  }
  return {{"flops", json_number(p.flops)},
          {"field", p.field},
          {"rung", p.rung},
          {"source", or_null(p.source)},
          {"catalogue_flops", or_null(p.catalogue)},
          {"given_flops", or_null(p.given)},
          {"given_is", std::move(known)}};
}

Json conventions_json(const Utilisation& u) {
  Json out = Json::object();
  for (const ConventionUse& c : u.conventions) {
    out[c.convention->name] = {{"flops_per_token", json_number(c.flops_per_token)},
                               {"flops_per_second_per_gpu", json_number(c.flops_per_gpu)},
                               {"mfu", json_number(c.mfu)},
                               {"mfu_of_given_peak", or_null(c.mfu_of_given)},
                               {"counts", c.convention->says},
                               {"source", c.convention->source}};
  }
  return out;
}

}  // namespace

Json mfu_json_value(const Utilisation& u, const Estimate& e) {
  const Json whole = estimate_json_value(e);
  Json out = Json::object();
  out["schema"] = "preflop.mfu/1";
  for (const char* part : {"model", "cluster", "recipe"}) {
    const auto at = whole.find(part);
    out[part] = at == whole.end() ? Json(nullptr) : *at;
  }
  out["measured"] = measured_json(u);
  out["peak"] = peak_json(u.peak);
  out["mfu"] = json_number(u.mfu);
  out["mfu_convention"] = u.conventions.front().convention->name;
  out["conventions"] = conventions_json(u);
  out["predicted"] = {{"mfu", or_null(u.predicted_mfu)},
                      {"tokens_per_second_per_gpu", or_null(u.predicted_tokens_per_second_per_gpu)},
                      {"method", e.step ? Json(e.step->method) : Json(nullptr)}};
  out["unexplained"] = or_null(u.unexplained);
  Json causes = Json::array();
  for (const Cause& c : u.causes) causes.push_back({{"kind", c.kind}, {"text", c.text}});
  out["likely_causes"] = std::move(causes);
  Json warnings = Json::array();
  for (const std::string& w : e.warnings) warnings.push_back(w);
  out["warnings"] = std::move(warnings);
  return out;
}

}  // namespace preflop
