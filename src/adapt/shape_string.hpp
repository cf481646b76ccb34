// Shape strings: a model from its sizes alone.
//
//   gpt:layers=96,hidden=12288,heads=96,vocab=51200
//   llama:layers=80,hidden=8192,heads=64,kv_heads=8,ffn=28672,vocab=128256
//
// The word before the colon says what the keys that are not given are:
//
//   key                gpt (GPT-2, Megatron's GPT)   llama                 values
//   layers hidden heads vocab            needed                            whole numbers, 51200 or 128Ki
//   kv_heads           heads                         heads                 a divisor of heads
//   head_dim           hidden / heads                hidden / heads
//   ffn                4 * hidden                    8/3 * hidden, up to   width of one branch
//                                                    a multiple of 256
//   seq                2048                          not stated            the model's maximum, in tokens
//   tied               true                          false                 true | false
//   gated              false                         true                  true | false
//   activation         gelu                          silu                  gelu | relu | relu2 | silu
//   norm               layer                         rms                   rms | layer | layer_no_bias | none
//   placement          pre                           pre                   pre | post | sandwich | shared_pre |
//   split_pre bias               true                          false                 of every linear layer but the head
//   qkv_bias out_bias mlp_bias                       as bias
//   head_bias          false                         false
//   qk_norm            none                          none                  none | head | per_head | full
//   positions          learned                       rope                  learned | rope | alibi | none
//   position_rows      seq                           -                     rows of the learned table
//   dropout            0.1                           0                     on the outputs of attention and MLP
//   attention_dropout embedding_dropout              as dropout
//   window             none                          none                  sliding window in tokens
//   full_every         0                             0                     with window: every N-th layer sees
//   everything nope_every         0                             0                     every N-th layer has no rotary
//   embedding embedding_norm     false                         false                 true | false final_norm true true
//   true | false
//
// gpt with gated=true needs its ffn: implementations differ in what they take.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "preflop/architecture.hpp"
#include "preflop/result.hpp"

namespace preflop {

// Whether MODEL is meant as a shape string: a word, a colon, and no path or URL.
bool looks_like_shape(std::string_view model);

// `where` is the flag or argument that errors name. Defaults taken are listed in Architecture::defaulted.
Result<Architecture> read_shape(std::string_view text, std::string_view where);

// The same from keys and values that stand apart (the catalogue's columns). `base` is gpt or llama.
using ShapeKeys = std::vector<std::pair<std::string_view, std::string_view>>;
Result<Architecture> build_shape(std::string_view base, const ShapeKeys& keys, std::string_view where);

// Every key, in the order of the table above.
std::vector<std::string> shape_keys();

}  // namespace preflop
