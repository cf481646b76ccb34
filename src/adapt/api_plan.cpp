// The plan of a session, bit by bit.
#include "src/adapt/session.hpp"
#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/view/json.hpp"
#include "src/view/plan.hpp"

namespace preflop {

namespace {

using State = Session::State;

// A word of the search as the flag would have it.
std::string word(const Json& value) {
  if (const auto* s = value.get_ptr<const std::string*>()) return *s;
  if (value.is_number_integer()) return value.dump();
  if (const auto* d = value.get_ptr<const double*>()) return shortest(*d);
  return "";
}

Result<PlanWords> words_of(const Json& call, const Request& request) {
  PlanWords out;
  if (!request.on.empty()) out.on = {request.on};
  const auto search = call.find("search");
  if (search == call.end() || search->is_null()) return out;
  if (!search->is_object()) return Error{"search", "not a JSON object", "{\"objective\": \"time\"}"};
  const std::pair<const char*, std::string*> slots[] = {{"objective", &out.objective}, {"within", &out.within},
                                                        {"budget", &out.budget},       {"max_memory", &out.max_memory},
                                                        {"open", &out.open},           {"top", &out.top}};
  for (const auto& [key, value] : search->items()) {
    if (key == "allow_tight") {
      out.allow_tight = value == Json(true);
      continue;
    }
    if (key == "on") {
      out.on.clear();
      for (const Json& on : value.is_array() ? value : Json::array({value})) out.on.push_back(word(on));
      continue;
    }
    bool known = false;
    for (const auto& [name, slot] : slots) {
      if (key == name) *slot = word(value), known = true;
    }
    if (!known)
      return text::unknown_name("search", "word of the search", key,
                                {"objective", "within", "budget", "max_memory", "open", "top", "allow_tight", "on"});
  }
  return out;
}

constexpr const char* kNoPlan = "no plan is on its way";

}  // namespace

Status State::next_search() {
  search.reset();
  const PendingSearch* next = run->pending();
  if (next == nullptr) {
    plan = run->take();
    run.reset();
    return Nothing{};
  }
  search = std::make_unique<Search>(*next->question, *next->space, next->options.objective, next->options.limits,
                                    next->options.top);
  return Nothing{};
}

// Of the clusters asked about, those done and the part of the search at hand (a longest sequence takes several).
Json State::progress() const {
  if (!run) return {{"done", true}, {"progress", 1}, {"looked", looked}};
  const double space = static_cast<double>(run->pending()->space->size());
  const double here = static_cast<double>(search->result().space);
  const double part = space > 0 ? here / space : 0;
  return {{"done", false},
          {"progress", (static_cast<double>(run->clusters_done()) + part) / static_cast<double>(run->clusters())},
          {"looked", looked + static_cast<std::uint64_t>(here)}};
}

Result<Json> State::plan_begin(const Json& call) {
  search.reset();
  run.reset();
  plan.reset();
  looked = 0;
  const auto at = call.find("request");
  if (at == call.end()) return Error{"call", "no request", "\"request\": {\"model\": .., \"on\": ..}"};
  auto request = request_from_json(at->dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!request) return request.error();
  const auto words = words_of(call, *request);
  if (!words) return words.error();
  const auto loaded = load();
  if (!loaded) return loaded.error();
  auto begun = PlanRun::begin(*request, *words, **loaded);
  if (!begun) return begun.error();
  run = std::move(begun).value();
  if (Status s = next_search(); !s) return s.error();
  return progress();
}

Result<Json> State::plan_advance(const Json& call) {
  if (!run) return plan ? Result<Json>(progress()) : Error{"plan-advance", kNoPlan, "plan-begin"};
  const auto at = call.find("ordinals");
  std::uint64_t ordinals = std::uint64_t{1} << 16;
  if (at != call.end() && at->is_number_unsigned()) ordinals = at->get<std::uint64_t>();
  if (search->advance(ordinals)) return progress();
  std::vector<SearchResult> one;
  one.push_back(search->result());
  looked += one.front().space;
  const std::size_t top = run->pending()->options.top;
  search.reset();
  if (Status s = run->give(merge(std::move(one), top)); !s) {
    run.reset();
    return s.error();
  }
  if (Status s = next_search(); !s) return s.error();
  return progress();
}

Result<Json> State::plan_result(const Json&) {
  if (!plan) return Error{"plan-result", run ? "the plan is not complete" : kNoPlan, "plan-advance until done"};
  return plan_json_value(*plan);
}

Result<Json> State::plan_pictures(const Json& call) {
  if (!plan) return Error{"plan-pictures", run ? "the plan is not complete" : kNoPlan, "plan-advance until done"};
  return pictures_json({plans_picture(*plan, drawing_of(call))});
}

Result<Json> State::plan_cancel(const Json&) {
  search.reset();
  run.reset();
  plan.reset();
  return Json{{"done", true}};
}

}  // namespace preflop
