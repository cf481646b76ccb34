// Pricing inside a cell: memory by forms, time by pieces.
#include <algorithm>
#include <limits>

#include "src/search/cell.hpp"

namespace preflop {

// What the layouts of one pipeline share: flights, states, what the forms leave out. Weights are all that it asks of
// the blocks.
void Cells::prepare(const Structure& structure) {
  const std::int64_t m = recipe_.micro_batches();
  const std::size_t kinds = structure.classes.size();
  flights_.clear();
  residues_.clear();
  for (const StageClass& kind : structure.classes) {
    flights_.push_back(in_flight(recipe_.layout, kind.stage.index, m));
    if (!tables_.residue_by_shards()) residues_.push_back(tables_.residue(kind, recipe_, at_, weights_));
  }
  for (Variant& v : variants_) set_states(structure, v);
  set_most(structure);
  shared_.resize(kinds);
  for (Shared& s : shared_) {
    s.rows.clear();
    s.run = s.activations = false;
  }
  runs_.resize(kinds);
  for (std::size_t k = 0; k < kinds; ++k) runs_[k].count = static_cast<double>(structure.classes[k].count);
  pipeline_ready_ = false;
}

// What one way to shard states makes of them.
void Cells::set_states(const Structure& structure, Variant& v) {
  Layout& l = recipe_.layout;
  l.zero = space_.zero[v.zero];
  l.hsdp = space_.hsdp[v.hsdp];
  const std::int64_t dense = shard_group(l, false), expert = shard_group(l, true);
  const bool by_shards = tables_.residue_by_shards();
  v.forms.clear();
  v.sizes.clear();
  v.once.clear();
  v.bytes.resize(structure.classes.size());
  double most = 0;
  for (std::size_t k = 0; k < structure.classes.size(); ++k) {
    const StageForms& f = tables_.forms(structure.classes[k], l.zero, dense > 1, expert > 1, weights_);
    v.forms.push_back(&f);
    // A stage has as many parameters on one GPU however its states are shared.
    const StageSizes* known = &v != &variants_.front() ? &variants_.front().sizes[k] : nullptr;
    v.sizes.push_back({flights_[k], known != nullptr ? known->dense : parameters_of(f, weights_, false),
                       known != nullptr ? known->expert : parameters_of(f, weights_, true), dense, expert,
                       known != nullptr ? known->largest : largest_of(structure.classes[k], weights_)});
    std::vector<double>& bytes = v.bytes[k];
    bytes.clear();
    const double residue = by_shards ? tables_.residue(structure.classes[k], recipe_, at_, weights_) : residues_[k];
    for (const StageForm& form : f.forms) {
      const bool same = form.states_of < bytes.size();
      bytes.push_back(same ? bytes[form.states_of] : residue + evaluate(form.states, weights_, v.sizes[k]));
      if (form.moment == Moment::init) most = std::max(most, bytes.back());
    }
  }
  v.feasible = capacity_ == 0 || !(capacity_ < at_most(most) + context_);
  v.accumulates = Tables::accumulates(recipe_);
  if (!timed_) return;
  Variant::States& states = v.states_of[l.vpp > 1 ? 1 : 0];
  const std::array<std::int64_t, 2> seen = {l.ep, l.etp};
  if (states.seen != seen) {
    states.seen = seen;
    states.terms = state_terms(recipe_, tables_.prices(l.vpp > 1, v.accumulates));
  }
  v.states = &states.terms;
  v.beside = states.terms.zero >= 3 || recipe_.offload.any();
}

// Of all moments that share an activation the fullest is the one with most beside it.
void Cells::set_most(const Structure& structure) {
  first_.clear();
  peaks_.clear();
  for (std::size_t k = 0; k < structure.classes.size(); ++k) {
    const FormFamily& family = *structure.classes[k].forms;
    const std::size_t n = family.activations.size(), first = peaks_.size();
    first_.push_back(first);
    for (Variant& v : variants_) {
      v.most.resize(first);
      v.most.resize(first + n, -std::numeric_limits<double>::infinity());
      const std::vector<StageForm>& forms = v.forms[k]->forms;
      for (std::size_t i = 0; i < forms.size(); ++i) {
        double& most = v.most[first + forms[i].activation];
        most = std::max(most, v.bytes[k][i]);
      }
    }
    overshadowed_.assign(n, 0);
    for (std::size_t i = 0; i < n; ++i) overshadowed_[i] = overshadowed(family, first, i) ? 1 : 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (overshadowed_[i] != 0) continue;
      for (Variant& v : variants_) v.most[peaks_.size()] = v.most[first + i];
      peaks_.push_back(family.activations[i]);
    }
  }
  first_.push_back(peaks_.size());
  for (Variant& v : variants_) v.most.resize(peaks_.size());
  activations_.resize(peaks_.size());
}

