#include "src/adapt/recipe_words.hpp"

#include <tuple>

#include "src/base/decimal.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

std::map<std::string, std::string> recipe_words(const Recipe& r) {
  const Layout& l = r.layout;
  std::map<std::string, std::string> out;
  const auto put = [&](const char* key, std::int64_t v) { out[key] = std::to_string(v); };
  put("tp", l.tp);
  put("pp", l.pp);
  put("vpp", l.vpp);
  put("cp", l.cp);
  put("ep", l.ep);
  put("etp", l.etp);
  put("dp", l.dp);
  put("zero", l.zero);
  if (l.hsdp > 0) put("hsdp", l.hsdp);
  if (l.tp > 1) out["sp"] = l.sp ? "true" : "false";
  if (l.pp > 1) out["schedule"] = l.schedule;
  std::string split;
  for (const std::int64_t n : l.layers_per_stage) split += (split.empty() ? "" : ",") + std::to_string(n);
  if (!split.empty()) out["layers_per_stage"] = split;
  put("seq", r.seq);
  put("micro_batch", r.micro_batch);
  put("global_batch", r.global_batch);
  out["stack"] = stack_text(r);
  out["precision"] = r.precision;
  out["optimizer"] = r.optimizer;
  if (r.given.contains("optimizer_implementation")) out["optimizer_implementation"] = r.optimizer_implementation;
  out["weight_dtype"] = name(r.weight_dtype);
  out["grad_dtype"] = name(r.grad_dtype);
  out["master_dtype"] = name(r.master_dtype);
  out["moment_dtype"] = name(r.moment_dtype);
  out["attention"] = name(r.attention);
  out["loss"] = name(r.loss);
  if (r.given.contains("compile") || r.compile) out["compile"] = r.compile ? "true" : "false";
  out["recompute"] = recompute_text(r.recompute);
  if (r.offload.any()) out["offload"] = offload_text(r.offload);
  if (r.given.contains("dispatcher") || r.dispatcher != Recipe().dispatcher) out["dispatcher"] = r.dispatcher;
  if (r.cp_comm != Recipe().cp_comm) out["cp_comm"] = r.cp_comm;
  if (r.cuda_graph != Recipe().cuda_graph) out["cuda_graph"] = r.cuda_graph;
  if (r.given.contains("cuda_graph_scope")) {
    std::string& parts = out["cuda_graph_scope"];
    for (const std::string& part : r.cuda_graph_scope) parts += (parts.empty() ? "" : ",") + part;
  }
  for (const auto& [key, on, usual] :
       {std::tuple{"dp_overlap", r.dp_overlap, true}, std::tuple{"tp_overlap", r.tp_overlap, false},
        std::tuple{"ep_overlap", r.ep_overlap, false}, std::tuple{"fused_experts", r.fused_experts, false},
        std::tuple{"fp8_attention", r.fp8_attention, false}}) {
    if (on != usual) out[key] = on ? "true" : "false";
  }
  if (r.mtp > 0) put("mtp", r.mtp);
  if (r.capacity_factor > 0) out["capacity_factor"] = shortest(r.capacity_factor);
  if (r.imbalance != 1) out["imbalance"] = shortest(r.imbalance);
  if (r.tokens) out["tokens"] = shortest(*r.tokens);
  if (r.mfu) out["mfu"] = shortest(*r.mfu) + "@" + r.mfu_convention;
  return out;
}

}  // namespace preflop
