// Stalls, evaluations, batch ramps, prices, power: keys to settings.
#include <array>

#include "src/adapt/recipe_keys.hpp"
#include "src/adapt/run_reader.hpp"
#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"

namespace preflop {

namespace {

// X%, TIME/STEPS, or none.
Status read_evaluation(RunReader& in) {
  RunSettings& run = in.run();
  const std::string* text = in.given("evaluation");
  const std::size_t slash = text == nullptr ? std::string::npos : text->find('/');
  if (text != nullptr && *text == "none") {
    run.evaluation = {0, "--evaluation"};
    return Nothing{};
  }
  if (slash == std::string::npos) return in.share("evaluation", run.evaluation);
  const auto takes = parse_duration(std::string_view(*text).substr(0, slash), "--evaluation");
  if (!takes) return takes.error();
  const auto every = parse_count(std::string_view(*text).substr(slash + 1), "--evaluation");
  if (!every) return every.error();
  if (every->get() == 0) return Error{"--evaluation", "no steps between evaluations", "TIME/STEPS, e.g. 12m/1000"};
  run.evaluation_takes = Sourced{takes->number(), "--evaluation"};
  run.evaluation_every = Sourced{every->real(), "--evaluation"};
  return Nothing{};
}

// The parts of A:B:C. `valid` shows how it is written.
Result<std::array<std::string_view, 3>> three_parts(std::string_view text, const char* where, const char* valid) {
  const std::size_t first = text.find(':'), last = text.rfind(':');
  if (first == last || text.find(':', first + 1) != last)
    return Error{where, text::quoted(text) + " has not three parts", valid};
  return std::array{text.substr(0, first), text.substr(first + 1, last - first - 1), text.substr(last + 1)};
}

// START:INCREMENT:SAMPLES, as Megatron-LM's --rampup-batch-size.
Status read_ramp(RunReader& in) {
  constexpr const char* kWhere = "--batch-ramp";
  const std::string* text = in.given("batch_ramp");
  if (text == nullptr) return Nothing{};
  const auto words = three_parts(*text, kWhere, "START:INCREMENT:SAMPLES");
  if (!words) return words.error();
  std::array<std::int64_t, 3> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto count = parse_count((*words)[i], kWhere);
    if (!count) return count.error();
    if (count->get() == 0) return Error{kWhere, "a part that is 0", "START:INCREMENT:SAMPLES, each 1 or more"};
    parts[i] = count->get();
  }
  in.run().ramp = BatchRamp{parts[0], parts[1], parts[2]};
  return Nothing{};
}

// LOW:MEDIAN:HIGH, or none.
Status read_practice(RunReader& in) {
  constexpr const char* kWhere = "--practice";
  Practice& out = in.run().practice;
  const std::string* text = in.given("practice");
  if (text == nullptr) {
    if (in.recipe().mfu) return Nothing{};
    const Sourced &low = in.data().value("practice_low"), &high = in.data().value("practice_high");
    const Sourced& median = in.data().value("practice_median");
    out = {low.value, median.value, high.value, median.source};
    in.assume("practice", shortest(out.low) + ":" + shortest(out.median) + ":" + shortest(out.high), out.source);
  } else if (*text == "none") {
    out.source = kWhere;
    return Nothing{};
  } else {
    const auto words = three_parts(*text, kWhere, "LOW:MEDIAN:HIGH, e.g. 0.9:1:1.2, or none");
    if (!words) return words.error();
    std::array<double, 3> parts{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto factor = parse_real((*words)[i], kWhere);
      if (!factor) return factor.error();
      parts[i] = *factor;
    }
    out = {parts[0], parts[1], parts[2], kWhere};
  }
  constexpr double kMost = 100;
  if (out.low > 0 && out.low <= out.median && out.median <= out.high && out.high <= kMost) return Nothing{};
  return Error{kWhere, "factors that do not rise, or out of range", "0 < LOW <= MEDIAN <= HIGH <= 100"};
}

// SEQ:TOKENS, one or more with commas: 131072:800B.
Status read_then(RunReader& in) {
  constexpr const char* kWhere = "--then-seq";
  const std::string* text = in.given("then_seq");
  if (text == nullptr) return Nothing{};
  for (const std::string& part : parts_of(*text)) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos)
      return Error{kWhere, text::quoted(part) + " has not two parts", "SEQ:TOKENS, e.g. 131072:800B"};
    const auto seq = parse_count(std::string_view(part).substr(0, colon), kWhere);
    if (!seq) return seq.error();
    const auto tokens = parse_tokens(std::string_view(part).substr(colon + 1), kWhere);
    if (!tokens) return tokens.error();
    if (seq->get() == 0 || !(tokens->real() >= seq->real()))
      return Error{kWhere, "a phase of no sequence at all", "at least as many tokens as a sequence has"};
    in.run().then.push_back({seq->get(), tokens->real()});
  }
  return Nothing{};
}

