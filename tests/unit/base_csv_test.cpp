#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "src/base/csv.hpp"

namespace preflop {
namespace {

Csv parsed(std::string_view text) {
  Result<Csv> csv = Csv::parse(text, "rows.csv");
  EXPECT_TRUE(csv.ok()) << (csv.ok() ? "" : csv.error().text());
  return csv.ok() ? std::move(csv).value() : Csv();
}
std::string refusal(std::string_view text) {
  const Result<Csv> csv = Csv::parse(text, "rows.csv");
  return csv.ok() ? "accepted" : csv.error().text();
}

TEST(CsvReading, plain_rows) {
  const Csv csv = parsed("id,gpu,n\na,h100,8\nb,,16\n");
  ASSERT_EQ(csv.rows(), 2u);
  ASSERT_EQ(csv.columns(), 3u);
  EXPECT_EQ(csv.at(0, 1), "h100");
  EXPECT_EQ(csv.at(1, 1), "");
  EXPECT_EQ(csv.at(1, "n"), "16");
  EXPECT_EQ(csv.at(1, "nothing"), "");
  EXPECT_EQ(csv.where(1, 2), "rows.csv:3:4");
  EXPECT_EQ(csv.where(0), "rows.csv:2");
}

TEST(CsvReading, quotes_breaks_and_marks) {
  const Csv csv = parsed("\xEF\xBB\xBFid,note\r\n1,\"a, \"\"b\"\"\"\r\n\r\n2,\"two\r\nlines\"\r\n3,\"\"");
  ASSERT_EQ(csv.rows(), 3u);
  EXPECT_EQ(csv.header()[0], "id");
  EXPECT_EQ(csv.at(0, 1), "a, \"b\"");
  EXPECT_EQ(csv.at(1, 1), "two\r\nlines");
  EXPECT_EQ(csv.at(2, 1), "");
  EXPECT_EQ(csv.where(2, 0), "rows.csv:6:1");
}

TEST(CsvReading, survives_being_moved_and_copied) {
  Csv copy;
  {
    Csv csv = parsed("a\nx\n");
    copy = csv;
    Csv moved = std::move(csv);
    EXPECT_EQ(moved.at(0, 0), "x");
  }
  EXPECT_EQ(copy.at(0, 0), "x");
}

TEST(CsvReading, small_files) {
  EXPECT_EQ(parsed("a,b").rows(), 0u);
  EXPECT_EQ(parsed("a,b\n").rows(), 0u);
  EXPECT_EQ(parsed("\n\na\n\n1\n\n").rows(), 1u);
  EXPECT_EQ(parsed("a,b\n1,").at(0, 1), "");
  EXPECT_EQ(parsed("a,b\n,\n").rows(), 1u);
  EXPECT_EQ(parsed("a\nx\ry\n").at(0, 0), "x\ry");  // a lone carriage return is no line break
}

TEST(CsvReading, refusals_name_the_place) {
  EXPECT_NE(refusal("").find("no header"), std::string::npos);
  EXPECT_NE(refusal("\n\n").find("no header"), std::string::npos);
  EXPECT_NE(refusal("\xEF\xBB\xBF").find("no header"), std::string::npos);
  EXPECT_EQ(refusal("a,b\n1,2,3\n"), "rows.csv:2:1: the line has 3 fields; the header has 2");
  EXPECT_EQ(refusal("a,b\n1\n"), "rows.csv:2:1: the line has 1 fields; the header has 2");
  EXPECT_EQ(refusal("a,b\n1,\"x").substr(0, 14), "rows.csv:2:3: ");
  EXPECT_EQ(refusal("a,b\n1,x\"y\n").substr(0, 14), "rows.csv:2:4: ");
  EXPECT_EQ(refusal("a,b\n1,\"x\"y\n").substr(0, 14), "rows.csv:2:6: ");
  EXPECT_EQ(refusal("a,b\n\"1\n2\",\"x\"y\n").substr(0, 14), "rows.csv:3:7: ");
  EXPECT_EQ(refusal("a,a\n").substr(0, 14), "rows.csv:1:3: ");
  EXPECT_EQ(refusal("a,,b\n").substr(0, 14), "rows.csv:1:3: ");
  EXPECT_NE(refusal(std::string_view("a\n1\0\n", 5)).find("zero byte"), std::string::npos);
  EXPECT_NE(refusal(std::string_view("a\n\"1\0\"\n", 7)).find("zero byte"), std::string::npos);
  EXPECT_NE(refusal("a\n" + std::string((1 << 20) + 1, 'x')).find("1 MiB"), std::string::npos);
  EXPECT_EQ(parsed("a\n" + std::string(1 << 20, 'x')).rows(), 1u);
}

TEST(CsvReading, a_column_is_looked_up_by_name) {
  const Csv csv = parsed("model,gpu\nx,y\n");
  EXPECT_EQ(*csv.need("gpu"), 1u);
  EXPECT_FALSE(csv.find("Gpu").has_value());
  EXPECT_NE(csv.need("modle").error().text().find("did you mean model?"), std::string::npos);
}

// Written with every field quoted, any text comes back.
RC_GTEST_PROP(CsvReading, round_trips, (const std::vector<std::pair<std::string, std::string>>& rows)) {
  const auto quote = [](std::string s) {
    std::string out = "\"";
    for (const char c : s) {
      if (c == '\0') continue;
      if (c == '"') out += '"';
      out += c;
    }
    return out + "\"";
  };
  const auto clean = [](std::string s) {
    std::erase(s, '\0');
    return s;
  };
  std::string text = "a,b\n";
  for (const auto& [a, b] : rows) text += quote(a) + "," + quote(b) + "\n";
  const Result<Csv> csv = Csv::parse(text, "x");
  RC_ASSERT(csv.ok());
  RC_ASSERT(csv->rows() == rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    RC_ASSERT(csv->at(r, 0) == clean(rows[r].first));
    RC_ASSERT(csv->at(r, 1) == clean(rows[r].second));
  }
}

RC_GTEST_PROP(CsvReading, no_text_crashes, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('a', ',', '"', '\n', '\r', '\0', '\xEF'));
  const Result<Csv> csv = Csv::parse(text, "x");
  if (!csv.ok()) RC_ASSERT(!csv.error().text().empty());
}

}  // namespace
}  // namespace preflop
