// The names of the estimate's enumerations, as the JSON contract spells them.
#include "preflop/estimate.hpp"

namespace preflop {

const char* name(Term term) {
  static constexpr const char* kNames[kTerms] = {"weights", "gradients", "optimizer", "activations",
                                                 "logits",  "buffers",   "transients"};
  return kNames[static_cast<int>(term)];
}
const char* name(Moment moment) {
  static constexpr const char* kNames[kMoments] = {
      "init", "loss", "last_layer_backward", "first_layer_backward", "end_of_backward", "reduction", "optimizer_step"};
  return kNames[static_cast<int>(moment)];
}
const char* name(Verdict verdict) {
  static constexpr const char* kNames[] = {"fits", "tight", "no", "unknown"};
  return kNames[static_cast<int>(verdict)];
}
const char* name(Lost lost) {
  static constexpr const char* kNames[kLost] = {
      "gemm",    "attention", "memory_bound", "logits",  "recompute", "launch", "tp_comm",   "cp_comm",
      "ep_comm", "pp_comm",   "dp_comm",      "offload", "imbalance", "bubble", "optimizer", "other"};
  return kNames[static_cast<int>(lost)];
}

}  // namespace preflop
