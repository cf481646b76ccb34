// How a cluster is made of a GPU, a platform and counts; shared by --on and cluster files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/machine.hpp"

namespace preflop {

inline constexpr std::int64_t kMaxGpus = 10'000'000;

// `gpus` accelerators in nodes of `per_node` (the platform's size where absent). Fewer than a node are
// one node. Errors (at `where`): a count that does not fill its nodes. `spelling` is the cluster as the
// user wrote it without the node size, for what would be valid; empty for a file.
Result<Cluster> build_cluster(const Gpu& gpu, const Platform& platform, std::int64_t gpus,
                              std::optional<std::int64_t> per_node, std::string_view where, std::string_view spelling);

// A whole number from 1 to kMaxGpus; `what` names it in errors.
Result<std::int64_t> read_size(std::string_view text, std::string_view where, std::string_view what);

// The same machines but for their number: GPU, platform, size of a node, and every value of these.
bool same_machine(const Cluster& a, const Cluster& b);
bool same_cluster(const Cluster& a, const Cluster& b);  // and as many
// What tells a cluster's machine from the others: the name of its GPU, else of its platform, else with its node size.
std::string machine_name(const Cluster& of, const std::vector<const Cluster*>& among);

// A line, ready to print, when the field's rung is below exact and has none yet.
void add_assumed_rung(Cluster& cluster, std::string_view field);
// The same for the cluster's main fields.
void add_assumed_rungs(Cluster& cluster);

}  // namespace preflop
