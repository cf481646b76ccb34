#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "src/base/text.hpp"

namespace preflop::text {
namespace {

TEST(Text, bytes) {
  EXPECT_EQ(gib(71.4 * 1073741824.0), "71.4 GiB");
  EXPECT_EQ(gib(0), "0.0 GiB");
  EXPECT_EQ(gib(-1.0), "0.0 GiB");
  EXPECT_EQ(bytes_si(570.4e6), "570.4 MB");
  EXPECT_EQ(bytes_si(112e9), "112 GB");
  EXPECT_EQ(bytes_si(1.12e12), "1.12 TB");
  EXPECT_EQ(bytes_si(999.96e6), "1 GB");
  EXPECT_EQ(bytes_si(0), "0 B");
  EXPECT_EQ(bytes_iec(544 * 1048576.0), "544 MiB");
  EXPECT_EQ(bytes_iec(71.4 * 1073741824.0), "71.4 GiB");
  EXPECT_EQ(bytes_iec(1023), "1023 B");
}

TEST(Text, seconds_pick_their_unit) {
  EXPECT_EQ(seconds(7.258e5), "8.4 days");
  EXPECT_EQ(seconds(3.2), "3.2 s");
  EXPECT_EQ(seconds(0.012), "12 ms");
  EXPECT_EQ(seconds(0.0123), "12.3 ms");
  EXPECT_EQ(seconds(12e-6), "12 us");
  EXPECT_EQ(seconds(59.9), "59.9 s");
  EXPECT_EQ(seconds(270), "4.5 min");
  EXPECT_EQ(seconds(7.3 * 3600), "7.3 h");
  EXPECT_EQ(seconds(36 * 3600), "36.0 h");
  EXPECT_EQ(seconds(120 * 86400), "120 days");
  EXPECT_EQ(seconds(800 * 86400.0), "2.2 years");
  EXPECT_EQ(seconds(0), "0 s");
  EXPECT_EQ(seconds(std::nan("")), "n/a");
}

TEST(Text, counts_and_rates) {
  EXPECT_EQ(count(70.55e9), "70.5B");  // the double below 70.55e9 / 1e9
  EXPECT_EQ(count(8030261248), "8.03B");
  EXPECT_EQ(count(1.4e12), "1.4T");
  EXPECT_EQ(count(512), "512");
  EXPECT_EQ(count(8192), "8,192");
  EXPECT_EQ(count(999999), "999,999");
  EXPECT_EQ(count(999.9e6), "1B");
  EXPECT_EQ(count(2.5), "2.5");
  EXPECT_EQ(count(1e30), "1e30");
  EXPECT_EQ(flops(5.88e23), "5.88e23 FLOP");
  EXPECT_EQ(flops_per_second(8.102e17), "8.102e17 FLOP/s");
  EXPECT_EQ(scientific(0), "0");
  EXPECT_EQ(scientific(1.5e-7), "1.5e-7");
  EXPECT_EQ(scientific(3), "3");
  EXPECT_EQ(percent(0.4), "40.0 %");
  EXPECT_EQ(percent(0.373, 0), "37 %");
  EXPECT_EQ(fixed(-0.001, 1), "0.0");
  EXPECT_EQ(fixed(12.3, 2), "12.30");
  EXPECT_EQ(grouped(8030261248), "8,030,261,248");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(grouped(std::numeric_limits<long long>::min()), "-9,223,372,036,854,775,808");
}

TEST(Text, names_have_one_spelling) {
  EXPECT_EQ(normalise_name("Meta_Llama 3.1--70B"), "meta-llama-3-1-70b");
  EXPECT_EQ(normalise_name("-_. x ."), "x");
  EXPECT_EQ(normalise_name(""), "");
  EXPECT_EQ(normalise_name("a/B"), "a/b");
}

TEST(Text, did_you_mean_finds_what_is_near) {
  const std::vector<std::string> gpus = {"a100-sxm-80gb", "b200-sxm", "h100-pcie",     "h100-sxm",
                                         "h200-sxm",      "mi300x",   "v100-sxm2-32gb"};
  EXPECT_EQ(did_you_mean("h100-smx", gpus).at(0), "h100-sxm");
  EXPECT_EQ(did_you_mean("H100_SXM", gpus).at(0), "h100-sxm");
  EXPECT_EQ(did_you_mean("h100sxm", gpus).at(0), "h100-sxm");
  EXPECT_EQ(did_you_mean("h100", gpus), (std::vector<std::string>{"h100-sxm", "h100-pcie"}));
  EXPECT_EQ(did_you_mean("mi300", gpus).at(0), "mi300x");
  EXPECT_LE(did_you_mean("x100-sxm", gpus).size(), 3u);
  EXPECT_TRUE(did_you_mean("toaster", gpus).empty());
  EXPECT_TRUE(did_you_mean("foo", {"H100 (document, footnote)", "barefoot-8b"}).empty());
  EXPECT_EQ(did_you_mean("qwen3-8b", {"Qwen/Qwen3-8B-Base"}).size(), 1U);
  EXPECT_TRUE(did_you_mean("", gpus).empty());
  EXPECT_TRUE(did_you_mean(std::string(100000, 'h'), gpus).empty());
  EXPECT_EQ(suggestion("zero-stge", {"zero_stage", "tp"}), "did you mean zero_stage?");
  const Error e = unknown_name("--schedule", "schedule", "1f1p", {"1f1b", "gpipe"});
  EXPECT_EQ(e.text(), "--schedule: unknown schedule '1f1p'; did you mean 1f1b?");
  EXPECT_EQ(unknown_name("", "stack", "zzz", {"megatron", "textbook"}).valid, "valid are megatron and textbook");
}

TEST(Text, cutting_respects_code_points) {
  EXPECT_EQ(display_width("naïve"), 5u);
  EXPECT_EQ(display_width("a\u0301"), 1u);
  EXPECT_EQ(display_width("\xff\xfe"), 2u);
  EXPECT_EQ(truncated("abcdef", 6), "abcdef");
  EXPECT_EQ(truncated("abcdef", 4), "abc…");
  EXPECT_EQ(truncated("äöüß", 3), "äö…");
  EXPECT_EQ(truncated("ab", 0), "");
  EXPECT_EQ(truncated("ab", 1), "…");
  EXPECT_EQ(text::quoted("a\nb\x01\xff"),
            "'a?b?"
            "?'");
  EXPECT_EQ(text::quoted("日本"), "'日本'");
  EXPECT_LT(text::quoted(std::string(1 << 20, 'x')).size(), 60u);
}

TEST(Text, wrapping) {
  EXPECT_EQ(wrapped("one two  three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("abcdefgh ij", 3), (std::vector<std::string>{"abc", "def", "gh", "ij"}));
  EXPECT_EQ(wrapped("a\n\nb", 9), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(wrapped("", 9), (std::vector<std::string>{""}));
}

RC_GTEST_PROP(Text, nothing_is_wider_than_asked, (const std::string& s)) {
  const auto width = *rc::gen::inRange<std::size_t>(1, 100);
  RC_ASSERT(display_width(truncated(s, width)) <= width);
  for (const std::string& line : wrapped(s, width)) RC_ASSERT(display_width(line) <= width);
  RC_ASSERT(display_width(text::quoted(s)) <= 42u);
}

TEST(Text, tables_align) {
  Table t;
  t.column("term").column("GiB", Table::Align::right).column("note");
  t.row({"weights", "16.4", "bf16"}).rule().row({"sum", "160.0"});
  EXPECT_EQ(t.str(),
            "term       GiB  note\n"
            "weights   16.4  bf16\n"
            "-------  -----  ----\n"
            "sum      160.0\n");
}

TEST(Text, tables_without_titles_and_rows) {
  EXPECT_EQ(Table().str(), "");
  Table t(80, 2);
  t.column("").column("");
  t.row({"a", "b", "dropped"});
  EXPECT_EQ(t.str(), "  a  b\n");
}

RC_GTEST_PROP(Text, tables_stay_within_80_columns, (const std::vector<std::vector<std::string>>& rows)) {
  Table t;
  t.column("name").column("value", Table::Align::right).column("first words").column("last words");
  for (auto cells : rows) {
    for (std::string& cell : cells) {
      for (char& c : cell) c = c == '\n' ? ' ' : c;
    }
    if (cells.size() > 1) cells[1] = cells[1].substr(0, 12);
    t.row(std::move(cells));
  }
  std::istringstream lines(t.str());
  for (std::string line; std::getline(lines, line);) RC_ASSERT(display_width(line) <= 80u);
}

TEST(Text, a_table_cuts_its_last_text_column) {
  Table t(40);
  t.column("name").column("n", Table::Align::right).column("why");
  t.row({"llama3-70b", "12345", std::string(100, 'w')});
  EXPECT_NE(t.str().find("llama3-70b  12345  www"), std::string::npos);
  EXPECT_NE(t.str().find("w…\n"), std::string::npos);
}

}  // namespace
}  // namespace preflop::text
