#include "src/machine/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/machine/fields.hpp"

namespace preflop {
namespace {

constexpr std::string_view kOn = "--on";
constexpr const char* kGrammar =
    "COUNTxGPU, COUNTxPLATFORM or COUNTxGPU/PER_NODE, such as 64xh100-sxm; a platform alone is one node; 1x80GB is "
    "memory only";

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

bool digit(char c) { return c >= '0' && c <= '9'; }

// A GPU or a platform.
struct Named {
  const Gpu* gpu = nullptr;
  const Platform* platform = nullptr;
  const std::string& id() const { return gpu != nullptr ? gpu->id : platform->id; }
};

// Everything that goes by a name: one, unless an overlay reuses names.
std::vector<Named> named(const MachineCatalogue& catalogue, std::string_view name) {
  const std::string wanted = text::normalise_name(name);
  std::vector<Named> out;
  if (wanted.empty()) return out;
  const auto hit = [&](const auto& thing) {
    if (thing.id == wanted || text::normalise_name(thing.name) == wanted) return true;
    return std::any_of(thing.aliases.begin(), thing.aliases.end(),
                       [&](const std::string& alias) { return text::normalise_name(alias) == wanted; });
  };
  for (const Gpu& gpu : catalogue.gpus()) {
    if (hit(gpu)) out.push_back({&gpu, nullptr});
  }
  for (const Platform& platform : catalogue.platforms()) {
    if (hit(platform)) out.push_back({nullptr, &platform});
  }
  return out;
}

Error at_on(Error error) {
  error.where = kOn;
  return error;
}

Error unknown_machine(const MachineCatalogue& catalogue, std::string_view name) {
  std::vector<std::string> names;
  for (const Gpu& gpu : catalogue.gpus()) names.push_back(gpu.id);
  for (const Platform& platform : catalogue.platforms()) names.push_back(platform.id);
  if (text::did_you_mean(name, names).empty()) {
    for (const Gpu& gpu : catalogue.gpus()) names.insert(names.end(), gpu.aliases.begin(), gpu.aliases.end());
  }
  Error error = text::unknown_name(kOn, "GPU or platform", name, names);
  if (error.valid.empty()) error.valid = "`preflop gpus` and `preflop platforms` list them";
  return error;
}

// "80GB", "79.1 GiB": an amount of memory in place of a name. Names with digits first ("3090") are not.
bool looks_like_memory(std::string_view s) {
  std::size_t i = 0;
  while (i < s.size() && (digit(s[i]) || s[i] == '.')) ++i;
  if (i == 0) return false;
  std::string unit = text::normalise_name(s.substr(i));
  for (const char* known :
       {"b", "k", "kb", "kib", "m", "mb", "mib", "g", "gb", "gib", "t", "tb", "tib", "p", "pb", "pib"}) {
    if (unit == known) return true;
  }
  return false;
}

// The pieces of "COUNTxNAME/PER_NODE"; absent ones are empty optionals.
struct Spec {
  std::optional<std::string_view> count;
  std::string_view name;
  std::optional<std::string_view> per_node;
  std::vector<Named> machines;  // that go by the name
};

Spec split(std::string_view text, const MachineCatalogue& catalogue) {
  Spec spec;
  // Names may hold an x, a slash or begin with a count ("mi300x", "V100 SXM2/3 32GB", "8x MI300X
  // platform"), so the longest known name wins at every step.
  const auto known = [&](std::string_view name) {
    spec.name = name;
    spec.machines = named(catalogue, name);
    return !spec.machines.empty();
  };
  if (known(text)) return spec;
  const std::size_t x = text.find_first_of("xX");
  const bool numeric = digit(text[0]) || text[0] == '-' || text[0] == '+' || text[0] == '.';
  if (x != std::string_view::npos && (numeric || x == 0)) {
    spec.count = trimmed(text.substr(0, x));
    if (known(trimmed(text.substr(x + 1)))) return spec;
  }
  const std::size_t slash = spec.name.rfind('/');
  if (slash != std::string_view::npos) {
    spec.per_node = trimmed(spec.name.substr(slash + 1));
    known(trimmed(spec.name.substr(0, slash)));
  }
  return spec;
}

Result<Cluster> memory_cluster(const Spec& spec, std::int64_t gpus, std::optional<std::int64_t> per_node) {
  Result<Bytes<double>> bytes = parse_bytes(spec.name, kOn);
  if (!bytes) return bytes.error();
  const double capacity = bytes->number();
  const MachineField* field = find_field(gpu_fields(), "capacity_bytes");
  if (!(capacity >= field->low && capacity <= field->high)) {
    return Error{std::string(kOn), fmt::format("{} is not the memory of one accelerator", text::quoted(spec.name)),
                 "1 GB to 10 TB"};
  }
  const std::string why = fmt::format("--on {} gives memory only", spec.name);
  Gpu gpu;
  gpu.id = std::string(spec.name);
  gpu.name = fmt::format("an accelerator with {}", spec.name);
  for (const MachineField& f : gpu_fields()) gpu.data.emplace(f.name, Datum{std::nullopt, Rung::unknown, why});
  gpu.data["capacity_bytes"] = Datum{capacity, Rung::given, fmt::format("given: --on {}", spec.name)};
  Result<Cluster> cluster =
      build_cluster(gpu, Platform{}, gpus, per_node ? *per_node : gpus, kOn, fmt::format("{}x{}", gpus, spec.name));
  if (cluster) cluster->memory_only = true;
  return cluster;
}

Result<Cluster> named_cluster(const MachineCatalogue& catalogue, const Spec& spec, std::optional<std::int64_t> gpus,
                              std::optional<std::int64_t> per_node) {
  const bool by_gpu = spec.machines.front().gpu != nullptr;
  const Gpu* gpu = spec.machines.front().gpu;
  const Platform* platform = spec.machines.front().platform;
  if (by_gpu) {
    Result<const Platform*> found = catalogue.platform(gpu->default_platform);
    if (!found) return at_on(found.error());
    platform = *found;
  } else {
    Result<const Gpu*> found = catalogue.gpu(platform->gpu);
    if (!found) return at_on(found.error());
    gpu = *found;
  }
  if (!gpus) {
    const Datum& node = platform->datum("gpus_per_node");
    gpus = by_gpu ? 1 : static_cast<std::int64_t>(per_node ? *per_node : node.value.value_or(0));
    if (*gpus == 0) {
      return Error{std::string(kOn), fmt::format("how many GPUs a node of {} has is unknown", platform->id),
                   fmt::format("give a count, such as 16x{}", platform->id)};
    }
  }
  Result<Cluster> cluster =
      build_cluster(*gpu, *platform, *gpus, per_node, kOn, fmt::format("{}x{}", *gpus, spec.name));
  if (cluster && by_gpu) cluster->assumed.insert(cluster->assumed.begin(), "platform=" + platform->id);
  if (cluster || by_gpu) return cluster;
  // Who names a platform may count its nodes.
  Error error = cluster.error();
  const double own = platform->datum("gpus_per_node").value.value_or(0);
  const std::int64_t node = per_node ? *per_node : static_cast<std::int64_t>(own);
  if (node > 0 && *gpus <= kMaxGpus / node)
    error.valid = fmt::format("{}x{}{} for {} nodes, {}", *gpus * node, spec.name,
                              per_node ? fmt::format("/{}", *per_node) : "", *gpus, error.valid);
  return error;
}

// The nearest things that would be right: "8 or 16 GPUs, or another node size, such as 12xh100-sxm/6".
std::string fitting_counts(std::int64_t gpus, std::int64_t node, std::string_view spelling) {
  std::int64_t divisor = std::min(node, gpus);
  while (gpus % divisor != 0) --divisor;
  const std::int64_t below = gpus / node * node;
  const std::string counts =
      below + node <= kMaxGpus ? fmt::format("{} or {}", below, below + node) : fmt::format("{}", below);
  const std::string node_size =
      spelling.empty() ? fmt::format("gpus_per_node = {}", divisor) : fmt::format("{}/{}", spelling, divisor);
  return fmt::format("{} GPUs, or another node size, such as {}", counts, node_size);
}

bool same_values(const std::map<std::string, Datum, std::less<>>& a,
                 const std::map<std::string, Datum, std::less<>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.value == y.second.value;
  });
}

