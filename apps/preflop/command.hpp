// What every command shares: its flags, its output, its exit code.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/preflop/args.hpp"
#include "preflop/result.hpp"

namespace preflop::cli {

enum Exit : int { kDone = 0, kFault = 1, kBadInput = 2, kNoPlan = 3 };

struct Command {
  const char* name;
  const char* usage;    // after the name: "MODEL --on CLUSTER [recipe flags]"
  const char* summary;  // one line
  const char* example;  // a whole command line that works
  std::vector<std::string> words;
  std::vector<Flag> (*flags)();
  Result<int> (*run)(const Args&);  // an Error is bad input
};
const std::vector<Command>& commands();

Result<int> run_napkin(const Args&);
Result<int> run_estimate(const Args&);
Result<int> run_report(const Args&);
Result<int> run_plan(const Args&);
Result<int> run_why_not(const Args&);
Result<int> run_compare(const Args&);
Result<int> run_export(const Args&);
Result<int> run_explain(const Args&);
Result<int> run_mfu(const Args&);
Result<int> run_models(const Args&);
Result<int> run_gpus(const Args&);
Result<int> run_platforms(const Args&);
Result<int> run_stacks(const Args&);
Result<int> run_optimizers(const Args&);
Result<int> run_validate(const Args&);
int run_request(const std::vector<std::string>& args);

std::vector<Flag> output_flags();    // --json -o -q -v --data-dir
std::vector<Flag> estimate_flags();  // --on, the recipe's, --recipe, --assume, --check, --timing
std::vector<Flag> asking_flags();    // the same of commands that write no pictures and check nothing
std::vector<Flag> plan_flags();
std::vector<Flag> why_not_flags();
std::vector<Flag> export_flags();
std::vector<Flag> explain_flags();
std::vector<Flag> napkin_flags();
std::vector<Flag> validate_flags();
std::vector<Flag> mfu_flags();
std::vector<Flag> gpus_flags();

// Prints the JSON or the text, whichever the flags ask for, to stdout or the file of -o. `endings`: what the command
// can write, its caller the rest.
Status emit(const Args& args, const std::function<nlohmann::json()>& json, const std::function<std::string()>& text,
            const std::string& endings = ".json or .txt");

std::string help_text();
std::string help_of(const Command& command);

// Wall-clock of a command's parts, for --timing.
class Timing {
 public:
  void lap(const char* what);
  std::string text() const;  // "read 0.1 ms, catalogues 2.3 ms, ..."

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now(), last_ = start_;
  std::string text_;
};

}  // namespace preflop::cli