// Is an activation never the peak, whatever its blocks keep: never more than another, and no more beside it, however
// states are shared? All count where reserved memory is a sum over moments.
bool Cells::overshadowed(const FormFamily& family, std::size_t first, std::size_t at) const {
  const auto by = [&](std::size_t other) {
    return overshadowed_[other] == 0 && std::all_of(variants_.begin(), variants_.end(), [&](const Variant& v) {
             return v.most[first + at] <= v.most[first + other];
           });
  };
  return !sums_ && std::any_of(family.above[at].begin(), family.above[at].end(), by);
}

// Recomputation only adds work, and a step is monotone in the work of its pieces (compose.hpp): where nothing
// recomputed is too slow, so is the rest.
void Cells::bound_by_time(const Structure& structure, std::uint32_t loss) {
  // What is made again may cost nothing: its sums then come out a rounding less than those without it.
  constexpr double kRounding = 1e-9;
  const double slowest = sink_.slowest_of_use() * (1 + kRounding);
  const bool bounded = timed_ && slowest < std::numeric_limits<double>::infinity() &&
                       space_.recompute.front().kind == RecomputeKind::none;
  const std::uint64_t bit = std::uint64_t{1} << loss;
  for (Variant& v : variants_) v.open = v.feasible ? v.open | bit : v.open & ~bit;
  if (!bounded) return;
  const std::vector<const BlockRow*>& rows = rows_of(0, loss, recipe_.offload.any());
  if (!std::all_of(rows.begin(), rows.end(), [](const BlockRow* row) { return row->legal; })) return;
  see(structure, rows);
  for (Variant& v : variants_) {
    if ((v.open & bit) == 0 || !(seconds_of(structure, rows, v, true) > slowest)) continue;
    v.open &= ~bit;
    leave_out(Quick::bound, v, space_.recompute.size());
  }
}

// Its states alone are too much, whatever is recomputed: no plan, but perhaps what comes nearest.
void Cells::exclude(const Structure& structure, Variant& v) {
  leave_out(Quick::states, v, std::uint64_t{space_.recompute.size()} * space_.loss.size());
  set(PlanAxis::zero, v.zero);
  set(PlanAxis::hsdp, v.hsdp);
  double least = 0;
  for (const std::vector<double>& forms : v.bytes) least = std::max(least, at_most(forms.front()) + context_);
  const double nearest = sink_.nearest_needed();
  const bool others_fit = sink_.slowest_of_use() < std::numeric_limits<double>::infinity();
  const bool hopeless = (others_fit || (nearest >= 0 && least >= nearest)) && !only_;
  for (std::uint32_t r = 0; r < space_.recompute.size() && !hopeless; ++r) {
    for (std::uint32_t c = 0; c < space_.loss.size(); ++c) {
      if (!wanted(PlanAxis::recompute, r) || !wanted(PlanAxis::loss, c)) continue;
      const std::vector<const BlockRow*>& rows = rows_of(r, c, true);
      if (!std::all_of(rows.begin(), rows.end(), [](const BlockRow* row) { return row->legal; })) continue;
      set(PlanAxis::recompute, r);
      set(PlanAxis::loss, c);
      see(structure, rows);
      set_activations(rows);
      Priced p = memory_of(structure, rows, v);
      p.ordinal = ordinal();
      if (timed_) p.seconds = seconds_of(structure, rows, v);
      sink_.short_of_memory(p);
    }
  }
  for (const PlanAxis axis : {PlanAxis::recompute, PlanAxis::loss, PlanAxis::zero, PlanAxis::hsdp}) set(axis, 0);
}

