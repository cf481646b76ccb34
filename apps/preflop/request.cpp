// preflop request FILE: calls as the bindings take them, for comparing builds. FILE.jsonl holds one a line, all of
// one session; any other file is one call.
#include "apps/preflop/command.hpp"
#include "apps/preflop/io.hpp"
#include "src/adapt/api.hpp"

namespace preflop::cli {

int run_request(const std::vector<std::string>& args) {
  if (args.size() != 1) {
    complain("request: give one file; preflop request FILE");
    return kBadInput;
  }
  const Result<std::string> text = read_text(args[0], "request");
  if (!text) {
    complain(text.error().text());
    return kBadInput;
  }
  Session session;
  std::string out;
  bool refused = false;
  const auto answer = [&](std::string_view call) {
    const std::string said = session.answer(call);
    refused = refused || said.starts_with("{\n  \"error\"");
    out += said + "\n";
  };
  if (args[0].ends_with(".jsonl")) {
    std::string_view rest = *text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      if (end > 0) answer(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  } else {
    answer(*text);
  }
  const Status written = write_text(out, "");
  if (!written) {
    complain(written.error().text());
    return kFault;
  }
  return refused ? kBadInput : kDone;
}

}  // namespace preflop::cli
