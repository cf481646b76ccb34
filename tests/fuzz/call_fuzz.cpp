// Calls of a session, one a line: whatever the bytes, every answer is JSON, and an error says something.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "src/adapt/api.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  preflop::Session session;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const nlohmann::json answer = nlohmann::json::parse(session.answer(line), nullptr, false);
    const auto error = answer.is_object() ? answer.find("error") : answer.end();
    if (answer.is_object() && (error == answer.end() || (error->is_string() && !error->empty() && *error != "")))
      continue;
    std::fprintf(stderr, "no answer to %.*s\n", static_cast<int>(line.size()), line.data());
    std::abort();
  }
  return 0;
}
