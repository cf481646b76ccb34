#include "src/run/way_out.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>

#include "src/stack/stack_reader.hpp"
#include "src/step/compute.hpp"
#include "src/step/time.hpp"

namespace preflop {

namespace {

constexpr std::size_t kMostWays = 5;
constexpr int kMostSteps = 6;
constexpr std::int64_t kMostGpus = 16384;

// A changed recipe, how it was changed, and what came of it.
struct Way {
  Recipe recipe;
  std::string change;
  double allocated = 0;  // of the fullest stage
  double short_by = 0;   // bytes; 0 or less: it fits
  std::optional<double> seconds;
};

std::string flag(const char* name, std::int64_t value) { return std::string(name) + " " + std::to_string(value); }

// "--tp 4 --pp 2" and "--tp 8": "--pp 2 --tp 8".
std::string joined(const std::string& changes, const std::string& change) {
  const std::string name = change.substr(0, change.find(' '));
  std::string out;
  for (std::size_t from = 0; from < changes.size();) {
    const std::size_t end = std::min(changes.find(" --", from), changes.size());
    const std::string one = changes.substr(from, end - from);
    if (one.substr(0, one.find(' ')) != name) out += one + " ";
    from = end + 1;
  }
  return out + change;
}

class Finder {
 public:
  Finder(const Analysed& a, const Cluster& cluster) : a_(a), cluster_(cluster) {}

  std::vector<Way> find() const {
    std::vector<Way> out = fitting(neighbours(start()));
    if (out.empty()) out = climb();
    if (out.empty()) out = any_layout();
    if (out.empty()) return more_gpus();
    for (Way& way : out) price(way);
    std::stable_sort(out.begin(), out.end(),
                     [](const Way& a, const Way& b) { return a.seconds.value_or(0) < b.seconds.value_or(0); });
    if (out.size() > kMostWays) out.resize(kMostWays);
    return out;
  }

 private:
  Way start() const {
    Way way{a_.recipe, "", 0, 0, {}};
    measure(way);
    return way;
  }

  // Errors of legality: false.
  bool measure(Way& way) const {
    const Result<Analysed> analysed = analyse_recipe(*a_.model, *a_.stack, way.recipe);
    if (!analysed) return false;
    const MemoryEstimate<double> memory = memory_estimate<double>(*analysed, cluster_);
    if (!memory.margin) return false;
    way.allocated = memory.stages[memory.peak_stage].allocated.number();
    way.short_by = -memory.margin->number();
    if (host_short(memory)) way.short_by = std::max(way.short_by, (*memory.host - *memory.host_capacity).number());
    return true;
  }

  void price(Way& way) const {
    const Result<Analysed> analysed = analyse_recipe(*a_.model, *a_.stack, way.recipe);
    if (!analysed) return;
    const auto compute = compute_estimate<double>(*analysed, *find_convention("palm"));
    const auto step = step_estimate<double>(*analysed, cluster_, compute);
    if (step) way.seconds = step->seconds.number();
  }

  void add(std::vector<Way>& out, const Way& from, Recipe recipe, const std::string& change) const {
    Way way{std::move(recipe), joined(from.change, change), 0, 0, {}};
    if (measure(way)) out.push_back(std::move(way));
  }

  // Other parallel sizes on the same GPUs; dp takes what is left.
  void resize(std::vector<Way>& out, const Way& from, const char* name, std::int64_t Layout::* size) const {
    Recipe r = from.recipe;
    r.layout.*size *= 2;
    const std::int64_t parallel = r.layout.tp * r.layout.cp * r.layout.pp;
    if (cluster_.gpus % parallel != 0) return;
    if (size == &Layout::tp && r.layout.tp > cluster_.gpus_per_node) return;
    r.layout.dp = cluster_.gpus / parallel;
    r.layout.sp = a_.stack->sp_default && r.layout.tp > 1;
    r.layout.layers_per_stage.clear();
    add(out, from, r, flag(name, r.layout.*size));
  }

