#include "src/machine/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/csv.hpp"
#include "src/base/text.hpp"
#include "src/machine/fields.hpp"
#include "src/machine/ladder.hpp"

namespace preflop {
namespace {

struct Columns {
  std::size_t id, field, value, unit, rung, source;
};

Result<Columns> columns_of(const Csv& csv) {
  Columns c{};
  const std::pair<const char*, std::size_t*> wanted[] = {{"id", &c.id},     {"field", &c.field}, {"value", &c.value},
                                                         {"unit", &c.unit}, {"rung", &c.rung},   {"source", &c.source}};
  for (const auto& [name, place] : wanted) {
    Result<std::size_t> at = csv.need(name);
    if (!at) return at.error();
    *place = *at;
  }
  return c;
}

std::optional<Rung> rung_of(std::string_view text) {
  if (text == "exact") return Rung::exact;
  if (text == "same_chip") return Rung::same_chip;
  if (text == "class_rule") return Rung::class_rule;
  if (text == "unknown") return Rung::unknown;
  return std::nullopt;
}

// Where a text field of a GPU or platform lives; null when the field is no text.
std::string* text_member(Gpu& gpu, std::string_view field) {
  if (field == "name") return &gpu.name;
  if (field == "vendor") return &gpu.vendor;
  if (field == "arch") return &gpu.arch;
  if (field == "memory") return &gpu.memory;
  if (field == "default_platform") return &gpu.default_platform;
  return nullptr;
}
std::string* text_member(Platform& platform, std::string_view field) {
  if (field == "name") return &platform.name;
  if (field == "gpu") return &platform.gpu;
  if (field == "scaleup_link") return &platform.scaleup_link;
  if (field == "scaleout_fabric") return &platform.scaleout_fabric;
  if (field == "host_link") return &platform.host_link;
  if (field == "local_nvme") return &platform.local_nvme;
  return nullptr;
}
std::span<const MachineField> fields_of(const Gpu&) { return gpu_fields(); }
std::span<const MachineField> fields_of(const Platform&) { return platform_fields(); }

bool set_accumulate(Gpu& gpu, std::string_view value) {
  gpu.half_rate_accumulate = value == "half";
  return value == "half" || value == "full";
}
bool set_accumulate(Platform&, std::string_view) { return false; }

Result<Datum> read_datum(const Csv& csv, const Columns& c, std::size_t row, const MachineField& field,
                         const SourceTable& sources) {
  const std::string_view value = csv.at(row, c.value);
  const std::string_view unit = csv.at(row, c.unit);
  const auto rung = rung_of(csv.at(row, c.rung));
  if (!rung) {
    return Error{csv.where(row, c.rung), fmt::format("unknown rung {}", text::quoted(csv.at(row, c.rung))),
                 "exact, same_chip, class_rule or unknown"};
  }
  const auto named = sources.find(csv.at(row, c.source));
  std::string source = named == sources.end() ? std::string(csv.at(row, c.source)) : named->second;
  if (*rung == Rung::same_chip && unit == "gpu") {
    return Datum{std::nullopt, Rung::same_chip, std::string(value) + '\n' + source};  // see resolve_same_chip
  }
  if (source.empty()) {
    return Error{csv.where(row, c.source), fmt::format("{} has no source", field.name), "every value needs one"};
  }
  if (*rung == Rung::unknown) return Datum{std::nullopt, Rung::unknown, std::move(source)};
  Result<double> si = to_si(value, unit, field.kind);
  if (!si) return Error{csv.where(row, c.value), si.error().what, si.error().valid};
  if (!(*si >= field.low && *si <= field.high)) {
    return Error{csv.where(row, c.value), fmt::format("{} {} is out of bounds for {}", value, unit, field.name),
                 fmt::format("{} to {}", display(field.low, field.kind), display(field.high, field.kind))};
  }
  return Datum{*si, *rung, std::move(source)};
}

template <class Thing>
Error unknown_field(const Csv& csv, const Columns& c, std::size_t row, const Thing& thing) {
  std::vector<std::string> names = {"name", "alias", "note"};
  for (const MachineField& field : fields_of(thing)) names.emplace_back(field.name);
  return text::unknown_name(csv.where(row, c.field), "field", csv.at(row, c.field), names);
}

template <class Thing>
Status read_row(const Csv& csv, const Columns& c, std::size_t row, const SourceTable& sources, Thing& thing) {
  const std::string_view name = csv.at(row, c.field);
  const std::string_view value = csv.at(row, c.value);
  if (const MachineField* field = find_field(fields_of(thing), name)) {
    Result<Datum> datum = read_datum(csv, c, row, *field, sources);
    if (!datum) return datum.error();
    thing.data.insert_or_assign(std::string(name), std::move(*datum));
    return Nothing{};
  }
  if (value.empty()) return Error{csv.where(row, c.value), fmt::format("{} is empty", text::quoted(name)), ""};
  if (name == "alias") {
    if (text::normalise_name(value).empty()) return Error{csv.where(row, c.value), "an alias without a letter", ""};
    if (std::find(thing.aliases.begin(), thing.aliases.end(), value) == thing.aliases.end()) {
      thing.aliases.emplace_back(value);
    }
    return Nothing{};
  }
  if (name == "note") {
    thing.notes.emplace_back(value);
    return Nothing{};
  }
  if (name == "fp32_accumulate") {
    if (set_accumulate(thing, value)) return Nothing{};
    return Error{csv.where(row, c.value), fmt::format("fp32_accumulate {}", text::quoted(value)),
                 "full or half, of a GPU"};
  }
  std::string* member = text_member(thing, name);
  if (member == nullptr) return unknown_field(csv, c, row, thing);
  *member = std::string(value);
  return Nothing{};
}

template <class Thing>
Status read_things(std::string_view csv_text, std::string_view file, const SourceTable& sources,
                   std::vector<Thing>& things) {
  Result<Csv> csv = Csv::parse(csv_text, file);
  if (!csv) return csv.error();
  Result<Columns> columns = columns_of(*csv);
  if (!columns) return columns.error();
  std::map<std::string, std::size_t, std::less<>> by_id;
  for (std::size_t i = 0; i < things.size(); ++i) by_id.emplace(things[i].id, i);
  std::size_t current = 0;  // index of the thing of the row before: rows of one id mostly stand together
  for (std::size_t row = 0; row < csv->rows(); ++row) {
    const std::string_view id = csv->at(row, columns->id);
    if (row == 0 || id != things[current].id) {
      if (id.empty() || id != text::normalise_name(id)) {
        return Error{csv->where(row, columns->id), fmt::format("{} is not an id", text::quoted(id)),
                     "lower case letters and digits, parts joined by one dash, such as h100-sxm"};
      }
      const auto [at, fresh] = by_id.emplace(std::string(id), things.size());
      if (fresh) things.emplace_back().id = std::string(id);
      current = at->second;
    }
    Status status = read_row(*csv, *columns, row, sources, things[current]);
    if (!status) return status;
  }
  return Nothing{};
}

}  // namespace

Result<SourceTable> read_sources(std::string_view csv_text, std::string_view file) {
  Result<Csv> csv = Csv::parse(csv_text, file);
  if (!csv) return csv.error();
  Result<std::size_t> id = csv->need("id");
  if (!id) return id.error();
  Result<std::size_t> text = csv->need("text");
  if (!text) return text.error();
  SourceTable out;
  for (std::size_t row = 0; row < csv->rows(); ++row) {
    out.emplace(std::string(csv->at(row, *id)), std::string(csv->at(row, *text)));
  }
  return out;
}

Status read_gpus(std::string_view csv, std::string_view file, const SourceTable& sources, std::vector<Gpu>& gpus) {
  return read_things(csv, file, sources, gpus);
}

Status read_platforms(std::string_view csv, std::string_view file, const SourceTable& sources,
                      std::vector<Platform>& platforms) {
  return read_things(csv, file, sources, platforms);
}

namespace {

bool refers(const Datum& datum) { return datum.rung == Rung::same_chip && !datum.value; }

// The GPU that a datum "PARENT\nWHY" refers to. One step only: a chain would hide where a value is from.
Result<const Gpu*> parent_of(const std::vector<Gpu>& gpus, const Gpu& gpu, std::string_view field, const Datum& datum) {
  const std::string_view parent = std::string_view(datum.source).substr(0, datum.source.find('\n'));
  const std::string where = fmt::format("gpus.csv: {} {}", gpu.id, field);
  const auto at = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& g) { return g.id == parent; });
  if (at == gpus.end()) return Error{where, fmt::format("no GPU {}", text::quoted(parent)), "the id of a GPU"};
  if (refers(at->datum(field))) {
    return Error{where, fmt::format("{} has no value of its own", parent), "the GPU that the value is from"};
  }
  return &*at;
}

}  // namespace

Status resolve_same_chip(std::vector<Gpu>& gpus) {
  struct Found {
    Datum* datum;
    Datum value;
  };
  std::vector<Found> found;
  for (Gpu& gpu : gpus) {
    for (auto& [field, datum] : gpu.data) {
      if (!refers(datum)) continue;
      Result<const Gpu*> parent = parent_of(gpus, gpu, field, datum);
      if (!parent) return parent.error();
      const std::string_view why = std::string_view(datum.source).substr(datum.source.find('\n') + 1);
      found.push_back({&datum, ladder::r3_same_chip(**parent, field, why)});
    }
  }
  for (Found& f : found) *f.datum = std::move(f.value);
  return Nothing{};
}

}  // namespace preflop
