#include "src/base/embedded.hpp"

namespace preflop {

std::string_view embedded(std::string_view path) {
  for (const auto& file : detail::embedded_table()) {
    if (file.path == path) return file.text;
  }
  return {};
}

std::vector<std::string_view> embedded_paths() {
  std::vector<std::string_view> paths;
  for (const auto& file : detail::embedded_table()) paths.push_back(file.path);
  return paths;
}

}  // namespace preflop