  void offload(std::vector<Way>& out, const Way& from) const {
    const Recipe& base = from.recipe;
    for (const auto& [kind, params, text] : {std::tuple("optimizer", false, "--offload optimizer"),
                                             std::tuple("all", true, "--offload optimizer,params")}) {
      if (base.offload.any() || !a_.stack->offloads(kind)) continue;
      Recipe r = base;
      r.offload.optimizer = 1;
      r.offload.params = params;
      // The host keeps sharded states only.
      const int zero = *std::max_element(a_.stack->zero_allowed.begin(), a_.stack->zero_allowed.end());
      const bool shard = r.layout.zero == 0;
      if (shard) r.layout.zero = zero;
      add(out, from, r, shard ? flag("--zero", zero) + " " + text : std::string(text));
    }
    if (base.offload.any()) {
      Recipe r = base;
      r.offload = {};
      add(out, from, r, "--offload none");
    }
  }

  // Where the inputs of layers that are recomputed one by one are what is too much: several of them together.
  void recompute_together(std::vector<Way>& out, const Way& from) const {
    const auto& known = a_.stack->recompute_layers;
    const Recompute& base = from.recipe.recompute;
    if (base.kind != RecomputeKind::full || base.which != RecomputeLayers::all) return;
    if (std::find(known.begin(), known.end(), RecomputeLayers::units) == known.end()) return;
    for (const std::int64_t layers : {2, 3, 4, 5, 8}) {
      Recipe r = from.recipe;
      r.recompute.which = RecomputeLayers::units;
      r.recompute.layers = layers;
      add(out, from, r, "--recompute " + recompute_text(r.recompute));
    }
  }

  std::vector<Way> neighbours(const Way& from) const {
    std::vector<Way> out;
    const Recipe& base = from.recipe;
    for (const auto& [kind, text] : {std::pair(RecomputeKind::selective, "--recompute selective"),
                                     std::pair(RecomputeKind::full, "--recompute full")}) {
      if (base.recompute.which == RecomputeLayers::all &&
          (base.recompute.kind == kind || base.recompute.kind == RecomputeKind::full))
        continue;
      Recipe r = base;
      r.recompute = {kind, 0, {}};
      add(out, from, r, text);
    }
    recompute_together(out, from);
    offload(out, from);
    if (base.micro_batch % 2 == 0) {
      Recipe r = base;
      r.micro_batch /= 2;
      add(out, from, r, flag("--micro-batch", r.micro_batch));
    }
    for (const LossRule& rule : a_.stack->losses) {
      if (rule.kind == base.loss) continue;
      Recipe r = base;
      r.loss = rule.kind;
      add(out, from, r, std::string("--loss ") + name(rule.kind));
    }
    for (int zero : a_.stack->zero_allowed) {
      if (zero <= base.layout.zero) continue;
      Recipe r = base;
      r.layout.zero = zero;
      add(out, from, r, flag("--zero", zero));
    }
    if (base.layout.hsdp > 0) {
      Recipe r = base;
      r.layout.hsdp = 0;
      add(out, from, r, flag("--hsdp", base.layout.dp * base.layout.cp));
    }
    if (base.layout.tp > 1 && !base.layout.sp && a_.stack->sp_default) {
      Recipe r = base;
      r.layout.sp = true;
      add(out, from, r, "--sp");
    }
    if (base.layout.vpp > 1) {
      Recipe r = base;
      r.layout.vpp = 1;
      r.layout.schedule = a_.stack->schedules.front();
      add(out, from, r, "--vpp 1");
    }
    resize(out, from, "--tp", &Layout::tp);
    resize(out, from, "--pp", &Layout::pp);
    resize(out, from, "--cp", &Layout::cp);
    resize(out, from, "--ep", &Layout::ep);
    return out;
  }

  static std::vector<Way> fitting(const std::vector<Way>& ways) {
    std::vector<Way> out;
    std::copy_if(ways.begin(), ways.end(), std::back_inserter(out), [](const Way& w) { return w.short_by <= 0; });
    return out;
  }

