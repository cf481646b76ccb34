#include "src/validate/validate.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/decimal.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/step/memory.hpp"

namespace preflop {

namespace {

std::string layout_text(const Recipe& r) {
  const Layout& l = r.layout;
  std::string out = l.schedule + " " + recompute_text(r.recompute);
  for (const std::int64_t n : {l.tp, l.cp, l.dp, l.pp, l.vpp, l.ep, l.etp, std::int64_t{l.zero}, l.hsdp, r.micro_batch})
    out += " " + std::to_string(n);
  return out;
}

using From = Reading::From;

std::string group_of(const std::string& metric, const RowRequest& row) {
  if (metric == "time.step_seconds") return row.moe ? "time moe" : "time dense";
  if (metric == "fit.verdict") return "fit";
  if (metric == "memory.device") return "memory device";
  return metric == "memory.allocated" && row.stack == "megatron" ? "memory megatron allocated"
                                                                 : "memory allocated or reserved";
}

// All that the prediction depends on, as text.
std::string cache_key(const RowRequest& row) {
  std::string out = row.request.model + "\n" + row.request.on;
  for (const auto& [key, value] : row.request.keys) out += "\n" + key + "=" + value;
  if (row.capacity_bytes) out += "\ncapacity=" + std::to_string(*row.capacity_bytes);
  if (row.sustained) out += "\nsustained=" + std::to_string(*row.sustained);
  if (row.scaleout) out += "\nscaleout=" + std::to_string(*row.scaleout);
  if (row.slice) out += "\nslice=" + std::to_string(*row.slice);
  return out;
}

const double* find(const std::vector<std::pair<std::string, double>>& table, const std::string& name) {
  for (const auto& [key, value] : table) {
    if (key == name) return &value;
  }
  return nullptr;
}

// The row with micro-batches twice as large, and as many of them.
RowRequest with_twice_the_batch(const RowRequest& row) {
  RowRequest out = row;
  for (auto& [key, value] : out.request.keys) {
    if (key != "micro_batch" && key != "global_batch") continue;
    if (const Result<double> n = parse_decimal(value)) value = std::to_string(2 * std::llround(*n));
  }
  return out;
}

}  // namespace

bool stands_apart(std::string_view stack) { return stack == "maxtext"; }

Result<Problem> row_problem(const RowRequest& row, const Catalogues& catalogues) {
  auto problem = pose(row.request, catalogues);
  if (!problem) return problem.error();
  Cluster& cluster = problem->cluster;
  if (row.capacity_bytes) {
    cluster.gpu.data["capacity_bytes"] = Datum{*row.capacity_bytes, Rung::given, "the row: memory of the card capped"};
    cluster.platform.data.erase("capacity_bytes");
  }
  if (row.scaleout)
    cluster.platform.data["scaleout_bandwidth"] = Datum{*row.scaleout, Rung::given, "the row: network per accelerator"};
  if (row.slice) {
    cluster.platform.data["scaleup_domain"] =
        Datum{static_cast<double>(*row.slice), Rung::given, "the row: TPUs of a slice"};
  }
  if (row.sustained)
    cluster.platform.data["sustained_bf16_flops"] =
        Datum{*row.sustained, Rung::given, "the source: large bf16 products on that machine"};
  return problem;
}

Result<Estimate> estimate_row(const RowRequest& row, const Catalogues& catalogues) {
  const auto problem = row_problem(row, catalogues);
  if (!problem) return problem.error();
  return estimate<double>(problem->analysed, problem->cluster);
}

Result<Validator> Validator::make(const Catalogues& catalogues, const RowWords& words) {
  Validator out(catalogues, words);
  auto sources = source_rules();
  if (!sources) return sources.error();
  out.sources_ = std::move(sources).value();
  auto known = contradictions();
  if (!known) return known.error();
  out.contradictions_ = std::move(known).value();
  return out;
}

const SourceRules& Validator::rules(const std::string& stem) const {
  static const SourceRules kNone;
  const auto it = sources_.find(stem);
  return it == sources_.end() ? kNone : it->second;
}

void Validator::keep_kinds(Predicted& p, const Estimate& e, const Stack& stack) {
  const std::string& arch = e.cluster.gpu.arch;
  const auto kind = [&](const Scalar& band, double half_width, const char* what) {
    const bool own = std::any_of(band.on.begin(), band.on.end(), [&](const auto& o) { return o.arch == arch; });
    Predicted::Kind out;
    out.band = half_width;
    out.like = stack.name + " " + what + (own ? " " + arch : "");
    return out;
  };
  p.of_allocated = kind(stack.allocated_band, e.memory.allocated_band, "allocated");
  p.of_reserved = kind(stack.reserved_band, e.memory.reserved_band, "reserved");
  p.of_device = kind(stack.device_band, e.memory.device_band, "device");
  if (const Scalar& factor = reserved_factor_of(stack, e.recipe); !factor.fitted.empty()) {
    const bool compiled = &factor == &stack.reserved_factor_compiled;
    p.of_reserved.fitted = stack.name + (compiled ? " reserved_factor_compiled" : " reserved_factor");
    p.of_reserved.fitted_to = factor.fitted;
    p.of_reserved.fitted_part = p.reserved;
  }
  if (const Scalar each = stack.communicator_bytes.at(arch); !each.fitted.empty()) {
    const double context = e.memory.stages[e.memory.peak_stage].context.number();
    p.of_device.fitted = stack.name + " communicator_bytes " + arch;
    p.of_device.fitted_to = each.fitted;
    p.of_device.fitted_part = context - stack.context_bytes.at(arch).value;
  }
}

const Validator::Predicted& Validator::predict(const RowRequest& row) {
  const auto [it, fresh] = cache_.try_emplace(cache_key(row));
  Predicted& p = it->second;
  if (!fresh) return p;
  const auto problem = row_problem(row, *catalogues_);
  if (!problem) {
    p.skip = skip_of(problem.error(), row.request);
    return p;
  }
  const Estimate e = estimate<double>(problem->analysed, problem->cluster);
  for (const StageMemory<double>& stage : e.memory.stages) {
    p.allocated = std::max(p.allocated, stage.allocated.number());
    p.reserved = std::max(p.reserved, stage.reserved.number());
    p.device = std::max(p.device, stage.device.number());
    // Ranks of a stage are consecutive: stage k begins at rank k x GPUs / pp.
    const std::int64_t first_rank = stage.stage * (e.cluster.gpus / e.recipe.layout.pp);
    if (first_rank < e.cluster.gpus_per_node) p.first_node = std::max(p.first_node, stage.device.number());
  }
  keep_kinds(p, e, *problem->stack);
  p.model = e.model.name;
  p.verdict = e.memory.verdict;
  p.job = e.model.name + " on " + std::to_string(e.cluster.gpus) + " x " + e.cluster.gpu.id + ", sequence " +
          std::to_string(e.recipe.seq) + ", batch " + std::to_string(e.recipe.global_batch) + ", " + e.recipe.precision;
  p.layout = layout_text(e.recipe);
  p.gpus = static_cast<double>(e.cluster.gpus);
  p.tokens = static_cast<double>(e.recipe.global_batch) * static_cast<double>(e.recipe.seq);
  p.palm = e.compute.model.number();
  for (const auto& [name, flops] : e.compute.conventions) p.conventions.emplace_back(name, flops.number());
  for (const std::string& line : e.recipe.assumed) {
    if (line.starts_with("stack=")) p.assumed.push_back(line);
  }
  if (e.step) {
    p.seconds = e.step->seconds.number();
    if (e.step->low) p.low = e.step->low->number();
    if (e.step->high) p.high = e.step->high->number();
    p.peak = e.step->peak.number();
  } else {
    p.no_time = e.warnings.empty() ? "no step time: the GPU's rates are not known" : e.warnings.front();
  }
  return p;
}

namespace {

// Seconds of a step where the source measured time or throughput: no model is needed.
std::optional<double> stated_seconds(const Reading& r, double step_tokens, double seq, double gpus) {
  if (r.from == From::seconds) return r.value;
  if (step_tokens <= 0 || gpus <= 0) return std::nullopt;
  if (r.from == From::tokens_per_second_per_gpu) return step_tokens / (r.value * gpus);
  if (r.from == From::samples_per_second) return step_tokens / seq / r.value;
  return std::nullopt;
}

// The same from TFLOP/s or MFU under the source's own convention.
Result<double> converted_seconds(const Reading& r, double step_tokens, double gpus, double peak,
                                 const std::vector<std::pair<std::string, double>>& conventions) {
  if (r.convention == "unknown") return Error{"", "FLOP convention not stated", ""};
  const double* flops = find(conventions, r.convention);
  if (flops == nullptr) return Error{"", "FLOP convention not built: " + r.convention, ""};
  const double rate = r.from == From::tflops_per_gpu ? r.value : r.value * (r.peak_flops > 0 ? r.peak_flops : peak);
  if (rate <= 0) return Error{"", "the peak behind the MFU is not known", ""};
  return *flops * step_tokens / (rate * gpus);
}

void judge(Entry& out, Verdict verdict, bool ran) {
  out.measured_verdict = ran ? "ran" : "oom";
  if (verdict == Verdict::unknown) {
    out.skip = {SkipKind::cell, "the GPU's capacity is not known"};
    return;
  }
  out.predicted_verdict = name(verdict);
  const bool fits = verdict != Verdict::no;
  out.error = fits == ran ? 0 : fits ? 1 : -1;
}

}  // namespace

Entry Validator::entry(const Reading& r, const Predicted& p, const RowRequest& row) const {
  Entry out;
  out.metric = r.metric;
  const std::size_t chip = row.request.on.find('x');
  if (stands_apart(row.stack)) {
    out.apart = chip == std::string::npos ? "?" : row.request.on.substr(chip + 1);
    out.apart = out.apart.substr(0, out.apart.find('/'));
  }
  out.group = group_of(r.metric, row);
  out.skip = row.skip ? row.skip : p.skip;
  const bool converted = r.from == From::tflops_per_gpu || r.from == From::mfu;
  if (converted) out.convention = r.convention;
  if (r.from == From::bytes) out.measured = r.value;
  if (r.from == From::verdict) out.measured_verdict = r.value > 0 ? "ran" : "oom";
  if (r.metric == "time.step_seconds") out.measured = stated_seconds(r, row.step_tokens, row.seq, row.gpus);
  if (out.skip) return out;
  out.job = p.job;
  out.layout = p.layout;
  if (r.from == From::verdict) {
    judge(out, p.verdict, r.value > 0);
  } else if (r.metric == "time.step_seconds") {
    // A batch that is not stated is the recipe's.
    if (!converted) out.measured = stated_seconds(r, p.tokens, row.seq, p.gpus);
    const auto seconds = converted ? converted_seconds(r, p.tokens, p.gpus, p.peak, p.conventions)
                                   : Result<double>(out.measured.value_or(0));
    if (converted && seconds) out.measured = *seconds;
    if (!seconds)
      out.skip = {seconds.error().what.find("not built") == std::string::npos ? SkipKind::cell : SkipKind::not_built,
                  seconds.error().what};
    else if (!p.seconds)
      out.skip = {SkipKind::cell, p.no_time};
    else
      out.predicted = *p.seconds;
    if (out.predicted) {
      out.low = p.low;
      out.high = p.high;
    }
    if (p.peak > 0) out.model_flops_rate = p.palm * p.tokens / (p.gpus * p.peak);
  } else {
    out.predicted = r.metric == "memory.allocated"  ? p.allocated
                    : r.metric == "memory.reserved" ? p.reserved
                    : row.first_node                ? p.first_node
                                                    : p.device;
    const Predicted::Kind& kind = r.metric == "memory.allocated"  ? p.of_allocated
                                  : r.metric == "memory.reserved" ? p.of_reserved
                                                                  : p.of_device;
    if (kind.band > 0) {
      out.low = *out.predicted * (1 - kind.band);
      out.high = *out.predicted * (1 + kind.band);
    }
    out.model = p.model;
    out.like = kind.like;
    out.fitted = kind.fitted;
    out.fitted_to = kind.fitted_to;
    out.fitted_part = kind.fitted_part;
  }
  if (out.predicted && out.measured && *out.measured > 0) out.error = *out.predicted / *out.measured - 1;
  return out;
}

// What is said of the run of a row that repeats another.
void Validator::add_unscored(const Row& row, const std::string& stem, std::vector<Entry>& entries) {
  Row first = row;
  std::erase(first.flags, "duplicate");
  const RowRequest request = this->request(first, stem);
  static const Predicted kNothing;
  const Predicted& p = request.skip ? kNothing : predict(request);
  const std::size_t n = request.readings.size();
  for (std::size_t i = 0; i < n && n <= entries.size(); ++i)
    entries[entries.size() - n + i].unscored = std::make_shared<const Entry>(entry(request.readings[i], p, request));
}

RowVerdict Validator::add(const Row& row, const std::string& stem, std::vector<Entry>& entries) {
  RowRequest request = this->request(row, stem);
  static const Predicted kNothing;
  const Predicted& p = request.skip ? kNothing : predict(request);
  std::vector<std::string> assumed = std::move(request.assumed);
  for (const std::string& line : p.assumed) {
    std::replace(assumed.begin(), assumed.end(), std::string("stack=default"), line);
  }
  // Twice the largest micro-batch that ran, where that is what the source prints.
  const bool doubles = rules(stem).largest_micro_batch && !request.skip && !p.skip;
  const Verdict twice = doubles ? predict(with_twice_the_batch(request)).verdict : Verdict::unknown;
  const auto shared = std::make_shared<const std::vector<std::string>>(std::move(assumed));
  const auto later = std::make_shared<const std::vector<std::string>>(std::move(request.not_modelled));
  const auto flags = std::make_shared<const std::vector<std::string>>(row.flags);
  for (const Reading& reading : request.readings) {
    Entry e = entry(reading, p, request);
    e.id = row.id;
    e.source = stem;
    e.assumed = shared;
    e.not_modelled = later;
    if (e.metric == "fit.verdict") {
      e.contradicted = contradictions_.contains(row.id);
      if (twice != Verdict::unknown) e.doubled_verdict = name(twice);
    }
    e.flags = flags;
    entries.push_back(std::move(e));
  }
  if (row.flag("duplicate")) add_unscored(row, stem, entries);
  return {request.states_enough, request.measures, row.flag("duplicate"), request.skip ? request.skip : p.skip};
}

RowRequest Validator::request(const Row& row, const std::string& stem) const {
  return row_request(row, rules(stem), *words_, *catalogues_);
}

Explained Validator::explain(const Row& row, const std::string& stem) {
  Explained out;
  out.row = request(row, stem);
  if (!out.row.skip) {
    auto e = estimate_row(out.row, *catalogues_);
    if (e)
      out.estimate = std::move(e).value();
    else
      out.row.skip = skip_of(e.error(), out.row.request);
  }
  if (const auto known = contradictions_.find(row.id); known != contradictions_.end())
    out.contradiction = known->second;
  add(row, stem, out.entries);
  return out;
}

}  // namespace preflop
