#include "src/search/cell.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/text.hpp"
#include "src/stack/chip.hpp"
#include "src/stack/legality.hpp"
#include "src/stack/software.hpp"

namespace preflop {

namespace {

std::string n(std::int64_t v) { return text::grouped(v); }

// "--tp: 3 does not divide the 64 query heads" -> "--tp: N does not divide the N query heads"
std::string without_numbers(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (!digit) out += text[i];
    if (digit && (out.empty() || out.back() != 'N')) out += 'N';
  }
  return out;
}

}  // namespace

Cells::Cells(const Question& question, const Space& space, Tables& tables, Sink& sink)
    : question_(question), space_(space), tables_(tables), sink_(sink), recipe_(question.recipe) {
  cells_ = std::uint64_t{space.size(PlanAxis::tp)} * space.size(PlanAxis::cp) * space.size(PlanAxis::sp) *
           space.size(PlanAxis::pp);
  inner_ = space.size() / cells_;
  std::uint64_t stride = 1;
  for (std::size_t i = strides_.size(); i-- > 0; stride *= space.size(static_cast<PlanAxis>(i))) strides_[i] = stride;
  quick_.fill(-1);
  const Datum& capacity = question.cluster.datum("capacity_bytes");
  capacity_ = capacity.value.value_or(0);
  reserved_factor_ = reserved_factor_of(*question.stack, question.recipe).value;
  allocated_band_ = question.stack->allocated_band.at(question.cluster.gpu.arch).value;
  tight_band_ = question.stack->tight_band(question.cluster.gpu.arch);
  sums_ = !question.stack->reserved_sums.empty();
}

std::uint64_t Cells::group(std::uint64_t cell) const { return cell / space_.size(PlanAxis::pp); }

std::uint64_t Cells::cell_of(const Position& at) const { return space_.ordinal(at) / inner_; }

void Cells::only(const Position& at) { only_ = at; }

bool Cells::wanted(PlanAxis axis, std::uint32_t digit) const { return !only_ || (*only_)[index(axis)] == digit; }

std::uint64_t Cells::below(std::initializer_list<PlanAxis> axes) const {
  std::uint64_t out = inner_ / (std::uint64_t{space_.zero.size()} * space_.hsdp.size());
  for (const PlanAxis axis : axes) out /= space_.size(axis);
  return out * variants_.size();
}

std::size_t Cells::reason_of(const Error& error, std::uint64_t ordinal) {
  const std::string text = without_numbers(error.where + ": " + error.what);
  const auto [it, fresh] = reason_index_.try_emplace(text, reasons_.size());
  if (fresh) reasons_.push_back({text, offered_here(error, *question_.stack, question_.cluster.gpu), 0, ordinal});
  return it->second;
}

bool Cells::legal(std::uint64_t count) {
  const Status s = check_legal(*question_.model, *question_.stack, recipe_);
  if (s) return true;
  reasons_[reason_of(s.error(), ordinal())].count += count;
  pruned_ += count;
  return false;
}

void Cells::reject(Quick quick, std::uint64_t ordinal, std::uint64_t count) {
  int& known = quick_[static_cast<std::size_t>(quick)];
  if (known < 0) {
    const Layout& l = recipe_.layout;
    const std::string sizes = "tp " + n(l.tp) + " x pp " + n(l.pp) + " x cp " + n(l.cp);
    Error error;
    const Status s = check_legal(*question_.model, *question_.stack, recipe_);
    switch (quick) {
      case Quick::cluster:
        error = {"--on", n(question_.cluster.gpus) + " GPUs are not a multiple of " + sizes, ""};
        break;
      case Quick::given_dp:
        error = {"--dp", sizes + " leaves dp " + n(l.dp), "--dp " + n(space_.dp.value_or(1)) + " is given"};
        break;
      case Quick::batch:
      case Quick::experts:
      case Quick::interleave:
        if (!s) error = s.error();
        break;
      case Quick::same:
        error = {"", "another ordinal is the same layout", ""};
        break;
      case Quick::countless:
        error = {"model", "more than 2^53 elements", ""};
        break;
      case Quick::states:
        error = {"memory", "weights, gradients and optimizer states alone do not fit", ""};
        break;
      case Quick::memory:
        error = {"memory", "does not fit", ""};
        break;
      case Quick::device:
        error = {"--max-memory", "needs more", ""};
        break;
      case Quick::tight:
        error = {"--allow-tight", "fits, but the allocator may reserve more than there is", ""};
        break;
      case Quick::slow:
        error = {"--within", "slower than the limit", ""};
        break;
      case Quick::bound:
        error = {"time", "slower than the plans found, even with nothing recomputed", ""};
        break;
    }
    known = static_cast<int>(reason_of(error, ordinal));
  }
  reasons_[static_cast<std::size_t>(known)].count += count;
}

