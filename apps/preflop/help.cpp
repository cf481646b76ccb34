#include "apps/preflop/command.hpp"
#include "src/base/text.hpp"

namespace preflop::cli {

namespace {

constexpr const char* kGlobal =
    "  preflop --version    the program's and its data's version\n"
    "  preflop COMMAND --help    the flags of a command\n";

std::string flag_lines(const std::vector<Flag>& flags) {
  std::string out;
  std::string group;
  constexpr std::size_t kLeft = 34;
  for (const Flag& flag : flags) {
    if (!flag.later.empty()) continue;
    if (flag.group != group) out += "\n" + flag.group + "\n";
    group = flag.group;
    const std::string left = "  --" + flag.name + (flag.value.empty() ? "" : " " + flag.value);
    bool first = true;
    for (const std::string& part : text::wrapped(flag.help, 80 - kLeft)) {
      const bool fits = first && left.size() + 2 <= kLeft;
      if (first && !fits) out += left + "\n";
      out += (fits ? left + std::string(kLeft - left.size(), ' ') : std::string(kLeft, ' ')) + part + "\n";
      first = false;
    }
  }
  return out;
}

}  // namespace

std::string help_text() {
  std::string out = "preflop: does a training run fit, and how fast will it go, before it starts\n\n";
  for (const Command& c : commands()) out += "  " + std::string(c.example) + "\n";
  out += "\nCommands\n";
  for (const Command& c : commands())
    out += "  " + std::string(c.name) + std::string(12 - std::string(c.name).size(), ' ') + c.summary + "\n";
  out += "\n" + std::string(kGlobal);
  out +=
      "\nMODEL    a name (llama3-70b, meta-llama/Meta-Llama-3-70B), a config.json or its\n"
      "         folder, - for stdin, or gpt:layers=96,hidden=12288,heads=96,vocab=51200\n"
      "CLUSTER  COUNTx(GPU or PLATFORM)[/PER_NODE], a cluster TOML, or 1x80GB\n"
      "\nExit: 0 done, 1 internal fault, 2 bad input, 3 nothing fits, or --check failed\n";
  return out;
}

std::string help_of(const Command& c) {
  return "preflop " + std::string(c.name) + ": " + c.summary + "\n\n  " + c.example + "\n\nUsage: preflop " + c.name +
         " " + c.usage + "\n" + flag_lines(c.flags());
}

}  // namespace preflop::cli
