#include <span>

#include "src/base/text.hpp"
#include "src/machine/fields.hpp"
#include "src/view/catalogue.hpp"
#include "src/view/json.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

const char* name_of(Rung rung) {
  static constexpr const char* kNames[] = {"exact", "same_chip", "class_rule", "given", "unknown"};
  return kNames[static_cast<int>(rung)];
}

Json words(const std::vector<std::string>& items) {
  Json out = Json::array();
  for (const std::string& item : items) out.push_back(item);
  return out;
}

template <class Thing>
Json data_json(const Thing& thing, std::span<const MachineField> fields) {
  Json out = Json::object();
  for (const MachineField& field : fields) {
    const Datum& d = thing.datum(field.name);
    out[std::string(field.name)] = {{"value", d.value ? json_number(*d.value) : Json(nullptr)},
                                    {"rung", name_of(d.rung)},
                                    {"source", or_null(d.source)}};
  }
  return out;
}

// One field a line, with where its value comes from below it.
template <class Thing>
std::string data_text(const Thing& thing, std::span<const MachineField> fields) {
  std::string out;
  for (const MachineField& field : fields) {
    const Datum& d = thing.datum(field.name);
    if (d.rung == Rung::unknown && d.source.empty()) continue;
    const std::string value = d.value ? display(*d.value, field.kind) : "unknown";
    out += "  " + std::string(field.name) + std::string(24 - std::min<std::size_t>(field.name.size(), 22), ' ') +
           value + (d.rung == Rung::exact || !d.value ? "" : std::string(" (") + name_of(d.rung) + ")") + "\n";
    for (const std::string& part : text::wrapped(d.source, 74)) out += "      " + part + "\n";
  }
  return out;
}

std::string cell(const Datum& d, FieldKind kind) { return d.value ? display(*d.value, kind) : "-"; }

std::string also(const std::vector<std::string>& aliases, const std::vector<std::string>& notes) {
  std::string out;
  std::string names;
  for (const std::string& alias : aliases) names += (names.empty() ? "" : ", ") + alias;
  if (!names.empty()) {
    for (const std::string& part : text::wrapped("also called " + names, 78)) out += "  " + part + "\n";
  }
  for (const std::string& note : notes) {
    for (const std::string& part : text::wrapped("note: " + note, 78)) out += "  " + part + "\n";
  }
  return out;
}

}  // namespace

std::string gpus_text(const MachineCatalogue& catalogue) {
  using Align = text::Table::Align;
  text::Table table(80);
  table.column("GPU")
      .column("memory", Align::right)
      .column("bandwidth", Align::right)
      .column("bf16, dense", Align::right)
      .column("default platform");
  for (const Gpu& g : catalogue.gpus()) {
    table.row({g.id, cell(g.datum("capacity_bytes"), FieldKind::bytes),
               cell(g.datum("memory_bandwidth"), FieldKind::bandwidth), cell(g.datum("bf16_flops"), FieldKind::flops),
               g.default_platform});
  }
  return table.str() + "\npreflop gpus NAME shows every value with its source; - is not known.\n";
}

Json gpu_json(const Gpu& g) {
  return {{"schema", "preflop.gpu/1"},
          {"id", g.id},
          {"name", g.name},
          {"vendor", g.vendor},
          {"arch", or_null(g.arch)},
          {"memory", or_null(g.memory)},
          {"default_platform", or_null(g.default_platform)},
          {"half_rate_accumulate", g.half_rate_accumulate},
          {"aliases", words(g.aliases)},
          {"notes", words(g.notes)},
          {"data", data_json(g, gpu_fields())}};
}

Json gpus_json(const MachineCatalogue& catalogue) {
  Json gpus = Json::array();
  for (const Gpu& g : catalogue.gpus()) gpus.push_back(gpu_json(g));
  return {{"schema", "preflop.gpus/1"}, {"gpus", gpus}};
}

std::string gpu_text(const Gpu& g) {
  return g.id + ": " + g.name + (g.memory.empty() ? "" : ", " + g.memory) + (g.arch.empty() ? "" : ", " + g.arch) +
         "\n" + also(g.aliases, g.notes) + "\n" + data_text(g, gpu_fields());
}

std::string platforms_text(const MachineCatalogue& catalogue) {
  using Align = text::Table::Align;
  text::Table table(80);
  table.column("platform")
      .column("GPU")
      .column("a node", Align::right)
      .column("scale-up", Align::right)
      .column("scale-out a GPU", Align::right);
  for (const Platform& p : catalogue.platforms()) {
    table.row({p.id, p.gpu, cell(p.datum("gpus_per_node"), FieldKind::number),
               cell(p.datum("scaleup_bandwidth"), FieldKind::bandwidth),
               cell(p.datum("scaleout_bandwidth"), FieldKind::bandwidth)});
  }
  return table.str() +
         "\nBandwidths are per direction; - is not known.\npreflop platforms NAME shows every value with its source.\n";
}

Json platform_json(const Platform& p) {
  return {{"schema", "preflop.platform/1"},
          {"id", p.id},
          {"name", p.name},
          {"gpu", p.gpu},
          {"scaleup_link", or_null(p.scaleup_link)},
          {"scaleout_fabric", or_null(p.scaleout_fabric)},
          {"host_link", or_null(p.host_link)},
          {"local_nvme", or_null(p.local_nvme)},
          {"aliases", words(p.aliases)},
          {"notes", words(p.notes)},
          {"data", data_json(p, platform_fields())}};
}

Json platforms_json(const MachineCatalogue& catalogue) {
  Json platforms = Json::array();
  for (const Platform& p : catalogue.platforms()) platforms.push_back(platform_json(p));
  return {{"schema", "preflop.platforms/1"}, {"platforms", platforms}};
}

std::string platform_text(const Platform& p) {
  std::string links;
  for (const std::string* link : {&p.scaleup_link, &p.scaleout_fabric, &p.host_link}) {
    if (!link->empty()) links += (links.empty() ? "" : "; ") + *link;
  }
  std::string out = p.id + ": " + p.name + ", " + p.gpu + "\n";
  for (const std::string& part : text::wrapped(links, 78)) out += "  " + part + "\n";
  return out + also(p.aliases, p.notes) + "\n" + data_text(p, platform_fields());
}

}  // namespace preflop
