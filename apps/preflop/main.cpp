// preflop COMMAND ...: finds the command and turns its errors into one line and an exit code.
#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "apps/preflop/command.hpp"
#include "apps/preflop/io.hpp"
#include "src/base/embedded.hpp"
#include "src/base/text.hpp"
#include "src/base/toml_read.hpp"

namespace preflop::cli {

namespace {

// Commands of the documentation that do not work yet.
constexpr std::array kLaterCommands = {"schedules", "diagnose", "calibrate", "serve", "mcp", "sweep", "completions"};

int refuse(const Error& error) {
  complain(error.text());
  return kBadInput;
}

int print(const std::string& text) {
  const Status written = write_text(text, "");
  if (written) return kDone;
  complain(written.error().text());
  return kFault;
}

std::string version_text() {
  std::string date = "unknown";
  if (const auto table = TomlTable::parse(embedded("version.toml"), "version.toml")) {
    if (const auto value = table->get<std::string>("date")) date = *value;
  }
  return "preflop " PREFLOP_VERSION ", data of " + date + "\n";
}

int unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& c : commands()) names.emplace_back(c.name);
  if (std::find(kLaterCommands.begin(), kLaterCommands.end(), name) != kLaterCommands.end())
    return refuse({"", name + " is not built yet", "there are " + text::list(names, "and")});
  Error error = text::unknown_name("", "command", name, names);
  if (error.valid.empty()) error.valid = "there are " + text::list(names, "and");
  return refuse(error);
}

int dispatch(const std::vector<std::string>& args) {
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    const int code = print(help_text());
    return args.empty() && code == kDone ? kBadInput : code;
  }
  if (args[0] == "--version") return print(version_text());
  const std::vector<std::string> rest(args.begin() + 1, args.end());
  if (args[0] == "request") return run_request(rest);
  const auto command =
      std::find_if(commands().begin(), commands().end(), [&](const Command& c) { return args[0] == c.name; });
  if (command == commands().end()) return unknown_command(args[0]);
  std::vector<Flag> flags = command->flags();
  flags.push_back({"help", "", "", ""});
  const Result<Args> parsed = parse_args(rest, flags, command->words);
  if (!parsed) return refuse(parsed.error());
  if (parsed->has("help")) return print(help_of(*command));
  const Result<int> code = command->run(*parsed);
  return code ? *code : refuse(code.error());
}

}  // namespace

}  // namespace preflop::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is seen by the write
  try {
    return preflop::cli::dispatch({argv + 1, argv + argc});
  } catch (const std::exception& fault) {
    preflop::cli::complain(std::string("internal fault: ") + fault.what());
  } catch (...) {
    preflop::cli::complain("internal fault");
  }
  return preflop::cli::kFault;
}
