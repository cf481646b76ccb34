#include "src/adapt/api.hpp"

#include "src/adapt/request.hpp"
#include "src/run/estimate.hpp"
#include "src/view/json.hpp"

namespace preflop {

namespace {

Result<nlohmann::json> answer(std::string_view request_json) {
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
  const Result<nlohmann::json> value = answer(request_json);
  return json_text(value ? *value : nlohmann::json{{"error", value.error().text()}});
}

}  // namespace preflop
