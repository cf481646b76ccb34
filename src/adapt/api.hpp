// The whole library as one function over text, for the bindings: WebAssembly, Python, `preflop request`.
#pragma once

#include <string>
#include <string_view>

namespace preflop {

// A JSON request (see request_from_json) -> the text of preflop.estimate/1, or {"error": "..."}.
std::string estimate_json(std::string_view request_json);

}  // namespace preflop
