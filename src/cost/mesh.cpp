#include "src/cost/mesh.hpp"

#include <algorithm>

namespace preflop {

namespace {

enum class Cut : std::uint8_t { nothing, tp, tp_capped, sequence, cp, ep, etp, routed };

// The sharding table.
Cut cut(Axis axis) {
  switch (axis) {
    case Axis::seq:
      return Cut::sequence;
    case Axis::heads:
    case Axis::ffn:
    case Axis::shared_ffn:
    case Axis::vocab:
    case Axis::ssm_heads:
      return Cut::tp;
    case Axis::kv_heads:
    case Axis::ssm_groups:
      return Cut::tp_capped;
    case Axis::experts:
      return Cut::ep;
    case Axis::expert_ffn:
      return Cut::etp;
    case Axis::routed:
    case Axis::gathered:  // its extent is etp times that of `routed`: all rows of an etp group
      return Cut::routed;
    case Axis::chunks:
      return Cut::cp;
    default:
      return Cut::nothing;
  }
}

std::int64_t divisor_without_sp(Axis axis, const Extents& extents, const Mesh& mesh) {
  const std::int64_t sequence = mesh.sp ? mesh.tp : 1;
  switch (cut(axis)) {
    case Cut::nothing:
      return 1;
    case Cut::tp:
      return mesh.tp;
    case Cut::tp_capped:
      return std::max<std::int64_t>(1, std::min(mesh.tp, extents[axis].get()));
    case Cut::sequence:
    case Cut::cp:
      return mesh.cp;
    case Cut::ep:
      return mesh.ep;
    case Cut::etp:
      return mesh.etp;
    case Cut::routed:
      return mesh.cp * sequence;
  }
  return 1;
}

Volume make_volume(const Axes& axes, const Extents& extents, const Mesh& mesh, bool gathered) {
  Volume out;
  for (Axis axis : axes) {
    const std::int64_t d = gathered ? divisor_without_sp(axis, extents, mesh) : divisor(axis, axes, extents, mesh);
    out.factors[static_cast<std::size_t>(out.size++)] = {axis, extents[axis], d};
    out.elements *= extents[axis] / Count(d);
  }
  return out;
}

}  // namespace

Mesh Mesh::of(const Layout& layout) {
  return {layout.tp, layout.cp, layout.ep, layout.etp, layout.sp && layout.tp > 1};
}

bool cut_by_tp(const Axes& axes, const Mesh& mesh) {
  if (mesh.tp == 1) return false;
  return std::any_of(axes.begin(), axes.end(), [&](Axis axis) {
    const Cut c = cut(axis);
    return c == Cut::tp || c == Cut::tp_capped;
  });
}

bool cut_by_sp(const Axes& axes, const Mesh& mesh) {
  return mesh.sp && mesh.tp > 1 && axes.has(Axis::seq) && !cut_by_tp(axes, mesh);
}

std::int64_t divisor(Axis axis, const Axes& of, const Extents& extents, const Mesh& mesh) {
  const std::int64_t base = divisor_without_sp(axis, extents, mesh);
  return axis == Axis::seq && cut_by_sp(of, mesh) ? base * mesh.tp : base;
}

std::string Volume::text() const {
  std::string out;
  if (sharded_by > 1)
    return "ceil(" + std::to_string(sharded_from.get()) + " parameters / " + std::to_string(sharded_by) + ")";
  if (size == 0) return std::to_string(elements.get());
  for (int i = 0; i < size; ++i) {
    const Factor& f = factors[static_cast<std::size_t>(i)];
    if (!out.empty()) out += " x ";
    out += std::string(name(f.axis)) + " " + std::to_string(f.extent.get());
    if (f.divisor > 1) out += "/" + std::to_string(f.divisor);
  }
  return out;
}

Volume volume(const Axes& axes, const Extents& extents, const Mesh& mesh) {
  return make_volume(axes, extents, mesh, false);
}
Volume gathered_volume(const Axes& axes, const Extents& extents, const Mesh& mesh) {
  return make_volume(axes, extents, mesh, true);
}

}  // namespace preflop
