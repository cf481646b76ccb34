// Hugging Face config.json -> Architecture.
//
// A family is a small function (hf_config_llama.cpp, ...) over one reading helper
// (hf_config_reader.hpp): which keys it has, what its class takes for absent ones, its quirks.
// A new family is one function and one line of the table in hf_config_families.cpp.
//
// Sizes are never guessed: an absent, null, zero, negative, fractional or contradictory one is
// refused by name. Only keys whose class default is a rule of the family (tie_word_embeddings, kv
// heads = heads, dropout 0, ...) may be absent; each such default is listed in
// Architecture::defaulted as "key=value".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/architecture.hpp"
#include "preflop/result.hpp"

namespace preflop {

// --assume key=value: the config's key and its value as text (a number, true, false, null or a word).
// An assumed key takes the place of the config's own; the ones used are listed in Architecture::assumed.
using Assume = std::map<std::string, std::string, std::less<>>;

// `where` names the text in errors: a path, or "config.json". Errors say which key, what is wrong with
// it, what would be valid; model classes that are not built are refused by name with the reason.
Result<Architecture> read_hf_config(std::string_view json_text, std::string_view where, const Assume& assume = {});

// The class names that are read, sorted: "CohereForCausalLM", ...
std::vector<std::string> hf_config_families();

}  // namespace preflop
