// preflop request FILE: a JSON request as the bindings take it, for comparing builds.
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
  const std::string answer = estimate_json(*text);
  const Status written = write_text(answer + "\n", "");
  if (!written) {
    complain(written.error().text());
    return kFault;
  }
  return answer.starts_with("{\n  \"error\"") ? kBadInput : kDone;
}

}  // namespace preflop::cli
