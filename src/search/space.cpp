#include "src/search/space.hpp"

#include <algorithm>
#include <limits>

#include "src/stack/software.hpp"

namespace preflop {

namespace {

// What the open axes of a model with experts leave out, to keep its many axes few: larger sizes are the user's to give.
constexpr std::int64_t kLargestMicroBatch = 64, kLargestExpertMicroBatch = 16;
constexpr std::int64_t kLeastTokens = 1024;  // of a sequence on one GPU, where context parallelism cuts it
constexpr std::int64_t kLargestTensor = 16;  // beyond a node's links, and beyond 16

std::vector<std::int64_t> divisors(std::int64_t of, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= std::min(of, most); ++d) {
    if (of % d == 0) out.push_back(d);
  }
  return out;
}

// The greatest extent of an axis over the model's blocks.
std::int64_t extent(const Model& model, Axis axis) {
  std::int64_t most = 0;
  for (const Block& block : model.blocks) most = std::max(most, block.extents[axis].get());
  return most;
}

template <class T>
std::vector<T> one_or(bool fixed, T given, std::vector<T> open) {
  return fixed ? std::vector<T>{std::move(given)} : std::move(open);
}

// With what a layer keeps on the host a stack recomputes all or nothing, one of the two, as check_legal says: what is
// legal then does not depend on this axis.
std::vector<Recompute> policies_beside_offload(const Stack& stack, const Offload& offload) {
  const bool checkpoints = !offload.some_layers() && stack.offloads("checkpoints");
  return {{checkpoints ? RecomputeKind::full : RecomputeKind::none, 0, {}}};
}

std::vector<Recompute> policies(const Model& model, const Stack& stack) {
  std::vector<Recompute> out = {{RecomputeKind::none, 0, {}}};
  const auto by_name = [&](const Segment& s) { return s.name == stack.selective && s.touches(model); };
  if (std::any_of(stack.segments.begin(), stack.segments.end(), by_name))
    out.push_back({RecomputeKind::selective, 0, {}});
  std::vector<std::string> cheap;  // checkpoints without output, all together
  for (const Segment& s : stack.segments) {
    if (s.compiled || s.name == "full" || !s.touches(model)) continue;
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const Recompute& r) { return r.modules == std::vector{s.name}; });
    if (known) continue;
    if (s.name != stack.selective) out.push_back({RecomputeKind::modules, 0, {s.name}});
    if (s.drops_output) cheap.push_back(s.name);
  }
  if (cheap.size() > 1) out.push_back({RecomputeKind::modules, 0, std::move(cheap)});
  out.push_back({RecomputeKind::full, 0, {}});
  return out;
}

std::vector<std::int64_t> shard_groups(const Cluster& cluster) {
  std::vector<std::int64_t> out = {0};
  if (cluster.gpus_per_node > 1 && cluster.gpus_per_node < cluster.gpus) out.push_back(cluster.gpus_per_node);
  return out;
}

}  // namespace

const char* name(PlanAxis axis) {
  static constexpr const char* kNames[kPlanAxes] = {"tp",          "cp", "sp",  "pp",        "vpp",  "layers_per_stage",
                                                    "micro_batch", "ep", "etp", "recompute", "loss", "zero",
                                                    "hsdp"};
  return kNames[static_cast<int>(axis)];
}

std::uint32_t Space::size(PlanAxis axis) const {
  const auto of = [](const auto& values) { return static_cast<std::uint32_t>(values.size()); };
  switch (axis) {
    case PlanAxis::tp:
      return of(tp);
    case PlanAxis::cp:
      return of(cp);
    case PlanAxis::sp:
      return of(sp);
    case PlanAxis::pp:
      return of(pp);
    case PlanAxis::vpp:
      return of(vpp);
    case PlanAxis::split:
      return of(split);
    case PlanAxis::micro_batch:
      return of(micro_batch);
    case PlanAxis::ep:
      return of(ep);
    case PlanAxis::etp:
      return of(etp);
    case PlanAxis::recompute:
      return of(recompute);
    case PlanAxis::loss:
      return of(loss);
    case PlanAxis::zero:
      return of(zero);
    case PlanAxis::hsdp:
      return of(hsdp);
  }
  return 1;
}

