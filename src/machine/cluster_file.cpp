// A cluster from TOML; the keys are those of docs/cluster-files.md.
#include <fmt/format.h>

#include "preflop/machine.hpp"
#include "src/base/text.hpp"
#include "src/base/toml_read.hpp"
#include "src/machine/cluster.hpp"
#include "src/machine/fields.hpp"
#include "src/machine/ladder.hpp"

namespace preflop {
namespace {

// "79.19 GiB" is a number and a unit; a bare number is one of a field without dimension.
Result<double> read_value(const TomlTable& table, const MachineField& field) {
  const std::string where = table.where(field.name);
  const auto error = [&](std::string what, std::string valid) {
    return Error{where, std::move(what), std::move(valid)};
  };
  Result<std::string> text = table.scalar(field.name);
  if (!text) return text.error();
  std::string unit = "1";
  const std::size_t space = text->find(' ');
  if (space != std::string::npos) {
    unit = text->substr(space + 1);
    text->resize(space);
  } else if (field.kind != FieldKind::number) {
    return error(fmt::format("{} = {} has no unit", field.name, text::quoted(*text)),
                 fmt::format("a number, a space and a unit in quotes, such as \"{}\"", display(field.low, field.kind)));
  }
  Result<double> si = to_si(*text, unit, field.kind);
  if (!si) return error(fmt::format("{}: {}", field.name, si.error().what), si.error().valid);
  if (!(*si >= field.low && *si <= field.high)) {
    return error(fmt::format("{} is out of bounds", field.name),
                 fmt::format("{} to {}", display(field.low, field.kind), display(field.high, field.kind)));
  }
  if (field.kind == FieldKind::number && static_cast<double>(static_cast<std::int64_t>(*si)) != *si) {
    return error(fmt::format("{} = {} is not whole", field.name, *si), "a whole number");
  }
  return *si;
}

// Reads every field of `fields` that the table has into `data`, as given by the file.
Status read_values(const TomlTable& table, std::span<const MachineField> fields,
                   std::map<std::string, Datum, std::less<>>& data) {
  Result<std::optional<std::string>> source = table.find<std::string>("source");
  if (!source) return source.error();
  for (const MachineField& field : fields) {
    if (!table.has(field.name)) continue;
    Result<double> value = read_value(table, field);
    if (!value) return value.error();
    std::string from = "given: " + table.where(field.name);
    if (*source) from += "; " + **source;
    data.insert_or_assign(std::string(field.name), Datum{*value, Rung::given, std::move(from)});
  }
  return Nothing{};
}

Status read_texts(const TomlTable& table, std::initializer_list<std::pair<const char*, std::string*>> texts) {
  for (const auto& [key, place] : texts) {
    Result<std::optional<std::string>> text = table.find<std::string>(key);
    if (!text) return text.error();
    if (*text) *place = **text;
  }
  return Nothing{};
}

Status only(const TomlTable& table, std::vector<std::string> keys, std::span<const MachineField> fields) {
  for (const MachineField& field : fields) keys.emplace_back(field.name);
  return table.only_keys(keys);
}

// What `base` names, copied; an empty Thing with the id "custom" where the table has none.
template <class Thing, class Find>
Result<Thing> base_of(const TomlTable& table, std::string_view key, Find&& find) {
  if (!table.has(key)) {
    Thing custom;
    custom.id = custom.name = "custom";
    return custom;
  }
  Result<std::string> name = table.get<std::string>(key);
  if (!name) return name.error();
  auto found = find(*name);
  if (!found) return Error{table.where(key), found.error().what, found.error().valid};
  return **found;
}

// A product that was measured above the peak is one of the two misread. GeForce cards run above their boost clock.
Status measured_below_peak(const TomlTable& table, const Gpu& gpu) {
  constexpr double kMost = 1.2;
  for (const auto& [measured, peak] :
       {std::pair("matmul_bf16_flops", "bf16_flops"), std::pair("matmul_fp8_flops", "fp8_flops"),
        std::pair("matmul_fp4_flops", "fp4_flops")}) {
    const Datum &fast = gpu.datum(measured), &most = gpu.datum(peak);
    if (table.has(measured) && fast.value && most.value && *fast.value > kMost * *most.value)
      return Error{table.where(measured), std::string(measured) + " is above " + peak,
                   "what products reach, at most the dense peak of " + text::scientific(*most.value) + " FLOP/s"};
  }
  return Nothing{};
}

Result<Gpu> read_gpu(const TomlTable& root, const MachineCatalogue& catalogue) {
  const auto find = [&](const std::string& name) { return catalogue.gpu(name); };
  if (!root.has("gpu")) return Error{root.where(), "no gpu is given", "gpu = \"h100-sxm\", or a table [gpu]"};
  Result<TomlTable> table = root.get<TomlTable>("gpu");
  if (!table) return base_of<Gpu>(root, "gpu", find);  // a name
  Status status = only(*table, {"base", "name", "vendor", "arch", "memory", "source"}, gpu_fields());
  if (!status) return status.error();
  Result<Gpu> gpu = base_of<Gpu>(*table, "base", find);
  if (!gpu) return gpu;
  status = read_values(*table, gpu_fields(), gpu->data);
  if (status) {
    status = read_texts(
        *table, {{"name", &gpu->name}, {"vendor", &gpu->vendor}, {"arch", &gpu->arch}, {"memory", &gpu->memory}});
  }
  if (status) status = measured_below_peak(*table, *gpu);
  if (!status) return status.error();
  if (table->has("name")) gpu->id = text::normalise_name(gpu->name);
  if (gpu->id.empty()) return Error{table->where("name"), "a name without a letter or digit", ""};
  ladder::complete(*gpu);
  return gpu;
}

// `named` is false where the platform was not given and the GPU's own is taken.
Result<Platform> read_platform(const TomlTable& root, const Gpu& gpu, const MachineCatalogue& catalogue, bool& named) {
  const auto find = [&](const std::string& name) { return catalogue.platform(name); };
  named = root.has("platform");
  if (!named) {
    Result<const Platform*> own = catalogue.platform(gpu.default_platform);
    if (own) return **own;
    named = true;
    return base_of<Platform>(root, "platform", find);  // custom, with nothing known
  }
  Result<TomlTable> table = root.get<TomlTable>("platform");
  if (!table) return base_of<Platform>(root, "platform", find);
  Status status = only(*table, {"base", "name", "scaleup_link", "scaleout_fabric", "host_link", "local_nvme", "source"},
                       platform_fields());
  if (!status) return status.error();
  Result<Platform> platform = base_of<Platform>(*table, "base", find);
  if (!platform) return platform;
  status = read_values(*table, platform_fields(), platform->data);
  if (status) {
    status = read_texts(*table, {{"name", &platform->name},
                                 {"scaleup_link", &platform->scaleup_link},
                                 {"scaleout_fabric", &platform->scaleout_fabric},
                                 {"host_link", &platform->host_link},
                                 {"local_nvme", &platform->local_nvme}});
  }
  if (!status) return status.error();
  if (table->has("name")) platform->id = text::normalise_name(platform->name);
  if (platform->id.empty()) return Error{table->where("name"), "a name without a letter or digit", ""};
  return platform;
}

Result<std::optional<std::int64_t>> read_whole(const TomlTable& root, std::string_view key) {
  if (!root.has(key)) return std::optional<std::int64_t>();
  Result<std::string> text = root.scalar(key);
  if (!text) return text.error();
  Result<std::int64_t> size = read_size(*text, root.where(key), key);
  if (!size) return size.error();
  return std::optional<std::int64_t>(*size);
}

}  // namespace

Result<Cluster> cluster_from_toml(std::string_view text, std::string_view file, const MachineCatalogue& catalogue) {
  Result<TomlTable> root = TomlTable::parse(text, file);
  if (!root) return root.error();
  Status status = root->only_keys({"gpus", "gpus_per_node", "gpu", "platform"});
  if (!status) return status.error();
  Result<Gpu> gpu = read_gpu(*root, catalogue);
  if (!gpu) return gpu.error();
  bool named = true;
  Result<Platform> platform = read_platform(*root, *gpu, catalogue, named);
  if (!platform) return platform.error();
  Result<std::optional<std::int64_t>> gpus = read_whole(*root, "gpus");
  if (!gpus) return gpus.error();
  Result<std::optional<std::int64_t>> per_node = read_whole(*root, "gpus_per_node");
  if (!per_node) return per_node.error();
  if (!*gpus) return Error{root->where(), "no gpus: how many accelerators the cluster has", "gpus = 64"};
  Result<Cluster> cluster = build_cluster(*gpu, *platform, **gpus, *per_node, root->where("gpus"), "");
  if (cluster && !named) cluster->assumed.insert(cluster->assumed.begin(), "platform=" + platform->id);
  return cluster;
}

}  // namespace preflop
