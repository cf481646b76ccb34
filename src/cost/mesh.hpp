// The two device meshes and the sharding table: which axis is cut by which parallel size.
//
// One rule is all there is to sequence parallelism: `s` is cut by tp when sp is on and no other axis
// of the tensor is cut by tp. Norms, the residual stream, a router and latents fall out of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "preflop/recipe.hpp"
#include "src/model/axes.hpp"

namespace preflop {

struct Mesh {
  std::int64_t tp = 1, cp = 1, ep = 1, etp = 1;
  bool sp = false;

  static Mesh of(const Layout& layout);
};

// By which divisor one axis is cut, within an operand of the given axes. kv heads and ssm groups are
// cut by at most their own extent: beyond it they are replicated.
std::int64_t divisor(Axis axis, const Axes& of, const Extents& extents, const Mesh& mesh);

// Is any axis of these dealt out by tp (other than s by sequence parallelism)? kv heads are, even where
// each rank ends up with a copy of the only one: its rows are those of the whole sequence.
bool cut_by_tp(const Axes& axes, const Mesh& mesh);
// Is s cut by tp here?
bool cut_by_sp(const Axes& axes, const Mesh& mesh);

// The local size of an operand, with the factors it was made of: explanations read these.
struct Volume {
  struct Factor {
    Axis axis = Axis::batch;
    Count extent;  // global
    std::int64_t divisor = 1;
  };
  Count elements = 1;  // on one GPU; invalid when an axis does not divide
  std::array<Factor, Axes::kMax> factors{};
  int size = 0;
  // Parameters cut into equal shards instead of along axes: elements = ceil(sharded_from / sharded_by).
  Count sharded_from = 0;
  std::int64_t sharded_by = 1;

  std::string text() const;  // "b 1 x s 4096/8 x h 8192"
};

Volume volume(const Axes& axes, const Extents& extents, const Mesh& mesh);
// The same without sequence parallelism's cut: what a gathered tensor takes.
Volume gathered_volume(const Axes& axes, const Extents& extents, const Mesh& mesh);

}  // namespace preflop
