// A Slurm batch script that starts run.sh (another export) on every node.
#include "src/adapt/export/export.hpp"

namespace preflop {

Result<Exported> export_slurm(const Problem& p, const Request& request) {
  Exported out;
  out.text = "#!/bin/bash\n";
  const auto directive = [&](const std::string& key, const std::string& value = "") {
    out.options.emplace_back(key, value);
    out.text += "#SBATCH " + key + (value.empty() ? "" : "=" + value) + "\n";
  };
  directive("--job-name", p.architecture.name.empty() ? "preflop" : p.architecture.name);
  directive("--nodes", std::to_string(p.cluster.nodes()));
  directive("--ntasks-per-node", "1");
  directive("--gpus-per-node", std::to_string(processes_per_node(p)));
  directive("--exclusive");
  directive("--time", "24:00:00");
  directive("--output", "%x-%j.out");
  out.text += rest_line(p, request, {}, out.left_out);
  out.text +=
      "set -euo pipefail\n"
      "HEAD_NODE=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
      "export HEAD_NODE\n"
      "srun bash run.sh\n";
  return out;
}

}  // namespace preflop
