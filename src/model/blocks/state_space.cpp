// State spaces: Mamba-2 and the gated delta rule. One input makes a gate (z), values (x), what enters the state (b),
// what is read from it (c) and how fast it forgets (dt); a short convolution and a scan mix tokens.
#include "src/model/blocks/blocks.hpp"

namespace preflop {

namespace {

// A depthwise convolution with its SiLU.
TensorId convolved(BlockBuilder& b, const StateSpace& spec, TensorId x, const char* channels) {
  const TensorId y = b.unary(Kind::conv, Tag::ssm_conv, x);
  b.weight((std::string(channels) + "w").c_str(), Role::norm);
  if (spec.conv_bias) b.weight(channels, Role::bias);
  return y;
}

}  // namespace

const char* name(ScanKind kind) { return kind == ScanKind::mamba2 ? "mamba2" : "gated-delta"; }

TensorId state_space(BlockBuilder& b, const StateSpace& spec, TensorId x) {
  const bool delta = spec.kind == ScanKind::gated_delta;
  b.set_scan(spec.kind);
  b.extents()[Axis::ssm_heads] = spec.heads;
  b.extents()[Axis::ssm_dim] = spec.dim;
  b.extents()[Axis::ssm_groups] = spec.groups;
  b.extents()[Axis::ssm_state] = spec.state;
  b.extents()[Axis::conv] = spec.conv;
  b.extents()[Axis::chunk] = spec.chunk;

  const TensorId z = b.product(Tag::ssm_z, x, "h>mP", spec.bias);
  const TensorId values = b.product(Tag::ssm_x, x, "h>mP", spec.bias);
  const TensorId into = b.product(Tag::ssm_b, x, "h>gN", spec.bias);
  const TensorId from = b.product(Tag::ssm_c, x, "h>gN", spec.bias);
  const TensorId dt = b.product(Tag::ssm_dt, x, "h>m", spec.bias);
  const TensorId beta = delta ? b.product(Tag::ssm_beta, x, "h>m", spec.bias) : dt;  // how much of it is written
  const TensorId v = convolved(b, spec, values, "mP");
  const TensorId k = convolved(b, spec, into, "gN");
  const TensorId q = convolved(b, spec, from, "gN");
  TensorId y = delta ? b.general(Kind::scan, Tag::ssm_scan, {v, k, q, dt, beta}, "bsmP")
                     : b.general(Kind::scan, Tag::ssm_scan, {v, k, q, dt}, "bsmP");
  b.weight("m", Role::norm);              // A
  b.weight("m", Role::bias);              // of dt
  if (!delta) b.weight("m", Role::norm);  // D
  const TensorId gate = b.unary(Kind::activation, Tag::ssm_act, z);
  if (delta) {  // each head is normalised by itself, then gated
    y = b.norm(Tag::ssm_out_norm, y, "P", true, false, 1);
    y = b.binary(Kind::multiply, Tag::ssm_mul, y, gate);
  } else {  // gated, then normalised in groups of heads
    y = b.binary(Kind::multiply, Tag::ssm_mul, y, gate);
    y = b.norm(Tag::ssm_out_norm, y, "mP", true, false, static_cast<int>(spec.groups.get()));
  }
  return b.product(Tag::ssm_out, y, "mP>h", spec.bias);
}

}  // namespace preflop
