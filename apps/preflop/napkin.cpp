#include "src/run/napkin.hpp"

#include "apps/preflop/command.hpp"
#include "apps/preflop/input.hpp"
#include "apps/preflop/io.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/view/json.hpp"
#include "src/view/text.hpp"

namespace preflop::cli {

namespace {

constexpr double kUsualMfu = 0.40;  // 35 to 50 % is what good large dense runs reach on H100

Status read_cluster(const Args& args, NapkinInput& in, NapkinWords& words) {
  const auto overlays = overlays_of(args);
  if (!overlays) return overlays.error();
  const auto text = [&](const char* file) {
    const auto at = overlays->find(file);
    return at == overlays->end() ? std::string_view() : std::string_view(at->second);
  };
  const Result<MachineCatalogue> machines = MachineCatalogue::load(text("gpus.csv"), text("platforms.csv"));
  if (!machines) return machines.error();
  Result<Cluster> cluster = Error{};
  if (args.value("on").ends_with(".toml")) {
    const Result<std::string> file = read_text(args.value("on"), "--on");
    if (!file) return file.error();
    cluster = cluster_from_toml(*file, args.value("on"), *machines);
  } else {
    cluster = machines->cluster(args.value("on"));
  }
  if (!cluster) return cluster.error();
  const Datum& peak = cluster->datum("bf16_flops");
  if (!peak.value)
    return Error{
        "--on",
        cluster->gpu.id + " has no known dense bf16 peak" + (peak.source.empty() ? "" : " (" + peak.source + ")"), ""};
  in.gpus = cluster->gpus;
  in.peak = peak.value;
  words.gpu = cluster->gpu.id;
  words.peak_source = peak.source;
  return Nothing{};
}

Result<NapkinInput> read_input(const Args& args, NapkinWords& words) {
  NapkinInput in;
  if (!args.has("params")) return Error{"--params", "no parameter count is given", "for example --params 70e9"};
  const Result<Count> params = parse_count(args.value("params"), "--params");
  if (!params) return params.error();
  if (params->get() == 0) return Error{"--params", "0 parameters", "at least 1"};
  in.params = params->real();
  if (args.has("tokens")) {
    const Result<Count> tokens = parse_tokens(args.value("tokens"), "--tokens");
    if (!tokens) return tokens.error();
    if (tokens->get() == 0) return Error{"--tokens", "0 tokens", "at least 1"};
    in.tokens = tokens->real();
  }
  in.mfu = kUsualMfu;
  words.mfu_assumed = !args.has("mfu");
  if (args.has("mfu")) {
    const Result<double> mfu = parse_fraction(args.value("mfu"), "--mfu");
    if (!mfu) return mfu.error();
    if (*mfu == 0) return Error{"--mfu", "0 means that nothing is ever done", "above 0, up to 100%"};
    in.mfu = *mfu;
  }
  if (args.has("on")) {
    if (Status s = read_cluster(args, in, words); !s) return s.error();
  } else if (args.has("mfu")) {
    return Error{"--mfu", "means nothing without a cluster", "add --on, for example --on 2048xh100-sxm"};
  }
  return in;
}

}  // namespace

std::vector<Flag> napkin_flags() {
  std::vector<Flag> out = {{"params", "N", "parameters, e.g. 70e9 or 70B", "run"},
                           {"tokens", "N", "tokens of the run, e.g. 1.4T", "run"},
                           {"on", "CLUSTER", "COUNTx(GPU or PLATFORM)[/PER_NODE], or a cluster TOML", "run"},
                           {"mfu", "X%", "useful FLOP/s over the dense peak; 40 % when not given", "run"}};
  for (Flag& flag : output_flags()) out.push_back(std::move(flag));
  return out;
}

Result<int> run_napkin(const Args& args) {
  NapkinWords words;
  const Result<NapkinInput> input = read_input(args, words);
  if (!input) return input.error();
  const Napkin n = napkin<double>(*input);
  const auto text = [&] {
    const std::string whole = napkin_text(*input, n, words);
    if (!args.has("quiet")) return whole;
    return text::bytes_si(n.state.number()) + (n.ideal ? ", " + text::seconds(n.ideal->number()) : "") + "\n";
  };
  if (Status s = emit(args, [&] { return napkin_json_value(n); }, text); !s) return s.error();
  return kDone;
}

}  // namespace preflop::cli
