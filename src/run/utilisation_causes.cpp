#include "src/run/utilisation_causes.hpp"

#include <algorithm>

#include "src/base/text.hpp"
#include "src/step/time.hpp"

namespace preflop {

namespace {

using Kind = Measurement::Kind;

// What a training run's MFU looks like; an alternative reading of a number is offered only inside it.
constexpr double kLow = 0.10, kHigh = 0.75;
constexpr double kVeryLow = 0.10;  // below it, a number of another scope is likelier than a bad run
bool plausible(double mfu) { return mfu >= kLow && mfu <= kHigh; }

std::string tflops(double f) { return text::fixed(f / 1e12, f < 99.95e12 ? 1 : 0) + " TFLOP/s"; }
std::string precision_of(std::string_view field) { return std::string(field.substr(0, field.find('_'))); }

class Causes {
 public:
  Causes(const Utilisation& use, const Analysed& analysed, const Estimate& estimate, const MachineCatalogue& catalogue)
      : u(use), a(analysed), e(estimate), machines(catalogue) {}

  std::vector<Cause> all() {
    given_peak();
    if (u.mfu > 1) {
      add("over_peak", "more than 100 % cannot be: something in the count is not what it seems");
      non_causal();
      scope(1);
      other_gpu();
      lower_precision();
      add("frozen",
          "parts were frozen or adapted with LoRA: their weight gradients, a third of the work, are not done");
    } else if (u.predicted_mfu && u.mfu > *u.predicted_mfu) {
      faster_than_predicted();
    } else {
      slower_than_predicted();
    }
    return std::move(out_);
  }

 private:
  void add(const char* kind, std::string sentence) { out_.push_back({kind, std::move(sentence)}); }
  double node() const {
    const Datum& d = e.cluster.platform.datum("gpus_per_node");
    return d.value.value_or(static_cast<double>(e.cluster.gpus_per_node));
  }
  double gpus() const { return static_cast<double>(e.cluster.gpus); }
  std::string becomes(double mfu) const { return "MFU would be " + text::percent(mfu); }

  void given_peak() {
    if (!u.peak.given || u.peak.field == "given") {
      if (u.peak.given && u.peak.catalogue)
        add("given_peak", "the peak is the given one; the dense " + a.recipe.precision + " peak of " +
                              e.cluster.gpu.id + " is " + tflops(*u.peak.catalogue));
      return;
    }
    const std::string dense = "; dense is " + tflops(u.peak.flops) + ", which MFU is counted against";
    for (const KnownPeak& k : u.peak.known) {
      if (k.gpu == e.cluster.gpu.id && k.field == u.peak.field) return;  // the dense peak itself
    }
    const KnownPeak& k = best_known();
    const std::string what =
        tflops(*u.peak.given) + " is the " +
        (k.sparse ? precision_of(k.field) + " sparse headline" : "dense " + precision_of(k.field) + " peak") + " of " +
        k.gpu;
    if (k.sparse && k.gpu == e.cluster.gpu.id) {
      const auto twin = std::find_if(u.peak.known.begin(), u.peak.known.end(),
                                     [&](const KnownPeak& t) { return t.gpu == k.gpu && !t.sparse; });
      add("sparse_peak", what + " (2:4 sparsity, which training does not use)" + dense +
                             (twin == u.peak.known.end()
                                  ? ""
                                  : " (it is also the dense " + precision_of(twin->field) +
                                        " peak: right only for products in " + precision_of(twin->field) + ")"));
    } else if (k.gpu == e.cluster.gpu.id) {
      add("precision_peak", what + ", not its " + a.recipe.precision + " peak" + dense);
    } else {
      add("other_peak", what + ", not of " + e.cluster.gpu.id + dense);
    }
  }
  // The own sparse headline before the own other rates before those of other GPUs.
  const KnownPeak& best_known() const {
    for (const KnownPeak& k : u.peak.known) {
      if (k.gpu == e.cluster.gpu.id && k.sparse) return k;
    }
    return u.peak.known.front();
  }

  // The number is of a node, of one GPU, of all GPUs, of a micro-step. `direction` 1: too fast, -1: too slow.
  void scope(int direction) {
    const double per_node = node(), count = gpus();
    if (direction > 0) {
      if (u.measured.kind == Kind::tokens_per_second_per_gpu && per_node > 1 && plausible(u.mfu / per_node))
        add("per_node", "tokens/s of a node taken for those of a GPU: divided by " +
                            text::grouped(static_cast<long long>(per_node)) + ", " + becomes(u.mfu / per_node));
      if (u.measured.kind == Kind::tokens_per_second_per_gpu && count != per_node && plausible(u.mfu / count))
        add("per_cluster", "tokens/s of all GPUs taken for those of one: divided by " + text::grouped(e.cluster.gpus) +
                               ", " + becomes(u.mfu / count));
      if (u.measured.kind == Kind::tokens_per_second && per_node > 1 && plausible(u.mfu / per_node))
        add("nodes_for_gpus", "the count in --on is of nodes, not GPUs: with " +
                                  text::grouped(static_cast<long long>(count * per_node)) + " GPUs, " +
                                  becomes(u.mfu / per_node));
      const double micro = static_cast<double>(a.recipe.micro_batches());
      if (u.measured.kind == Kind::step_seconds && micro > 1 && plausible(u.mfu / micro))
        add("micro_step", "the seconds are of one micro-batch, not of an optimizer step of " +
                              text::grouped(a.recipe.micro_batches()) + ": " + becomes(u.mfu / micro));
    } else if (u.measured.kind == Kind::tokens_per_second) {
      if (count > 1 && plausible(u.mfu * count))
        add("per_gpu", "tokens/s of one GPU taken for those of all: times " + text::grouped(e.cluster.gpus) + ", " +
                           becomes(u.mfu * count));
      const double nodes = static_cast<double>(e.cluster.nodes());
      if (nodes > 1 && plausible(u.mfu * nodes))
        add("per_node", "tokens/s of one node taken for those of all: times " + text::grouped(e.cluster.nodes()) +
                            ", " + becomes(u.mfu * nodes));
    }
  }

