#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/base/decimal.hpp"
#include "src/base/units.hpp"

namespace preflop {
namespace {

using Pairs = std::vector<std::pair<const char*, double>>;

template <class Parse>
void expect_values(Parse parse, const Pairs& pairs) {
  for (const auto& [text, value] : pairs) {
    const auto r = parse(text, "--flag");
    ASSERT_TRUE(r.ok()) << text << ": " << r.error().text();
    if constexpr (std::is_same_v<std::decay_t<decltype(*r)>, double>) {
      EXPECT_EQ(*r, value) << text;
    } else if constexpr (std::is_same_v<std::decay_t<decltype(*r)>, Count>) {
      EXPECT_EQ(r->real(), value) << text;
    } else {
      EXPECT_EQ(r->number(), value) << text;
    }
  }
}

// Every refusal names the flag and says what would be valid.
template <class Parse>
void expect_refused(Parse parse, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const auto r = parse(text, "--flag");
    ASSERT_FALSE(r.ok()) << "'" << text << "'";
    EXPECT_EQ(r.error().where, "--flag") << text;
    EXPECT_FALSE(r.error().what.empty()) << text;
    EXPECT_FALSE(r.error().valid.empty()) << text;
    EXPECT_EQ(r.error().text().find('\n'), std::string::npos) << text;
    EXPECT_LT(r.error().text().size(), 250u) << text;
  }
}

const std::vector<std::string> kNonsense = {
    "",      " ",     "-1",    "+1",   "nan",   "NaN",  "inf", "-inf",  "x",    "K",   "1X",   "1KK",
    "1 000", "1,000", "1_000", "0x10", "1..",   "1e",   "1e+", "1.2.3", "1Kib", "1kI", "1  K", " 1",
    "1 ",    "1\n",   "1\x01", "½",    "1\xff", "1E5q", "--5", "$",     "%",    ".",   "e5",   std::string(5000, 'z')};

TEST(Units, every_count_suffix) {
  expect_values(parse_count, {{"0", 0},
                              {"512", 512},
                              {"1K", 1e3},
                              {"1k", 1e3},
                              {"7M", 7e6},
                              {"7m", 7e6},
                              {"70B", 70e9},
                              {"70b", 70e9},
                              {"3G", 3e9},
                              {"3g", 3e9},
                              {"15T", 15e12},
                              {"15t", 15e12},
                              {"1Ki", 1024},
                              {"1ki", 1024},
                              {"4Mi", 4194304},
                              {"4mi", 4194304},
                              {"2Gi", 2147483648.0},
                              {"2gi", 2147483648.0},
                              {"3Ti", 3298534883328.0},
                              {"3ti", 3298534883328.0},
                              {"1.4e12", 1.4e12},
                              {"70e9", 70e9},
                              {"1E3", 1e3},
                              {"1.5K", 1500},
                              {"1.1K", 1100},
                              {"4.35e2", 435},
                              {"0.5Ki", 512},
                              {"0.0009765625Ki", 1},
                              {"2.50K", 2500},
                              {"5.", 5},
                              {".5K", 500},
                              {"1 K", 1000},
                              {"2.000", 2},
                              {"15000e-3", 15},
                              {"0e99999999999", 0},
                              {"8Ti", 8796093022208.0},
                              {"9007199254740992", 9007199254740992.0}});
}

TEST(Units, counts_are_whole_and_exact) {
  expect_refused(parse_count, kNonsense);
  expect_refused(parse_count, {"1.5", "0.1Ki", "1e-1", "1e-99999", "9007199254740993", "1e16", "10000T", "8192.1Ti",
                               "1e400", "1e99999999999999", "99999999999999999999", "1.00000000000000000000001K", "50%",
                               "1s", "4tok", "80GB"});
  EXPECT_NE(parse_count("1.5", "--tp").error().text().find("'1.5' is not a whole number"), std::string::npos);
  EXPECT_NE(parse_count("1e16", "--tp").error().text().find("2^53"), std::string::npos);
  EXPECT_NE(parse_count("1,000", "--tp").error().text().find("write '1000'"), std::string::npos);
  EXPECT_NE(parse_count("1Q", "--tp").error().text().find("K, M, B, T, Ki, Mi, Gi or Ti"), std::string::npos);
  EXPECT_NE(parse_count("-3", "--tp").error().text().find("negative"), std::string::npos);
}

RC_GTEST_PROP(Units, counts_round_trip, ()) {
  const auto n = *rc::gen::inRange<std::int64_t>(0, (std::int64_t{1} << 53) + 1);
  const Result<Count> back = parse_count(std::to_string(n), "x");
  RC_ASSERT(back.ok());
  RC_ASSERT(back->get() == n);
}

RC_GTEST_PROP(Units, a_decimal_scale_moves_the_point, ()) {
  const auto n = *rc::gen::inRange<std::int64_t>(0, 9'000'000'000);
  const std::string digits = std::to_string(n);
  const std::string padded = std::string(digits.size() < 7 ? 7 - digits.size() : 0, '0') + digits;
  const std::string text = padded.substr(0, padded.size() - 6) + "." + padded.substr(padded.size() - 6) + "M";
  const Result<Count> back = parse_count(text, "x");
  RC_ASSERT(back.ok());
  RC_ASSERT(back->get() == n);
  RC_ASSERT(*parse_real(text, "x") == static_cast<double>(n));
}

RC_GTEST_PROP(Units, no_text_crashes, (const std::string& text)) {
  const auto bounded = [](double v) { return std::isfinite(v) && v >= 0; };
  if (const auto r = parse_count(text, "x")) RC_ASSERT(r->valid());
  if (const auto r = parse_real(text, "x")) RC_ASSERT(bounded(*r));
  if (const auto r = parse_fraction(text, "x")) RC_ASSERT(bounded(*r));
  if (const auto r = parse_bytes(text, "x")) RC_ASSERT(bounded(r->number()));
  if (const auto r = parse_batch(text, "x")) RC_ASSERT(r->amount.valid());
  if (const auto r = parse_duration(text, "x")) RC_ASSERT(bounded(r->number()));
  if (const auto r = parse_money(text, "x")) RC_ASSERT(bounded(r->number()));
  if (const auto r = parse_range(text, "x")) RC_ASSERT(r->low.valid() && r->low <= r->high);
}

TEST(Units, real_numbers) {
  expect_values(parse_real, {{"0", 0},
                             {"1.5", 1.5},
                             {"1.1K", 1100},
                             {"4.35K", 4350},
                             {"2.3K", 2300},
                             {"1.5Ki", 1536},
                             {"1e300", 1e300},
                             {"1e-400", 0},
                             {"9007199254740993", 9007199254740992.0},
                             {"0.25T", 0.25e12}});
  expect_refused(parse_real, kNonsense);
  expect_refused(parse_real, {"1e309", "1e308T", "1e300Ti1", "40%"});
}

TEST(Units, fractions) {
  expect_values(parse_fraction, {{"40%", 0.4},
                                 {"0.4", 0.4},
                                 {"100%", 1},
                                 {"1", 1},
                                 {"0", 0},
                                 {"0%", 0},
                                 {"37.3%", 0.373},
                                 {"40 %", 0.4},
                                 {".55", 0.55},
                                 {"5e-1", 0.5}});
  expect_refused(parse_fraction, kNonsense);
  expect_refused(parse_fraction, {"40", "1.01", "101%", "1000", "1K", "40%%", "1e400%"});
  EXPECT_NE(parse_fraction("40", "--mfu").error().text().find("did you mean 40%?"), std::string::npos);
  EXPECT_EQ(parse_fraction("1000", "--mfu").error().text().find("did you mean"), std::string::npos);
}

TEST(Units, every_byte_suffix) {
  expect_values(parse_bytes, {{"1B", 1},
                              {"1b", 1},
                              {"1KB", 1e3},
                              {"1kb", 1e3},
                              {"512MB", 512e6},
                              {"80GB", 80e9},
                              {"80gb", 80e9},
                              {"2TB", 2e12},
                              {"1PB", 1e15},
                              {"1KiB", 1024},
                              {"512MiB", 512 * 1048576.0},
                              {"72GiB", 72 * 1073741824.0},
                              {"72gib", 72 * 1073741824.0},
                              {"1TiB", 1099511627776.0},
                              {"1PiB", 1125899906842624.0},
                              {"71.5GiB", 71.5 * 1073741824.0},
                              {"80 GB", 80e9}});
  expect_refused(parse_bytes, kNonsense);
  expect_refused(parse_bytes, {"80", "80G", "80Gi", "80Gb", "80gB", "80bytes", "1e308GB", "80GB/s"});
  EXPECT_NE(parse_bytes("72", "--max-memory").error().text().find("72GiB"), std::string::npos);
  EXPECT_NE(parse_bytes("80G", "--max-memory").error().text().find("GiB"), std::string::npos);
}

TEST(Units, batches_and_tokens) {
  const auto batch = [](const char* text) { return *parse_batch(text, "--global-batch"); };
  EXPECT_EQ(batch("512").amount.get(), 512);
  EXPECT_FALSE(batch("512").in_tokens);
  EXPECT_EQ(batch("1K").amount.get(), 1000);
  EXPECT_EQ(batch("4Mtok").amount.get(), 4'000'000);
  EXPECT_TRUE(batch("4Mtok").in_tokens);
  EXPECT_EQ(batch("4Mitok").amount.get(), 4'194'304);
  EXPECT_EQ(batch("8192tok").amount.get(), 8192);
  EXPECT_EQ(batch("8192 tok").amount.get(), 8192);
  expect_refused(parse_batch, kNonsense);
  expect_refused(parse_batch, {"4MTOK", "4tokM", "1.5", "tok", "4Mseq", "1.5tok"});
  expect_values(parse_tokens, {{"1.4T", 1.4e12},
                               {"15T", 15e12},
                               {"300Btok", 300e9},
                               {"300B", 300e9},
                               {"1e12", 1e12},
                               {"2Titok", 2199023255552.0}});
  expect_refused(parse_tokens, kNonsense);
  expect_refused(parse_tokens, {"10000T", "0.5", "1.4e-3tok", "4MB"});
}

TEST(Units, durations) {
  expect_values(
      parse_duration,
      {{"45s", 45}, {"30m", 1800}, {"12h", 43200}, {"20d", 1728000}, {"2w", 1209600}, {"1.5h", 5400}, {"0.1s", 0.1}});
  expect_refused(parse_duration, kNonsense);
  expect_refused(parse_duration, {"20", "1y", "1M", "20D", "1h30m", "1e308w", "5days"});
}

TEST(Units, money) {
  expect_values(parse_money, {{"2M$", 2e6},
                              {"$2M", 2e6},
                              {"1.99", 1.99},
                              {"$1.99", 1.99},
                              {"2M", 2e6},
                              {"2M USD", 2e6},
                              {"2MUSD", 2e6},
                              {"2m$", 2e6},
                              {"0.99$", 0.99},
                              {"2 M $", 2e6}});
  expect_refused(parse_money, kNonsense);
  expect_refused(parse_money, {"$$2", "$2$", "2€", "2EUR", "-$2", "$-2", "1e400$", "$1,000,000"});
}

TEST(Units, ranges) {
  const auto range = parse_range("64..512", "--on");
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->low.get(), 64);
  EXPECT_EQ(range->high.get(), 512);
  EXPECT_EQ(parse_range("64", "--on")->high.get(), 64);
  EXPECT_EQ(parse_range("1K..2K", "--on")->high.get(), 2000);
  EXPECT_EQ(parse_range("8..8", "--on")->low.get(), 8);
  expect_refused(parse_range, {"", "..", "64..", "..64", "512..64", "1..2..3", "1...2", "64-512", "1.5..2", "a..b",
                               "-1..2", "1..1e16"});
}

}  // namespace
}  // namespace preflop