std::uint64_t Space::size() const {
  std::uint64_t n = 1;
  for (int i = 0; i < kPlanAxes; ++i) {
    if (__builtin_mul_overflow(n, std::uint64_t{size(static_cast<PlanAxis>(i))}, &n))
      return std::numeric_limits<std::uint64_t>::max();
  }
  return n;
}

std::uint64_t Space::ordinal(const Position& at) const {
  std::uint64_t n = 0;
  for (int i = 0; i < kPlanAxes; ++i) n = n * size(static_cast<PlanAxis>(i)) + at[static_cast<std::size_t>(i)];
  return n;
}

Position Space::position(std::uint64_t ordinal) const {
  Position at{};
  for (int i = kPlanAxes - 1; i >= 0; --i) {
    const std::uint32_t n = size(static_cast<PlanAxis>(i));
    at[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(ordinal % n);
    ordinal /= n;
  }
  return at;
}

Space make_space(const Question& q) {
  const Model& model = *q.model;
  const Stack& stack = *q.stack;
  const std::int64_t gpus = q.cluster.gpus;
  const Layout& given = q.recipe.layout;
  const std::int64_t heads = std::max<std::int64_t>(1, extent(model, Axis::heads));
  const std::int64_t experts = expert_count(model);
  const std::int64_t layers = layer_count(model);
  const std::int64_t width = std::max<std::int64_t>(1, extent(model, Axis::expert_ffn));
  Space out;
  const Offload& offload = q.recipe.offload;
  const std::int64_t reach = experts > 0 ? std::max(kLargestTensor, q.cluster.gpus_per_node) : heads;
  const std::int64_t least = experts > 0 ? kLeastTokens : 2;
  const std::vector<std::int64_t> tensor = divisors(gpus, stack.tp_allowed ? std::min(heads, reach) : 1);
  out.tp = one_or(q.fixed("tp"), given.tp, tensor);
  const std::int64_t most_cp = stack.cp_allowed ? std::max<std::int64_t>(1, q.recipe.seq / least) : 1;
  out.cp = one_or(q.fixed("cp"), given.cp, divisors(gpus, most_cp));
  out.pp = one_or(q.fixed("pp"), given.pp, divisors(gpus, stack.pp_allowed ? layers + 2 : 1));
  std::vector<std::int64_t> chunks;
  for (std::int64_t v = 1; v <= std::max<std::int64_t>(1, (layers + 2) / 2); ++v) chunks.push_back(v);
  const bool interleaves =
      std::find(stack.schedules.begin(), stack.schedules.end(), "interleaved") != stack.schedules.end();
  out.vpp = one_or(q.fixed("vpp") || q.fixed("layers_per_stage") || !interleaves, given.vpp, std::move(chunks));
  const bool one_sp = q.fixed("sp") || stack.sp_default || !stack.sp_allowed;
  out.sp = one_or<bool>(one_sp, q.fixed("sp") ? given.sp : stack.sp_allowed, {false, true});
  out.micro_batch =
      one_or(q.fixed("micro_batch"), q.recipe.micro_batch,
             divisors(q.recipe.global_batch, experts > 0 ? kLargestExpertMicroBatch : kLargestMicroBatch));
  out.ep = one_or(q.fixed("ep") || experts == 0, given.ep, divisors(std::max<std::int64_t>(1, experts), gpus));
  std::vector<std::int64_t> etp;
  // Whatever tp is: a stack whose experts are cut as the rest has no other choice, others have all.
  for (const std::int64_t n : stack.own_etp ? tensor : out.tp) {
    if (width % n == 0 && n <= q.cluster.gpus_per_node) etp.push_back(n);
  }
  if (etp.empty()) etp = {1};
  out.etp = one_or(q.fixed("etp") || experts == 0, given.etp, std::move(etp));
  out.zero = one_or(q.fixed("zero"), given.zero, stack.zero_allowed);
  if (offload.optimizer > 0 && !q.fixed("zero")) std::erase(out.zero, 0);
  out.hsdp = one_or(q.fixed("hsdp") || stack.hsdp_allowed.empty(), given.hsdp, shard_groups(q.cluster));
  out.recompute = one_or(q.fixed("recompute"), q.recipe.recompute,
                         offload.activations > 0 ? policies_beside_offload(stack, offload) : policies(model, stack));
  if (!q.fixed("recompute")) {
    std::erase_if(out.recompute, [&, beside = q.recipe](const Recompute& policy) mutable {
      beside.recompute = policy;
      return !may_recompute(stack, beside);
    });
  }
  std::vector<LossKind> losses;
  for (const LossRule& rule : stack.losses) losses.push_back(rule.kind);
  out.loss = one_or(q.fixed("loss"), q.recipe.loss, std::move(losses));
  const bool deals = stack.uneven_stages && !q.fixed("layers_per_stage");
  out.split = deals ? std::vector<int>{0, 1, 2} : std::vector<int>{0};
  if (q.fixed("dp")) out.dp = given.dp;
  return out;
}

std::optional<std::vector<std::int64_t>> split_choice(std::int64_t layers, std::int64_t pp, std::int64_t vpp,
                                                      int choice, const Stack& stack) {
  if (choice == 0) return std::vector<std::int64_t>{};
  if (!stack.uneven_stages || vpp > 1 || pp < 3) return std::nullopt;
  // Middle stages of ceil(L / pp) + choice - 1 layers; the ends share the rest, the last one the smaller half.
  const std::int64_t middle = (layers + pp - 1) / pp + choice - 1;
  const std::int64_t rest = layers - (pp - 2) * middle;
  if (rest < 2 || rest >= 2 * middle) return std::nullopt;
  std::vector<std::int64_t> out(static_cast<std::size_t>(pp), middle);
  out.front() = rest - rest / 2;
  out.back() = rest / 2;
  return out;
}

Recipe digits_at(const Question& q, const Space& space, const Position& at) {
  const auto digit = [&](PlanAxis axis) { return static_cast<std::size_t>(at[static_cast<std::size_t>(axis)]); };
  Recipe r = q.recipe;
  Layout& l = r.layout;
  l.tp = space.tp[digit(PlanAxis::tp)];
  l.cp = space.cp[digit(PlanAxis::cp)];
  l.pp = space.pp[digit(PlanAxis::pp)];
  l.vpp = space.vpp[digit(PlanAxis::vpp)];
  l.ep = space.ep[digit(PlanAxis::ep)];
  l.etp = space.etp[digit(PlanAxis::etp)];
  l.sp = space.sp[digit(PlanAxis::sp)] && l.tp > 1;
  l.zero = space.zero[digit(PlanAxis::zero)];
  l.hsdp = space.hsdp[digit(PlanAxis::hsdp)];
  r.micro_batch = space.micro_batch[digit(PlanAxis::micro_batch)];
  r.recompute = space.recompute[digit(PlanAxis::recompute)];
  r.loss = space.loss[digit(PlanAxis::loss)];
  l.dp = std::max<std::int64_t>(1, q.cluster.gpus / l.model_parallel());
  if (!q.fixed("schedule")) l.schedule = l.vpp > 1 ? "interleaved" : q.stack->schedules.front();
  return r;
}

std::optional<Recipe> recipe_at(const Question& q, const Space& space, const Position& at) {
  Recipe r = digits_at(q, space, at);
  Layout& l = r.layout;
  if (q.cluster.gpus % l.model_parallel() != 0) return std::nullopt;
  const int choice = space.split[at[static_cast<std::size_t>(PlanAxis::split)]];
  const auto split = split_choice(layer_count(*q.model), l.pp, l.vpp, choice, *q.stack);
  if (!split) return std::nullopt;
  if (!split->empty()) l.layers_per_stage = *split;
  return r;
}

}  // namespace preflop
