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
  directive("--job-name", file_name(p));
  directive("--nodes", std::to_string(p.cluster.nodes()));
  directive("--ntasks-per-node", "1");
  directive("--gpus-per-node", std::to_string(processes_per_node(p)));
  directive("--exclusive");
  directive("--mem", "0");  // all of it: a default by core may be less
  directive("--time", "24:00:00");
  directive("--output", "%x-%j.out");
  out.text += rest_line(p, request, {}, out.left_out);
  out.text +=
      "set -euo pipefail\n"
      "if [[ ! -r run.sh ]]; then\n"
      "  echo 'run.sh, the launch script of one node, is not in the folder of this job' >&2\n"
      "  exit 1\n"
      "fi\n"
      "HEAD_NODE=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | sed -n 1p)\n"
      "export HEAD_NODE MASTER_ADDR=\"$HEAD_NODE\" MASTER_PORT=29500\n"
      "# One launcher a node, on all of its cores; the first that fails ends the job.\n"
      "srun --kill-on-bad-exit=1 --cpu-bind=none bash run.sh\n";
  return out;
}

}  // namespace preflop
