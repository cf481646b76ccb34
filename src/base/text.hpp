// Numbers, names and tables for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "preflop/result.hpp"

namespace preflop::text {

// --- numbers -------------------------------------------------------------------------------------
// Unknown is written by the caller; a number that is not finite prints as "n/a" here.

constexpr std::size_t kColumns = 80;  // of everything that is written for people

std::string gib(double bytes, int decimals = 1);  // "71.4 GiB": always GiB, so columns compare
std::string bytes_si(double bytes);               // "570.4 MB", "112 GB", "1.12 TB": four digits at most
std::string bytes_iec(double bytes);              // "544 MiB", "71.4 GiB"
std::string seconds(double s);    // "12 us", "12.3 ms", "3.2 s", "4.5 min", "7.3 h", "8.4 days", "2.1 years"
std::string count(double n);      // "70.6B", "1.4T", "512", "8,192": three significant digits from a million up
std::string dollars(double usd);  // "$1.38M", "$1,000"; cents below $100: "$12.5"
std::string scientific(double n, int significant = 4);   // "8.102e17", no sign or padding in the exponent
std::string flops(double f);                             // "5.88e23 FLOP": at most four digits, trailing zeros dropped
std::string flops_per_second(double f);                  // "8.102e17 FLOP/s"
std::string percent(double fraction, int decimals = 1);  // 0.4 -> "40.0 %"
std::string fixed(double n, int decimals);               // "12.30"; never "-0.0"
std::string grouped(long long n);                        // "8,030,261,248"

// --- names ---------------------------------------------------------------------------------------

// Lower case; runs of dot, dash, underscore and space are one '-', none at the ends.
std::string normalise_name(std::string_view name);

// The candidates closest to `name` (edit distance with transpositions, on normalised names, a prefix
// counts as close), best first, at most 3; none when nothing is near. Candidates as they were given.
std::vector<std::string> did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// "did you mean a, b or c?", or "" for none.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

// An Error for an unknown name: `what` is "unknown KIND 'NAME'", `valid` the suggestion, or the
// candidates themselves when they are few and none is near.
Error unknown_name(std::string_view where, std::string_view kind, std::string_view name,
                   const std::vector<std::string>& candidates);

// "a, b or c" (or with another last joint).
std::string list(const std::vector<std::string>& items, std::string_view joint = "or");

// --- layout --------------------------------------------------------------------------------------

// 'text' for a message: quoted, control characters and broken UTF-8 as '?', cut after 40 characters.
std::string quoted(std::string_view text);

// Terminal columns: code points that are not combining. Broken UTF-8 counts one per byte.
std::size_t display_width(std::string_view utf8);

// At most `width` columns; what is cut ends in "…" (which is one of them). Never splits a code point.
std::string truncated(std::string_view utf8, std::size_t width);

// Lines of at most `width` columns, broken at spaces (a longer word is broken); '\n' is kept as a break.
std::vector<std::string> wrapped(std::string_view utf8, std::size_t width);

// A table of fixed width. Columns are as wide as their content; when the sum passes the width, the
// last text column is cut, then the others before it; numbers are never cut.
class Table {
 public:
  enum class Align { left, right };  // left: text, may be cut; right: numbers

  explicit Table(std::size_t width = 80, std::size_t indent = 0) : width_(width), indent_(indent) {}

  Table& column(std::string title, Align align = Align::left);
  Table& row(std::vector<std::string> cells);  // missing cells are empty, further ones are dropped
  Table& rule();                               // a line of dashes
  bool empty() const { return rows_.empty(); }

  // Lines that end in '\n', without spaces at their ends. No title line when every title is empty.
  std::string str() const;

 private:
  struct Column {
    std::string title;
    Align align;
  };
  std::vector<std::size_t> widths() const;

  std::size_t width_;
  std::size_t indent_;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // a rule is a row without cells
};

}  // namespace preflop::text
