#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "src/base/json_read.hpp"

namespace preflop {
namespace {

nlohmann::json parsed(std::string_view text) {
  Result<nlohmann::json> r = read_json(text, "config.json");
  EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().text());
  return r.ok() ? std::move(r).value() : nlohmann::json();
}
std::string refusal(std::string_view text) {
  const Result<nlohmann::json> r = read_json(text, "config.json");
  return r.ok() ? "accepted" : r.error().text();
}

TEST(JsonReading, values_keep_their_kind) {
  const nlohmann::json j = parsed(R"( {"a": 4096, "b": 4096.0, "c": 1e18, "d": -3, "e": 18446744073709551615, "f": null,
                                       "g": [true, "x"], "h": 123456789012345678901234567890} )");
  EXPECT_TRUE(j["a"].is_number_integer());
  EXPECT_EQ(j["a"].get<std::int64_t>(), 4096);
  EXPECT_TRUE(j["b"].is_number_float());
  EXPECT_TRUE(j["c"].is_number_float());
  EXPECT_EQ(j["d"].get<std::int64_t>(), -3);
  EXPECT_TRUE(j["e"].is_number_unsigned());
  EXPECT_TRUE(j["f"].is_null());
  EXPECT_EQ(j["g"].size(), 2u);
  EXPECT_TRUE(j["h"].is_number_float());
  EXPECT_EQ(parsed("9223372036854775807").get<std::int64_t>(), INT64_MAX);
  EXPECT_EQ(parsed("\xEF\xBB\xBF[1]").size(), 1u);
  EXPECT_EQ(parsed("\"\\u00e9\\ud83d\\ude00\""), "é😀");
  EXPECT_EQ(parsed("1e-400"), 0.0);
}

TEST(JsonReading, pythons_special_numbers_become_strings) {
  const nlohmann::json j = parsed(R"({"a": NaN, "b": [Infinity,-Infinity], "c": "NaN \" Infinity \\", "d": -1})");
  EXPECT_EQ(j["a"], "NaN");
  EXPECT_EQ(j["b"][0], "Infinity");
  EXPECT_EQ(j["b"][1], "-Infinity");
  EXPECT_EQ(j["c"], "NaN \" Infinity \\");
  EXPECT_EQ(j["d"], -1);
  EXPECT_NE(refusal("{NaN: 1}"), "accepted");
  EXPECT_NE(refusal("[nan]"), "accepted");
  EXPECT_NE(refusal("[NaNs]"), "accepted");
  EXPECT_NE(refusal("[+Infinity]"), "accepted");
  EXPECT_EQ(refusal("{\"a\": NaN, \"b\": Infinity, \"c\": -Infinity, x}").substr(0, 18), "config.json:1:43: ");
}

TEST(JsonReading, truncation_is_said_plainly) {
  EXPECT_EQ(refusal(""), "config.json:1:1: the text is empty; it should hold a JSON value");
  EXPECT_NE(refusal(" \n "), "accepted");
  EXPECT_NE(refusal("{\"a\": 1,").find("ends inside an object"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1").find("ends inside an object"), std::string::npos);
  EXPECT_NE(refusal("{\"a\":").find("ends inside an object"), std::string::npos);
  EXPECT_NE(refusal("{").find("ends inside an object"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": [1, 2").find("ends inside an array"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": \"xy").find("ends inside a string"), std::string::npos);
  EXPECT_NE(refusal("{\"a").find("ends inside a string"), std::string::npos);
  EXPECT_NE(refusal("tru").find("ends inside"), std::string::npos);
  EXPECT_EQ(refusal("{\n \"a\": 1,\n").substr(0, 17), "config.json:3:1: ");
}

TEST(JsonReading, other_syntax) {
  for (const char* text :
       {"{]",         "[1,]",   "{\"a\":1,}", "{a:1}",  "{'a':1}", "[1 2]",      "{} {}",     "[01]",
        "[1.]",       "[.5]",   "[+1]",       "[0x1]",  "// x\n1", "[\"\x01\"]", "[\"\\x\"]", "[\"\\ud800\"]",
        "[\"\xff\"]", "[TRUE]", "nul",        "<html>", "-",       "[-]",        "]"}) {
    const std::string e = refusal(text);
    EXPECT_EQ(e.rfind("config.json:1:", 0) == 0 || e.rfind("config.json:2:", 0) == 0, true) << text << " -> " << e;
    EXPECT_EQ(e.find("[json"), std::string::npos) << e;
    EXPECT_EQ(e.find("syntax error"), std::string::npos) << e;
    EXPECT_EQ(e.find('\n'), std::string::npos) << e;
  }
  EXPECT_EQ(refusal("{\n  \"a\" 1}").substr(0, 17), "config.json:2:7: ");
  EXPECT_NE(refusal(std::string_view("{}\0{}", 5)).find("zero byte"), std::string::npos);
}

TEST(JsonReading, limits) {
  EXPECT_NE(refusal(std::string((16 << 20) + 1, ' ')).find("16 MiB"), std::string::npos);
  EXPECT_EQ(parsed(std::string(64, '[') + std::string(64, ']')).size(), 1u);
  EXPECT_EQ(refusal(std::string(65, '[') + std::string(65, ']')),
            "config.json:1:65: the text is nested deeper than 64 levels");
  EXPECT_NE(refusal(std::string(1 << 20, '[')).find("64 levels"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1e400}").find("config.json:1:7: the number '1e400' is beyond"), std::string::npos);
  EXPECT_NE(refusal("[-1e400]").find("beyond"), std::string::npos);
  EXPECT_NE(refusal("[" + std::string(400, '9') + "]").find("beyond"), std::string::npos);
}

TEST(JsonReading, repeated_keys_are_named) {
  EXPECT_EQ(refusal("{\"a\": 1,\n \"hidden\": {\"a\": 2},\n  \"a\": 3}"),
            "config.json:3:3: the key 'a' stands twice in one object; keep one of them");
  EXPECT_NE(refusal("{\"\\u0061\": 1, \"a\": 2}").find("stands twice"), std::string::npos);
  EXPECT_EQ(parsed("[{\"a\": 1}, {\"a\": 2}]").size(), 2u);
}

RC_GTEST_PROP(JsonReading, no_text_crashes, ()) {
  const auto token =
      rc::gen::element<std::string>("{", "}", "[", "]", ",", ":", "\"a\"", "\"b\"", "1", "-2.5e3", "null", "NaN",
                                    "-Infinity", "\"", "\\", " ", "\n", "\xc3", "tru", "1e999");
  std::string text;
  for (const std::string& t : *rc::gen::container<std::vector<std::string>>(token)) text += t;
  const Result<nlohmann::json> ours = read_json(text, "x");
  if (nlohmann::json::accept(text) && text.find("\"a\"") == std::string::npos &&
      text.find("\"b\"") == std::string::npos) {
    RC_ASSERT(ours.ok());
    RC_ASSERT(*ours == nlohmann::json::parse(text));
  }
  if (!ours.ok()) RC_ASSERT(!ours.error().what.empty());
}

}  // namespace
}  // namespace preflop
