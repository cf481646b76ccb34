// What a session of the API keeps between calls. Private to src/adapt/api*.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "preflop/estimate.hpp"
#include "src/adapt/api.hpp"
#include "src/adapt/plan_run.hpp"
#include "src/adapt/request.hpp"
#include "src/view/svg/pictures.hpp"

namespace preflop {

using Json = nlohmann::json;

struct Session::State {
  std::unique_ptr<Catalogues> catalogues;  // problems point into them

  // The last request, understood.
  struct Posed {
    std::string asked;
    Request request;
    Problem problem;
    Estimate estimate;
  };
  std::optional<Posed> posed;

  std::unique_ptr<PlanRun> run;
  std::unique_ptr<Search> search;  // of the run's pending question
  std::uint64_t looked = 0;        // by the searches before it
  std::optional<Plan> plan;        // the run's outcome

  Result<const Catalogues*> load();
  Result<const Posed*> pose_here(const Json& call);

  Result<Json> estimate_call(const Json& call);
  Result<Json> changes(const Json& call);
  Result<Json> terms(const Json& call);
  Result<Json> explain_call(const Json& call);
  Result<Json> pictures(const Json& call);
  Result<Json> report_call(const Json& call);
  Result<Json> timeline(const Json& call);
  Result<Json> export_call(const Json& call);
  Result<Json> plan_begin(const Json& call);
  Result<Json> plan_advance(const Json& call);
  Result<Json> plan_result(const Json& call);
  Result<Json> plan_pictures(const Json& call);
  Result<Json> plan_cancel(const Json& call);
  Result<Json> catalogue(const Json& call);
  Result<Json> dispatch(const Json& call);

 private:
  Status next_search();
  Json progress() const;
};

// The member of a call as text, "" when it is not there or no text.
std::string text_member(const Json& call, const char* key);
Drawing drawing_of(const Json& call);
Json pictures_json(const std::vector<svg::Picture>& pictures);

// Calls that need no session.
Result<Json> compare_call(const Json& call);
Result<Json> keys_call();
Result<Json> formats_call();
Result<Json> read_call(const Json& call);

}  // namespace preflop