void Cells::counts(SearchResult& out) const {
  out.space = looked_;
  out.pruned = pruned_;
  out.checked = looked_ - pruned_;
  out.priced = priced_;
  out.rejected = reasons_;
}

void Cells::look(std::uint64_t cell) {
  looked_ += inner_;
  at_ = space_.position(cell * inner_);
  Layout& l = recipe_.layout;
  l.tp = space_.tp[at_[index(PlanAxis::tp)]];
  l.cp = space_.cp[at_[index(PlanAxis::cp)]];
  l.pp = space_.pp[at_[index(PlanAxis::pp)]];
  const bool sp = space_.sp[at_[index(PlanAxis::sp)]];
  l.sp = sp && l.tp > 1;
  const auto bulk = [&](Quick quick) {
    pruned_ += inner_;
    reject(quick, ordinal(), inner_);
  };
  if (question_.cluster.gpus % l.model_parallel() != 0) return bulk(Quick::cluster);
  l.dp = question_.cluster.gpus / l.model_parallel();
  if (space_.dp && *space_.dp != l.dp) return bulk(Quick::given_dp);
  if (space_.sp.size() > 1 && l.tp == 1 && sp) return bulk(Quick::same);
  // What every layout of the cell shares: checked with the values of the inner axes that ask for least.
  neutral();
  if (!legal(inner_)) return;
  pipelines();
}

void Cells::neutral() {
  Layout& l = recipe_.layout;
  const bool interleaved = question_.fixed("schedule") && l.schedule == "interleaved";
  const bool chunked = l.pp > 1 && (interleaved || needs_virtual_stages(*question_.stack, recipe_));
  l.vpp = chunked ? space_.vpp.back() : question_.fixed("schedule") ? space_.vpp.front() : 1;
  l.ep = 1;
  l.etp = question_.stack->own_etp || space_.etp.size() == 1 ? space_.etp.front() : l.tp;
  l.hsdp = 0;
  l.zero = space_.zero.front();
  recipe_.micro_batch = 1;
  recipe_.recompute = space_.recompute.front();
  recipe_.loss = space_.loss.front();
  set_schedule();
}

void Cells::set_schedule() {
  Layout& l = recipe_.layout;
  if (!question_.fixed("schedule")) l.schedule = l.vpp > 1 ? "interleaved" : question_.stack->schedules.front();
}

