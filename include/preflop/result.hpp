// Errors as values: nothing in the library throws.
//
// An Error says one thing in one sentence: where, what is wrong, what would be valid. The command
// line prints it on stderr and exits with 2; the web page and Python show the same text.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace preflop {

struct Error {
  std::string where;  // a flag, a key, file:line:column; may be empty
  std::string what;   // what is wrong, and with which value
  std::string valid;  // what would be valid; may be empty

  // "where: what; valid", each part only if it is there.
  std::string text() const {
    std::string out = where.empty() ? what : where + ": " + what;
    if (!valid.empty()) out += "; " + valid;
    return out;
  }
};

// Either a T or an Error. Read `value()` only after checking `ok()`.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T& value() & { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  const Error& error() const { return *std::get_if<1>(&state_); }
  const T& operator*() const { return value(); }
  T& operator*() { return value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

 private:
  std::variant<T, Error> state_;
};

// The result of a check that yields nothing but its verdict.
struct Nothing {};
using Status = Result<Nothing>;

}  // namespace preflop
