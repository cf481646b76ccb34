// The model of a measured run: a catalogue id, or a shape string where the row's cells differ.
#pragma once

#include <string>
#include <vector>

#include "src/adapt/model_catalogue.hpp"
#include "src/adapt/rows.hpp"

namespace preflop {

// Why a row is not predicted. The kinds are counted apart.
enum class SkipKind : std::uint8_t {
  none,
  not_built,  // an architecture, stack, precision, ... that preflop does not have yet
  cell,       // the row does not state something: the reason names it
  source,     // what the row is: a projection, a duplicate, a whole run, a name that was refused
  illegal     // the recipe cannot run on its stack, or contradicts itself
};
const char* name(SkipKind kind);
struct Skip {
  SkipKind kind = SkipKind::none;
  std::string reason;
  explicit operator bool() const { return kind != SkipKind::none; }
};

struct RowModel {
  std::string text;                  // MODEL of a request
  std::string label;                 // for people: the id, "llama3-70b, 12 layers", or the family
  std::int64_t layers = 0;           // 0: not known
  bool moe = false;                  // has experts
  std::vector<std::string> assumed;  // keys
  Skip skip;
};
RowModel row_model(const Row& row, const ModelCatalogue& models);

}  // namespace preflop
