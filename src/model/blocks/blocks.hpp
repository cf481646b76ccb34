// The building blocks of decoder models, in base form (unfused mathematics).
#pragma once

#include "preflop/architecture.hpp"
#include "src/model/builder.hpp"
#include "src/model/operators.hpp"

namespace preflop {

// A norm over the hidden axis (or over `over`), of the given kind.
TensorId norm_of(BlockBuilder& b, Tag tag, TensorId x, NormKind kind, Axes over = "h");

// x (bsh) -> attention output (bsh), without norm, residual or dropout.
TensorId attention(BlockBuilder& b, const AttentionSpec& spec, TensorId x);
// The same with latent keys and values (spec.latent).
TensorId latent_attention(BlockBuilder& b, const AttentionSpec& spec, TensorId x);
// Softmax attention and output projection. `x` is the input of the layer's products: of a gate, where there is one.
TensorId attention_core(BlockBuilder& b, const AttentionSpec& spec, TensorId x, TensorId q, TensorId k, TensorId v);
// x (bsh) -> output of a state space (bsh), without norm, residual or dropout.
TensorId state_space(BlockBuilder& b, const StateSpace& spec, TensorId x);
// x (bsh) -> output of routed and shared experts (bsh), without norm, residual or dropout.
TensorId mixture(BlockBuilder& b, const ExpertSpec& spec, TensorId x);
// x (bsh) -> MLP output (bsh), without norm, residual or dropout.
TensorId mlp(BlockBuilder& b, const MlpSpec& spec, TensorId x);

Block embedding_block(const Architecture& a);
Block layer_block(const Architecture& a, const LayerKind& kind);
Block head_block(const Architecture& a);
Block mtp_join_block(const Architecture& a);
Block mtp_head_block(const Architecture& a);

}  // namespace preflop
