#include "src/step/timeline.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "src/step/time.hpp"

namespace preflop {

namespace {

constexpr std::int64_t kMostPasses = 100'000;

// Two fillings of the pipeline show all that happens: what follows is the same again, until it drains.
std::int64_t micro_batches_played(const Recipe& r) {
  const std::int64_t m = r.micro_batches();
  if (r.layout.order() == "gpipe") return m;
  const std::int64_t pp = r.layout.pp;
  return std::min(m, std::max<std::int64_t>(4, 4 * pp) / pp * pp);
}

// Passes of unit length, where no rate is known: only their order counts.
ReplayWork unit_work(const Layout& l) {
  ReplayWork out;
  const std::size_t chunks = static_cast<std::size_t>(l.vpp);
  out.forward.assign(static_cast<std::size_t>(l.pp), std::vector<double>(chunks, 1.0));
  out.backward = out.forward;
  if (!splits_backward(l)) return out;
  for (auto& of_rank : out.backward) of_rank.front() = 2;
  out.weights = out.forward;
  return out;
}

// Of what a micro-batch keeps on each stage, the share that stays for the gradients of weights.
std::vector<double> kept_for_weights(const Analysed& a) {
  std::vector<double> out;
  for (const Stage& stage : a.stages) {
    double all = 0, after = 0;
    for (const BlockRun& run : stage.layers) {
      const BlockCost& block = a.blocks[static_cast<std::size_t>(run.block)];
      all += block.saved_bytes() * static_cast<double>(run.count);
      for (const SavedItem& item : block.deferred) after += item.bytes() * static_cast<double>(run.count);
    }
    out.push_back(all > 0 ? after / all : 0);
  }
  return out;
}

class Recorder {
 public:
  Recorder(const Analysed& a, const Stage& stage, bool timed, MemoryTimeline& out)
      : a_(a), stage_(stage), timed_(timed), out_(out) {}

  StageTimeline run(const std::vector<ReplayEvent>& passes) {
    points_.stage = stage_.index;
    add({"init", -1, -1, {}, {}, 0, nullptr}, Moment::init, 0, 0);
    std::int64_t alive = 0;  // chunks
    for (const ReplayEvent& pass : passes) {
      alive += pass.forward ? 1 : 0;
      if (pass.weights) --deferred_;
      play(pass, static_cast<double>(alive) / static_cast<double>(a_.recipe.layout.vpp));
      if (pass.forward || pass.weights) continue;
      --alive;
      if (splits_backward(a_.recipe.layout)) ++deferred_;
    }
    const double end = passes.empty() ? 0 : passes.back().end;
    for (const Moment moment : {Moment::end_of_backward, Moment::reduction, Moment::optimizer_step})
      add({name(moment), -1, -1, {}, {}, 0, nullptr}, moment, end, end);
    return std::move(points_);
  }

 private:
  void play(const ReplayEvent& pass, double alive) {
    const std::int64_t chunk = a_.recipe.layout.vpp > 1 ? pass.chunk : -1;
    MemoryPoint point{"forward", pass.micro_batch, chunk, {}, {}, alive, nullptr};
    if (pass.forward || pass.weights) {
      if (pass.weights) point.event = "weights";
      point.deferred = static_cast<double>(deferred_);
      point.bytes = ledger(-1, alive);
      put(point, pass.start, pass.end);
      return;
    }
    // A backward pass goes through its moments; the loss belongs to the last chunk.
    const double length = pass.end - pass.start;
    int at = 0;
    for (const Moment moment : {Moment::loss, Moment::last_layer_backward, Moment::first_layer_backward}) {
      if (moment == Moment::loss && pass.chunk + 1 < a_.recipe.layout.vpp) continue;
      point.event = name(moment);
      constexpr int kParts = 3;
      add(point, moment, pass.start + length * at / kParts, pass.start + length * (at + 1) / kParts);
      ++at;
    }
  }

  void put(MemoryPoint point, double start, double end) {
    if (timed_) point.start = start, point.end = end;
    points_.points.push_back(point);
  }
  // Nothing where the stage has no such moment.
  void add(MemoryPoint point, Moment moment, double start, double end) {
    if (!has_moment(a_, stage_, moment)) return;
    point.bytes = ledger(static_cast<int>(moment), point.in_flight);
    point.deferred = static_cast<double>(deferred_);
    put(point, start, end);
  }

  const Ledger<double>* ledger(int moment, double alive) {
    const auto [it, fresh] = known_.try_emplace({moment, alive, deferred_}, nullptr);
    if (!fresh) return it->second;
    std::vector<Line> lines =
        moment < 0 ? lines_between(a_, stage_, alive) : lines_at(a_, stage_, static_cast<Moment>(moment), alive);
    const std::vector<Line> waiting = deferred_lines(a_, stage_, static_cast<double>(deferred_));
    lines.insert(lines.end(), waiting.begin(), waiting.end());
    out_.ledgers.push_back(std::make_unique<Ledger<double>>(add_up<double>(lines, "")));
    return it->second = out_.ledgers.back().get();
  }

  const Analysed& a_;
  const Stage& stage_;
  bool timed_;
  MemoryTimeline& out_;
  StageTimeline points_;
  std::int64_t deferred_ = 0;
  std::map<std::tuple<int, double, std::int64_t>, const Ledger<double>*> known_;
};

}  // namespace

Result<MemoryTimeline> memory_timeline(const Analysed& a, const Cluster& cluster) {
  const Layout& l = a.recipe.layout;
  MemoryTimeline out;
  out.micro_batches = a.recipe.micro_batches();
  out.played = micro_batches_played(a.recipe);
  if (out.played > kMostPasses / (l.pp * l.vpp))
    return Error{"--timeline", std::to_string(out.played) + " micro-batches at once are too many to show",
                 "a larger --micro-batch, or a schedule other than gpipe"};
  const std::optional<ReplayWork> timed = replay_work(a, cluster);
  ReplayWork work = timed ? *timed : unit_work(l);
  if (splits_backward(l)) work.kept = kept_for_weights(a);
  const Replay played = replay(l.order(), work, out.played);
  for (std::size_t i = 0; i < a.stages.size(); ++i)
    out.stages.push_back(Recorder(a, a.stages[i], timed.has_value(), out).run(played.events[i]));
  return out;
}

}  // namespace preflop
