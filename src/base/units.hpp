// Numbers with units, as flags, recipe files and cluster files write them. One grammar:
//
//   number   12  0.5  .5  1.4e12            no sign, no separators (1,000 and 1_000 are refused)
//   scale    K 1e3   M 1e6   B or G 1e9   T 1e12      Ki 2^10   Mi 2^20   Gi 2^30   Ti 2^40
//   tokens   a scale, then optionally tok   1.4T  300Btok  4Mitok
//   bytes    B, KB MB GB TB PB (powers of 1000), KiB MiB GiB TiB PiB (powers of 1024); never bare
//   time     s  m  h  d  w                  (60 s, 3600 s, 86400 s, 604800 s)
//   money    $ before or after, or USD after, or nothing; a scale      $2M  2M$  1.99
//   fraction % or a number from 0 to 1
//
// Suffixes may be written in all lower case (70b, 80gb); one space may stand before them. Decimal
// scales move the decimal point, so 1.1K is 1100 and not 1100.0000000000002.
//
// Every function takes the text and `where`, the flag or key that an error names. An error is one
// sentence that says which suffixes are accepted. Negative, empty, nan, inf and junk are always refused.
#pragma once

#include <string_view>

#include "preflop/count.hpp"
#include "preflop/quantity.hpp"
#include "preflop/result.hpp"

namespace preflop {

// A whole number up to 2^53: "1.5K" is 1500, "1.5" is refused.
Result<Count> parse_count(std::string_view text, std::string_view where);

// A finite number >= 0, scales allowed.
Result<double> parse_real(std::string_view text, std::string_view where);

// 0 to 1, written "40%" or "0.4". 40 without the sign is refused, asking for 40%.
Result<double> parse_fraction(std::string_view text, std::string_view where);

constexpr double kGiB = 1024.0 * 1024 * 1024;  // bytes

// "72GiB", "80GB". A bare number and a bare 80G are refused: they do not say which gigabyte.
Result<Bytes<double>> parse_bytes(std::string_view text, std::string_view where);

// A global batch: "512" sequences, or tokens with the suffix: "4Mtok", "4Mitok".
struct BatchSize {
  Count amount;
  bool in_tokens = false;  // else in sequences
};
Result<BatchSize> parse_batch(std::string_view text, std::string_view where);

// Whole tokens up to 2^53: "1.4T", "300Btok".
Result<Count> parse_tokens(std::string_view text, std::string_view where);

// "20d", "12h", "30m", "45s", "2w". A bare number is refused.
Result<Seconds<double>> parse_duration(std::string_view text, std::string_view where);

// US dollars: "2M$", "$2M", "1.99".
Result<Usd<double>> parse_money(std::string_view text, std::string_view where);

// "64..512", or "64" for 64..64. Both ends as parse_count reads them; low <= high.
struct CountRange {
  Count low;
  Count high;
};
Result<CountRange> parse_range(std::string_view text, std::string_view where);

}  // namespace preflop
