#include "src/run/estimate.hpp"

#include "apps/preflop/command.hpp"
#include "apps/preflop/input.hpp"
#include "apps/preflop/io.hpp"
#include "src/view/json.hpp"
#include "src/view/text.hpp"

namespace preflop::cli {

std::vector<Flag> estimate_flags() {
  std::vector<Flag> out = {
      {"on", "CLUSTER", "COUNTx(GPU or PLATFORM)[/PER_NODE], a cluster TOML, or 1x80GB", "cluster"}};
  for (Flag& flag : recipe_flags()) out.push_back(std::move(flag));
  out.push_back(
      {"from", "FILE",
       "a launch script or configuration (Megatron, torchtitan, DeepSpeed, accelerate, nanotron), or an earlier JSON",
       "recipe"});
  out.push_back({"recipe", "FILE.toml", "the same keys as the flags; flags win", "recipe"});
  out.push_back({"assume", "KEY=VALUE", "a config.json key that is missing or wrong", "recipe", true});
  out.push_back({"check", "", "exit 3 when it does not fit", "output"});
  out.push_back({"timing", "", "where the time went, on stderr", "output"});
  for (Flag& flag : output_flags()) out.push_back(std::move(flag));
  return out;
}

Result<int> run_estimate(const Args& args) {
  Timing timing;
  const Result<Posed> posed = pose_request(args, args.words.empty() ? "" : args.words[0], timing);
  if (!posed) return posed.error();
  const Estimate e = estimate<double>(posed->problem.analysed, posed->problem.cluster);
  timing.lap("estimate");
  constexpr std::size_t kChanges = 3;
  const TextOptions options{
      args.has("verbose"), args.has("quiet"),
      verdict_changes(posed->problem.analysed, posed->problem.cluster, e.memory.verdict, kChanges)};
  if (Status s = emit(args, [&] { return estimate_json_value(e); }, [&] { return estimate_text(e, options); }); !s)
    return s.error();
  timing.lap("output");
  if (args.has("timing")) complain(timing.text());
  return args.has("check") && e.memory.verdict == Verdict::no ? kNoPlan : kDone;
}

}  // namespace preflop::cli
