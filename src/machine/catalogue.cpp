#include <fmt/format.h>

#include <algorithm>

#include "preflop/machine.hpp"
#include "src/base/embedded.hpp"
#include "src/base/text.hpp"
#include "src/machine/fields.hpp"
#include "src/machine/ladder.hpp"
#include "src/machine/rows.hpp"

namespace preflop {
namespace {

const Datum& no_datum() {
  static const Datum none{std::nullopt, Rung::unknown, "no such value in the catalogue"};
  return none;
}

template <class Thing>
const Datum& find_datum(const Thing& thing, std::string_view field) {
  const auto at = thing.data.find(field);
  return at == thing.data.end() ? no_datum() : at->second;
}

template <class Thing>
bool is_named(const Thing& thing, std::string_view normalised) {
  if (thing.id == normalised || text::normalise_name(thing.name) == normalised) return true;
  return std::any_of(thing.aliases.begin(), thing.aliases.end(),
                     [&](const std::string& alias) { return text::normalise_name(alias) == normalised; });
}

// Ids first: an alias is suggested only when no id is near.
template <class Thing>
Error unknown(std::string_view kind, std::string_view name, const std::vector<Thing>& things) {
  std::vector<std::string> ids;
  std::vector<std::string> aliases;
  for (const Thing& thing : things) {
    ids.push_back(thing.id);
    aliases.insert(aliases.end(), thing.aliases.begin(), thing.aliases.end());
  }
  const bool near = !text::did_you_mean(name, ids).empty();
  Error error = text::unknown_name("", kind, name, near ? ids : aliases);
  if (error.valid.empty()) error.valid = fmt::format("`preflop {}s` lists them", kind == "GPU" ? "gpu" : kind);
  return error;
}

template <class Thing>
Result<const Thing*> find_thing(std::string_view kind, std::string_view name, const std::vector<Thing>& things) {
  const std::string wanted = text::normalise_name(name);
  const Thing* found = nullptr;
  if (!wanted.empty()) {
    for (const Thing& thing : things) {
      if (!is_named(thing, wanted)) continue;
      if (found != nullptr) {
        return Error{"", fmt::format("{} names two {}s: {} and {}", text::quoted(name), kind, found->id, thing.id),
                     "write the one that is meant"};
      }
      found = &thing;
    }
  }
  if (found == nullptr) return unknown(kind, name, things);
  return found;
}

template <class Thing>
Status all_named(std::string_view file, const std::vector<Thing>& things) {
  for (const Thing& thing : things) {
    if (thing.name.empty()) return Error{std::string(file), fmt::format("{} has no row `name`", thing.id), ""};
  }
  return Nothing{};
}

}  // namespace

const Datum& Gpu::datum(std::string_view field) const { return find_datum(*this, field); }
const Datum& Platform::datum(std::string_view field) const { return find_datum(*this, field); }

Result<MachineCatalogue> MachineCatalogue::load(std::string_view overlay_gpus_csv,
                                                std::string_view overlay_platforms_csv) {
  MachineCatalogue out;
  Result<SourceTable> sources = read_sources(embedded("sources.csv"), "sources.csv");
  if (!sources) return sources.error();
  out.gpus_.reserve(64);
  out.platforms_.reserve(128);
  Status status = read_gpus(embedded("gpus.csv"), "gpus.csv", *sources, out.gpus_);
  if (status) status = read_platforms(embedded("platforms.csv"), "platforms.csv", *sources, out.platforms_);
  // An overlay's sources are its own texts; the keys of the built-in table mean nothing there.
  if (status && !overlay_gpus_csv.empty()) status = read_gpus(overlay_gpus_csv, "gpus.csv", {}, out.gpus_);
  if (status && !overlay_platforms_csv.empty()) {
    status = read_platforms(overlay_platforms_csv, "platforms.csv", {}, out.platforms_);
  }
  if (status) status = resolve_same_chip(out.gpus_);
  if (status) status = all_named("gpus.csv", out.gpus_);
  if (status) status = all_named("platforms.csv", out.platforms_);
  if (!status) return status.error();
  for (Gpu& gpu : out.gpus_) ladder::complete(gpu);
  for (Platform& platform : out.platforms_) {
    for (const MachineField& field : platform_fields()) {
      platform.data.emplace(field.name, Datum{std::nullopt, Rung::unknown, "not stated in the documents read"});
    }
  }
  return out;
}

Result<const Gpu*> MachineCatalogue::gpu(std::string_view name) const { return find_thing("GPU", name, gpus_); }

Result<const Platform*> MachineCatalogue::platform(std::string_view name) const {
  return find_thing("platform", name, platforms_);
}

}  // namespace preflop
