// Pricing inside a cell: memory by forms, time by pieces.
#include <algorithm>

#include "src/search/cell.hpp"

namespace preflop {

// What the layouts of one pipeline share: flights, states, what the forms leave out. Weights are all that it asks of
// the blocks.
void Cells::prepare(const Structure& structure) {
  Layout& l = recipe_.layout;
  const std::vector<const BlockRow*>& rows = weights_;
  const std::int64_t m = recipe_.micro_batches();
  const bool by_shards = tables_.residue_by_shards();
  flights_.clear();
  residues_.clear();
  for (const StageClass& kind : structure.classes) {
    flights_.push_back(in_flight(l, kind.stage.index, m));
    if (!by_shards) residues_.push_back(tables_.residue(kind, recipe_, at_, rows));
  }
  for (Variant& v : variants_) {
    l.zero = space_.zero[v.zero];
    l.hsdp = space_.hsdp[v.hsdp];
    const std::int64_t dense = shard_group(l, false), expert = shard_group(l, true);
    v.forms.clear();
    v.sizes.clear();
    v.once.clear();
    v.bytes.resize(structure.classes.size());
    double most = 0;
    for (std::size_t k = 0; k < structure.classes.size(); ++k) {
      const StageForms& f = tables_.forms(structure.classes[k], l.pp > 1, l.zero, dense > 1, expert > 1, rows);
      v.forms.push_back(&f);
      v.sizes.push_back({flights_[k], parameters_of(f, rows, false), parameters_of(f, rows, true), dense, expert});
      v.bytes[k].clear();
      const double residue = by_shards ? tables_.residue(structure.classes[k], recipe_, at_, rows) : residues_[k];
      for (const StageForm& form : f.forms) {
        const bool known = form.states_of < v.bytes[k].size();
        v.bytes[k].push_back(known ? v.bytes[k][form.states_of] : residue + evaluate(form.states, rows, v.sizes[k]));
        if (form.moment == Moment::init) most = std::max(most, v.bytes[k].back());
      }
    }
    v.feasible = capacity_ == 0 || !(capacity_ < at_most(most) + context_);
    v.accumulates = Tables::accumulates(recipe_);
    const std::array<std::int64_t, 3> seen = {l.ep, l.etp, l.vpp > 1 ? 1 : 0};
    if (!timed_ || seen == v.states_seen) continue;
    v.states_seen = seen;
    v.states = state_terms(recipe_, tables_.prices(l.vpp > 1, v.accumulates));
  }
}

// Recomputation only adds work, and a step is monotone in the work of its pieces (compose.hpp): where nothing
// recomputed is too slow, so is the rest.
void Cells::bound_by_time(const Structure& structure, std::uint32_t loss) {
  const double slowest = sink_.slowest_of_use();
  const bool bounded = timed_ && slowest < std::numeric_limits<double>::infinity() &&
                       space_.recompute.front().kind == RecomputeKind::none;
  for (Variant& v : variants_) v.open = v.feasible;
  if (!bounded) return;
  const std::vector<const BlockRow*>& rows = rows_of(0, loss);
  if (!std::all_of(rows.begin(), rows.end(), [](const BlockRow* row) { return row->legal; })) return;
  runs_ready_ = false;
  for (Variant& v : variants_) {
    if (!v.open || !(seconds_of(structure, rows, v) > slowest)) continue;
    v.open = false;
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
  if (!hopeless) set_times(structure);
  for (std::uint32_t r = 0; r < space_.recompute.size() && !hopeless; ++r) {
    for (std::uint32_t c = 0; c < space_.loss.size(); ++c) {
      if (!wanted(PlanAxis::recompute, r) || !wanted(PlanAxis::loss, c)) continue;
      const std::vector<const BlockRow*>& rows = rows_of(r, c);
      if (!std::all_of(rows.begin(), rows.end(), [](const BlockRow* row) { return row->legal; })) continue;
      set(PlanAxis::recompute, r);
      set(PlanAxis::loss, c);
      set_rows(structure, rows);
      Priced p = memory_of(structure, rows, v);
      p.ordinal = ordinal();
      if (timed_) p.seconds = seconds_of(structure, rows, v);
      sink_.short_of_memory(p);
    }
  }
  for (const PlanAxis axis : {PlanAxis::recompute, PlanAxis::loss, PlanAxis::zero, PlanAxis::hsdp}) set(axis, 0);
}

void Cells::price_variant(const Structure& structure, const std::vector<const BlockRow*>& rows, Variant& v) {
  Priced p = memory_of(structure, rows, v);
  p.ordinal = ordinal();
  if (timed_) p.seconds = seconds_of(structure, rows, v);
  ++priced_;
  sink_.priced(p, recipe_.micro_batch);
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
      const double bytes = v.bytes[k][i] + activations_[k][forms[i].activation];
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
  double allocated = -1;
  std::size_t fullest = 0;
  for (std::size_t k = 0; k < structure.classes.size(); ++k) {
    const std::vector<StageForm>& forms = v.forms[k]->forms;
    double most = 0;
    for (std::size_t i = 0; i < forms.size(); ++i)
      most = std::max(most, v.bytes[k][i] + activations_[k][forms[i].activation]);
    if (most <= allocated) continue;
    allocated = most;
    fullest = k;
  }
  out.needed = at_most(allocated) + context_;
  out.device = (sums_ ? reserved_of(v, fullest, rows) : allocated * reserved_factor_) + context_;
  if (capacity_ > 0) {
    const bool fits = !(capacity_ < out.needed) && !host_short(structure, rows, v);
    out.verdict = !fits ? Verdict::no : capacity_ < out.device ? Verdict::tight : Verdict::fits;
  }
  return out;
}

// What the layouts of one pipeline and one recomputation share: what their activations take.
void Cells::set_rows(const Structure& structure, const std::vector<const BlockRow*>& rows) {
  runs_ready_ = false;
  activations_.resize(structure.classes.size());
  for (std::size_t k = 0; k < structure.classes.size(); ++k) {
    activations_[k].clear();
    StageSizes sizes;
    sizes.flights = flights_[k];
    for (const Linear* form : structure.classes[k].activations) activations_[k].push_back(evaluate(*form, rows, sizes));
  }
}

double Cells::seconds_of(const Structure& structure, const std::vector<const BlockRow*>& rows, Variant& v) {
  if (question_.recipe.mfu) return question_.given_seconds;
  const Prices<double>& prices = tables_.prices(recipe_.layout.vpp > 1, v.accumulates);
  // Weights gathered while layers run, transfers to the host: both read the states.
  const bool offload = recipe_.offload.any();
  const bool beside = v.states.zero >= 3 || offload;
  if (!runs_ready_ || beside) {
    runs_.resize(structure.classes.size());
    for (std::size_t k = 0; k < structure.classes.size(); ++k) {
      runs_[k].time = StageTime<double>{};
      runs_[k].count = static_cast<double>(structure.classes[k].count);
      for (const auto& [block, count] : structure.classes[k].runs)
        add_passes(runs_[k].time, rows[static_cast<std::size_t>(block)]->pieces[v.accumulates ? 1 : 0],
                   static_cast<double>(count), v.states, prices);
      if (!offload) continue;
      double kept = 0;
      for (const auto& [block, count] : structure.classes[k].runs)
        kept += offloads(*question_.model, recipe_, block)
                    ? rows[static_cast<std::size_t>(block)]->kept() * static_cast<double>(count)
                    : 0;
      add_offload(runs_[k].time, kept, v.states, prices);
    }
    pipeline_seconds_ = pipeline_seconds(runs_.data(), runs_.size(), schedule_, prices);
    runs_ready_ = !beside;
  }
  if (v.once.empty()) {
    for (const StageRun<double>& run : runs_) v.once.push_back(state_seconds(run.time, v.states, prices));
  }
  return pipeline_seconds_ + once_a_step_seconds(runs_.data(), v.once.data(), runs_.size(), v.states, prices);
}

}  // namespace preflop
