#include "src/view/text.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/text.hpp"
#include "src/search/why.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/step/memory.hpp"
#include "src/view/json.hpp"
#include "src/view/memory_text.hpp"
#include "src/view/run_text.hpp"

namespace preflop {

namespace {

constexpr std::size_t kLabel = 12;  // the column of headings: "Recipe      "

// Text after a heading in the first columns, wrapped under itself.
std::string section(const std::string& heading, const std::string& body) {
  std::string out;
  for (const std::string& line : text::wrapped(body, text::kColumns - kLabel)) {
    const std::string left = out.empty() ? heading : "";
    out += left + std::string(kLabel - std::min(left.size(), kLabel), ' ') + line + "\n";
  }
  return out;
}

std::string plural(std::int64_t n, const char* one, const char* many) {
  return text::grouped(n) + " " + (n == 1 ? one : many);
}

std::string cluster_words(const Cluster& c) {
  if (c.memory_only) return text::grouped(c.gpus) + " x " + c.gpu.id;
  std::string out = text::grouped(c.gpus) + " x " + c.gpu.id;
  if (!c.platform.id.empty() && c.platform.id != c.gpu.id)
    out += " (" + c.platform.id + (c.nodes() > 1 ? ", " + plural(c.nodes(), "node", "nodes") : "") + ")";
  return out;
}

std::string verdict_words(const Estimate& e) {
  const MemoryEstimate<double>& m = e.memory;
  const std::string stage =
      m.stages.size() > 1 ? " on stage " + std::to_string(m.stages[m.peak_stage].stage) + ", the fullest" : "";
  if (!m.margin)
    return "memory of this GPU not known, " + text::gib(needed_at_most(m).number()) + " needed at most" + stage;
  const double margin = m.margin->number();
  if (m.host && m.host_capacity && *m.host_capacity < *m.host)
    return "DOES NOT FIT in the memory of the hosts: " + text::gib(m.host->number()) + " a node, of " +
           text::gib(m.host_capacity->number());
  const std::string needed =
      ": " + text::gib(needed_at_most(m).number()) + " needed at most, of " + text::gib(m.capacity->number());
  switch (m.verdict) {
    case Verdict::fits:
      return "FITS, " + text::gib(margin) + " to spare" + stage + needed;
    case Verdict::tight:
      return "TIGHT, " + text::gib(margin) + " to spare" + stage + needed +
             ", but the allocator may reserve more than there is";
    default:
      return "DOES NOT FIT, short by " + text::gib(-margin) + stage + needed;
  }
}

std::string first_line(const Estimate& e) {
  std::string out;
  for (const std::string& line :
       text::wrapped(e.model.name + " on " + cluster_words(e.cluster) + ": " + verdict_words(e) + ".", text::kColumns))
    out += line + "\n";
  return out;
}

std::string layout_words(const Recipe& r) {
  const Layout& l = r.layout;
  std::string out;
  const auto size = [&](const char* label, std::int64_t n) {
    if (n > 1) out += (out.empty() ? "" : " x ") + std::string(label) + " " + std::to_string(n);
  };
  size("tp", l.tp);
  size("cp", l.cp);
  size("pp", l.pp);
  size("dp", l.dp);
  if (out.empty()) out = "one GPU";
  if (l.ep * l.etp > 1) {
    out += ", experts over ep " + std::to_string(l.ep);
    if (l.etp > 1) out += " x etp " + std::to_string(l.etp);
    if (l.edp() > 1) out += " x edp " + std::to_string(l.edp());
  }
  if (l.vpp > 1) out += ", " + std::to_string(l.vpp) + " virtual stages";
  if (l.sp && l.tp > 1) out += ", sequence parallel";
  if (l.dp * l.cp > 1) out += ", zero " + std::to_string(l.zero);
  if (l.hsdp > 0) out += " within " + std::to_string(l.hsdp);
  return out;
}

std::string recipe_text(const Estimate& e) {
  const Recipe& r = e.recipe;
  const double tokens = static_cast<double>(r.global_batch) * static_cast<double>(r.seq);
  std::string out = section(
      "Model", text::count(e.model.params_total.real()) + " parameters (" + text::grouped(e.model.params_total.get()) +
                   ")" +
                   (e.model.params_vision ? ", beside a vision tower of " + text::count(e.model.params_vision->real())
                                          : std::string()));
  out += section("Stack", stack_text(r));
  out += section("Layout", layout_words(r) + (r.layout.pp > 1 ? ", schedule " + r.layout.schedule : ""));
  out += section("Batch", text::grouped(r.global_batch) + " sequences of " + text::grouped(r.seq) +
                              " tokens = " + text::count(tokens) + " tokens a step, in " +
                              plural(r.micro_batches(), "micro-batch", "micro-batches") + " of " +
                              std::to_string(r.micro_batch));
  out +=
      section("Numerics", r.precision + " compute, " + name(r.weight_dtype) + " weights, " + name(r.grad_dtype) +
                              " gradients, " + r.optimizer + " with " +
                              (r.master_dtype == Dtype::none ? std::string("no master weights")
                                                             : std::string(name(r.master_dtype)) + " master weights") +
                              " and " + name(r.moment_dtype) + " moments");
  return out + section("Memory use", "recompute " + recompute_text(r.recompute) + ", attention " + name(r.attention) +
                                         ", loss " + name(r.loss));
}

// "stages 0-6 at the last layer's backward pass; stage 7 at the loss."
std::string moments_text(const MemoryEstimate<double>& m) {
  std::string out = "  Fullest at ";
  if (m.stages.size() == 1) return out + moment_words(m.stages[0].moment) + ".\n";
  out = "Fullest: ";
  bool first = true;
  for (std::size_t i = 0; i < m.stages.size();) {
    std::size_t last = i;
    while (last + 1 < m.stages.size() && m.stages[last + 1].moment == m.stages[i].moment) ++last;
    out += std::string(first ? "" : "; ") + (i == last ? "stage " : "stages ") + stage_range(m, {i, last}) + " at " +
           moment_words(m.stages[i].moment);
    i = last + 1;
    first = false;
  }
  std::string wrapped;
  for (const std::string& line : text::wrapped(out + ".", text::kColumns - 2)) wrapped += "  " + line + "\n";
  return wrapped;
}

std::string host_text(const MemoryEstimate<double>& m) {
  if (!m.host) return "";
  return "  In the memory of a host: " + text::gib(m.host->number()) +
         (m.host_capacity ? " of " + text::gib(m.host_capacity->number()) : "") + " a node.\n";
}

std::string compute_text(const Estimate& e) {
  const ComputeEstimate<double>& c = e.compute;
  const auto flops = [](const FlopsPerToken<double>& f) { return text::scientific(f.number(), 4); };
  const double again = c.hardware.number() / c.model.number();
  std::string out = "\nFLOPs per token\n";
  text::Table table(text::kColumns, 2);
  table.column("").column("", text::Table::Align::right).column("");
  table.row({"useful (" + c.convention + ")", flops(c.model), "6N + attention over all keys; MFU counts these"});
  table.row({"  6 x parameters", flops(c.six_n), ""});
  table.row({"  attention", flops(c.attention),
             text::percent(c.attention.number() / c.model.number()) + " of the useful ones"});
  table.row({"executed", flops(c.hardware),
             again > 1 ? text::percent(again - 1) + " more: recomputation" : "nothing is recomputed"});
  return out + table.str();
}

std::string breakdown_text(const StepEstimate<double>& s) {
  std::vector<int> order;
  for (int i = 0; i < kLost; ++i) {
    if (s.breakdown[i] && s.breakdown[i]->number() != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return s.breakdown[b]->number() < s.breakdown[a]->number(); });
  text::Table table(text::kColumns, 2);
  table.column("").column("", text::Table::Align::right).column("", text::Table::Align::right);
  for (int i : order) {
    const double seconds = s.breakdown[i]->number();
    table.row(
        {breakdown_words(static_cast<Lost>(i)), text::seconds(seconds), text::percent(seconds / s.seconds.number())});
  }
  return table.str();
}

// Where 100 points of the peak go: useful work, then every loss by its share of the step. What products and
// attention take beyond their useful FLOPs at peak is theirs.
std::string waterfall_text(const StepEstimate<double>& s, const ComputeEstimate<double>& c) {
  const auto points = [&](Lost lost) {
    const auto& part = s.breakdown[static_cast<int>(lost)];
    return part ? 100 * part->number() / s.seconds.number() : 0.0;
  };
  const double useful = 100 * s.mfu.number();
  const double kernels = points(Lost::gemm) + points(Lost::attention) + points(Lost::logits) - useful;
  std::vector<std::pair<double, std::string>> losses;
  if (kernels > 0) losses.emplace_back(kernels, "products and attention below peak");
  static constexpr std::pair<Lost, const char*> kNames[] = {{Lost::memory_bound, "memory-bound passes"},
                                                            {Lost::recompute, "recomputation"},
                                                            {Lost::launch, "launches"},
                                                            {Lost::tp_comm, "tp exchange"},
                                                            {Lost::cp_comm, "cp exchange"},
                                                            {Lost::ep_comm, "expert exchange"},
                                                            {Lost::pp_comm, "stage to stage"},
                                                            {Lost::dp_comm, "dp exchange"},
                                                            {Lost::offload, "offload"},
                                                            {Lost::imbalance, "imbalance"},
                                                            {Lost::bubble, "bubble"},
                                                            {Lost::optimizer, "optimizer"},
                                                            {Lost::other, "jitter"}};
  for (const auto& [lost, label] : kNames) losses.emplace_back(points(lost), label);
  std::stable_sort(losses.begin(), losses.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out = "MFU: of 100 points of peak " + text::fixed(useful, 1) + " are useful";
  constexpr double kLeast = 0.05;
  for (const auto& [lost, label] : losses) {
    if (lost >= kLeast) out += ", " + text::fixed(lost, 1) + " " + label;
  }
  // Long sequences: attention over all keys is counted, half of it computed.
  constexpr double kMuch = 0.25;
  const double attention = c.attention.number() / c.model.number();
  if (c.convention == "palm" && (kernels < 0 || attention > kMuch))
    out += "; " + c.convention + " counts " + text::fixed(useful * attention / 2, 1) +
           " of the useful ones for keys that a causal mask skips";
  std::string wrapped;
  for (const std::string& line : text::wrapped(out + ".", text::kColumns - 2)) wrapped += "  " + line + "\n";
  return wrapped;
}

std::string step_text(const Estimate& e) {
  if (!e.step) return "";
  const StepEstimate<double>& s = *e.step;
  const bool predicted = !e.recipe.mfu.has_value();
  const auto off = [&](const Seconds<double>& end) {
    const double by = end.number() / s.seconds.number() - 1;
    return (by < 0 ? "" : "+") + text::percent(by, 0);
  };
  std::string out = "\nStep time " + text::seconds(s.seconds.number());
  out += predicted ? (s.low && s.high ? " (8 of 10 runs: " + off(*s.low) + " to " + off(*s.high) + ")\n"
                                      : " (from kernels, links and schedule)\n")
                   : " (from the given MFU of " + text::percent(*e.recipe.mfu) + " against " + e.recipe.mfu_convention +
                         ")\n";
  out += "  " + text::count(std::round(s.tokens_per_second.number())) + " tokens/s, " +
         text::count(std::round(s.tokens_per_second_per_gpu.number())) + " per GPU; MFU " +
         text::percent(s.mfu.number()) + " (" + s.mfu_convention + ") of " + text::scientific(s.peak.number(), 4) +
         " FLOP/s dense\n";
  return predicted ? out + breakdown_text(s) + waterfall_text(s, e.compute) : out;
}

// What changes the verdict most comes first.
int weight_of(const std::string& assumption) {
  static constexpr const char* kOrder[] = {"stack",        "tp",  "layout",   "pp",       "zero", "recompute",
                                           "global_batch", "seq", "platform", "capacity", "bf16", "micro_batch"};
  int at = 0;
  for (const char* key : kOrder) {
    if (assumption.starts_with(std::string(key) + "=") || assumption.starts_with(std::string(key) + "_")) return at;
    ++at;
  }
  return at;
}

std::string assumed_text(const Estimate& e, bool everything) {
  std::vector<std::string> all = e.cluster.assumed;
  all.insert(all.end(), e.recipe.assumed.begin(), e.recipe.assumed.end());
  if (all.empty()) return "";
  std::stable_sort(all.begin(), all.end(),
                   [](const std::string& a, const std::string& b) { return weight_of(a) < weight_of(b); });
  constexpr std::size_t kShown = 3;
  const std::size_t shown = everything || all.size() <= kShown + 1 ? all.size() : kShown;
  std::string out = "\nAssumed (give the flag to change it)\n";
  for (std::size_t i = 0; i < shown; ++i) {
    bool first = true;
    for (const std::string& line : text::wrapped(all[i], text::kColumns - 4)) {
      out += (first ? "  " : "    ") + line + "\n";
      first = false;
    }
  }
  if (shown < all.size()) out += "  and " + std::to_string(all.size() - shown) + " more: -v\n";
  return out;
}

// "  --zero 3: frees 70.1 GiB, 1.09 x the step time"
std::string way_out_text(const Estimate& e) {
  if (e.memory.verdict != Verdict::no) return "";
  if (e.memory.way_out.empty()) return "\nNo layout fits, not even on 16,384 of these GPUs.\n";
  std::string out = "\nWhat would make it fit\n";
  for (const WayOut<double>& way : e.memory.way_out) {
    std::string line = way.change + ": frees " + text::gib(way.freed.number());
    if (way.seconds_factor) line += ", " + text::fixed(way.seconds_factor->number(), 2) + " x the step time";
    bool first = true;
    for (const std::string& part : text::wrapped(line, text::kColumns - 4)) {
      out += (first ? "  " : "    ") + part + "\n";
      first = false;
    }
  }
  return out;
}

// "  recompute=full: fits, 3.1 GiB to spare"
std::string changes_text(const std::vector<VerdictChange>& changes) {
  if (changes.empty()) return "";
  std::string out = "The verdict with one of them changed and all else as it is\n";
  for (const VerdictChange& c : changes) {
    const std::string margin = c.margin < 0 ? text::gib(-c.margin) + " short" : text::gib(c.margin) + " to spare";
    out +=
        "  " + c.choice + ": " + (c.verdict == Verdict::no ? "does not fit" : name(c.verdict)) + ", " + margin + "\n";
  }
  return out;
}

std::string warnings_text(const Estimate& e) {
  std::string out;
  for (const std::string& warning : e.warnings) {
    bool first = true;
    for (const std::string& line : text::wrapped("Note: " + warning, text::kColumns - 2)) {
      out += (first ? "" : "  ") + line + "\n";
      first = false;
    }
  }
  return out.empty() ? out : "\n" + out;
}

}  // namespace

std::string estimate_text(const Estimate& e, const TextOptions& options) {
  if (options.brief) return first_line(e) + limits_text(e);
  std::string out =
      first_line(e) + "\n" + recipe_text(e) + "\nMemory per GPU, GiB, at the fullest moment of each stage\n";
  out += memory_table(e.memory, options.everything) + moments_text(e.memory) + host_text(e.memory) + way_out_text(e);
  return out + compute_text(e) + step_text(e) + run_text(e) + assumed_text(e, options.everything) +
         changes_text(options.changes) + warnings_text(e);
}

std::string napkin_text(const NapkinInput& in, const Napkin& n, const NapkinWords& words) {
  text::Table table(text::kColumns, 0);
  table.column("").column("", text::Table::Align::right).column("");
  const double each = n.state.number() / in.params;
  table.row({"state", text::bytes_si(n.state.number()),
             text::fixed(each, each == std::floor(each) ? 0 : 1) + " bytes x " + text::count(in.params) +
                 " parameters (" + name(in.weight_dtype) + " AdamW)"});
  if (n.flops)
    table.row({"compute", text::flops(n.flops->number()), "6 x parameters x " + text::count(*in.tokens) + " tokens"});
  if (n.cluster) {
    table.row({"cluster", text::flops_per_second(n.cluster->number()),
               text::grouped(*in.gpus) + " x " + text::scientific(*in.peak, 4) + " (" + words.gpu + ", dense) x " +
                   text::percent(in.mfu) + (words.mfu_assumed ? " (assumed)" : "")});
  }
  if (n.ideal) {
    table.row({"ideal time", text::seconds(n.ideal->number()),
               text::scientific(n.ideal->number(), 4) + " s, nothing ever failing"});
    const std::string low = text::seconds(n.expected_low->number()), high = text::seconds(n.expected_high->number());
    table.row({"expected", low + " to " + high, "10-30 % for failures, restarts, stalls"});
    table.row({"GPU-hours", text::count(std::round(n.gpu_hours->number())), "ideal"});
  }
  return table.str();
}

}  // namespace preflop
