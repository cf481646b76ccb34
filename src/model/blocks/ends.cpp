// The two ends of a model: embedding and head.
#include "src/model/blocks/blocks.hpp"

namespace preflop {

Block embedding_block(const Architecture& a) {
  BlockBuilder b("embedding");
  b.extents()[Axis::hidden] = a.hidden;
  b.extents()[Axis::vocab] = a.vocab;
  b.extents()[Axis::positions] = a.position_rows;
  const TensorId ids = b.input("bs", Element::ids);
  TensorId x = b.lookup(Tag::embed_tokens, ids, "Vh");
  if (a.positions == Positions::learned) {
    x = b.binary(Kind::add, Tag::embed_add, x, b.lookup(Tag::embed_positions, ids, "ph"));
  }
  if (a.embedding_norm) x = norm_of(b, Tag::embed_norm, x, NormKind::layer);
  if (a.embedding_dropout > 0) x = b.unary(Kind::dropout, Tag::embed_dropout, x);
  return b.finish(x);
}

Block head_block(const Architecture& a) {
  BlockBuilder b("head");
  b.extents()[Axis::hidden] = a.hidden;
  b.extents()[Axis::vocab] = a.vocab;
  TensorId x = b.input("bsh");
  if (a.has_final_norm) x = norm_of(b, Tag::head_norm, x, a.final_norm);
  const TensorId logits = b.product(Tag::head_out, x, "h>V", a.head_bias, !a.tied);
  b.loss(Tag::head_loss, logits);
  return b.finish(logits);
}

}  // namespace preflop
