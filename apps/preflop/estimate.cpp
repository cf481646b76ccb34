#include "src/run/estimate.hpp"

#include "apps/preflop/command.hpp"
#include "apps/preflop/input.hpp"
#include "apps/preflop/io.hpp"
#include "src/view/json.hpp"
#include "src/view/report.hpp"
#include "src/view/svg/pictures.hpp"
#include "src/view/text.hpp"
#include "src/view/timeline.hpp"

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
  out.push_back({"check", "", "exit 3 when it does not fit, or misses --within or --budget", "output"});
  out.push_back(
      {"timeline", "", "the memory of every stage through a step instead: CSV, or JSON with --json", "output"});
  out.push_back({"timing", "", "where the time went, on stderr", "output"});
  for (Flag& flag : output_flags()) {
    if (flag.name == "output") flag.help = "-o FILE: write to a file, .json, .txt, .svg, .html or .md";
    out.push_back(std::move(flag));
  }
  return out;
}

std::vector<Flag> asking_flags() {
  std::vector<Flag> out;
  for (Flag& flag : estimate_flags()) {
    if (flag.name == "check" || flag.name == "timeline" || flag.name == "timing") continue;
    if (flag.name == "output") flag.help = "-o FILE: write to a file, .json or .txt";
    out.push_back(std::move(flag));
  }
  return out;
}

namespace {

// Limits are held against the median run; a limit that nothing can be said of is missed.
bool misses_limit(const Estimate& e) {
  const RunSettings& s = e.recipe.run;
  if (!s.within && !s.budget) return false;
  if (!e.run) return true;
  const bool late = s.within && !(e.run->p50.number() <= *s.within);
  const bool dear = s.budget && !(e.run->cost && e.run->cost->number() <= *s.budget);
  return late || dear;
}

// The ending of -o, such as ".svg"; empty for none.
std::string ending(const Args& args) {
  const std::string path = args.value("output");
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(dot);
}

// -o x.svg, x.html, x.md: the pictures, or the report. Empty for other endings.
std::string drawn(const Args& args, const Problem& p, const Estimate& e) {
  const std::string end = ending(args);
  if (end == ".md") return report_markdown(e);
  if (end != ".svg" && end != ".html") return "";
  const IntervalCurve curve = interval_curve(p.analysed, p.cluster, e);
  if (end == ".html") return report_html(e, curve);
  return svg::document(svg::sheet(estimate_pictures(e, curve), e.model.name));
}

// --timeline: CSV, or JSON with --json or -o FILE.json.
Status write_timeline(const Args& args, const Problem& p) {
  const std::string end = ending(args);
  const bool to_file = !args.value("output").empty();
  if (to_file && end != ".csv" && end != ".json")
    return Error{"-o", "a timeline is CSV or JSON", "a name that ends in .csv or .json"};
  if (end == ".csv" && args.has("json")) return Error{"-o", "a .csv file contradicts --json", "one of the two"};
  const auto timeline = memory_timeline(p.analysed, p.cluster);
  if (!timeline) return timeline.error();
  const bool json = args.has("json") || end == ".json";
  return write_text(json ? json_text(timeline_json_value(*timeline)) + "\n" : timeline_csv(*timeline),
                    args.value("output"));
}

}  // namespace

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
  if (args.has("timeline")) {
    if (Status s = write_timeline(args, posed->problem); !s) return s.error();
  } else if (const std::string picture = drawn(args, posed->problem, e); !picture.empty()) {
    if (args.has("json")) return Error{"-o", "a " + ending(args) + " file contradicts --json", "one of the two"};
    if (Status s = write_text(picture, args.value("output")); !s) return s.error();
  } else if (Status s = emit(
                 args, [&] { return estimate_json_value(e); }, [&] { return estimate_text(e, options); },
                 ".json, .txt, .svg, .html or .md");
             !s)
    return s.error();
  timing.lap("output");
  if (args.has("timing")) complain(timing.text());
  return args.has("check") && (e.memory.verdict == Verdict::no || misses_limit(e)) ? kNoPlan : kDone;
}

Result<int> run_report(const Args& args) {
  const std::string end = ending(args);
  if (end != ".html" && end != ".md" && end != ".svg")
    return Error{"-o", "a report is a file with pictures", "-o FILE, a name that ends in .html, .md or .svg"};
  return run_estimate(args);
}

}  // namespace preflop::cli
