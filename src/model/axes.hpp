// Named axes: the vocabulary in which every operand, weight and tensor is written.
//
// An axis belongs to an operand, as in einsum: keys are read along `u`, queries along `s`. Two axes
// may have the same extent and a different fate under sharding (src/cost/mesh): experts of a weight
// (E) are cut by ep, experts as router outputs (c) are not. The list is closed: a new kind of block
// that needs a new axis adds it here, in the name table and in the sharding table.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "preflop/count.hpp"

namespace preflop {

enum class Axis : std::uint8_t {
  batch,        // b  sequences of a micro-batch
  seq,          // s  query tokens
  key_seq,      // u  key tokens
  hidden,       // h
  hidden2,      // j  hidden on the other side of a square weight
  heads,        // a  query heads
  kv_heads,     // k
  head_dim,     // d  of queries and keys
  value_dim,    // e  of values
  ffn,          // f
  vocab,        // V
  positions,    // p  rows of a learned position table
  experts,      // E  experts of a weight
  choices,      // c  experts as router outputs
  routed,       // t  routed rows, before the expert-tensor gather
  gathered,     // r  routed rows after it
  expert_ffn,   // x
  shared_ffn,   // y
  q_lora,       // q
  kv_lora,      // l
  rope_dim,     // o
  nope_dim,     // n
  ssm_heads,    // m
  ssm_dim,      // P
  ssm_groups,   // g
  ssm_state,    // N
  conv,         // w
  chunk,        // C
  chunks,       // Z
  rank,         // R  of an adapter
  latent,       // i  width of latent experts
  index_heads,  // I  of a sparse-attention indexer
  index_dim     // D
};
inline constexpr int kAxes = 33;

char letter(Axis axis);       // 'b', 's', ...: the one-letter form used in builders and tests
const char* name(Axis axis);  // "b", "s", "h", "heads", "kv heads", ...: for explanations
Axis axis_of(char letter);    // the letter must be one of the table's

// A short ordered list of axes. At most six: the widest tensor of the field (a chunked state) has five.
class Axes {
 public:
  static constexpr int kMax = 6;
  Axes() = default;
  Axes(const char* letters);  // NOLINT(google-explicit-constructor): builders read "bsh"
  int size() const { return size_; }
  Axis operator[](int i) const { return at_[i]; }
  const Axis* begin() const { return at_.data(); }
  const Axis* end() const { return at_.data() + size_; }
  bool has(Axis axis) const;
  void push(Axis axis);
  Axes without(const Axes& others) const;
  Axes with(const Axes& others) const;  // union, own order first
  std::string letters() const;
  friend bool operator==(const Axes& a, const Axes& b);

 private:
  std::array<Axis, kMax> at_{};
  int size_ = 0;
};

// Global extents. b, s and u belong to the workload and are set when a block is analysed.
class Extents {
 public:
  Count& operator[](Axis axis) { return at_[static_cast<int>(axis)]; }
  Count operator[](Axis axis) const { return at_[static_cast<int>(axis)]; }
  bool operator==(const Extents&) const = default;

 private:
  std::array<Count, kAxes> at_{};
};

}  // namespace preflop
