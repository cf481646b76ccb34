// Mixture of experts. Rows travel: chosen (permute), sent to the GPUs of their experts (move), made whole
// for experts that are cut by etp (move), sorted by expert (permute), multiplied, and all the way back.
// Rows are `t` on one GPU and `r` after the gather over etp.
#include "src/model/blocks/blocks.hpp"

namespace preflop {

namespace {

struct MlpTags {
  Tag gate, up, act, mul, down;
};

struct MlpShape {
  const char* up;
  const char* down;
  bool gated, bias;
};

TensorId expert_mlp(BlockBuilder& b, TensorId x, const MlpShape& shape, const MlpTags& tags) {
  TensorId y = 0;
  if (shape.gated) {
    const TensorId gate = b.product(tags.gate, x, shape.up, shape.bias);
    const TensorId up = b.product(tags.up, x, shape.up, shape.bias);
    y = b.binary(Kind::multiply, tags.mul, b.unary(Kind::activation, tags.act, gate), up);
  } else {
    y = b.unary(Kind::activation, tags.act, b.product(tags.up, x, shape.up, shape.bias));
  }
  return b.product(tags.down, y, shape.down, shape.bias);
}

// The shared experts are one MLP as wide as all of them together.
TensorId shared_experts(BlockBuilder& b, const ExpertSpec& spec, TensorId x) {
  b.extents()[Axis::shared_ffn] = spec.shared_width;
  const TensorId y = expert_mlp(b, x, {"h>y", "y>h", spec.gated, false},
                                {Tag::shared_gate, Tag::shared_up, Tag::shared_act, Tag::shared_mul, Tag::shared_down});
  if (!spec.shared_gate) return y;
  return b.binary(Kind::multiply, Tag::shared_scale, y, b.product(Tag::shared_scale_logit, x, "h>"));
}

}  // namespace

TensorId mixture(BlockBuilder& b, const ExpertSpec& spec, TensorId x) {
  b.extents()[Axis::experts] = spec.count;
  b.extents()[Axis::choices] = spec.count;
  b.extents()[Axis::expert_ffn] = spec.width;
  b.set_routing({spec.top_k, spec.groups, spec.top_groups});
  b.set_activation(spec.activation);

  const TensorId logits = b.product(Tag::moe_router, x, "h>c", spec.router_bias);
  b.is_router();
  const TensorId choice = b.unary(Kind::route, Tag::moe_route, logits);
  if (spec.correction_bias) b.weight("c", Role::bias, false);

  TensorId z = x;
  const bool latent = spec.latent.has_value();
  if (latent) {
    b.extents()[Axis::latent] = *spec.latent;
    z = b.product(Tag::moe_latent_in, x, "h>i");
  }
  const Axes sent = latent ? "ti" : "th";
  const Axes whole = latent ? "ri" : "rh";
  z = b.general(Kind::permute, Tag::moe_permute, {z, choice}, sent);
  z = b.general(Kind::move, Tag::moe_dispatch, {z}, sent);
  z = b.general(Kind::move, Tag::moe_gather, {z}, whole);
  z = b.general(Kind::permute, Tag::moe_sort, {z}, whole);
  z = expert_mlp(b, z, {latent ? "E:i>x" : "E:h>x", latent ? "E:x>i" : "E:x>h", spec.gated, spec.bias},
                 {Tag::exp_gate, Tag::exp_up, Tag::exp_act, Tag::exp_mul, Tag::exp_down});
  z = b.general(Kind::permute, Tag::moe_unsort, {z}, whole);
  z = b.general(Kind::move, Tag::moe_scatter, {z}, sent);
  z = b.general(Kind::move, Tag::moe_combine, {z}, sent);
  TensorId y = b.general(Kind::permute, Tag::moe_unpermute, {z, choice}, latent ? "bsi" : "bsh");
  if (latent) y = b.product(Tag::moe_latent_out, y, "i>h");
  if (spec.shared_width.get() == 0) return y;
  return b.binary(Kind::add, Tag::moe_add, y, shared_experts(b, spec, x));
}

}  // namespace preflop
