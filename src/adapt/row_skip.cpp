// What pose() refuses in a run that did take place: mostly things that preflop does not have yet.
#include "src/adapt/recipe_keys.hpp"
#include "src/adapt/row_request.hpp"

namespace preflop {

namespace {

constexpr std::string_view kNotYet = "not built yet";

std::string key_of(std::string_view flag) {
  std::string out(flag.starts_with("--") ? flag.substr(2) : flag);
  for (char& c : out) {
    if (c == '-') c = '_';
  }
  return out;
}

}  // namespace

Skip skip_of(const Error& error, const Request& request) {
  const std::string key = key_of(error.where);
  const std::string* value = text_of(request, key);
  const std::size_t yet = error.what.find(kNotYet);
  // "low-rank adapters: not built yet": the whole key; "fp8-tensorwise is not built yet": its value.
  if (yet != std::string::npos && yet >= 2 && error.what[yet - 2] == ':') {
    return {SkipKind::not_built, "not built: " + error.what.substr(0, yet - 2)};
  }
  const bool choice = key == "schedule" || key == "attention" || key == "loss" || key == "recompute" ||
                      key == "optimizer" || key == "precision";
  if (value != nullptr && (choice || yet != std::string::npos))
    return {SkipKind::not_built, key + " not built: " + *value};
  return {SkipKind::illegal, error.where.empty() ? error.what : error.where + ": " + error.what};
}

}  // namespace preflop