const char* rung_name(Rung rung) { return rung == Rung::same_chip ? "same chip" : "class rule"; }

}  // namespace

const Datum& Cluster::datum(std::string_view field) const {
  const Datum& own = platform.datum(field);
  if (own.value) return own;
  const Datum& chip = gpu.datum(field);
  return chip.value || find_field(gpu_fields(), field) != nullptr ? chip : own;
}

bool same_machine(const Cluster& a, const Cluster& b) {
  // Less than a node is one node, whose size says nothing.
  const bool nodes = a.gpus_per_node == b.gpus_per_node ||
                     (a.gpus != b.gpus && std::min(a.gpus, b.gpus) < std::max(a.gpus_per_node, b.gpus_per_node));
  return nodes && a.gpu.id == b.gpu.id && a.platform.id == b.platform.id && same_values(a.gpu.data, b.gpu.data) &&
         same_values(a.platform.data, b.platform.data);
}

bool same_cluster(const Cluster& a, const Cluster& b) {
  return a.gpus == b.gpus && a.gpus_per_node == b.gpus_per_node && same_machine(a, b);
}

std::string machine_name(const Cluster& of, const std::vector<const Cluster*>& among) {
  const auto gpu = [](const Cluster& c) { return c.gpu.id; };
  const auto platform = [](const Cluster& c) { return c.platform.id.empty() ? c.gpu.id : c.platform.id; };
  const auto node = [&](const Cluster& c) { return fmt::format("{}/{}", platform(c), c.gpus_per_node); };
  const auto tells = [&](auto&& name) {
    return std::none_of(among.begin(), among.end(),
                        [&](const Cluster* other) { return !same_machine(*other, of) && name(*other) == name(of); });
  };
  if (tells(gpu)) return gpu(of);
  if (tells(platform)) return platform(of);
  if (tells(node)) return node(of);
  // Equal names for other numbers: which of them it is.
  int at = 1;
  for (const Cluster* other : among) {
    if (same_machine(*other, of)) break;
    if (node(*other) == node(of)) ++at;
  }
  return fmt::format("{} ({})", node(of), at);
}

