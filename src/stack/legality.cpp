#include "src/stack/legality.hpp"

#include <algorithm>
#include <utility>

#include "src/base/text.hpp"
#include "src/stack/software.hpp"
#include "src/stack/stack_reader.hpp"

namespace preflop {

namespace {

std::string n(std::int64_t v) { return std::to_string(v); }

// The sizes that cut `extent` evenly, up to 1024.
std::string divisors(std::int64_t extent) {
  std::string out;
  for (std::int64_t d = 1; d <= std::min<std::int64_t>(extent, 1024); ++d) {
    if (extent % d == 0) out += (out.empty() ? "" : ", ") + n(d);
  }
  return out;
}

Status divides(const char* flag, std::int64_t size, std::int64_t extent, const char* what) {
  if (extent % size == 0) return Nothing{};
  return Error{flag, n(size) + " does not divide the " + n(extent) + " " + what, "one of " + divisors(extent)};
}

Status check_sizes(const Model& model, const Recipe& r) {
  const Layout& l = r.layout;
  const std::pair<const char*, std::int64_t> sizes[] = {{"--tp", l.tp},
                                                        {"--cp", l.cp},
                                                        {"--dp", l.dp},
                                                        {"--pp", l.pp},
                                                        {"--vpp", l.vpp},
                                                        {"--ep", l.ep},
                                                        {"--etp", l.etp},
                                                        {"--seq", r.seq},
                                                        {"--micro-batch", r.micro_batch},
                                                        {"--global-batch", r.global_batch}};
  for (const auto& [flag, size] : sizes) {
    if (size < 1) return Error{flag, n(size) + " is no size", "1 or more"};
  }
  if (l.hsdp < 0 || (l.hsdp > 0 && (l.dp * l.cp) % l.hsdp != 0)) {
    return Error{"--hsdp", n(l.hsdp) + " does not divide dp x cp = " + n(l.dp * l.cp),
                 "one of " + divisors(l.dp * l.cp)};
  }
  const bool experts = std::any_of(model.blocks.begin(), model.blocks.end(),
                                   [](const Block& b) { return b.extents[Axis::experts].get() > 0; });
  if (!experts && l.ep > 1) return Error{"--ep", "the model has no experts", "1"};
  if (!experts && l.etp > 1) return Error{"--etp", "the model has no experts", "1"};
  return Nothing{};
}

// Experts live on a mesh of their own over the same ranks of a stage: ep x etp x edp = tp x cp x dp.
Status check_experts(const Model& model, const Stack& stack, const Recipe& r) {
  const Layout& l = r.layout;
  if (!(r.imbalance >= 1)) return Error{"--imbalance", "less than the mean load", "1 (balanced) or more"};
  if (!(r.capacity_factor >= 0)) return Error{"--capacity-factor", "a negative capacity", "0 (dropless) or more"};
  const std::int64_t ranks = l.tp * l.cp * l.dp;
  bool has_experts = false;
  for (const Block& block : model.blocks) {
    const std::int64_t experts = block.extents[Axis::experts].get();
    if (experts == 0) continue;
    has_experts = true;
    if (Status s = divides("--ep", l.ep, experts, "experts"); !s) return s;
    if (Status s = divides("--etp", l.etp, block.extents[Axis::expert_ffn].get(), "channels of an expert"); !s)
      return s;
    const std::int64_t shared = block.extents[Axis::shared_ffn].get();
    if (Status s = divides("--tp", l.tp, shared, "channels of the shared experts"); !s) return s;
  }
  if (!has_experts) return Nothing{};
  if (!stack.experts) {
    return Error{"--stack",
                 "mixture of experts on stack " + stack.full_name() + ": it has none, or it is not built yet",
                 stack.runs_on("tpu") ? "a dense model, or megatron on GPUs" : "megatron"};
  }
  if (ranks % (l.ep * l.etp) != 0) {
    return Error{"--ep", "ep " + n(l.ep) + " x etp " + n(l.etp) + " does not divide tp x cp x dp = " + n(ranks),
                 "ep x etp one of " + divisors(ranks)};
  }
  if (!stack.own_etp && l.etp != l.tp) {
    return Error{
        "--etp",
        "stack " + stack.full_name() + " cuts experts as it cuts the rest: etp " + n(l.etp) + ", tp " + n(l.tp),
        n(l.tp)};
  }
  if (l.tp > 1 && !l.sp && stack.sp_default && l.ep > 1) {
    return Error{"--no-sp",
                 "stack " + stack.name + " runs expert and tensor parallelism with sequence parallelism only",
                 "--sp, or --ep 1"};
  }
  return Nothing{};
}

Status check_tp(const Model& model, std::int64_t tp) {
  for (const Block& block : model.blocks) {
    const std::int64_t heads = block.extents[Axis::heads].get();
    const std::int64_t kv = block.extents[Axis::kv_heads].get();
    const std::int64_t ffn = block.extents[Axis::ffn].get();
    if (heads > 0) {
      if (Status s = divides("--tp", tp, heads, "query heads"); !s) return s;
      if (kv % tp != 0 && tp % kv != 0) {
        return Error{"--tp", n(tp) + " neither divides the " + n(kv) + " kv heads nor is a multiple of them",
                     "a divisor or a multiple of " + n(kv)};
      }
    }
    if (ffn > 0) {
      if (Status s = divides("--tp", tp, ffn, "channels of the MLP"); !s) return s;
    }
  }
  return Nothing{};
}

// The heads of a state space, and the groups that share what they read, are dealt to tp; to cp they go in exchange for
// tokens, and a group that several ranks need is repeated (Megatron-LM core/ssm/mamba_context_parallel.py).
Status check_scans(const Model& model, const Stack& stack, const Layout& l) {
  for (const Block& block : model.blocks) {
    if (!block.scan) continue;
    const std::string what = name(*block.scan);
    if (std::find(stack.scans.begin(), stack.scans.end(), what) == stack.scans.end())
      return Error{"--stack", what + " layers on stack " + stack.full_name() + " are not built yet",
                   *block.scan == ScanKind::gated_delta ? "textbook"
                   : stack.runs_on("tpu")               ? "textbook, or megatron on GPUs"
                                                        : "megatron or textbook"};
    const std::int64_t heads = block.extents[Axis::ssm_heads].get(), groups = block.extents[Axis::ssm_groups].get();
    if (Status s = divides("--tp", l.tp, heads, "heads of the state space"); !s) return s;
    if (Status s = divides("--tp", l.tp, groups, "groups of state-space heads"); !s) return s;
    if (heads % (l.tp * l.cp) != 0)
      return Error{"--cp",
                   "tp x cp = " + n(l.tp * l.cp) + " does not divide the " + n(heads) + " heads of the state space",
                   "tp x cp one of " + divisors(heads)};
    const std::int64_t own = groups / l.tp;
    if (own % l.cp != 0 && l.cp % own != 0)
      return Error{"--cp",
                   n(l.cp) + " neither divides the " + n(own) +
                       " groups of state-space heads of a rank nor is a "
                       "multiple of them",
                   "a divisor or a multiple of " + n(own)};
  }
  return Nothing{};
}

Status check_sequence(const Recipe& r) {
  const Layout& l = r.layout;
  // Causal context parallelism gives every rank two chunks, one from each end.
  const std::int64_t cut = (l.cp > 1 ? 2 * l.cp : 1) * (l.sp ? l.tp : 1);
  if (r.seq % cut == 0) return Nothing{};
  return Error{"--seq",
               n(r.seq) + " tokens are not a multiple of " + n(cut) + (l.cp > 1 ? " (2 x cp" : " (") +
                   (l.cp > 1 && l.sp ? " x tp)"
                    : l.sp           ? "tp, sequence parallelism)"
                                     : ")"),
               "a multiple of " + n(cut)};
}

Status check_batch(const Recipe& r) {
  const std::int64_t per_step = r.micro_batch * r.layout.dp;
  if (r.global_batch % per_step == 0) return Nothing{};
  return Error{"--global-batch",
               n(r.global_batch) + " sequences are not a multiple of micro-batch " + n(r.micro_batch) + " x dp " +
                   n(r.layout.dp),
               "a multiple of " + n(per_step)};
}

Status check_stack(const Stack& stack, const Recipe& r) {
  const Layout& l = r.layout;
  const std::string on = "stack " + stack.full_name();
  if (r.recompute.kind == RecomputeKind::selective && stack.selective.empty())
    return Error{"--recompute", on + " recomputes whole layers only", "none or full"};
  if (l.sp && l.tp > 1 && !stack.sp_allowed) return Error{"--sp", on + " has no sequence parallelism", "--no-sp"};
  if (l.tp > 1 && !stack.tp_allowed) return Error{"--tp", on + " has no tensor parallelism", "1"};
  if (l.pp > 1 && !stack.pp_allowed) return Error{"--pp", on + " has no pipelines", "1"};
  if (l.cp > 1 && !stack.cp_allowed) return Error{"--cp", on + " has no context parallelism", "1"};
  if (std::find(stack.zero_allowed.begin(), stack.zero_allowed.end(), l.zero) == stack.zero_allowed.end()) {
    std::vector<std::string> allowed;
    for (int z : stack.zero_allowed) allowed.push_back(n(z));
    return Error{"--zero", on + " does not run stage " + n(l.zero), text::list(allowed)};
  }
  // Where a stage shards nothing there are no groups either.
  const auto grouped = [&](int zero) {
    return std::find(stack.hsdp_allowed.begin(), stack.hsdp_allowed.end(), zero) != stack.hsdp_allowed.end();
  };
  if (l.hsdp > 0 && (stack.hsdp_allowed.empty() || (l.zero > 0 && !grouped(l.zero)))) {
    std::vector<std::string> stages;
    for (const int zero : stack.hsdp_allowed) stages.push_back("--zero " + n(zero));
    return Error{"--hsdp", on + " shards over all ranks" + (stages.empty() ? "" : " at zero " + n(l.zero)),
                 stages.empty() ? "leave it out" : text::list(stages)};
  }
  const std::vector<std::string> precisions = stack.precision_names();
  if (std::find(precisions.begin(), precisions.end(), r.precision) == precisions.end())
    return Error{"--precision", on + " does not run " + r.precision, text::list(precisions)};
  const std::string schedule = l.schedule;
  if (std::find(stack.schedules.begin(), stack.schedules.end(), schedule) == stack.schedules.end()) {
    return text::unknown_name("--schedule", "schedule of " + on, schedule, stack.schedules);
  }
  if (std::find(stack.kernels.begin(), stack.kernels.end(), r.attention) == stack.kernels.end()) {
    std::vector<std::string> allowed;
    for (AttentionKernel k : stack.kernels) allowed.emplace_back(name(k));
    return Error{"--attention", on + " has no " + name(r.attention) + " attention", text::list(allowed)};
  }
  if (stack.loss(r.loss) == nullptr) {
    std::vector<std::string> allowed;
    for (const LossRule& rule : stack.losses) {
      if (std::find(allowed.begin(), allowed.end(), name(rule.kind)) == allowed.end())
        allowed.emplace_back(name(rule.kind));
    }
    return Error{"--loss", on + " has no " + std::string(name(r.loss)) + " loss", text::list(allowed)};
  }
  return Nothing{};
}

Status check_pipeline(const Recipe& r) {
  const Layout& l = r.layout;
  if (l.vpp > 1 && l.pp == 1) return Error{"--vpp", "virtual stages need a pipeline", "--pp of 2 or more, or --vpp 1"};
  if (l.vpp > 1 && l.schedule != "interleaved")
    return Error{"--schedule", l.schedule + " runs one chunk a stage, --vpp is " + n(l.vpp), "interleaved"};
  if (l.vpp == 1 && l.schedule == "interleaved")
    return Error{"--schedule", "interleaved needs virtual stages", "--vpp of 2 or more"};
  if (l.vpp > 1 && r.micro_batches() % l.pp != 0) {
    return Error{"--global-batch",
                 "interleaving runs micro-batches in groups of pp: " + n(r.micro_batches()) +
                     " are not a multiple of " + n(l.pp),
                 "micro-batches in multiples of " + n(l.pp)};
  }
  return Nothing{};
}

// What a stack can keep on the host, as the flag says it.
std::string offload_choices(const Stack& stack) {
  std::string out = "none";
  if (stack.offloads("optimizer")) out += ", optimizer";
  if (stack.offloads("optimizer-part")) out += " (or a share: optimizer=0.5)";
  if (stack.offloads("all")) out += ", optimizer=cpu,params=cpu";
  if (stack.offloads("activations")) out += ", activations=N without recomputation and pipeline";
  if (stack.offloads("checkpoints")) out += ", activations with --recompute full";
  return out;
}

Status check_offload(const Model& model, const Stack& stack, const Recipe& r) {
  const Offload& o = r.offload;
  const auto refuse = [&](std::string what) {
    return Error{"--offload", "stack " + stack.name + " " + std::move(what), offload_choices(stack)};
  };
  if (o.params && (o.optimizer < 1 || !stack.offloads("all")))
    return refuse(stack.offloads("all") ? "keeps the optimizer states where the weights are"
                                        : "does not keep weights on the host");
  if (o.optimizer > 0 && !o.params && !stack.offloads("optimizer"))
    return refuse(stack.offloads("all") ? "moves weights, gradients and optimizer states together"
                                        : "does not keep optimizer states on the host");
  if (o.optimizer > 0 && o.optimizer < 1 && !stack.offloads("optimizer-part"))
    return refuse("moves all optimizer states or none");
  if (o.optimizer > 0 && r.layout.zero == 0)
    return Error{"--offload", "the host keeps sharded optimizer states only", "--zero 1 or more"};
  if (o.activations == 0) return Nothing{};
  const bool checkpoints = r.recompute.kind == RecomputeKind::full && r.recompute.which == RecomputeLayers::all;
  if (stack.offloads("checkpoints") && checkpoints && !o.some_layers()) return Nothing{};
  if (!stack.offloads("activations")) return refuse("does not move activations to the host so");
  if (r.recompute.kind != RecomputeKind::none) return refuse("moves activations or recomputes them, not both");
  if (r.layout.pp > 1) return refuse("moves activations without a pipeline only");
  const std::int64_t layers = layer_count(model);
  const bool all = stack.offloads("activations-of-all");
  if (o.activations < layers || (all && (o.activations == layers || !o.some_layers()))) return Nothing{};
  return Error{"--offload",
               "stack " + stack.name + " moves the activations of " + (all ? "the " : "fewer than the ") + n(layers) +
                   " layers that the model has",
               "activations=N, N of at most " + n(all ? layers : layers - 1)};
}

}  // namespace

Status check_legal(const Model& model, const Stack& stack, const Recipe& recipe) {
  if (Status s = check_sizes(model, recipe); !s) return s;
  if (Status s = check_stack(stack, recipe); !s) return s;
  if (Status s = check_software(model, stack, recipe); !s) return s;
  if (Status s = check_tp(model, recipe.layout.tp); !s) return s;
  if (Status s = check_scans(model, stack, recipe.layout); !s) return s;
  if (Status s = check_experts(model, stack, recipe); !s) return s;
  if (Status s = check_sequence(recipe); !s) return s;
  if (Status s = check_batch(recipe); !s) return s;
  if (Status s = check_offload(model, stack, recipe); !s) return s;
  return check_pipeline(recipe);
}

}  // namespace preflop
