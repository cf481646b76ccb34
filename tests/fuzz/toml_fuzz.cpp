// Cluster files, and TOML as such: whatever the bytes, a cluster or an error that says something.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "preflop/machine.hpp"
#include "src/machine/cluster.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const preflop::MachineCatalogue catalogue = preflop::MachineCatalogue::load().value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const preflop::Result<preflop::Cluster> cluster = preflop::cluster_from_toml(text, "c.toml", catalogue);
  if (!cluster.ok() && cluster.error().what.empty()) {
    std::fprintf(stderr, "an empty error\n");
    std::abort();
  }
  return 0;
}
