#include "src/explain/explain.hpp"

#include "apps/preflop/command.hpp"
#include "apps/preflop/input.hpp"
#include "src/view/explain_text.hpp"

namespace preflop::cli {

namespace {

// --list needs no model: any recipe has the same terms.
constexpr const char* kAnyModel = "gpt:layers=2,hidden=128,heads=2,vocab=512";
constexpr const char* kAnyCluster = "1xh100-sxm";

Result<int> list_terms(const Args& args) {
  Args filled = args;
  std::string model = args.words.empty() ? "" : args.words.back();
  if (model.empty() && !args.has("recipe")) {
    model = kAnyModel;
    filled.values["tokens"] = {"1T"};
    if (!args.has("on")) filled.values["on"] = {kAnyCluster};
  }
  Timing timing;
  const Result<Posed> posed = pose_request(filled, model, timing);
  if (!posed) return posed.error();
  const std::vector<TermLine> terms = explainable(posed->problem.analysed, posed->problem.cluster);
  if (Status s = emit(args, [&] { return term_list_json(terms); }, [&] { return term_list_text(terms); }); !s)
    return s.error();
  return kDone;
}

}  // namespace

std::vector<Flag> explain_flags() {
  std::vector<Flag> out = {{"list", "", "every term with one line each", "terms"}};
  for (Flag& flag : asking_flags()) out.push_back(std::move(flag));
  return out;
}

Result<int> run_explain(const Args& args) {
  if (args.has("list")) return list_terms(args);
  if (args.words.empty())
    return Error{"TERM", "no term is given", "for example step.seconds; preflop explain --list shows all"};
  Timing timing;
  const Result<Posed> posed = pose_request(args, args.words.size() > 1 ? args.words[1] : "", timing);
  if (!posed) return posed.error();
  const Result<Explanation> explanation = explain(args.words[0], posed->problem.analysed, posed->problem.cluster);
  if (!explanation) return explanation.error();
  const auto text = [&] {
    const std::string whole = explain_text(*explanation, args.has("verbose"));
    return args.has("quiet") ? whole.substr(0, whole.find('\n') + 1) : whole;
  };
  if (Status s = emit(args, [&] { return explain_json_value(*explanation); }, text); !s) return s.error();
  return kDone;
}

}  // namespace preflop::cli
