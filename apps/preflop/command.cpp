#include "apps/preflop/command.hpp"

#include "apps/preflop/io.hpp"
#include "src/base/text.hpp"
#include "src/view/json.hpp"

namespace preflop::cli {

// NOLINTNEXTLINE(readability-function-size): one table, a row a command
const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {"napkin",
       "--params N [--tokens N] [--on CLUSTER] [--mfu X]",
       "the page of arithmetic, with no model file",
       "preflop napkin --params 70e9 --tokens 1.4T --on 2048xh100-sxm --mfu 40%",
       {},
       napkin_flags,
       run_napkin},
      {"estimate",
       "MODEL --on CLUSTER [recipe flags]",
       "memory, FLOPs and time of one recipe",
       "preflop estimate llama3-70b --on 64xh100-sxm --tp 8 --pp 2",
       {"MODEL"},
       estimate_flags,
       run_estimate},
      {"plan",
       "MODEL --on CLUSTER [recipe flags: what is given is fixed]",
       "the best layouts, and why",
       "preflop plan llama3-70b --on 2048xh100-sxm --tokens 1.4T",
       {"MODEL"},
       plan_flags,
       run_plan},
      {"why-not",
       "MODEL --on CLUSTER --tp N ...",
       "what speaks against a layout: illegal, short of memory, slower",
       "preflop why-not llama3-70b --on 64xh100-sxm --tp 1 --pp 16",
       {"MODEL"},
       why_not_flags,
       run_why_not},
      {"export",
       "PLAN.json --to FORMAT",
       "the winner as the file that a framework reads",
       "preflop export plan.json --to megatron -o run.sh",
       {"PLAN.json"},
       export_flags,
       run_export},
      {"compare",
       "A.json B.json",
       "two results, line by line",
       "preflop compare a.json b.json",
       {"A", "B"},
       output_flags,
       run_compare},
      {"explain",
       "TERM MODEL --on CLUSTER [recipe flags] | --list",
       "the derivation of any number of an estimate",
       "preflop explain memory.activations llama3-70b --on 64xh100-sxm",
       {"TERM", "MODEL"},
       explain_flags,
       run_explain},
      {"report",
       "MODEL --on CLUSTER -o FILE.html|.md|.svg [recipe flags]",
       "an estimate as one file with pictures",
       "preflop report llama3-70b --on 64xh100-sxm --tokens 1T -o report.html",
       {"MODEL"},
       estimate_flags,
       run_report},
      {"mfu",
       "MODEL --on CLUSTER --tokens-per-second N [recipe flags]",
       "a measured speed as MFU, under every FLOP convention",
       "preflop mfu llama3-8b --on 8xh100-sxm --tokens-per-second 85000",
       {"MODEL"},
       mfu_flags,
       run_mfu},
      {"validate",
       "[--rows FILE.csv]",
       "predicted against measured, for published runs or your own",
       "preflop validate --source korthikanti-2022",
       {},
       validate_flags,
       run_validate},
      {"models",
       "[NAME]",
       "the models known by name, with sources",
       "preflop models llama3-70b",
       {"NAME"},
       output_flags,
       run_models},
      {"gpus",
       "[NAME | --check]",
       "the GPUs, every value with its source",
       "preflop gpus h100-sxm",
       {"NAME"},
       gpus_flags,
       run_gpus},
      {"platforms",
       "[NAME]",
       "the reference platforms: node, links, network",
       "preflop platforms dgx-h100",
       {"NAME"},
       output_flags,
       run_platforms},
      {"stacks",
       "[NAME]",
       "the training software that is modelled",
       "preflop stacks megatron",
       {"NAME"},
       output_flags,
       run_stacks},
      {"optimizers",
       "[NAME]",
       "what each optimizer keeps of a weight, with its source",
       "preflop optimizers muon",
       {"NAME"},
       output_flags,
       run_optimizers},
  };
  return kCommands;
}

std::vector<Flag> output_flags() {
  return {{"json", "", "print JSON", "output"},
          {"output", "FILE", "-o FILE: write to a file, .json or .txt", "output"},
          {"quiet", "", "-q: the first line only", "output"},
          {"verbose", "", "-v: everything", "output"},
          {"data-dir", "FOLDER", "overlay gpus.csv, platforms.csv, models.csv, stacks/*.toml", "output"}};
}

Status emit(const Args& args, const std::function<nlohmann::json()>& json, const std::function<std::string()>& text,
            const std::string& endings) {
  const std::string path = args.value("output");
  bool as_json = args.has("json");
  if (!path.empty()) {
    const std::size_t dot = path.rfind('.');
    const std::string extension = dot == std::string::npos ? "" : path.substr(dot);
    if (extension != ".json" && extension != ".txt")
      return Error{"-o", text::quoted(path) + " does not say which format", "a name that ends in " + endings};
    if (extension == ".txt" && as_json)
      return Error{"-o", "a .txt file contradicts --json", "a name that ends in .json"};
    as_json = extension == ".json";
  }
  return write_text(as_json ? json_text(json()) + "\n" : text(), path);
}

void Timing::lap(const char* what) {
  const Clock::time_point now = Clock::now();
  const double s = std::chrono::duration<double>(now - last_).count();
  text_ += std::string(text_.empty() ? "" : ", ") + what + " " + text::seconds(s);
  last_ = now;
}

std::string Timing::text() const {
  return text_ + ", in all " + text::seconds(std::chrono::duration<double>(last_ - start_).count());
}

}  // namespace preflop::cli
