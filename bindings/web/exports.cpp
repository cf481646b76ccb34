// The library's face to JavaScript: a few exported C functions. Text crosses as UTF-8 bytes in this
// module's memory; wasi.mjs wraps them.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "src/adapt/api.hpp"

#define PREFLOP_EXPORT(name) extern "C" __attribute__((export_name(#name)))

// `size` bytes for the caller to write a request into; 0 when there is no memory.
PREFLOP_EXPORT(preflop_alloc) void* preflop_alloc(std::uint32_t size) { return std::malloc(size); }

PREFLOP_EXPORT(preflop_free) void preflop_free(void* block) { std::free(block); }

// A session (src/adapt/api.hpp) for preflop_answer and preflop_close.
PREFLOP_EXPORT(preflop_open) preflop::Session* preflop_open() { return new preflop::Session(); }

PREFLOP_EXPORT(preflop_close) void preflop_close(preflop::Session* session) { delete session; }

// The answer to a call: a block for preflop_free, its first four bytes the length of the text (little endian), the
// text after them; 0 when there is no memory.
PREFLOP_EXPORT(preflop_answer)
void* preflop_answer(preflop::Session* session, const char* call, std::uint32_t size) {
  const std::string answer = session->answer(std::string_view(call, size));
  const auto length = static_cast<std::uint32_t>(answer.size());
  auto* block = static_cast<char*>(std::malloc(sizeof length + answer.size()));
  if (block == nullptr) return nullptr;
  std::memcpy(block, &length, sizeof length);
  std::memcpy(block + sizeof length, answer.data(), answer.size());
  return block;
}

// Debian's C++ library for this target is built with stack protection, but nothing there provides its
// two symbols. The guard is a constant: a module's memory is its own sandbox.
extern "C" {
extern const std::uintptr_t __stack_chk_guard;
const std::uintptr_t __stack_chk_guard = 0x00f10b0a;
[[noreturn]] void __stack_chk_fail() { __builtin_trap(); }
}
