// What a chip cannot run decides defaults, and refuses flags.
#pragma once

#include <string>
#include <vector>

#include "src/adapt/request.hpp"

namespace preflop {

struct GpuDefaults {
  Request request;                   // with the keys that this chip decides
  std::vector<std::string> assumed;  // "precision=fp16 (v100-32 has no bf16)"
};

// Volta and Turing have no bf16 and no FlashAttention 2 or cuDNN attention (compute capability 8.0); FlashAttention 3
// is Hopper's; cuDNN is NVIDIA's; splash attention is a TPU's, and no other fused kernel runs there. Where nothing is
// given, the nearest that runs is taken; what is given and cannot run is refused, a precision too. Sources: NVIDIA CUDA
// C++ Programming Guide, arithmetic by compute capability and alternate floating-point types of wmma and mma; the
// README of Dao-AILab/flash-attention; cuDNN support matrix, fused attention; AI-Hypercomputer/maxtext
// src/maxtext/layers/attention_op.py.
Result<GpuDefaults> with_gpu_defaults(const Request& request, const Stack& stack, const Gpu& gpu);

// "bf16"; "fp16" on chips without it.
const char* default_precision(const Gpu& gpu);

// How rows reach their experts: what is given, else the first of the stack's that runs here. DeepEP and HybridEP need
// Hopper or newer (READMEs of deepseek-ai/DeepEP). Call for models with experts.
Result<std::string> dispatcher_here(const Request& request, const Stack& stack, const Gpu& gpu);

}  // namespace preflop
