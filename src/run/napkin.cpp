#include "src/run/napkin.hpp"

namespace preflop {

namespace {

template <class N>
N given(double value, const char* label, const char* unit, const char* source) {
  return leaf<N>(value, [&] { return Origin{label, unit, source, {}}; });
}

template <class N>
Bytes<N> state_bytes(const NapkinInput& in) {
  const N each = total(std::vector<N>{given<N>(width(in.weight_dtype), "weight", "B", "its dtype"),
                                      given<N>(width(in.grad_dtype), "gradient", "B", "its dtype"),
                                      given<N>(width(in.master_dtype), "master weight", "B", "its dtype"),
                                      given<N>(width(in.moment_dtype), "first moment", "B", "its dtype"),
                                      given<N>(width(in.moment_dtype), "second moment", "B", "its dtype")});
  return Bytes<N>(named(given<N>(in.params, "parameters", "", "--params") * each, "state", "B"));
}

}  // namespace

template <class N>
Expected<N> with_margin(const Seconds<N>& ideal) {
  const N least = given<N>(1 + kLeastAdded, "with 10 % added", "", "failures, restarts, evaluations, data stalls");
  const N most = given<N>(1 + kMostAdded, "with 30 % added", "", "failures, restarts, evaluations, data stalls");
  return {named(ideal * least, "expected, low", "s"), named(ideal * most, "expected, high", "s")};
}
template Expected<double> with_margin<double>(const Seconds<double>&);
template Expected<Traced> with_margin<Traced>(const Seconds<Traced>&);

template <class N>
NapkinOf<N> napkin(const NapkinInput& in) {
  NapkinOf<N> out;
  out.state = state_bytes<N>(in);
  if (in.tokens) {
    const N multiply_add = given<N>(2, "FLOPs per multiply-add", "", "definition");
    const N passes = given<N>(3, "passes: forward, input gradient, weight gradient", "", "definition");
    const FlopsPerToken<N> per_token(multiply_add * passes * given<N>(in.params, "parameters", "", "--params"));
    out.flops = named(per_token * Tokens<N>(given<N>(*in.tokens, "tokens", "tokens", "--tokens")), "FLOPs", "FLOP");
  }
  if (in.gpus && in.peak) {
    const FlopsPerSecond<N> peak(given<N>(*in.peak, "dense peak", "FLOP/s", "--on"));
    const N gpus = given<N>(static_cast<double>(*in.gpus), "GPUs", "", "--on");
    out.cluster = named(peak * gpus * given<N>(in.mfu, "MFU", "", "--mfu"), "cluster", "FLOP/s");
  }
  if (out.flops && out.cluster) {
    out.ideal = named(*out.flops / *out.cluster, "ideal time", "s");
    const Expected<N> expected = with_margin(*out.ideal);
    out.expected_low = expected.low;
    out.expected_high = expected.high;
    const N gpus = given<N>(static_cast<double>(*in.gpus), "GPUs", "", "--on");
    out.gpu_hours = Ratio<N>(named(out.ideal->number() * gpus / N(kSecondsPerHour), "GPU-hours", "h"));
  }
  return out;
}
template NapkinOf<double> napkin<double>(const NapkinInput&);
template NapkinOf<Traced> napkin<Traced>(const NapkinInput&);

}  // namespace preflop
