#include "src/view/timeline.hpp"

#include "src/base/decimal.hpp"
#include "src/view/json.hpp"

namespace preflop {

using Json = nlohmann::json;

Json timeline_json_value(const MemoryTimeline& timeline) {
  const auto known = [](std::int64_t v) { return v < 0 ? Json(nullptr) : Json(v); };
  Json stages = Json::array();
  for (const StageTimeline& stage : timeline.stages) {
    Json points = Json::array();
    for (const MemoryPoint& p : stage.points) {
      Json point = {{"event", p.event},
                    {"micro_batch", known(p.micro_batch)},
                    {"chunk", known(p.chunk)},
                    {"start_seconds", or_null(p.start)},
                    {"end_seconds", or_null(p.end)},
                    {"in_flight", json_number(p.in_flight)},
                    {"deferred", json_number(p.deferred)},
                    {"allocated", json_number(p.bytes->allocated.number())}};
      for (int t = 0; t < kTerms; ++t) point[name(static_cast<Term>(t))] = json_number(p.bytes->terms[t].number());
      points.push_back(std::move(point));
    }
    stages.push_back({{"stage", stage.stage}, {"points", std::move(points)}});
  }
  return {{"schema", "preflop.timeline/1"},
          {"micro_batches", timeline.micro_batches},
          {"micro_batches_played", timeline.played},
          {"stages", std::move(stages)}};
}

std::string timeline_csv(const MemoryTimeline& timeline) {
  std::string out = "stage,event,micro_batch,chunk,start_seconds,end_seconds,in_flight,deferred,allocated";
  for (int t = 0; t < kTerms; ++t) out += std::string(",") + name(static_cast<Term>(t));
  out += "\n";
  const auto known = [](std::int64_t v) { return v < 0 ? std::string() : std::to_string(v); };
  const auto seconds = [](const std::optional<double>& v) { return v ? shortest(*v) : std::string(); };
  for (const StageTimeline& stage : timeline.stages) {
    for (const MemoryPoint& p : stage.points) {
      out += std::to_string(stage.stage) + "," + std::string(p.event) + "," + known(p.micro_batch) + "," +
             known(p.chunk) + "," + seconds(p.start) + "," + seconds(p.end) + "," + shortest(p.in_flight) + "," +
             shortest(p.deferred) + "," + shortest(p.bytes->allocated.number());
      for (const Bytes<double>& term : p.bytes->terms) out += "," + shortest(term.number());
      out += "\n";
    }
  }
  return out;
}

}  // namespace preflop