void add_assumed_rung(Cluster& cluster, std::string_view field) {
  const Datum& datum = cluster.datum(field);
  if (!datum.value || (datum.rung != Rung::same_chip && datum.rung != Rung::class_rule)) return;
  const std::string begin = std::string(field) + "=";
  for (const std::string& line : cluster.assumed) {
    if (line.starts_with(begin)) return;
  }
  const MachineField* known = find_field(gpu_fields(), field);
  if (known == nullptr) known = find_field(platform_fields(), field);
  if (known == nullptr) return;
  const std::string why = datum.source.substr(0, datum.source.find(';'));
  cluster.assumed.push_back(
      fmt::format("{}{} ({}: {})", begin, display(*datum.value, known->kind), rung_name(datum.rung), why));
}

void add_assumed_rungs(Cluster& cluster) {
  const bool has_bf16 = cluster.datum("bf16_flops").value.has_value();
  std::vector<std::string_view> fields = {"capacity_bytes", "memory_bandwidth", has_bf16 ? "bf16_flops" : "fp16_flops"};
  if (cluster.gpus > 1) fields.push_back("scaleup_bandwidth");
  if (cluster.nodes() > 1) fields.push_back("scaleout_bandwidth");
  for (const std::string_view name : fields) add_assumed_rung(cluster, name);
}

Result<std::int64_t> read_size(std::string_view text, std::string_view where, std::string_view what) {
  const auto error = [&](std::string why) {
    return Error{std::string(where), std::move(why),
                 fmt::format("a whole number from 1 to {}", text::grouped(kMaxGpus))};
  };
  if (text.empty()) return error(fmt::format("the {} is missing", what));
  if (text.find("..") != std::string_view::npos) {
    return Error{std::string(where), fmt::format("{} {} is a range", what, text::quoted(text)),
                 "ranges LO..HI are only in plan; here one number"};
  }
  if (text.front() == '-') return error(fmt::format("the {} {} is negative", what, text::quoted(text)));
  Result<Count> count = parse_count(text, where);
  if (!count) return error(fmt::format("the {} {} is not a whole number", what, text::quoted(text)));
  if (count->get() == 0) return error(fmt::format("the {} is zero", what));
  if (count->get() > kMaxGpus) return error(fmt::format("the {} {} is too large", what, text::quoted(text)));
  return count->get();
}

