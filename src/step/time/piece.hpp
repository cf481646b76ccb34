// The piece of the time tables: what one block costs one GPU for one micro-batch.
//
// A Piece depends on the block, tp, sp, cp, ep, etp, micro-batch, sequence, recomputation, attention kernel,
// precision, imbalance and capacity, the stack and the machine, and on nothing else: not on pp, vpp, dp,
// zero or the number of GPUs. That list is its key in a table.
#pragma once

#include <array>

#include "src/cost/price.hpp"

namespace preflop {

// Exposed seconds by what they go to.
template <class N>
using Parts = std::array<Seconds<N>, kLost>;

template <class N>
Seconds<N> sum_of(const Parts<N>& parts);
// The same without a name of its own where the parts are none.
template <class N>
void add_to(Parts<N>& sum, const Parts<N>& more, const N& times);

// What stages add up of it.
template <class N>
struct PieceSums {
  Seconds<N> forward_sum, backward_sum;
  Seconds<N> host_forward, host_backward;  // of the host, issuing its kernels, where it runs ahead of the GPU
  Seconds<N> weights_sum;                  // of backward: products and additions of the gradients of weights
  double dense = 0, expert = 0;            // parameters on this GPU, before optimizer states or weights are sharded
  double tensors = 0;                      // that hold them
};
template <class N>
struct Piece : PieceSums<N> {
  Parts<N> forward{}, backward{};  // backward: with what is recomputed in it, under Lost::recompute
};

// What a GPU that is busy so long waits for the host that issues its kernels: the longer of the two counts, with a soft
// corner.
template <class N>
Seconds<N> waiting_for_host(const Seconds<N>& gpu, const Seconds<N>& host);

// `block` has been analysed under `recipe`; `is_layer`: not the embedding, not the head.
template <class N>
Piece<N> price_block(const BlockCost& block, const Recipe& recipe, bool is_layer, const Prices<N>& prices);

// Parameters of a block on this GPU. A table shared with the embedding (`not owned`) is not counted again,
// unless the stage has it as a copy of its own.
double local_parameters(const BlockCost& block, bool expert);
// Tensors that hold a block's parameters: weights of one launch are one.
double local_tensors(const BlockCost& block);

}  // namespace preflop
