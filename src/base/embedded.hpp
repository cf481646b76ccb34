// The data files of data/, compiled into the binary: nothing needs to lie beside it.
//
// Paths are relative to data/, with forward slashes: "gpus.csv", "stacks/megatron.toml". The bytes
// are those of the file. Views stay valid for the whole program.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace preflop {

// The file's text; empty if there is no such file (or the file is empty).
std::string_view embedded(std::string_view path);

// Every path, sorted.
std::vector<std::string_view> embedded_paths();

namespace detail {

struct EmbeddedFile {
  std::string_view path, text;
};

// Defined in the source that tools/embed/embed.cmake generates; sorted by path.
std::span<const EmbeddedFile> embedded_table();

}  // namespace detail
}  // namespace preflop
