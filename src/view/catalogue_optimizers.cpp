#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/view/catalogue.hpp"
#include "src/view/json.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

const char* over_words(OptimizerSlot::Over over) {
  switch (over) {
    case OptimizerSlot::Over::all:
      return "every weight";
    case OptimizerSlot::Over::large:
      return "matrices and tables";
    case OptimizerSlot::Over::small:
      return "norms and biases";
    case OptimizerSlot::Over::hidden:
      return "matrices of layers";
    case OptimizerSlot::Over::rest:
      return "all but the matrices of layers";
    case OptimizerSlot::Over::factored:
      return "rows and columns of matrices and tables";
  }
  return "";
}

std::string width_words(const OptimizerSlot& slot) {
  return slot.width > 0 ? shortest(slot.width) + " B" : std::string("moment_dtype");
}

}  // namespace

std::string optimizers_text() {
  std::string out;
  for (const Optimizer& o : optimizers()) {
    out += o.name + "\n";
    for (const std::string& part : text::wrapped(o.says, 76)) out += "    " + part + "\n";
  }
  return out;
}

std::string optimizer_card(const Optimizer& o) {
  std::string out = o.name + ": " + o.says + "\n";
  if (o.slots.empty()) out += "\n  keeps no state\n";
  for (const OptimizerSlot& slot : o.slots) {
    out += "\n  " + slot.name + ": " + width_words(slot) + " an element, of " + over_words(slot.over) + "\n";
    for (const std::string& part : text::wrapped(slot.source, 72)) out += "    " + part + "\n";
  }
  if (o.slots.empty()) out += "  source: " + o.source + "\n";
  return out;
}

Json optimizer_json(const Optimizer& o) {
  Json slots = Json::array();
  for (const OptimizerSlot& slot : o.slots) {
    slots.push_back({{"name", slot.name},
                     {"bytes", slot.width > 0 ? json_number(slot.width) : Json(nullptr)},
                     {"of", over_words(slot.over)},
                     {"source", slot.source}});
  }
  return {{"schema", "preflop.optimizer/1"},
          {"name", o.name},
          {"also", Json(o.also)},
          {"summary", o.says},
          {"states", slots},
          {"source", o.source}};
}

Json optimizers_json() {
  Json all = Json::array();
  for (const Optimizer& o : optimizers()) all.push_back(optimizer_json(o));
  return {{"schema", "preflop.optimizers/1"}, {"optimizers", all}};
}

}  // namespace preflop
