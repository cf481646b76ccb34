// Shape strings: a model from its sizes alone.
//
//   gpt:layers=96,hidden=12288,heads=96,vocab=51200
//   llama:layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=128256
//
// The word before the colon says what the keys that are not given are. docs/shape-strings.md has the table of
// keys, defaults and values; tests/cli/test_custom.py holds it to the code.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "preflop/architecture.hpp"
#include "preflop/result.hpp"

namespace preflop {

// Whether MODEL is meant as a shape string: a word, a colon, and no path or URL.
bool looks_like_shape(std::string_view model);

// `where` is the flag or argument that errors name. Defaults taken are listed in Architecture::defaulted.
Result<Architecture> read_shape(std::string_view text, std::string_view where);

// The same from keys and values that stand apart (the catalogue's columns). `base` is gpt or llama.
using ShapeKeys = std::vector<std::pair<std::string_view, std::string_view>>;
Result<Architecture> build_shape(std::string_view base, const ShapeKeys& keys, std::string_view where);

// Every key, in the order of the table above.
std::vector<std::string> shape_keys();

}  // namespace preflop
