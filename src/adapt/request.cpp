#include "src/adapt/request.hpp"

#include "src/base/decimal.hpp"
#include "src/base/json_read.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

// A scalar as the text a flag would have.
Result<std::string> scalar(const std::string& key, const nlohmann::json& value) {
  if (const auto* s = value.get_ptr<const std::string*>()) return *s;
  if (const auto* b = value.get_ptr<const bool*>()) return std::string(*b ? "true" : "false");
  if (const auto* u = value.get_ptr<const std::uint64_t*>()) return std::to_string(*u);
  if (const auto* i = value.get_ptr<const std::int64_t*>()) return std::to_string(*i);
  if (const auto* d = value.get_ptr<const double*>()) return shortest(*d);
  return Error{"request." + key, "a value that is neither text, number nor switch", "e.g. 8, \"4Mtok\" or true"};
}

}  // namespace

Result<Request> request_from_json(std::string_view text) {
  auto json = read_json(text, "request");
  if (!json) return json.error();
  if (!json->is_object())
    return Error{"request", "not a JSON object", "{\"model\": \"llama3-70b\", \"on\": \"64xh100-sxm\"}"};
  Request out;
  for (const auto& [key, value] : json->items()) {
    if (key == "config" && value.is_object()) {
      out.config = ConfigText{value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "config"};
      continue;
    }
    if (key == "assume" && value.is_object()) {
      for (const auto& [name, assumed] : value.items()) {
        auto s = scalar("assume." + name, assumed);
        if (!s) return s.error();
        out.assume[name] = std::move(s).value();
      }
      continue;
    }
    auto s = scalar(key, value);
    if (!s) return s.error();
    if (key == "model")
      out.model = std::move(s).value();
    else if (key == "on")
      out.on = std::move(s).value();
    else
      out.keys[key] = std::move(s).value();
  }
  if (out.model.empty() && !out.config) return Error{"request", "no model", "\"model\": NAME or \"config\": {...}"};
  return out;
}

}  // namespace preflop