// What the checkpoints cost that are kept.
Status read_storage(RunReader& in) {
  constexpr double kTeraMonth = 1e12 * 86400 * 365 / 12;  // bytes x seconds
  RunSettings& run = in.run();
  if (const std::string* text = in.given("keep")) {
    const auto kept = parse_count(*text, "--keep");
    if (!kept) return kept.error();
    if (run.saving == Saving::none) return Error{"--keep", "no checkpoints are written", "leave it out"};
    run.kept = kept->real();
  } else if (run.saving != Saving::none) {
    in.assume("keep", "1", "the newest checkpoint; no average is published");
  }
  Sourced each = in.data().value("storage");
  if (const std::string* text = in.given("storage_price")) {
    const auto usd = parse_money(*text, "--storage-price");
    if (!usd) return usd.error();
    each = {usd->number() / kTeraMonth, "--storage-price"};
  } else if (run.saving != Saving::none) {
    in.assume("storage_price", text::fixed(each.value * kTeraMonth, 0), each.source);
  }
  run.storage = each;
  return Nothing{};
}

Status read_price(RunReader& in) {
  const std::string* text = in.given("price");
  const std::string& gpu = in.cluster().gpu.id;
  const RunData& data = in.data();
  const auto take = [&](const Price& p) {
    in.run().price = Sourced{p.usd, p.kind + " price of " + p.date + ": " + p.source};
    in.assume("price", shortest(p.usd), p.kind + ", " + p.date + "; " + p.source);
  };
  if (text == nullptr) {
    if (const Price* p = data.price(gpu, "on-demand")) take(*p);
    return Nothing{};
  }
  if ((*text)[0] >= 'a' && (*text)[0] <= 'z') {
    if (*text == "spot" && data.price(gpu, *text) == nullptr)
      return Error{"--price", "no dated spot price of " + gpu + " is known",
                   "dollars per GPU-hour, with --eviction TIME"};
    if (const Price* p = data.price(gpu, *text)) {
      take(*p);
      return Nothing{};
    }
    std::vector<std::string> kinds;
    for (const Price& p : data.prices) {
      if (p.gpu == gpu) kinds.push_back(p.kind);
    }
    return Error{"--price", "no " + text::quoted(*text) + " price of " + gpu + " is known",
                 "dollars per GPU-hour" + (kinds.empty() ? "" : ", " + text::list(kinds))};
  }
  const auto usd = parse_money(*text, "--price");
  if (!usd) return usd.error();
  in.run().price = Sourced{usd->number(), "--price"};
  return Nothing{};
}

