// preflop export PLAN.json --to FORMAT: the winner as the file that a framework reads.
#include "src/adapt/export/export.hpp"

#include <utility>

#include "apps/preflop/command.hpp"
#include "apps/preflop/input.hpp"
#include "apps/preflop/io.hpp"
#include "src/adapt/import/import.hpp"
#include "src/base/text.hpp"

namespace preflop::cli {

std::vector<Flag> export_flags() {
  return {{"to", "FORMAT", text::list(export_formats()), "output"},
          {"rank", "K", "the plan of this rank in the file (1)", "output"},
          {"output", "FILE", "-o FILE: write to a file", "output"},
          {"data-dir", "FOLDER", "overlay gpus.csv, platforms.csv, models.csv, stacks/*.toml", "output"}};
}

Result<int> run_export(const Args& args) {
  if (args.words.empty()) return Error{"PLAN.json", "no plan is given", "what preflop plan --json prints; - for stdin"};
  if (!args.has("to")) return Error{"--to", "no format is given", text::list(export_formats())};
  const auto file = read_text(args.words[0], "PLAN.json");
  if (!file) return file.error();
  std::size_t rank = 1;
  if (args.has("rank")) {
    const std::string value = args.value("rank");
    rank = 0;
    for (const char c : value) {
      if (c < '0' || c > '9' || rank > 100000) return Error{"--rank", text::quoted(value) + " is no rank", "1 or more"};
      rank = rank * 10 + static_cast<std::size_t>(c - '0');
    }
  }
  auto request = import_result(*file, args.words[0], rank);
  if (!request) return request.error();
  // A plan of a config.json names its path.
  if (Status s = read_model(std::exchange(request->model, ""), *request); !s) return s.error();
  const auto catalogues = catalogues_of(args);
  if (!catalogues) return catalogues.error();
  const auto problem = pose(*request, *catalogues);
  if (!problem) return problem.error();
  const std::string format = args.value("to"), stack = problem->analysed.recipe.stack;
  const auto out = export_to(format, *problem, *request);
  if (!out) return out.error();
  if (is_foreign(format, stack))
    complain("the plan is of stack " + stack + ": what it says of memory and step time is not said of " + format);
  if (const auto open = unsaid(format, *out, *problem, *request, *catalogues); !open.empty())
    complain(format + " has no option for " + text::list(open) +
             (out->comments ? ": only the remark in the file says it" : ": the training script has to say it"));
  if (Status s = write_text(out->text, args.value("output")); !s) return s.error();
  return kDone;
}

}  // namespace preflop::cli
