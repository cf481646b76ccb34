#include "src/base/embedded.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace {

namespace fs = std::filesystem;

TEST(Embedded, HoldsEveryDataFileByteForByte) {
  const fs::path root = fs::path(PREFLOP_SOURCE_DIR) / "data";
  std::vector<std::string> expected;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".csv" && entry.path().extension() != ".toml") continue;
    expected.push_back(fs::relative(entry.path(), root).generic_string());
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    // Not EXPECT_EQ: a difference would print two whole files.
    EXPECT_TRUE(preflop::embedded(expected.back()) == bytes) << expected.back();
  }
  std::sort(expected.begin(), expected.end());
  const auto paths = preflop::embedded_paths();
  EXPECT_EQ(std::vector<std::string>(paths.begin(), paths.end()), expected);
}

TEST(Embedded, KnowsNoOtherPath) {
  for (const char* path : {"", "no-such.csv", "/gpus.csv", "../CMakeLists.txt", "stacks"}) {
    EXPECT_TRUE(preflop::embedded(path).empty()) << path;
  }
}

}  // namespace