void Cells::price(const Structure& structure, std::uint32_t recompute, std::uint32_t loss) {
  set(PlanAxis::loss, loss);
  const std::vector<const BlockRow*>& rows = rows_of(recompute, loss, true);
  const bool countable = std::all_of(rows.begin(), rows.end(), [](const BlockRow* row) { return row->legal; });
  if (countable) {
    see(structure, rows);
    set_activations(rows);
  }
  const std::uint64_t first = ordinal();
  for (Variant& v : variants_) {
    if ((v.open >> loss & 1) == 0) continue;
    if (!countable) {
      reject(Quick::countless, first + v.offset, 1);
      continue;
    }
    Priced p = memory_of(structure, rows, v);
    p.ordinal = first + v.offset;
    if (timed_) p.seconds = seconds_of(structure, rows, v);
    ++priced_;
    sink_.priced(p, recipe_.micro_batch);
  }
}

// What the allocator holds where class k is the fullest: the ledger's own rule over the parts of every moment.
double Cells::reserved_of(const Variant& v, std::size_t k, const std::vector<const BlockRow*>& rows) const {
  const std::vector<StageForm>& forms = v.forms[k]->forms;
  std::vector<MomentParts<double>> parts;
  double allocated = -1;
  Moment peak = Moment::init;
  for (std::size_t i = 0; i < forms.size();) {
    const Moment moment = forms[i].moment;
    std::size_t fullest = i;
    double most = -1;
    for (; i < forms.size() && forms[i].moment == moment; ++i) {
      const double bytes = v.bytes[k][i] + activations_[first_[k] + forms[i].activation];
      if (bytes <= most) continue;
      most = bytes;
      fullest = i;
    }
    parts.push_back({moment, Bytes<double>(evaluate(forms[fullest].kept, rows, v.sizes[k])),
                     Bytes<double>(evaluate(forms[fullest].working, rows, v.sizes[k]))});
    if (most <= allocated) continue;
    allocated = most;
    peak = moment;
  }
  return reserved_bytes<double>(*question_.stack, recipe_, Bytes<double>(allocated), peak, parts).number();
}

// Does the fullest node need more host memory than it has?
bool Cells::host_short(const Structure& structure, const std::vector<const BlockRow*>& rows, const Variant& v) const {
  if (!question_.recipe.offload.any()) return false;
  const std::optional<double>& capacity = question_.cluster.datum("host_bytes").value;
  if (!capacity) return false;
  std::vector<double> by_stage;
  for (std::size_t k = 0; k < structure.classes.size(); ++k) {
    const double bytes = evaluate(v.forms[k]->host, rows, v.sizes[k]);
    by_stage.insert(by_stage.end(), static_cast<std::size_t>(structure.classes[k].count), bytes);
  }
  double node = 0;
  for (const auto& [stage, ranks] : fullest_node(recipe_.layout, question_.cluster.gpus_per_node, by_stage))
    node += by_stage[stage] * ranks;
  return *capacity < node;
}

Priced Cells::memory_of(const Structure& structure, const std::vector<const BlockRow*>& rows, const Variant& v) const {
  Priced out;
  double allocated = 0;
  for (std::size_t i = 0; i < activations_.size(); ++i) allocated = std::max(allocated, v.most[i] + activations_[i]);
  out.needed = at_most(allocated) + context_;
  const double reserved = sums_ ? reserved_of(v, fullest_of(v, allocated), rows) : allocated * reserved_factor_;
  out.device = reserved + context_;
  if (capacity_ > 0) {
    const double most = reserved + reserved * tight_band_ + context_;  // as upper_end()
    out.verdict = verdict_of(capacity_, out.needed, most, host_short(structure, rows, v));
  }
  return out;
}

