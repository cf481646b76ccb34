// Files and streams: the only place of the program that reads or writes.
#pragma once

#include <map>
#include <string>

#include "preflop/result.hpp"

namespace preflop::cli {

// The text of a file, or of stdin for "-". `where` is the flag or argument that errors name. Errors: not
// there, a folder, unreadable, above `max_bytes` (refused before it is read), binary.
inline constexpr std::size_t kMaxTextBytes = std::size_t{16} << 20;
Result<std::string> read_text(const std::string& path, const std::string& where, std::size_t max_bytes = kMaxTextBytes);

bool is_folder(const std::string& path);
bool exists(const std::string& path);

// The texts under a data directory: "gpus.csv", "stacks/megatron.toml", ... Errors: no folder, nothing in it
// that preflop reads.
Result<std::map<std::string, std::string>> read_data_dir(const std::string& path);

// Writes to stdout, or to a file. A reader that has gone away (a closed pipe) is no error.
Status write_text(const std::string& text, const std::string& path);

void complain(const std::string& text);  // one line on stderr, "preflop: " before it

}  // namespace preflop::cli
