#include "src/stack/optimizer.hpp"

#include <algorithm>
#include <utility>

#include "src/base/csv.hpp"
#include "src/base/decimal.hpp"
#include "src/base/embedded.hpp"
#include "src/base/text.hpp"

namespace preflop {

namespace {

using Over = OptimizerSlot::Over;
constexpr std::pair<const char*, Over> kOver[] = {{"all", Over::all},     {"large", Over::large},
                                                  {"small", Over::small}, {"hidden", Over::hidden},
                                                  {"rest", Over::rest},   {"factored", Over::factored}};

bool is_large(Role role) { return role == Role::matrix || role == Role::router || role == Role::table; }
bool is_hidden(Tag tag, Role role) { return is_large(role) && role != Role::table && group(tag) != "head"; }

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('|', begin), text.size());
    out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

Result<OptimizerSlot> read_slot(const Csv& table, std::size_t row) {
  OptimizerSlot slot;
  slot.name = table.at(row, "slot");
  slot.source = table.at(row, "source");
  const std::string width(table.at(row, "width"));
  if (width != "moment") {
    const Result<double> bytes = parse_decimal(width);
    if (!bytes || *bytes <= 0)
      return Error{table.where(row), text::quoted(width) + " is no width", "moment, or bytes per element"};
    slot.width = *bytes;
  }
  const std::string over(table.at(row, "over"));
  for (const auto& [word, value] : kOver) {
    if (over != word) continue;
    slot.over = value;
    return slot;
  }
  return Error{table.where(row), text::quoted(over) + " names no weights",
               "all, large, small, hidden, rest or factored"};
}

}  // namespace

bool OptimizerSlot::covers(Tag tag, Role role) const {
  switch (over) {
    case Over::all:
      return true;
    case Over::large:
    case Over::factored:
      return is_large(role);
    case Over::small:
      return !is_large(role);
    case Over::hidden:
      return is_hidden(tag, role);
    case Over::rest:
      return !is_hidden(tag, role);
  }
  return true;
}

Result<std::vector<Optimizer>> read_optimizers(std::string_view csv, std::string_view file) {
  const auto table = Csv::parse(csv, std::string(file));
  if (!table) return table.error();
  for (const char* column : {"name", "also", "says", "slot", "width", "over", "source"}) {
    if (const auto found = table->need(column); !found) return found.error();
  }
  std::vector<Optimizer> out;
  for (std::size_t i = 0; i < table->rows(); ++i) {
    const std::string name(table->at(i, "name"));
    if (table->at(i, "source").empty()) return Error{table->where(i), "no source", "where the state is described"};
    if (out.empty() || out.back().name != name) {
      out.push_back({name,
                     split(table->at(i, "also")),
                     std::string(table->at(i, "says")),
                     {},
                     std::string(table->at(i, "source"))});
    }
    if (table->at(i, "slot").empty()) continue;
    auto slot = read_slot(*table, i);
    if (!slot) return slot.error();
    out.back().slots.push_back(std::move(slot).value());
  }
  return out;
}

const std::vector<Optimizer>& optimizers() {
  static const std::vector<Optimizer> kTable = [] {
    auto table = read_optimizers(embedded("optimizers.csv"), "data/optimizers.csv");
    return table ? std::move(table).value() : std::vector<Optimizer>();
  }();
  return kTable;
}

Result<const Optimizer*> find_optimizer(std::string_view name) {
  const std::string wanted = text::normalise_name(name);
  std::vector<std::string> names;
  for (const Optimizer& o : optimizers()) {
    names.push_back(o.name);
    if (text::normalise_name(o.name) == wanted) return &o;
    for (const std::string& also : o.also) {
      if (text::normalise_name(also) == wanted) return &o;
    }
  }
  return text::unknown_name("--optimizer", "optimizer", name, names);
}

double width_over_all(const Optimizer& optimizer, Dtype moment) {
  double out = 0;
  for (const OptimizerSlot& slot : optimizer.slots) {
    if (slot.over == OptimizerSlot::Over::all) out += slot.bytes(moment);
  }
  return out;
}

}  // namespace preflop
