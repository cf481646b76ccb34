// preflop mfu: a measured speed as a utilisation.
#include "src/view/mfu.hpp"

#include <array>

#include "apps/preflop/command.hpp"
#include "apps/preflop/input.hpp"
#include "src/base/text.hpp"
#include "src/base/units.hpp"
#include "src/run/utilisation.hpp"

namespace preflop::cli {

namespace {

using Kind = Measurement::Kind;
constexpr std::array<std::pair<const char*, Kind>, 4> kSpeeds = {
    {{"tokens-per-second", Kind::tokens_per_second},
     {"tokens-per-second-per-gpu", Kind::tokens_per_second_per_gpu},
     {"step-seconds", Kind::step_seconds},
     {"tflops-per-gpu", Kind::flops_per_gpu}}};
constexpr double kTera = 1e12;
constexpr double kLeastPeak = 1e9;      // FLOP/s: below it, the number is in TFLOP/s
constexpr double kLargestTflops = 1e6;  // TFLOP/s of one GPU: above it, the number is in FLOP/s

// "400@bridge".
Result<Measurement> read_tflops(const std::string& given) {
  const std::string flag = "--tflops-per-gpu";
  const std::string valid = "X@CONVENTION, one of " + text::list(convention_names());
  const std::size_t at = given.find('@');
  if (at == std::string::npos) return Error{flag, text::quoted(given) + " does not say what its FLOPs count", valid};
  const Result<double> value = parse_real(given.substr(0, at), flag);
  if (!value) return value.error();
  if (*value == 0 || *value > kLargestTflops)
    return Error{flag, text::scientific(*value, 4) + " TFLOP/s is no speed of a GPU", "TFLOP/s, e.g. 400@bridge"};
  const std::string name = given.substr(at + 1);
  const Convention* convention = find_convention(name);
  if (convention == nullptr) {
    if (text::normalise_name(name) == "megatron")
      return Error{flag, "Megatron's releases count differently",
                   "narayanan (2021, recomputation counted), nemo24 (attention not halved) or bridge (halved)"};
    return text::unknown_name(flag, "FLOP convention", name, convention_names());
  }
  return Measurement{Kind::flops_per_gpu, *value * kTera, convention};
}

Result<Measurement> read_measurement(const Args& args) {
  std::vector<std::string> given, flags;
  for (const auto& [name, kind] : kSpeeds) {
    flags.push_back("--" + std::string(name));
    if (args.has(name)) given.push_back(flags.back());
  }
  if (given.empty()) return Error{"mfu", "no measured speed is given", text::list(flags)};
  if (given.size() > 1) return Error{given[1], "contradicts " + given[0], "one of them"};
  for (const auto& [name, kind] : kSpeeds) {
    if (!args.has(name)) continue;
    if (kind == Kind::flops_per_gpu) return read_tflops(args.value(name));
    const std::string flag = "--" + std::string(name);
    const Result<double> value = parse_real(args.value(name), flag);
    if (!value) return value.error();
    if (*value == 0) return Error{flag, "0 is no speed", "more than 0"};
    return Measurement{kind, *value, nullptr};
  }
  return Error{"mfu", "no measured speed is given", text::list(flags)};
}

Result<std::optional<double>> read_peak(const Args& args) {
  if (!args.has("peak")) return std::optional<double>();
  const Result<double> value = parse_real(args.value("peak"), "--peak");
  if (!value) return value.error();
  if (*value < kLeastPeak)
    return Error{"--peak", text::scientific(*value, 4) + " FLOP/s is no GPU's peak", "FLOP/s: 989e12 or 989T"};
  return std::optional<double>(*value);
}

}  // namespace

std::vector<Flag> mfu_flags() {
  std::vector<Flag> out = {
      {"tokens-per-second", "N", "measured, of all GPUs together", "measured"},
      {"tokens-per-second-per-gpu", "N", "measured, of one GPU", "measured"},
      {"step-seconds", "S", "measured, of an optimizer step; needs --global-batch", "measured"},
      {"tflops-per-gpu", "X@CONVENTION", "TFLOP/s as a log printed them, with what they count", "measured"},
      {"peak", "FLOP/s", "another dense peak of one GPU, e.g. 989e12; a sparse one is recognised", "measured"}};
  for (Flag& flag : asking_flags()) {
    if (flag.name != "mfu" && flag.name != "tokens") out.push_back(std::move(flag));
  }
  return out;
}

Result<int> run_mfu(const Args& args) {
  const Result<Measurement> measured = read_measurement(args);
  if (!measured) return measured.error();
  const Result<std::optional<double>> peak = read_peak(args);
  if (!peak) return peak.error();
  Timing timing;
  Result<Posed> posed = pose_request(args, args.words.empty() ? "" : args.words[0], timing);
  if (!posed) return posed.error();
  Problem& problem = posed->problem;
  if (problem.cluster.memory_only)
    return Error{"--on", "a memory size has no speed to compare with", "COUNTx(GPU or PLATFORM), e.g. 8xh100-sxm"};
  if (measured->kind == Kind::step_seconds && !problem.analysed.recipe.given.contains("global_batch"))
    return Error{"--step-seconds", "how many tokens a step had is not known", "add --global-batch (and --seq)"};
  problem.analysed.recipe.mfu.reset();  // a recipe file may bring one; here it is what is asked
  const Estimate e = estimate<double>(problem.analysed, problem.cluster);
  const Result<Utilisation> use = utilisation(problem.analysed, e, *measured, *peak, posed->catalogues->machines);
  if (!use) return use.error();
  const TextOptions options{args.has("verbose"), args.has("quiet")};
  if (Status s = emit(args, [&] { return mfu_json_value(*use, e); }, [&] { return mfu_text(*use, e, options); }); !s)
    return s.error();
  return kDone;
}

}  // namespace preflop::cli