  void non_causal() {
    const double attention = e.compute.attention.number() / e.compute.model.number();
    for (const ConventionUse& c : u.conventions) {
      if (c.convention->visible != Visible::causal || attention < 0.25) continue;
      add("non_causal", "at " + text::grouped(a.recipe.seq) + " tokens attention is " + text::percent(attention, 0) +
                            " of what palm counts, and the causal mask skips half of it: " + text::percent(c.mfu) +
                            " under " + c.convention->name);
    }
  }

  void other_gpu() {
    struct Candidate {
      double peak;
      std::string id;
    };
    std::vector<Candidate> found;
    for (const Gpu& gpu : machines.gpus()) {
      const Datum& d = gpu.datum(peak_field(a.recipe.precision));
      if (gpu.id == e.cluster.gpu.id || gpu.vendor != e.cluster.gpu.vendor || !d.value) continue;
      if (plausible(u.mfu * u.peak.flops / *d.value)) found.push_back({*d.value, gpu.id});
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.peak < y.peak; });
    if (found.empty()) return;
    const Candidate& first = found.front();
    add("other_gpu", "the run was on another GPU: on " + first.id + " (" + tflops(first.peak) + ") " +
                         becomes(u.mfu * u.peak.flops / first.peak));
  }

  void lower_precision() {
    const Datum& fp8 = e.cluster.datum("fp8_flops");
    if (!fp8.value || u.mfu * u.peak.flops / *fp8.value > kHigh) return;
    add("precision", "the products ran in fp8, whose dense peak is " + tflops(*fp8.value) + ": " +
                         becomes(u.mfu * u.peak.flops / *fp8.value));
  }

  void faster_than_predicted() {
    add("other_recipe",
        "faster than the assumed recipe is predicted to be: the recipe, the software or the count differs");
    if (a.recipe.recompute.kind != RecomputeKind::none && !a.recipe.given.contains("recompute"))
      add("recompute", "recomputation is assumed here; the run may do without");
    scope(1);
    lower_precision();
    does_not_fit();
  }

  void does_not_fit() {
    if (e.memory.verdict == Verdict::no)
      add("does_not_fit", "the recipe assumed here does not fit, so another one ran: give its flags");
  }

  void slower_than_predicted() {
    if (u.mfu < kVeryLow) scope(-1);
    does_not_fit();
    if (!u.predicted_mfu) {
      add("no_prediction", missing_rates(a.recipe, e.cluster) + ", so there is nothing to compare with");
      return;
    }
    const double reached = u.mfu / *u.predicted_mfu;
    if (reached < 0.85 && a.recipe.recompute.kind != RecomputeKind::full && !a.recipe.given.contains("recompute"))
      add("recompute", "full recomputation, which is not assumed here, costs a fourth pass: the prediction would be " +
                           text::percent(*u.predicted_mfu * 0.75));
    add("kernels",
        "kernels slower than those that the stack is assumed to use: another attention kernel, unfused passes, "
        "a GPU that its power limit slows");
    const Layout& l = a.recipe.layout;
    if (l.tp > 1) add("tp_comm", "tensor-parallel exchanges slower than the link usually is, or not overlapped");
    if (l.pp > 1) add("imbalance", "pipeline stages of unequal work, gaps between micro-batches");
    if (e.cluster.nodes() > 1) add("network", "a network slower than usual, or exchanges that are not hidden");
    if (a.recipe.micro_batch * a.recipe.seq / (l.tp * l.cp) < 2048)
      add("launch", "kernels so small that launching them takes longer than running them");
    add("outside", "data loading, logging, checkpoints and evaluation inside the measured time");
  }

  const Utilisation& u;
  const Analysed& a;
  const Estimate& e;
  const MachineCatalogue& machines;
  std::vector<Cause> out_;
};

}  // namespace

std::vector<Cause> likely_causes(const Utilisation& u, const Analysed& a, const Estimate& e,
                                 const MachineCatalogue& machines) {
  return Causes(u, a, e, machines).all();
}

}  // namespace preflop
