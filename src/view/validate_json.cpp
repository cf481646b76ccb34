// preflop.validate/1.
#include <algorithm>

#include "src/validate/left_out.hpp"
#include "src/validate/order.hpp"
#include "src/view/json.hpp"
#include "src/view/validate.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

Json number(const std::optional<double>& v) { return v ? json_number(*v) : Json(nullptr); }
Json count(const std::optional<std::size_t>& v) { return v ? Json(*v) : Json(nullptr); }
Json word(const std::string& v) { return v.empty() ? Json(nullptr) : Json(v); }
Json list(const std::vector<std::string>& items) {
  Json out = Json::array();
  for (const std::string& item : items) out.push_back(item);
  return out;
}

// `low` and `high` are the ends of the prediction band, null where there is none.
Json entry_json(const Entry& e) {
  const bool verdict = e.metric == "fit.verdict";
  return {{"id", e.id},
          {"source", e.source},
          {"group", e.group},
          {"metric", e.metric},
          {"measured", verdict ? word(e.measured_verdict) : number(e.measured)},
          {"predicted", e.skip    ? Json(nullptr)
                        : verdict ? word(e.predicted_verdict)
                                  : number(e.predicted)},
          {"low", e.skip ? Json(nullptr) : number(e.low)},
          {"high", e.skip ? Json(nullptr) : number(e.high)},
          {"error", e.skip ? Json(nullptr) : number(e.error)},
          {"assumed", list(*e.assumed)},
          {"not_modelled", list(*e.not_modelled)},
          {"flags", list(*e.flags)},
          {"convention", word(e.convention)},
          {"apart", word(e.apart)},
          {"skipped", e.skip ? Json(e.skip.reason) : Json(nullptr)}};
}

Json summary_json(const std::vector<Summary>& summary) {
  Json out = Json::array();
  for (const Summary& s : summary) {
    out.push_back({{"source", s.source},
                   {"metric", s.metric},
                   {"convention", word(s.convention)},
                   {"n", s.n},
                   {"skipped", s.skipped},
                   {"mape", number(s.mape)},
                   {"median", number(s.median)},
                   {"p90", number(s.p90)},
                   {"max", number(s.max)},
                   {"bias", number(s.bias)},
                   {"coverage", number(s.coverage)},
                   {"half_width", number(s.half_width)},
                   {"naive_mape", number(s.naive_mape)},
                   {"false_fit", count(s.false_fit)},
                   {"false_oom", count(s.false_oom)},
                   {"tight", count(s.tight)},
                   {"contradicted", count(s.contradicted)},
                   {"oom", count(s.oom)},
                   {"tight_oom", count(s.tight_oom)},
                   {"doubled", count(s.doubled)},
                   {"doubled_no", count(s.doubled_no)}});
  }
  return out;
}

Json left_out_json(const std::vector<LeftOut>& groups) {
  Json out = Json::array();
  for (const LeftOut& g : groups) {
    out.push_back({{"like", g.like},
                   {"metric", g.metric},
                   {"rows", g.rows},
                   {"models", g.models},
                   {"fitted", word(g.fitted)},
                   {"band", json_number(g.band)},
                   {"band_of_rows", json_number(g.band_of_rows)},
                   {"mape", json_number(g.mape)},
                   {"coverage", json_number(g.coverage)},
                   {"left_out", g.left_out},
                   {"left_out_mape", number(g.left_out_mape)},
                   {"left_out_coverage", number(g.left_out_coverage)},
                   {"left_out_half_width", number(g.left_out_half_width)}});
  }
  return out;
}

Json mapping_json(const Mapping& m) {
  Json skipped = Json::array();
  for (const auto& [key, n] : m.reasons) {
    skipped.push_back({{"kind", name(key.first)}, {"reason", key.second}, {"rows", n}});
  }
  Json other = Json::object();
  for (const auto& [reason, n] : m.other) other[reason] = n;
  return {{"rows", m.rows},           {"stated", m.stated}, {"duplicates", m.duplicates}, {"legal", m.legal},
          {"not_built", m.not_built}, {"other", other},     {"share", number(m.share())}, {"skipped", skipped}};
}

Json order_json(const std::vector<JobOrder>& jobs) {
  Json out = Json::array();
  for (const JobOrder& j : jobs) {
    out.push_back({{"source", j.source},
                   {"job", j.job},
                   {"layouts", j.layouts},
                   {"pairs", j.pairs},
                   {"concordance", j.pairs > 0 ? json_number(j.right / static_cast<double>(j.pairs)) : Json(nullptr)},
                   {"regret", json_number(j.regret)}});
  }
  return out;
}

}  // namespace

Json validate_json_value(const Report& report) {
  Json rows = Json::array();
  for (const Entry& e : report.entries) rows.push_back(entry_json(e));
  return {{"schema", "preflop.validate/1"},
          {"rows", std::move(rows)},
          {"summary", summary_json(summarise(report.entries))},
          {"summary_nothing_assumed", summary_json(summarise(report.entries, {true}))},
          {"summary_apart", summary_json(summarise(report.entries, {.apart = true}))},
          {"left_out", left_out_json(left_out(report.entries))},
          {"order", order_json(job_orders(report.entries))},
          {"mapping", mapping_json(report.mapping)}};
}

}  // namespace preflop
