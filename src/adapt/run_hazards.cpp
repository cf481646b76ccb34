// Failures, restarts, checkpoints: keys to settings.
#include <cmath>
#include <limits>

#include "src/adapt/recipe_keys.hpp"
#include "src/adapt/run_reader.hpp"
#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"

namespace preflop {

namespace {

constexpr double kGpusPerNode = 8;

// TIME of the job, TIME/node, TIME/gpu, or none.
Status read_mtbf(RunReader& in) {
  const std::string* text = in.given("mtbf");
  RunSettings& run = in.run();
  if (text == nullptr) {
    run.hardware = in.data().hardware_rate();
    run.software = in.data().value("software_failures");
    run.software_most = in.data().value("software_failures_most");
    run.spread = in.data().rate_spread();
    const double eights = static_cast<double>(in.cluster().gpus) / kGpusPerNode;
    const double rate = run.hardware.value * eights + std::min(run.software.value * eights, run.software_most.value);
    in.assume("mtbf", text::fixed(1 / rate, 0) + "s",
              "hardware: " + run.hardware.source + "; software: " + run.software.source + "; at most " +
                  run.software_most.source);
    return Nothing{};
  }
  if (*text == "none") {
    run.mtbf = Sourced{std::numeric_limits<double>::infinity(), "--mtbf"};
    return Nothing{};
  }
  const std::size_t slash = text->find('/');
  const auto time = parse_duration(std::string_view(*text).substr(0, slash), "--mtbf");
  if (!time) return time.error();
  if (time->number() <= 0) return Error{"--mtbf", "no time at all between failures", "more than 0, or none"};
  double share = 1;
  if (slash != std::string::npos) {
    const std::string of = text->substr(slash + 1);
    if (of != "node" && of != "gpu")
      return Error{"--mtbf", "a time per " + text::quoted(of), "TIME, TIME/node, TIME/gpu or none"};
    share = static_cast<double>(of == "node" ? in.cluster().nodes() : in.cluster().gpus);
  }
  run.mtbf = Sourced{time->number() / share, "--mtbf"};
  return Nothing{};
}

Status read_spares(RunReader& in) {
  const std::string* text = in.given("spares");
  if (Status s = in.optional_seconds("repair", in.run().repair); !s) return s;
  if (text == nullptr) {
    if (in.run().repair) return Error{"--repair", "it needs --spares", "--spares N"};
    in.assume("spares", "none", "a replacement is always at hand and costs nothing");
    in.run().words["spares"] = "";
    return Nothing{};
  }
  const auto spares = parse_count(*text, "--spares");
  if (!spares) return spares.error();
  constexpr std::int64_t kMost = 100'000;
  if (spares->get() > kMost) return Error{"--spares", text::quoted(*text) + " nodes", "at most 100,000"};
  if (!in.run().repair)
    return Error{"--spares", "it needs the time until a broken node is back", "--repair TIME, e.g. --repair 3d"};
  in.run().spares = Sourced{spares->real(), "--spares"};
  return Nothing{};
}

// TIME/TIME, or none.
Status read_maintenance(RunReader& in) {
  RunSettings& run = in.run();
  const std::string* text = in.given("maintenance");
  run.planned = in.data().value("planned");
  if (text == nullptr) {
    in.assume("maintenance", text::fixed(run.planned.value, 3) + " planned interruptions for each unplanned one",
              run.planned.source);
    run.words["maintenance"] = "";
    return Nothing{};
  }
  run.planned = {0, "--maintenance"};
  if (*text == "none") return Nothing{};
  const std::size_t slash = text->find('/');
  if (slash == std::string::npos)
    return Error{"--maintenance", text::quoted(*text) + " does not say how often", "TIME/TIME, e.g. 4h/30d, or none"};
  const auto takes = parse_duration(std::string_view(*text).substr(0, slash), "--maintenance");
  if (!takes) return takes.error();
  const auto every = parse_duration(std::string_view(*text).substr(slash + 1), "--maintenance");
  if (!every) return every.error();
  if (!(takes->number() < every->number()))
    return Error{"--maintenance", "it takes as long as the time between", "a shorter time than the second one"};
  run.maintenance_takes = Sourced{takes->number(), "--maintenance"};
  run.maintenance_every = Sourced{every->number(), "--maintenance"};
  return Nothing{};
}

// Steps, a time, or auto.
Status read_interval(RunReader& in) {
  const std::string* text = in.given("checkpoint_every");
  RunSettings& run = in.run();
  if (text == nullptr || *text == "auto") {
    if (text == nullptr && run.saving != Saving::none)
      in.assume("checkpoint_every", "auto", "the interval with the least loss, in whole steps");
    return Nothing{};
  }
  if (run.saving == Saving::none) return Error{"--checkpoint-every", "nothing is saved", "leave out --checkpoint none"};
  if (const auto steps = parse_count(*text, "--checkpoint-every")) {
    if (steps->get() == 0) return Error{"--checkpoint-every", "no steps between saves", "1 or more"};
    run.interval_steps = steps->real();
    return Nothing{};
  }
  const auto time = parse_duration(*text, "--checkpoint-every");
  if (!time)
    return Error{"--checkpoint-every", text::quoted(*text) + " is neither steps nor a time", "e.g. 500, 30m or auto"};
  if (time->number() <= 0) return Error{"--checkpoint-every", "no time between saves", "more than 0"};
  run.interval_seconds = time->number();
  return Nothing{};
}

Status read_bandwidth(RunReader& in) {
  RunSettings& run = in.run();
  const std::string* text = in.given("checkpoint_bandwidth");
  run.node_bandwidth = in.data().value("node_bandwidth");
  run.store_bandwidth = in.data().value("store_bandwidth");
  if (text == nullptr) {
    const double all = run.node_bandwidth.value * static_cast<double>(in.cluster().nodes());
    const bool nodes_limit = all < run.store_bandwidth.value;
    in.assume("checkpoint_bandwidth", text::fixed((nodes_limit ? all : run.store_bandwidth.value) / 1e9, 1) + "GB/s",
              nodes_limit ? "2.4 GB/s a node: " + run.node_bandwidth.source : run.store_bandwidth.source);
    return Nothing{};
  }
  std::string_view bytes = *text;
  if (bytes.ends_with("/s")) bytes.remove_suffix(2);
  const auto rate = parse_bytes(bytes, "--checkpoint-bandwidth");
  if (!rate) return rate.error();
  if (rate->number() <= 0) return Error{"--checkpoint-bandwidth", "no bandwidth at all", "e.g. 50GB/s"};
  run.store_bandwidth = {rate->number(), "--checkpoint-bandwidth"};
  run.node_bandwidth = run.store_bandwidth;  // of all nodes together
  return Nothing{};
}

}  // namespace

Status read_hazards(RunReader& in) {
  Status s = read_mtbf(in);
  if (s) s = in.optional_seconds("eviction", in.run().eviction);
  if (s) s = in.seconds("detection", in.run().detection);
  if (s) s = in.seconds("restart", in.run().restart);
  if (s) s = read_spares(in);
  if (s) s = read_maintenance(in);
  return s;
}

Status read_checkpoints(RunReader& in) {
  RunSettings& run = in.run();
  const std::string* text = in.given("checkpoint");
  if (text == nullptr)
    in.assume("checkpoint", "sync", "training stops while a checkpoint is written");
  else if (*text == "async")
    run.saving = Saving::background;
  else if (*text == "none")
    run.saving = Saving::none;
  else if (*text != "sync")
    return text::unknown_name("--checkpoint", "way to save", *text, {"sync", "async", "none"});
  const bool background = run.saving == Saving::background;
  if (!background && in.given("checkpoint_stall") != nullptr)
    return Error{"--checkpoint-stall", "it belongs to --checkpoint async", "leave it out"};
  run.stall = in.data().value("checkpoint_stall");
  if (background && in.given("checkpoint_stall") != nullptr) {
    if (Status s = in.seconds("checkpoint_stall", run.stall); !s) return s;
  } else if (background) {
    in.assume("checkpoint_stall", shortest(run.stall.value) + "s", run.stall.source);
  }
  if (run.saving != Saving::none) {
    if (Status s = read_bandwidth(in); !s) return s;
  } else {
    run.node_bandwidth = in.data().value("node_bandwidth");
    run.store_bandwidth = in.data().value("store_bandwidth");
  }
  return read_interval(in);
}

}  // namespace preflop
