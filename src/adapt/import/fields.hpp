// Values of a configuration file by their dotted paths, and what data/launch_read.csv says of them: which recipe key a
// value is, and what it may be. Each value is read, known to decide nothing (data/launch_ignored.csv), named as not
// read, or refused with its line.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/adapt/request.hpp"

namespace preflop {

// A row of data/launch_read.csv. `values` are alternatives with bars between them: a word, "N" (whole, from 1), "N0"
// (from 0), "X" (any number) or "begin*"; "value=word" says what it is called here, "value=" that it says nothing,
// "value=?" that the framework has it and no reader here.
struct Readable {
  std::string key, values;  // key: of the recipe; empty: its reader asks for it
};
const Readable* readable(std::string_view format, const std::string& option);

// What a value is called here; nothing: none of the alternatives.
std::optional<std::string> word_of(std::string_view values, const std::string& value);

// "a whole number above 0", "full or selective": for an error.
std::string valid_values(std::string_view values);

// A whole number or a product of such ("128 * 8192"); -1: it is none, or above 2^53.
std::int64_t whole_number(std::string_view text);

// Of sizes; 0: one of them is not known, or the product is above 2^53.
std::int64_t product(std::initializer_list<std::int64_t> sizes);

std::string lowered(std::string text);  // letters of ASCII

class Fields {
 public:
  Fields(const char* format, std::string file) : format_(format), file_(std::move(file)) {}

  void set(const std::string& path, std::string value, std::size_t line) { all_[path] = {std::move(value), line}; }
  void erase_section(const std::string& prefix);  // the launcher does not look at it
  bool has(const std::string& path) const { return all_.contains(path); }
  bool any(std::string_view prefix) const;

  // Every value of the table: refused with its line, or put into `out` where it is a recipe key. From then on value()
  // is the word of the table. What is no recipe key is read by who asks for it.
  Status read(Request& out);

  std::string value(const std::string& path) const;  // "": there is none
  bool on(const std::string& path) const { return value(path) == "true"; }
  std::int64_t number(const std::string& path) const;  // 0: none
  void put(Request& out, const char* key, const std::string& path, std::string value) const;
  void put_number(Request& out, const char* key, const std::string& path, std::int64_t value) const;
  void leave(const std::string& path) const;         // a value that its reader has no word for
  std::string shown(const std::string& path) const;  // value() for a message: nobody has read it
  std::string line(const std::string& path) const;
  std::string place(const std::string& path) const { return line(path) + ": " + path; }
  Error refused(const std::string& path, const std::string& what, const std::string& valid) const {
    return Error{line(path), path + " " + what, valid};
  }
  std::vector<std::string> not_read() const;
  // The fields that no table knows, for a reader that refuses some of them.
  std::vector<std::string> unknown() const;

 private:
  struct Field {
    std::string value;
    std::size_t line = 0;
  };
  const char* format_;
  std::string file_;
  std::map<std::string, Field> all_;
  mutable std::set<std::string> asked_, left_;
};

}  // namespace preflop