// Watts of one GPU and its share of the host while training.
Status read_watts(RunReader& in) {
  RunSettings& run = in.run();
  if (const std::string* text = in.given("watts")) {
    const auto watts = parse_real(*text, "--watts");
    if (!watts) return watts.error();
    if (*watts <= 0) return Error{"--watts", "a GPU without power", "watts of one GPU and its share of the host"};
    run.watts = Sourced{*watts, "--watts"};
    return Nothing{};
  }
  const Cluster& c = in.cluster();
  const Datum& node = c.platform.datum("node_watts");
  const Datum& size = c.platform.datum("gpus_per_node");
  const Datum& tdp = c.datum("tdp_watts");
  if (node.value && size.value) {
    const Sourced& load = in.data().value("node_load");
    run.watts = Sourced{*node.value / *size.value * load.value,
                        shortest(load.value) + " of the nameplate of " + c.platform.id + ": " + load.source};
  } else if (tdp.value) {
    const Sourced& factor = in.data().value("watts_per_tdp");
    run.watts = Sourced{*tdp.value * factor.value, shortest(factor.value) + " x TDP, host included: " + factor.source};
  }
  if (run.watts) in.assume("watts", text::fixed(run.watts->value, 0), run.watts->source);
  return Nothing{};
}

Status read_grid(RunReader& in) {
  const std::string* text = in.given("grid");
  const std::string wanted = text == nullptr ? "world" : *text;
  if (text != nullptr && wanted[0] >= '0' && wanted[0] <= '9') {
    constexpr double kGrams = 1e-3;
    const auto grams = parse_real(wanted, "--grid");
    if (!grams) return grams.error();
    in.run().grid = {*grams * kGrams, "--grid"};
    return Nothing{};
  }
  const Place* place = in.data().place(wanted);
  if (place == nullptr) {
    std::vector<std::string> names;
    for (const Place& p : in.data().places) names.push_back(p.name);
    Error error = text::unknown_name("--grid", "place", wanted, names);
    error.valid = "grams of CO2e per kWh, or " + text::list(names);
    return error;
  }
  in.run().grid = {place->kg_per_kwh, place->source};
  if (text == nullptr)
    in.assume("grid", "world", text::fixed(place->kg_per_kwh * 1000, 0) + " g/kWh, " + place->source);
  return Nothing{};
}

Status read_limits(RunReader& in) {
  RunSettings& run = in.run();
  std::optional<Sourced> within;
  if (Status s = in.optional_seconds("within", within); !s) return s;
  if (within) run.within = within->value;
  if (const std::string* text = in.given("budget")) {
    const auto usd = parse_money(*text, "--budget");
    if (!usd) return usd.error();
    if (usd->number() <= 0) return Error{"--budget", "no money at all", "more than 0"};
    if (!run.price)
      return Error{"--budget", "no dated price of " + in.cluster().gpu.id + " is known", "--price USD as well"};
    run.budget = usd->number();
  }
  return Nothing{};
}

}  // namespace

Status read_overheads(RunReader& in) {
  Status s = read_evaluation(in);
  if (s) s = in.share("data_stalls", in.run().data_stalls);
  if (s) s = in.share("stragglers", in.run().stragglers);
  if (s) s = read_practice(in);
  if (s) s = read_ramp(in);
  if (s) s = read_then(in);
  return s;
}

Status read_money(RunReader& in) {
  RunSettings& run = in.run();
  Status s = read_price(in);
  if (s) s = read_storage(in);
  if (s) s = read_watts(in);
  if (s) s = read_grid(in);
  if (s) s = read_limits(in);
  if (!s) return s;
  run.pue = in.data().value("pue");
  if (const std::string* text = in.given("pue")) {
    const auto pue = parse_real(*text, "--pue");
    if (!pue) return pue.error();
    constexpr double kMost = 5;
    if (!(*pue >= 1 && *pue <= kMost)) return Error{"--pue", text::quoted(*text) + " is out of range", "1 to 5"};
    run.pue = {*pue, "--pue"};
  } else {
    in.assume("pue", shortest(run.pue.value), run.pue.source);
  }
  if (const std::string* text = in.given("start")) {
    const auto date = parse_date(*text, "--start");
    if (!date) return date.error();
    run.start = *date;
  }
  if (const std::string* text = in.given("seed")) {
    const auto seed = parse_count(*text, "--seed");
    if (!seed) return seed.error();
    run.seed = static_cast<std::uint64_t>(seed->get());
  } else {
    in.assume("seed", "0", "");
  }
  return Nothing{};
}

}  // namespace preflop