// What the cell's inner axes leave legal, each by itself.
void Cells::pipelines() {
  Layout& l = recipe_.layout;
  timed_ = !question_.cluster.memory_only && missing_rates(recipe_, question_.cluster).empty();
  variants_.clear();

  const std::uint64_t below_variant = inner_ / (std::uint64_t{space_.zero.size()} * space_.hsdp.size());
  for (std::uint32_t z = 0; z < space_.zero.size(); ++z) {
    for (std::uint32_t h = 0; h < space_.hsdp.size(); ++h) {
      if (!wanted(PlanAxis::zero, z) || !wanted(PlanAxis::hsdp, h)) continue;
      set(PlanAxis::zero, z);
      set(PlanAxis::hsdp, h);
      l.zero = space_.zero[z];
      l.hsdp = space_.hsdp[h];
      // A shard group as large as the whole, or nothing to shard: the layout without it.
      const bool same = l.hsdp > 0 && space_.hsdp.size() > 1 && (l.hsdp >= l.dp * l.cp || l.zero == 0);
      if (same) {
        pruned_ += below_variant;
        reject(Quick::same, ordinal(), below_variant);
      } else if (legal(below_variant)) {
        Variant v;
        v.zero = z;
        v.hsdp = h;
        v.offset = z * strides_[index(PlanAxis::zero)] + h * strides_[index(PlanAxis::hsdp)];
        variants_.push_back(std::move(v));
      }
    }
  }
  set(PlanAxis::zero, 0);
  set(PlanAxis::hsdp, 0);
  neutral();
  if (variants_.empty()) return;
  for (Pipelines::Open& o : pipelines_of_pp().open) o.legal.reset();
  short_.assign(
      std::size_t{space_.size(PlanAxis::ep)} * space_.size(PlanAxis::etp) * space_.vpp.size() * space_.split.size(), 0);
  legal_experts_.assign(space_.ep.size() * space_.etp.size(), 1);
  for (std::size_t i = 0; i < space_.ep.size(); ++i) {
    for (std::size_t j = 0; j < space_.etp.size(); ++j) {
      l.ep = space_.ep[i];
      l.etp = space_.etp[j];
      char& ok = legal_experts_[i * space_.etp.size() + j];
      const std::uint64_t count = below({PlanAxis::ep, PlanAxis::etp});
      set(PlanAxis::ep, static_cast<std::uint32_t>(i));
      set(PlanAxis::etp, static_cast<std::uint32_t>(j));
      if (l.tp * l.cp * l.dp % (l.ep * l.etp) != 0) {
        ok = 0;
        pruned_ += count;
        reject(Quick::experts, ordinal(), count);
      } else if (l.ep * l.etp > 1 || !question_.stack->own_etp) {
        ok = legal(count) ? 1 : 0;
      }
    }
  }
  set(PlanAxis::ep, 0);
  set(PlanAxis::etp, 0);
  neutral();
  micro_batches();
}

void Cells::micro_batches() {
  for (std::uint32_t i = 0; i < space_.micro_batch.size(); ++i) {
    if (!wanted(PlanAxis::micro_batch, i)) continue;
    set(PlanAxis::micro_batch, i);
    recipe_.micro_batch = space_.micro_batch[i];
    if (recipe_.global_batch % (recipe_.micro_batch * recipe_.layout.dp) == 0) {
      experts();
      continue;
    }
    std::uint64_t count = 0;  // those refused for their experts have been counted
    for (const char ok : legal_experts_)
      count += ok != 0 ? below({PlanAxis::micro_batch, PlanAxis::ep, PlanAxis::etp}) : 0;
    pruned_ += count;
    if (count > 0) reject(Quick::batch, ordinal(), count);
  }
  set(PlanAxis::micro_batch, 0);
}

void Cells::experts() {
  Layout& l = recipe_.layout;
  for (std::uint32_t i = 0; i < space_.ep.size(); ++i) {
    for (std::uint32_t j = 0; j < space_.etp.size(); ++j) {
      if (legal_experts_[i * space_.etp.size() + j] == 0 || !wanted(PlanAxis::ep, i) || !wanted(PlanAxis::etp, j))
        continue;
      set(PlanAxis::ep, i);
      set(PlanAxis::etp, j);
      l.ep = space_.ep[i];
      l.etp = space_.etp[j];
      context_ = outside_allocator<double>(*question_.stack, recipe_, question_.cluster).number();
      weights_.clear();
      for (std::size_t b = 0; b < tables_.kinds(); ++b) weights_.push_back(&tables_.weights(static_cast<int>(b), at_));
      rows_ready_.assign(space_.recompute.size() * space_.loss.size(), Ready::no);
      schedules_ = {};
      rows_.resize(rows_ready_.size());
      structures();
    }
  }
  set(PlanAxis::ep, 0);
  set(PlanAxis::etp, 0);
  l.ep = l.etp = 1;
}

