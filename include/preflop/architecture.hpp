// What a model *is*, before any stack, machine or recipe: the values a config.json states, in the
// field's terms, plus the family's class defaults for the keys it leaves out.
//
// Readers (src/adapt) and the catalogue (data/models) make an Architecture; src/model turns it into
// blocks of operators. Parameter counts are never stored here: they are read off the operators.
// Layers are a run-length list of layer kinds, so alternating windows, dense-then-expert models, hybrids
// of attention and state spaces and per-layer widths are all the same thing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "preflop/count.hpp"

namespace preflop {

// quick_gelu is x * sigmoid(1.702 x): GPT-OSS gates with it.
enum class Activation : std::uint8_t { gelu, relu, relu2, silu, quick_gelu };
enum class NormKind : std::uint8_t {
  rms,             // scale
  layer,           // scale and bias
  layer_no_bias,   // scale
  layer_no_weight  // nothing trained (OLMo 1)
};
// Where a layer's norms stand.
enum class NormPlacement : std::uint8_t {
  pre,         // before attention and before the MLP
  post,        // on the outputs of attention and MLP, before the residual add (OLMo 2)
  sandwich,    // both (Gemma 2 and 3)
  shared_pre,  // parallel block: one norm feeds attention and MLP (GPT-J, Phi-2, Falcon-7B, Cohere)
  split_pre    // parallel block: each branch has its own norm (GPT-NeoX, Falcon-40B)
};
enum class QkNorm : std::uint8_t {
  none,
  head,      // one scale of head_dim for queries, one for keys (Qwen3, Gemma 3)
  per_head,  // one scale per head and channel, normalised per head (Command-R+)
  full       // normalised over the whole width, heads * head_dim scales (OLMo 2)
};
enum class Positions : std::uint8_t { none, rope, learned, alibi };

// Multi-head latent attention (DeepSeek-V2 on): keys and values are products of one normalised latent of
// `kv_lora` channels; a rotary key of `rope_dim` channels is shared by all heads.
struct LatentAttention {
  std::optional<Count> q_lora;  // queries come through a latent of their own; absent: straight from the input
  Count kv_lora;
  Count nope_dim;   // of queries and keys, not rotated
  Count rope_dim;   // of queries and keys, rotated
  Count value_dim;  // of values
  bool operator==(const LatentAttention&) const = default;
};

// The scorer of sparse attention (DeepSeek-V3.2): every query picks the `top_k` keys that it attends to.
struct SparseIndexer {
  Count heads;
  Count dim;
  Count top_k;
  bool shared = false;  // takes the choice of an earlier layer: no weights of its own (GLM-5.2)
  bool operator==(const SparseIndexer&) const = default;
};

struct AttentionSpec {
  Count heads;                     // query heads
  Count kv_heads;                  // = heads for MHA, 1 for MQA
  Count head_dim;                  // not always hidden / heads
  std::optional<Count> value_dim;  // of values, where it is not head_dim
  bool query_bias = false;
  bool key_bias = false;
  bool value_bias = false;
  bool out_bias = false;
  QkNorm qk_norm = QkNorm::none;
  bool rope = true;                       // false: this layer has no rotary embedding (SmolLM3's NoPE layers)
  std::optional<Count> window;            // sliding window in tokens; absent = full causal attention
  bool chunked = false;                   // the window is a fixed chunk: tokens see their own chunk only (Llama 4)
  bool sinks = false;                     // one trained logit per head joins every softmax (GPT-OSS)
  bool gate = false;                      // sigmoid of one more product scales the result (Qwen3-Next)
  std::optional<LatentAttention> latent;  // then kv_heads = heads and head_dim = nope + rope
  std::optional<SparseIndexer> indexer;
  double dropout = 0;  // on the attention probabilities
  bool operator==(const AttentionSpec&) const = default;
};

struct MlpSpec {
  Count width;         // of one branch
  bool gated = false;  // act(gate) * up
  Activation activation = Activation::gelu;
  bool bias = false;
  bool operator==(const MlpSpec&) const = default;
};

// A mixture of experts in the place of the MLP: `top_k` of `count` experts work on every token, and the
// shared experts, taken together as one MLP of `shared_width`, on all of them.
struct ExpertSpec {
  Count count;
  Count top_k;
  Count width;  // of one branch of one expert
  // The router's choice is limited: experts stand in `groups` equal groups, and a token's lie in at most `top_groups`
  // of them (DeepSeek-V2 and V3: so that it reaches few nodes). 0: any.
  Count groups, top_groups;
  bool gated = true;
  Activation activation = Activation::silu;
  bool bias = false;             // biases in the experts (GPT-OSS)
  bool router_bias = false;      // a trained bias of the router (GPT-OSS)
  bool correction_bias = false;  // a bias for the choice alone, moved by the load and not by a gradient (DeepSeek-V3)
  Count shared_width;            // 0: no shared expert
  bool shared_gate = false;      // one more row of weights scales the shared experts' output (Qwen1.5-MoE, Qwen2-MoE)
  std::optional<Count> latent;   // experts work on this width: projections before and after (Nemotron 3 Super)
  bool operator==(const ExpertSpec&) const = default;
};

// Tokens mixed through a state in attention's place. Mamba-2 (Dao and Gu 2024, arXiv:2405.21060) is a gated scan;
// a gated delta rule (Yang et al. 2024, arXiv:2412.06464) has keys and queries for what enters and leaves the state.
enum class ScanKind : std::uint8_t { mamba2, gated_delta };
const char* name(ScanKind kind);  // "mamba2", "gated-delta"
struct StateSpace {
  ScanKind kind = ScanKind::mamba2;
  Count heads;             // gated delta: of values
  Count dim;               // channels of a head
  Count groups;            // of heads that share what enters and leaves their states; gated delta: heads of keys
  Count state;             // numbers that each channel's state has; gated delta: channels of a key
  Count conv;              // tokens that the depthwise convolution sees
  Count chunk;             // tokens that the scan takes at once
  bool conv_bias = false;  // of the convolution
  bool bias = false;       // of the products into and out of it
  bool operator==(const StateSpace&) const = default;
};

struct LayerKind {
  AttentionSpec attention;                // not read where there is a state space
  std::optional<StateSpace> state_space;  // in attention's place
  bool mixes = true;                      // false: feed-forward alone, neither attention nor state space (Nemotron-H)
  bool feeds_forward = true;              // false: attention or state space alone
  MlpSpec mlp;                            // not read where there are experts
  std::optional<ExpertSpec> experts;      // in the MLP's place
  NormKind norm = NormKind::rms;
  NormPlacement placement = NormPlacement::pre;  // shared_pre and split_pre make the block parallel
  double dropout = 0;                            // on the outputs of attention and MLP
  bool operator==(const LayerKind&) const = default;
};

struct LayerRun {
  LayerKind kind;
  std::int64_t count = 0;
};

// Which weights a published count means. Training always has the multi-token prediction layers that the
// recipe asks for, and never the copies.
enum class Counted : std::uint8_t {
  main,            // without multi-token prediction
  main_mtp,        // with its layers
  main_mtp_copies  // with its layers and a stored copy of embedding and head for each (DeepSeek-R1, GLM-4.5)
};
const char* name(Counted counted);  // "main", "main+mtp", "main+mtp+copies"

// An image encoder beside the language model: parameters, never part of the model's own counts.
struct VisionTower {
  std::string kind;  // the config's model_type
  Count tower;
  Count projector;  // from the tower's width to the model's
};

struct Architecture {
  std::string name;    // catalogue id, or the config's own name, or "config.json"
  std::string family;  // the config's architecture class: LlamaForCausalLM, ...
  Count hidden;
  Count vocab;
  std::vector<LayerRun> layers;
  std::int64_t mtp_layers = 0;        // multi-token prediction: a join of 2 hidden to hidden, a layer, a norm each
  std::optional<LayerKind> mtp_kind;  // of that layer; absent: the kind of the last one
  bool mtp_shared = false;            // one join, layer and norm predict every further token (Nemotron 3)
  Counted counted = Counted::main;    // what the total of this model's name means
  NormKind final_norm = NormKind::rms;
  bool has_final_norm = true;
  bool embedding_norm = false;  // BLOOM: a LayerNorm (with bias) after the embedding
  double embedding_dropout = 0;
  Positions positions = Positions::rope;
  Count position_rows;                // learned positions: rows of the table (OPT: 2048 + 2); 0 otherwise
  bool tied = false;                  // the head shares the embedding's weight
  bool head_bias = false;             // Phi, GPT-J
  std::optional<VisionTower> vision;  // where the config describes one that can be counted
  std::optional<Count> max_seq;       // the model's own maximum sequence, where stated
  // Constants of its formulas, where stated; nothing is counted by them, and a launch file has to say them.
  std::optional<double> rope_theta;  // base of the rotary frequencies
  std::optional<double> rope_share;  // of a head's channels those that are rotated, 1 = all
  std::optional<double> norm_eps;    // of its norms
  static constexpr double kMostTheta = 1e12, kMostEps = 1;
  std::string source;                  // where the values come from
  std::vector<std::string> defaulted;  // keys that were absent and took the family's class default: "key=value"
  std::vector<std::string> assumed;    // keys supplied by the user's --assume: "key=value"
  std::vector<std::string> notes;      // what the reader left out or found odd, a sentence each

  std::int64_t layer_count() const {
    std::int64_t n = 0;
    for (const LayerRun& run : layers) n += run.count;
    return n;
  }
};

}  // namespace preflop
