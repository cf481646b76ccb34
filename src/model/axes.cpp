#include "src/model/axes.hpp"

namespace preflop {

namespace {
struct Row {
  char letter;
  const char* name;
};
constexpr Row kTable[kAxes] = {
    {'b', "b"},           {'s', "s"},           {'u', "keys"},       {'h', "h"},         {'j', "h"},
    {'a', "heads"},       {'k', "kv heads"},    {'d', "head dim"},   {'e', "value dim"}, {'f', "ffn"},
    {'V', "vocab"},       {'p', "positions"},   {'E', "experts"},    {'c', "choices"},   {'t', "routed rows"},
    {'r', "routed rows"}, {'x', "expert ffn"},  {'y', "shared ffn"}, {'q', "q lora"},    {'l', "kv lora"},
    {'o', "rope dim"},    {'n', "nope dim"},    {'m', "ssm heads"},  {'P', "ssm dim"},   {'g', "ssm groups"},
    {'N', "state"},       {'w', "conv"},        {'C', "chunk"},      {'Z', "chunks"},    {'R', "rank"},
    {'i', "latent"},      {'I', "index heads"}, {'D', "index dim"}};
}  // namespace

char letter(Axis axis) { return kTable[static_cast<int>(axis)].letter; }
const char* name(Axis axis) { return kTable[static_cast<int>(axis)].name; }

Axis axis_of(char letter) {
  for (int i = 0; i < kAxes; ++i) {
    if (kTable[i].letter == letter) return static_cast<Axis>(i);
  }
  return Axis::batch;
}

Axes::Axes(const char* letters) {
  for (; *letters != '\0'; ++letters) push(axis_of(*letters));
}

bool Axes::has(Axis axis) const {
  for (Axis a : *this) {
    if (a == axis) return true;
  }
  return false;
}

void Axes::push(Axis axis) {
  if (size_ < kMax) at_[size_++] = axis;
}

Axes Axes::without(const Axes& others) const {
  Axes out;
  for (Axis a : *this) {
    if (!others.has(a)) out.push(a);
  }
  return out;
}

Axes Axes::with(const Axes& others) const {
  Axes out = *this;
  for (Axis a : others) {
    if (!out.has(a)) out.push(a);
  }
  return out;
}

std::string Axes::letters() const {
  std::string out;
  for (Axis a : *this) out += letter(a);
  return out;
}

bool operator==(const Axes& a, const Axes& b) {
  if (a.size_ != b.size_) return false;
  for (int i = 0; i < a.size_; ++i) {
    if (a.at_[i] != b.at_[i]) return false;
  }
  return true;
}

}  // namespace preflop