  // The change that leaves least to do, one after the other.
  std::vector<Way> climb() const {
    Way at = start();
    for (int step = 0; step < kMostSteps; ++step) {
      const std::vector<Way> next = neighbours(at);
      std::vector<Way> out = fitting(next);
      if (!out.empty()) return out;
      const auto best = std::min_element(next.begin(), next.end(),
                                         [](const Way& a, const Way& b) { return a.short_by < b.short_by; });
      if (best == next.end() || best->short_by >= at.short_by) return {};
      at = *best;
    }
    return {};
  }

  // Everything recomputed, one sequence at a time, states and experts shared out as far as they go: the
  // least tp and pp.
  std::vector<Way> any_layout() const {
    const std::int64_t layers = layer_count(*a_.model);
    for (std::int64_t tp = 1; tp <= cluster_.gpus_per_node; tp *= 2) {
      for (std::int64_t pp = 1; pp <= layers && tp * pp <= cluster_.gpus; pp *= 2) {
        if (cluster_.gpus % (tp * pp) != 0) continue;
        Way way{a_.recipe, "", 0, 0, {}};
        Recipe& r = way.recipe;
        r.recompute = {RecomputeKind::full, 0, {}};
        r.micro_batch = 1;
        r.layout = Layout{};
        r.layout.tp = tp;
        r.layout.pp = pp;
        r.layout.dp = cluster_.gpus / (tp * pp);
        if (has_experts(*a_.model)) r.layout.ep = std::gcd(expert_count(*a_.model), tp * r.layout.dp);
        r.layout.sp = a_.stack->sp_default && tp > 1;
        r.layout.zero = *std::max_element(a_.stack->zero_allowed.begin(), a_.stack->zero_allowed.end());
        r.layout.schedule = a_.stack->schedules.front();
        way.change = flag("--tp", tp) + " " + flag("--pp", pp) +
                     (r.layout.ep > 1 ? " " + flag("--ep", r.layout.ep) : "") + " " + flag("--zero", r.layout.zero) +
                     " --micro-batch 1 --recompute full";
        if (measure(way) && way.short_by <= 0) return {way};
      }
    }
    return {};
  }

  // No layout of this cluster fits: the same machines, twice as many until one does.
  std::vector<Way> more_gpus() const {
    Cluster larger = cluster_;
    while (larger.gpus <= kMostGpus / 2) {
      larger.gpus *= 2;
      larger.gpus_per_node = std::max(larger.gpus_per_node, std::min(larger.gpus, node_size()));
      const Finder there(a_, larger);
      std::vector<Way> out = there.any_layout();
      if (out.empty()) continue;
      for (Way& way : out) {
        way.change = std::to_string(larger.gpus) + " GPUs with " + way.change;
        there.price(way);
      }
      return out;
    }
    return {};
  }
  std::int64_t node_size() const {
    const std::optional<double>& size = cluster_.datum("gpus_per_node").value;
    return size ? static_cast<std::int64_t>(*size) : cluster_.gpus_per_node;
  }

  const Analysed& a_;
  const Cluster& cluster_;
};

}  // namespace

template <class N>
void add_way_out(EstimateOf<N>& estimate, const Analysed& a) {
  const double allocated = plain(estimate.memory.stages[estimate.memory.peak_stage].allocated.number());
  for (const Way& way : Finder(a, estimate.cluster).find()) {
    WayOut<N> out;
    out.change = way.change;
    const std::string detail = "estimate of the same recipe with " + way.change;
    out.freed = Bytes<N>(leaf<N>(allocated - way.allocated, [&] { return Origin{"freed", "B", detail, {}}; }));
    if (way.seconds && estimate.step) {
      const double factor = *way.seconds / plain(estimate.step->seconds.number());
      out.seconds_factor =
          Ratio<N>(leaf<N>(factor, [&] { return Origin{"step time over that as it is", "", detail, {}}; }));
    }
    estimate.memory.way_out.push_back(std::move(out));
  }
}
template void add_way_out<double>(EstimateOf<double>&, const Analysed&);
template void add_way_out<Traced>(EstimateOf<Traced>&, const Analysed&);

}  // namespace preflop
