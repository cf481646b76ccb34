#include "src/model/blocks/blocks.hpp"

namespace preflop {

TensorId norm_of(BlockBuilder& b, Tag tag, TensorId x, NormKind kind, Axes over) {
  const bool scale = kind != NormKind::layer_no_weight;
  const bool bias = kind == NormKind::layer;
  const int statistics = kind == NormKind::rms ? 1 : 2;  // LayerNorm keeps mean and deviation
  return b.norm(tag, x, over, scale, bias, statistics);
}

TensorId mlp(BlockBuilder& b, const MlpSpec& spec, TensorId x) {
  b.extents()[Axis::ffn] = spec.width;
  b.set_activation(spec.activation);
  TensorId y = 0;
  if (spec.gated) {
    const TensorId gate = b.product(Tag::mlp_gate, x, "h>f", spec.bias);
    const TensorId up = b.product(Tag::mlp_up, x, "h>f", spec.bias);
    y = b.binary(Kind::multiply, Tag::mlp_mul, b.unary(Kind::activation, Tag::mlp_act, gate), up);
  } else {
    y = b.unary(Kind::activation, Tag::mlp_act, b.product(Tag::mlp_up, x, "h>f", spec.bias));
  }
  return b.product(Tag::mlp_down, y, "f>h", spec.bias);
}

namespace {

bool norms_input(NormPlacement p) { return p != NormPlacement::post; }
bool norms_output(NormPlacement p) { return p == NormPlacement::post || p == NormPlacement::sandwich; }

struct Branch {
  Tag norm, post_norm, dropout, add;
};

TensorId finish_branch(BlockBuilder& b, const LayerKind& kind, TensorId y, Branch tags) {
  if (norms_output(kind.placement)) y = norm_of(b, tags.post_norm, y, kind.norm);
  if (kind.dropout > 0) y = b.unary(Kind::dropout, tags.dropout, y);
  return y;
}

constexpr Branch kAttention{Tag::attn_norm, Tag::attn_post_norm, Tag::attn_dropout, Tag::attn_add};
constexpr Branch kState{Tag::ssm_norm, Tag::attn_post_norm, Tag::attn_dropout, Tag::ssm_add};
constexpr Branch kMlp{Tag::mlp_norm, Tag::mlp_post_norm, Tag::mlp_dropout, Tag::mlp_add};

TensorId mixer(BlockBuilder& b, const LayerKind& kind, TensorId x) {
  return kind.state_space ? state_space(b, *kind.state_space, x) : attention(b, kind.attention, x);
}

TensorId feed_forward(BlockBuilder& b, const LayerKind& kind, TensorId x) {
  return kind.experts ? mixture(b, *kind.experts, x) : mlp(b, kind.mlp, x);
}

// y = x + (attention(n1(x)) + mlp(n2(x))): both branches read the block's input.
TensorId parallel_layer(BlockBuilder& b, const LayerKind& kind, TensorId x) {
  const TensorId n1 = norm_of(b, Tag::attn_norm, x, kind.norm);
  const TensorId n2 = kind.placement == NormPlacement::split_pre ? norm_of(b, Tag::mlp_norm, x, kind.norm) : n1;
  const TensorId y1 = finish_branch(b, kind, mixer(b, kind, n1), kAttention);
  const TensorId y2 = finish_branch(b, kind, feed_forward(b, kind, n2), kMlp);
  return b.binary(Kind::add, Tag::block_add, x, b.binary(Kind::add, Tag::mlp_add, y1, y2));
}

// x + branch(norm(x))
TensorId residual(BlockBuilder& b, const LayerKind& kind, TensorId x, const Branch& tags,
                  TensorId (*branch)(BlockBuilder&, const LayerKind&, TensorId)) {
  const TensorId n = norms_input(kind.placement) ? norm_of(b, tags.norm, x, kind.norm) : x;
  return b.binary(Kind::add, tags.add, x, finish_branch(b, kind, branch(b, kind, n), tags));
}

TensorId sequential_layer(BlockBuilder& b, const LayerKind& kind, TensorId x) {
  if (kind.mixes) x = residual(b, kind, x, kind.state_space ? kState : kAttention, mixer);
  if (kind.feeds_forward) x = residual(b, kind, x, kMlp, feed_forward);
  return x;
}

}  // namespace

Block layer_block(const Architecture& a, const LayerKind& kind) {
  BlockBuilder b("layer");
  b.extents()[Axis::hidden] = a.hidden;
  const TensorId x = b.input("bsh");
  const bool parallel = kind.placement == NormPlacement::shared_pre || kind.placement == NormPlacement::split_pre;
  return b.finish(parallel ? parallel_layer(b, kind, x) : sequential_layer(b, kind, x));
}

}  // namespace preflop
