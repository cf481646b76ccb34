// Every number of an estimate by its path in the JSON: one walk for the JSON (double) and for
// explanations (Traced), so that the two cannot name different things.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "preflop/estimate.hpp"

namespace preflop {

namespace detail {

template <class N, class F>
class NumberWalk {
 public:
  NumberWalk(const EstimateOf<N>& e, F& f) : e_(e), f_(f) {}

  void all() {
    counts();
    memory();
    compute();
    step();
    run();
  }

 private:
  void unknown(const std::string& path, const char* unit) { f_(path, std::optional<N>(), unit); }
  template <class Q>
  void put(const std::string& path, const Q& quantity, const char* unit) {
    f_(path, std::optional<N>(quantity.number()), unit);
  }
  template <class Q>
  void put(const std::string& path, const std::optional<Q>& quantity, const char* unit) {
    if (quantity)
      put(path, *quantity, unit);
    else
      unknown(path, unit);
  }
  void count(const std::string& path, Count n, const char* what) {
    f_(path,
       std::optional<N>(leaf<N>(n.real(), [&] { return Origin{what, "", "read off the operators' weights", {}}; })),
       "");
  }

  void counts() {
    count("model.params_total", e_.model.params_total, "parameters");
    count("model.params_active", e_.model.params_active, "parameters that act on a token");
    count("model.params_embedding", e_.model.params_embedding, "parameters of the embedding tables");
    if (e_.model.params_vision)
      count("model.params_vision", *e_.model.params_vision, "parameters of the vision tower and its projector");
    else
      unknown("model.params_vision", "");
  }

  void memory() {
    const MemoryEstimate<N>& m = e_.memory;
    const StageMemory<N>& peak = m.stages[m.peak_stage];
    put("memory.margin_bytes", m.margin, "B");
    put("memory.capacity_bytes", m.capacity, "B");
    put("memory.peak_allocated_bytes", peak.allocated, "B");
    put("memory.peak_reserved_bytes", peak.reserved, "B");
    put("memory.peak_device_bytes", peak.device, "B");
    put("memory.low_allocated_bytes", m.low_allocated, "B");
    put("memory.high_allocated_bytes", m.high_allocated, "B");
    put("memory.low_reserved_bytes", m.low_reserved, "B");
    put("memory.high_reserved_bytes", m.high_reserved, "B");
    put("memory.low_device_bytes", m.low_device, "B");
    put("memory.high_device_bytes", m.high_device, "B");
    put("memory.host_bytes_per_node", m.host, "B");
    put("memory.checkpoint_bytes", m.checkpoint, "B");
    for (std::size_t i = 0; i < m.way_out.size(); ++i) {
      const std::string at = "memory.way_out[" + std::to_string(i) + "].";
      put(at + "freed_bytes", m.way_out[i].freed, "B");
      put(at + "seconds_factor", m.way_out[i].seconds_factor, "");
    }
    for (std::size_t i = 0; i < m.stages.size(); ++i) stage("memory.stages[" + std::to_string(i) + "].", m.stages[i]);
  }

  void stage(const std::string& at, const StageMemory<N>& s) {
    for (int i = 0; i < kMoments; ++i) {
      if (s.moments[i]) put(at + "moments." + name(static_cast<Moment>(i)), *s.moments[i], "B");
    }
    for (int i = 0; i < kTerms; ++i) put(at + name(static_cast<Term>(i)), s.terms[i], "B");
    put(at + "allocated", s.allocated, "B");
    put(at + "reserved", s.reserved, "B");
    put(at + "context", s.context, "B");
    put(at + "device", s.device, "B");
  }

  void compute() {
    const ComputeEstimate<N>& c = e_.compute;
    put("compute.flops_per_token.model", c.model, "FLOP/token");
    put("compute.flops_per_token.hardware", c.hardware, "FLOP/token");
    put("compute.flops_per_token.six_n", c.six_n, "FLOP/token");
    put("compute.flops_per_token.attention", c.attention, "FLOP/token");
    for (const auto& [convention, flops] : c.conventions) put("compute.conventions." + convention, flops, "FLOP/token");
  }

  // A member of the step or the run, which may be absent as a whole.
  template <class Part, class Q>
  void member(const char* path, const std::optional<Part>& part, Q Part::* what, const char* unit) {
    if (part)
      put(path, (*part).*what, unit);
    else
      unknown(path, unit);
  }

  void step() {
    using S = StepEstimate<N>;
    const std::optional<S>& s = e_.step;
    member("step.seconds", s, &S::seconds, "s");
    if (s) {
      put("step.low_seconds", s->low, "s");
      put("step.high_seconds", s->high, "s");
    } else {
      unknown("step.low_seconds", "s");
      unknown("step.high_seconds", "s");
    }
    member("step.tokens_per_second", s, &S::tokens_per_second, "tokens/s");
    member("step.tokens_per_second_per_gpu", s, &S::tokens_per_second_per_gpu, "tokens/s");
    member("step.mfu", s, &S::mfu, "");
    member("step.peak_flops", s, &S::peak, "FLOP/s");
    member("step.hfu", s, &S::hfu, "");
    for (int i = 0; i < kLost; ++i) {
      const std::string path = std::string("step.breakdown.") + name(static_cast<Lost>(i));
      if (s)
        put(path, s->breakdown[i], "s");
      else
        unknown(path, "s");
    }
  }

  void run() {
    using R = RunEstimate<N>;
    const std::optional<R>& r = e_.run;
    member("run.tokens", r, &R::tokens, "tokens");
    if (r) {
      const auto origin = [] { return Origin{"steps", "", "tokens / tokens per step, rounded up", {}}; };
      f_("run.steps", std::optional<N>(leaf<N>(static_cast<double>(r->steps), origin)), "");
    } else {
      unknown("run.steps", "");
    }
    member("run.ideal_seconds", r, &R::ideal, "s");
    member("run.expected_seconds", r, &R::expected, "s");
    member("run.p10_seconds", r, &R::p10, "s");
    member("run.p50_seconds", r, &R::p50, "s");
    member("run.p90_seconds", r, &R::p90, "s");
    member("run.gpu_hours", r, &R::gpu_hours, "h");
    member("run.cost_usd", r, &R::cost, "USD");
    member("run.storage_usd", r, &R::storage, "USD");
    member("run.energy_kwh", r, &R::energy_kwh, "kWh");
    member("run.co2_kg", r, &R::co2_kg, "kg");
    member("run.interruptions", r, &R::interruptions, "");
    member("run.mtbf_seconds", r, &R::mtbf, "s");
    member("run.checkpoint_interval_seconds", r, &R::interval, "s");
    member("run.effective", r, &R::effective, "");
    for (int i = 0; i < kRunLosses; ++i) {
      const std::string path = std::string("run.losses.") + name(static_cast<RunLoss>(i));
      if (r)
        put(path, r->losses[i], "s");
      else
        unknown(path, "s");
    }
  }

  const EstimateOf<N>& e_;
  F& f_;
};

}  // namespace detail

// Calls f(path, optional<N>, unit) for every number, in the order of the contract. Paths are those of
// the JSON ("memory.stages[0].activations"); units are SI names, empty for pure numbers. A number that
// is not known is an empty optional.
template <class N, class F>
void for_each_number(const EstimateOf<N>& e, F&& f) {
  detail::NumberWalk<N, F>(e, f).all();
}

}  // namespace preflop
