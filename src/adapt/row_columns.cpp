// The schema of a row, and checks of single cells.
#include <array>

#include "src/adapt/rows.hpp"

namespace preflop {

const std::vector<RowColumn>& row_columns() {
  using K = RowColumn::Kind;
  static const std::vector<RowColumn> kColumns = {
      {"id", K::text}, {"ref", K::remark}, {"source", K::remark}, {"source_ref", K::remark}, {"notes", K::remark},
      {"date", K::text}, {"stack", K::text}, {"framework", K::word}, {"task", K::text},
      {"model", K::word}, {"params", K::real}, {"size_b", K::real}, {"layers", K::count}, {"hidden", K::count},
      {"heads", K::count}, {"kv_heads", K::count}, {"ffn", K::count}, {"vocab", K::count}, {"experts", K::size},
      {"topk", K::size}, {"head_dim", K::count}, {"moe_ffn", K::size}, {"dense_layers", K::size}, {"mtp", K::size},
      {"gpu", K::word}, {"cap_gb", K::real}, {"gpus", K::count}, {"gpus_per_node", K::count}, {"net_gbps", K::real},
      {"internode", K::word},
      {"precision", K::word}, {"bf16_layers", K::size}, {"weight_dtype", K::text}, {"grad_dtype", K::text},
      {"reduce_dtype", K::text}, {"master_dtype", K::text}, {"moment_dtype", K::text}, {"quantize", K::text},
      {"seq", K::count}, {"longest", K::count}, {"packing", K::text}, {"gbs", K::count}, {"mbs", K::count},
      {"tp", K::count}, {"pp", K::count}, {"vpp", K::count}, {"cp", K::count}, {"ep", K::count}, {"etp", K::count},
      {"dp", K::count}, {"mp", K::count}, {"folding", K::yes_no}, {"zero", K::size}, {"hsdp", K::count},
      {"sharding", K::word}, {"seq_parallel", K::word}, {"schedule", K::text}, {"split", K::text}, {"pp_layout", K::text},
      {"recompute", K::word}, {"offload", K::word}, {"compile", K::yes_no}, {"optimizer", K::word},
      {"optimizer_in_backward", K::yes_no}, {"lora", K::word}, {"loss", K::text}, {"attention", K::text},
      {"cp_comm", K::text}, {"dispatcher", K::text}, {"capacity", K::real}, {"cuda_graph", K::text},
      {"graph_scope", K::text},
      {"tok_s_gpu", K::measured}, {"samples_s", K::measured}, {"step_s", K::measured}, {"tflops_gpu", K::measured},
      {"tflops_kind", K::word}, {"convention", K::text}, {"peak_tflops", K::real}, {"mfu", K::measured},
      {"mfu_causal", K::real}, {"hfu", K::real}, {"peak_mem_gib", K::measured}, {"mem_kind", K::word},
      {"peak_bytes", K::measured}, {"reserved_gib", K::measured}, {"device_gib", K::measured}, {"end_gib", K::real},
      {"stage_gib", K::text}, {"oom", K::yes_no}, {"bubble", K::real}, {"run_hours", K::measured},
      {"run_tokens_b", K::real}, {"flags", K::list}, {"assumed", K::list}, {"refused", K::text}};
  return kColumns;
}

}  // namespace preflop
