#include "src/adapt/api.hpp"

#include <algorithm>

#include "src/adapt/export/export.hpp"
#include "src/adapt/import/import.hpp"
#include "src/adapt/session.hpp"
#include "src/base/json_read.hpp"
#include "src/base/text.hpp"
#include "src/explain/explain.hpp"
#include "src/run/estimate.hpp"
#include "src/step/verdict_changes.hpp"
#include "src/view/explain_text.hpp"
#include "src/view/json.hpp"
#include "src/view/report.hpp"
#include "src/view/text.hpp"
#include "src/view/timeline.hpp"

namespace preflop {

std::string text_member(const Json& call, const char* key) {
  const auto at = call.find(key);
  if (at == call.end()) return "";
  const auto* text = at->get_ptr<const std::string*>();
  return text == nullptr ? "" : *text;
}

Drawing drawing_of(const Json& call) {
  Drawing out;
  if (const auto at = call.find("width"); at != call.end() && at->is_number())
    out.width = std::clamp(at->get<double>(), kNarrowest, kPictureWidth);
  if (const auto at = call.find("gb"); at != call.end()) out.gb = *at == Json(true);
  return out;
}

Json pictures_json(const std::vector<svg::Picture>& pictures) {
  Json out = Json::array();
  for (const svg::Picture& p : pictures)
    out.push_back({{"name", p.name},
                   {"title", p.title},
                   {"width", json_number(p.width)},
                   {"height", json_number(p.height)},
                   {"svg", svg::document(p)}});
  return {{"pictures", std::move(out)}};
}

using State = Session::State;

Result<const Catalogues*> State::load() {
  if (!catalogues) {
    auto loaded = Catalogues::load();
    if (!loaded) return loaded.error();
    catalogues = std::make_unique<Catalogues>(std::move(loaded).value());
  }
  return catalogues.get();
}

Result<const State::Posed*> State::pose_here(const Json& call) {
  const auto at = call.find("request");
  if (at == call.end()) return Error{"call", "no request", "\"request\": {\"model\": .., \"on\": ..}"};
  std::string asked = at->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (posed && posed->asked == asked) return &*posed;
  posed.reset();
  auto request = request_from_json(asked);
  if (!request) return request.error();
  const auto loaded = load();
  if (!loaded) return loaded.error();
  auto problem = pose(*request, **loaded);
  if (!problem) return problem.error();
  posed.emplace(Posed{std::move(asked), std::move(request).value(), std::move(problem).value(), {}});
  posed->estimate = estimate<double>(posed->problem.analysed, posed->problem.cluster);
  return &*posed;
}

Result<Json> State::estimate_call(const Json& call) {
  const auto here = pose_here(call);
  if (!here) return here.error();
  return estimate_json_value((*here)->estimate);
}

Result<Json> State::changes(const Json& call) {
  const auto here = pose_here(call);
  if (!here) return here.error();
  constexpr std::size_t kMost = 3;  // as the text of an estimate shows
  Json out = Json::array();
  for (const VerdictChange& c :
       verdict_changes((*here)->problem.analysed, (*here)->problem.cluster, (*here)->estimate.memory.verdict, kMost))
    out.push_back({{"choice", c.choice}, {"verdict", name(c.verdict)}, {"margin_bytes", json_number(c.margin)}});
  return Json{{"changes", std::move(out)}};
}

Result<Json> State::terms(const Json& call) {
  const auto here = pose_here(call);
  if (!here) return here.error();
  return term_list_json(explainable((*here)->problem.analysed, (*here)->problem.cluster));
}

// The derivation as JSON, as the text that the command prints, or line by line.
Result<Json> State::explain_call(const Json& call) {
  const auto here = pose_here(call);
  if (!here) return here.error();
  const auto found = explain(text_member(call, "term"), (*here)->problem.analysed, (*here)->problem.cluster);
  if (!found) return found.error();
  const std::string format = text_member(call, "format");
  if (format == "txt") return Json{{"text", explain_text(*found, false)}};
  if (format != "lines") return explain_json_value(*found);
  Json lines = Json::array();
  for (const ExplainLine& line : explain_lines(*found, call.contains("everything") && call["everything"] == Json(true)))
    lines.push_back({{"indent", line.indent}, {"text", line.text}});
  return Json{{"head", explain_head(*found)}, {"path", found->path}, {"about", found->about}, {"lines", lines}};
}

Result<Json> State::pictures(const Json& call) {
  const auto here = pose_here(call);
  if (!here) return here.error();
  const Posed& p = **here;
  return pictures_json(estimate_pictures(p.estimate, interval_curve(p.problem.analysed, p.problem.cluster, p.estimate),
                                         drawing_of(call)));
}

Result<Json> State::report_call(const Json& call) {
  const auto here = pose_here(call);
  if (!here) return here.error();
  const Posed& p = **here;
  const std::string format = text_member(call, "format");
  if (format == "md") return Json{{"text", report_markdown(p.estimate)}};
  if (format == "txt") return Json{{"text", estimate_text(p.estimate, {})}};
  const IntervalCurve curve = interval_curve(p.problem.analysed, p.problem.cluster, p.estimate);
  if (format == "html") return Json{{"text", report_html(p.estimate, curve)}};
  if (format == "svg")
    return Json{{"text", svg::document(svg::sheet(estimate_pictures(p.estimate, curve), p.estimate.model.name))}};
  return Error{"format", text::quoted(format) + " is no format of a report", "html, md, svg or txt"};
}

Result<Json> State::timeline(const Json& call) {
  const auto here = pose_here(call);
  if (!here) return here.error();
  const auto timeline = memory_timeline((*here)->problem.analysed, (*here)->problem.cluster);
  if (!timeline) return timeline.error();
  if (text_member(call, "format") == "csv") return Json{{"text", timeline_csv(*timeline)}};
  return timeline_json_value(*timeline);
}

// As `preflop export` does it: from the estimate's JSON, read back.
Result<Json> State::export_call(const Json& call) {
  const auto here = pose_here(call);
  if (!here) return here.error();
  auto request = import_result(json_text(estimate_json_value((*here)->estimate)), "the estimate");
  if (!request) return request.error();
  request->config = (*here)->request.config;
  request->assume = (*here)->request.assume;
  const auto problem = pose(*request, *catalogues);
  if (!problem) return problem.error();
  const auto out = export_to(text_member(call, "to"), *problem, *request);
  if (!out) return out.error();
  return Json{{"text", out->text}, {"left_out", out->left_out}};
}

Result<Json> State::dispatch(const Json& call) {
  using Method = Result<Json> (State::*)(const Json&);
  static constexpr std::pair<const char*, Method> kMethods[] = {{"estimate", &State::estimate_call},
                                                                {"changes", &State::changes},
                                                                {"terms", &State::terms},
                                                                {"explain", &State::explain_call},
                                                                {"pictures", &State::pictures},
                                                                {"report", &State::report_call},
                                                                {"timeline", &State::timeline},
                                                                {"export", &State::export_call},
                                                                {"plan-begin", &State::plan_begin},
                                                                {"plan-advance", &State::plan_advance},
                                                                {"plan-result", &State::plan_result},
                                                                {"plan-pictures", &State::plan_pictures},
                                                                {"plan-cancel", &State::plan_cancel},
                                                                {"models", &State::catalogue},
                                                                {"gpus", &State::catalogue},
                                                                {"platforms", &State::catalogue},
                                                                {"stacks", &State::catalogue},
                                                                {"optimizers", &State::catalogue}};
  const std::string name = text_member(call, "call");
  for (const auto& [known, method] : kMethods) {
    if (name == known) return (this->*method)(call);
  }
  if (name == "compare") return compare_call(call);
  if (name == "keys") return keys_call();
  if (name == "formats") return formats_call();
  if (name == "read") return read_call(call);
  std::vector<std::string> names = {"compare", "keys", "formats", "read"};
  for (const auto& [known, method] : kMethods) names.emplace_back(known);
  return text::unknown_name("call", "call", name, names);
}

Session::Session() : state_(std::make_unique<State>()) {}
Session::~Session() = default;

std::string Session::answer(std::string_view call) {
  const auto json = read_json(call, "request");
  // What is no call is a request, and its errors are those of a request.
  if (!json || !json->is_object() || !json->contains("call")) return estimate_json(call);
  const Result<Json> out = state_->dispatch(*json);
  return json_text(out ? *out : Json{{"error", out.error().text()}});
}

namespace {

Result<Json> estimate_answer(std::string_view request_json) {
  const Result<Request> request = request_from_json(request_json);
  if (!request) return request.error();
  const Result<Catalogues> catalogues = Catalogues::load();
  if (!catalogues) return catalogues.error();
  const Result<Problem> problem = pose(*request, *catalogues);
  if (!problem) return problem.error();
  return estimate_json_value(estimate<double>(problem->analysed, problem->cluster));
}

}  // namespace

std::string estimate_json(std::string_view request_json) {
  const Result<Json> value = estimate_answer(request_json);
  return json_text(value ? *value : Json{{"error", value.error().text()}});
}

}  // namespace preflop
