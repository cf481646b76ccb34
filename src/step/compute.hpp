// FLOPs per token under named conventions. A convention is a filter over the same operators: which
// products count, how many keys a query is said to see, how often a pass is counted.
#pragma once

#include <string>
#include <vector>

#include "preflop/estimate.hpp"
#include "src/step/memory.hpp"

namespace preflop {

struct Convention {
  const char* name;
  const char* says;  // one line for people
  enum class Weights : std::uint8_t {
    parameters,            // every parameter of the model, tables, biases and norms too: the N of 6N
    parameters_no_tables,  // N without embedding tables
    products               // the products that are executed
  } weights;
  bool attention;     // count the attention products
  Visible visible;    // keys per query
  bool padded_vocab;  // logits over the padded vocabulary
  int layer_passes;   // forward, input gradient, weight gradient: 3; with full recomputation: 4
  bool replay;        // add what this recipe recomputes
  const char* source;
  // What a convention leaves out.
  bool routers = true;  // routers and the gates of shared experts
  bool windows = true;  // false: a windowed layer counts as a full one
  // Models with state spaces have a formula of their own: the states of twice the hidden size, whatever the heads, and
  // no joins of multi-token prediction.
  bool hybrid_formula = false;
  bool every_gate = true;  // false: the gate branch of an MLP counts where its activation is SiLU only
};

const std::vector<Convention>& conventions();
const Convention* find_convention(std::string_view name);
// For messages: the names, in the table's order.
std::vector<std::string> convention_names();

// FLOPs per token of the whole model under a convention; `replay_too` adds what the recipe recomputes.
template <class N>
FlopsPerToken<N> flops_per_token(const Analysed& a, const Convention& convention, bool replay_too);
// The attention products alone.
template <class N>
FlopsPerToken<N> attention_flops_per_token(const Analysed& a, const Convention& convention);

template <class N>
ComputeEstimate<N> compute_estimate(const Analysed& a, const Convention& convention);

}  // namespace preflop
