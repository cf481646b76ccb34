// Multi-token prediction: the hidden state and the embedding of the next token, each normalised, are
// joined by a product of twice the width; an ordinary layer follows, and a head that owns its norm only.
#include "src/model/blocks/blocks.hpp"

namespace preflop {

Block mtp_join_block(const Architecture& a) {
  BlockBuilder b("mtp join");
  b.extents()[Axis::hidden] = a.hidden;
  b.extents()[Axis::hidden2] = a.hidden;
  b.extents()[Axis::vocab] = a.vocab;
  const TensorId x = b.input("bsh");
  const TensorId ids = b.constant("bs", Element::ids);
  const TensorId e = b.lookup(Tag::mtp_embed, ids, "Vh", false);
  if (a.tied) b.shared_with_head();
  const NormKind kind = a.final_norm;
  const TensorId next = b.product(Tag::mtp_join_embed, norm_of(b, Tag::mtp_embed_norm, e, kind), "h>j");
  const TensorId here = b.product(Tag::mtp_join_hidden, norm_of(b, Tag::mtp_norm, x, kind), "h>j");
  return b.finish(b.binary(Kind::add, Tag::mtp_add, next, here));
}

Block mtp_head_block(const Architecture& a) {
  BlockBuilder b("mtp head");
  b.extents()[Axis::hidden] = a.hidden;
  b.extents()[Axis::vocab] = a.vocab;
  const TensorId x = norm_of(b, Tag::head_norm, b.input("bsh"), a.final_norm);
  const TensorId logits = b.product(Tag::head_out, x, "h>V", false, false);
  b.shared_with_head();
  b.loss(Tag::head_loss, logits);
  return b.finish(logits);
}

}  // namespace preflop