const std::vector<const BlockRow*>& Cells::rows_of(std::uint32_t recompute, std::uint32_t loss, bool memory) {
  const std::size_t slot = recompute * space_.loss.size() + loss;
  std::vector<const BlockRow*>& out = rows_[slot];
  const Ready wanted = memory ? Ready::all : Ready::timed;
  if (rows_ready_[slot] >= wanted) return out;
  rows_ready_[slot] = wanted;
  Position at = at_;
  at[index(PlanAxis::recompute)] = recompute;
  at[index(PlanAxis::loss)] = loss;
  out.clear();
  for (std::size_t b = 0; b < tables_.kinds(); ++b) out.push_back(&tables_.row(static_cast<int>(b), at, memory));
  return out;
}

// States do not shrink where the micro-batch grows: a pipeline whose states were too much stays so.
bool Cells::short_before() {
  const std::size_t at = pipeline_slot();
  if (short_[at] == 0) return false;
  for (const Variant& v : variants_)
    leave_out(Quick::states, v, std::uint64_t{space_.recompute.size()} * space_.loss.size());
  return true;
}

void Cells::leave_out(Quick quick, const Variant& v, std::uint64_t count) {
  set(PlanAxis::zero, v.zero);
  set(PlanAxis::hsdp, v.hsdp);
  pruned_ += count;
  reject(quick, ordinal(), count);
  set(PlanAxis::zero, 0);
  set(PlanAxis::hsdp, 0);
}

std::size_t Cells::pipeline_slot() const {
  std::size_t out = 0;
  for (const PlanAxis axis : {PlanAxis::ep, PlanAxis::etp, PlanAxis::vpp, PlanAxis::split})
    out = out * space_.size(axis) + at_[index(axis)];
  return out;
}

// What times of this pipeline need.
void Cells::set_times(const Structure& structure) {
  if (!timed_ || structure.classes.empty()) return;
  const bool interleaved = recipe_.layout.vpp > 1;
  std::optional<Schedule<double>>& known = schedules_[interleaved ? 1 : 0];
  if (!known) {
    const auto& layers = structure.classes.front().stage.layers;
    const int first = layers.empty() ? question_.model->embedding : layers.front().block;
    BlockCost layer;  // all of it that the schedule asks for
    layer.extents = weights_[static_cast<std::size_t>(first)]->weights->block.extents;
    layer.extents[Axis::batch] = recipe_.micro_batch;
    known =
        schedule_of(recipe_, layer, static_cast<double>(question_.cluster.nodes()), tables_.prices(interleaved, true));
  }
  schedule_ = *known;
  schedule_.vpp = static_cast<double>(recipe_.layout.vpp);
}

void Cells::structure(const Structure& structure) {
  if (!only_ && short_before()) return;
  prepare(structure);
  set_times(structure);
  bool any = false;
  for (Variant& v : variants_) {
    any = any || v.feasible;
    if (!v.feasible) exclude(structure, v);
  }
  if (!any) {
    short_[pipeline_slot()] = 1;
    return;
  }
  for (std::uint32_t c = 0; c < space_.loss.size(); ++c) {
    if (!wanted(PlanAxis::loss, c)) continue;
    set(PlanAxis::loss, c);
    bound_by_time(structure, c);
  }
  for (std::uint32_t r = 0; r < space_.recompute.size(); ++r) {
    if (!wanted(PlanAxis::recompute, r)) continue;
    set(PlanAxis::recompute, r);
    for (std::uint32_t c = 0; c < space_.loss.size(); ++c) {
      if (wanted(PlanAxis::loss, c) && any_open(c)) price(structure, r, c);
    }
  }
  set(PlanAxis::recompute, 0);
  set(PlanAxis::loss, 0);
}

bool Cells::any_open(std::uint32_t loss) const {
  return std::any_of(variants_.begin(), variants_.end(), [&](const Variant& v) { return (v.open >> loss & 1) != 0; });
}

}  // namespace preflop
