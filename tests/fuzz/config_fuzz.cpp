// config.json from anywhere: whatever the bytes, a sane architecture or an error that says something.
// The first line, when it starts with '+', is an --assume (key=value); a text that starts with gpt: or
// llama: is read as a shape string.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/adapt/hf_config.hpp"
#include "src/adapt/shape_string.hpp"
#include "tests/unit/architecture_sanity.hpp"

namespace {

void check(const preflop::Result<preflop::Architecture>& result) {
  const std::string wrong = result.ok()                     ? preflop::insane(*result)
                            : result.error().text().empty() ? "an empty error"
                                                            : "";
  if (wrong.empty()) return;
  std::fprintf(stderr, "insane: %s\n", wrong.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  preflop::Assume assume;
  while (!text.empty() && text.front() == '+') {
    const std::string_view line = text.substr(1, text.find('\n') - 1);
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) assume.emplace(line.substr(0, equals), line.substr(equals + 1));
    text.remove_prefix(std::min(text.size(), line.size() + 2));
  }
  if (text.rfind("gpt:", 0) == 0 || text.rfind("llama:", 0) == 0) {
    check(preflop::read_shape(text, "MODEL"));
  } else {
    check(preflop::read_hf_config(text, "config.json", assume));
  }
  return 0;
}