Result<Cluster> build_cluster(const Gpu& gpu, const Platform& platform, std::int64_t gpus,
                              std::optional<std::int64_t> per_node, std::string_view where, std::string_view spelling) {
  Cluster cluster;
  cluster.gpu = gpu;
  cluster.platform = platform;
  cluster.gpus = gpus;
  const Datum& own = platform.datum("gpus_per_node");
  const std::int64_t node = per_node ? *per_node : own.value ? static_cast<std::int64_t>(*own.value) : gpus;
  cluster.gpus_per_node = std::min(node, gpus);
  if (gpus > node && gpus % node != 0) {
    return Error{std::string(where), fmt::format("{} GPUs do not fill nodes of {}", gpus, node),
                 fitting_counts(gpus, node, spelling)};
  }
  if (!per_node && !own.value && gpus > 1) {
    cluster.assumed.push_back(fmt::format("gpus_per_node={} (not known for {}: taken as one node)", gpus, platform.id));
  } else if (!per_node && node == 1 && gpus > 1) {
    const std::string instead =
        spelling.empty() ? fmt::format("gpus_per_node = {}", gpus) : fmt::format("{}/{}", spelling, gpus);
    cluster.assumed.push_back(fmt::format("gpus_per_node=1 ({} is one GPU; {} is one node)", platform.id, instead));
  }
  // Where the scale-up domain is the node, a smaller node is a smaller domain.
  const Datum& domain = platform.datum("scaleup_domain");
  if (per_node && own.value && domain.value && *domain.value <= *own.value &&
      static_cast<double>(*per_node) < *domain.value) {
    cluster.platform.data["scaleup_domain"] =
        Datum{static_cast<double>(*per_node), Rung::given, fmt::format("given: nodes of {}", *per_node)};
  }
  add_assumed_rungs(cluster);
  return cluster;
}

namespace {

// "64xb200,128xh100-sxm": another COUNTx after a comma. Names of GPUs have commas, too.
bool counts_again(std::string_view text) {
  for (std::size_t at = text.find(','); at != std::string_view::npos; at = text.find(',', at + 1)) {
    const std::string_view rest = trimmed(text.substr(at + 1));
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits > 0 && digits < rest.size() && rest[digits] == 'x') return true;
  }
  return false;
}

}  // namespace

Result<Cluster> MachineCatalogue::cluster(std::string_view text) const {
  const std::string_view trimmed_text = trimmed(text);
  if (trimmed_text.empty()) return Error{std::string(kOn), "no cluster is given", kGrammar};
  if (trimmed_text.size() > 200)
    return Error{std::string(kOn), "the cluster's text is longer than 200 bytes", kGrammar};
  const Spec spec = split(trimmed_text, *this);
  if (counts_again(trimmed_text))
    return Error{std::string(kOn), text::quoted(trimmed_text) + " is more than one cluster",
                 "one; plan compares several: --on A --on B"};
  if (spec.name.empty()) {
    return Error{std::string(kOn), fmt::format("{} names no GPU or platform", text::quoted(trimmed_text)), kGrammar};
  }
  std::optional<std::int64_t> gpus;
  std::optional<std::int64_t> per_node;
  if (spec.count) {
    Result<std::int64_t> read = read_size(*spec.count, kOn, "count");
    if (!read) return read.error();
    gpus = *read;
  }
  if (spec.per_node) {
    Result<std::int64_t> read = read_size(*spec.per_node, kOn, "node size");
    if (!read) return read.error();
    per_node = *read;
  }
  if (spec.machines.size() > 1) {
    return Error{
        std::string(kOn),
        fmt::format("{} names both {} and {}", text::quoted(spec.name), spec.machines[0].id(), spec.machines[1].id()),
        "write the one that is meant"};
  }
  if (!spec.machines.empty()) return named_cluster(*this, spec, gpus, per_node);
  if (looks_like_memory(spec.name)) return memory_cluster(spec, gpus.value_or(1), per_node);
  return unknown_machine(*this, spec.name);
}

}  // namespace preflop