// The first class that has so much.
std::size_t Cells::fullest_of(const Variant& v, double allocated) const {
  std::size_t at = 0;
  while (at + 1 < activations_.size() && v.most[at] + activations_[at] < allocated) ++at;
  return static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), at) - first_.begin()) - 1;
}

// What is known of a class stays so where its blocks have the same rows as in the layout before.
void Cells::see(const Structure& structure, const std::vector<const BlockRow*>& rows) {
  for (std::size_t k = 0; k < shared_.size(); ++k) {
    const std::vector<int>& blocks = structure.classes[k].blocks;
    Shared& known = shared_[k];
    bool same = known.rows.size() == blocks.size();
    known.rows.resize(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const BlockRow* row = rows[static_cast<std::size_t>(blocks[i])];
      same = same && known.rows[i] == row;
      known.rows[i] = row;
    }
    if (same) continue;
    known.run = known.activations = false;
    pipeline_ready_ = false;
  }
}

void Cells::set_activations(const std::vector<const BlockRow*>& rows) {
  for (std::size_t k = 0; k < shared_.size(); ++k) {
    if (shared_[k].activations) continue;
    shared_[k].activations = true;
    StageSizes sizes;
    sizes.flights = flights_[k];
    for (std::size_t i = first_[k]; i < first_[k + 1]; ++i) activations_[i] = evaluate(*peaks_[i], rows, sizes);
  }
}

// The passes of one class of stages.
void Cells::set_run(const Structure& structure, const std::vector<const BlockRow*>& rows, const Variant& v,
                    std::size_t kind) {
  const StageClass& of = structure.classes[kind];
  const Prices<double>& prices = tables_.prices(recipe_.layout.vpp > 1, v.accumulates);
  StageTime<double>& time = runs_[kind].time;  // its parts stay empty
  time.forward = time.backward = time.weights = Seconds<double>(0);
  time.host_forward = time.host_backward = Seconds<double>(0);
  time.parts = {};
  time.dense = time.expert = time.tensors = 0;
  for (const auto& [block, count] : of.runs)
    add_passes(time, rows[static_cast<std::size_t>(block)]->pieces[v.accumulates ? 1 : 0], static_cast<double>(count),
               *v.states, prices);
  wait_for_host(time);
  if (!recipe_.offload.any()) return;
  double kept = 0;
  for (const auto& [block, count] : of.runs)
    kept += offloads(*question_.model, recipe_, block)
                ? rows[static_cast<std::size_t>(block)]->kept() * static_cast<double>(count)
                : 0;
  add_offload(time, kept, *v.states, prices);
}

double Cells::seconds_of(const Structure& structure, const std::vector<const BlockRow*>& rows, Variant& v, bool least) {
  if (question_.recipe.mfu) return question_.given_seconds;
  const Prices<double>& prices = tables_.prices(recipe_.layout.vpp > 1, v.accumulates);
  const bool other = v.beside || v.accumulates != runs_accumulate_;
  runs_accumulate_ = v.accumulates;
  for (std::size_t k = 0; k < shared_.size(); ++k) {
    if (shared_[k].run && !other) continue;
    set_run(structure, rows, v, k);
    shared_[k].run = !v.beside;
    pipeline_ready_ = false;
  }
  const bool bound = least && schedule_.played != nullptr;
  if (bound)
    pipeline_seconds_ = least_pipeline_seconds(runs_.data(), runs_.size(), schedule_, prices);
  else if (!pipeline_ready_)
    pipeline_seconds_ = pipeline_seconds(runs_.data(), runs_.size(), schedule_, prices);
  pipeline_ready_ = !v.beside && !bound;
  if (v.once.empty()) {
    for (const StageRun<double>& run : runs_) v.once.push_back(state_seconds(run.time, *v.states, prices));
  }
  return pipeline_seconds_ + once_a_step_seconds(runs_.data(), v.once.data(), runs_.size(), *v.states, prices);
}

}  // namespace preflop
