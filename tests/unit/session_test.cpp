// The API: sessions remember what they should and nothing else; a plan bit by bit is the plan.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/adapt/api.hpp"
#include "src/adapt/plan_run.hpp"
#include "src/view/json.hpp"
#include "src/view/plan.hpp"

namespace preflop {
namespace {

using Json = nlohmann::json;

Json ask_of(Session& session, const Json& call) { return Json::parse(session.answer(call.dump()), nullptr, false); }
const Json kRequest = {{"model", "llama3-8b"}, {"on", "16xh100-sxm"}};

Json plan_bit_by_bit(const Json& request, const Json& search, std::uint64_t ordinals) {
  Session session;
  Json at = ask_of(session, {{"call", "plan-begin"}, {"request", request}, {"search", search}});
  for (std::uint64_t before = 0; at.contains("done") && !at["done"]; before = at["looked"]) {
    at = ask_of(session, {{"call", "plan-advance"}, {"ordinals", ordinals}});
    EXPECT_GE(at["looked"], before);
    EXPECT_LE(at["progress"], 1);
  }
  EXPECT_EQ(at["progress"], 1) << at;
  return ask_of(session, {{"call", "plan-result"}});
}

TEST(Session, APlanBitByBitIsThePlan) {
  static const Result<Catalogues> catalogues = Catalogues::load();
  const Result<Request> request = request_from_json(kRequest.dump());
  for (const auto& [objective, on] :
       {std::pair("time", "16xh100-sxm"), std::pair("time", "8..32xh100-sxm"), std::pair("seq", "8xh100-sxm")}) {
    PlanWords words;
    words.on = {on};
    words.objective = objective;
    const Result<Plan> plan = make_plan(*request, words, *catalogues, search_all);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan_bit_by_bit(kRequest, {{"objective", objective}, {"on", {on}}}, 3000), plan_json_value(*plan)) << on;
  }
}

// A config.json inside a request is no file: the command names one as such files are called.
TEST(Session, APlanOfAConfigHasACommandToo) {
  const Json config = {{"model_type", "llama"},
                       {"architectures", {"LlamaForCausalLM"}},
                       {"hidden_size", 1024},
                       {"intermediate_size", 4096},
                       {"num_hidden_layers", 8},
                       {"num_attention_heads", 16},
                       {"num_key_value_heads", 16},
                       {"vocab_size", 32000},
                       {"max_position_embeddings", 2048},
                       {"rms_norm_eps", 1e-5},
                       {"hidden_act", "silu"},
                       {"tie_word_embeddings", false}};
  const Json plan = plan_bit_by_bit({{"config", config}, {"on", "8xh100-sxm"}}, Json::object(), 100000);
  ASSERT_TRUE(plan.contains("plans")) << plan.dump();
  const std::string command = plan["plans"][0]["command"];
  EXPECT_TRUE(command.starts_with("preflop estimate config.json --on 8xh100-sxm ")) << command;
}

TEST(Session, ACancelledPlanIsGone) {
  Session session;
  EXPECT_FALSE(ask_of(session, {{"call", "plan-begin"}, {"request", kRequest}})["done"]);
  EXPECT_TRUE(ask_of(session, {{"call", "plan-result"}}).contains("error"));
  EXPECT_TRUE(ask_of(session, {{"call", "plan-cancel"}})["done"]);
  for (const char* call : {"plan-advance", "plan-result", "plan-pictures"})
    EXPECT_TRUE(ask_of(session, {{"call", call}}).contains("error")) << call;
}

TEST(Session, AnswersDoNotDependOnWhatWasAskedBefore) {
  Json other = kRequest;
  other["tp"] = 2;
  const Json first = {{"call", "estimate"}, {"request", kRequest}}, second = {{"call", "estimate"}, {"request", other}};
  Session session, fresh;
  const std::string before = session.answer(first.dump());
  EXPECT_NE(session.answer(second.dump()), before);
  EXPECT_TRUE(
      ask_of(session, {{"call", "estimate"}, {"request", {{"model", "no-such"}, {"on", "1xt4"}}}}).contains("error"));
  EXPECT_EQ(session.answer(first.dump()), before);
  EXPECT_EQ(fresh.answer(second.dump()), session.answer(second.dump()));
  EXPECT_EQ(estimate_json(kRequest.dump()), before);
}

TEST(Session, NonsenseIsRefused) {
  Session session;
  for (const char* call :
       {"", "[]", "{\"call\": 3}", "{\"call\": \"estimate\"}", "{\"call\": \"plan-begin\", \"request\": 7}",
        "{\"call\": \"compare\", \"a\": 1, \"b\": 2}", "{\"call\": \"read\"}",
        "{\"call\": \"models\", \"name\": \"x\"}",
        "{\"call\": \"report\", \"request\": {\"model\": \"llama3-8b\", \"on\": \"8xh100-sxm\"}, \"format\": \"pdf\"}",
        "{\"call\": \"plan-begin\", \"request\": {\"model\": \"llama3-8b\", \"on\": \"8xh100-sxm\"}, \"search\": "
        "{\"x\": 1}}"})
    EXPECT_TRUE(Json::parse(session.answer(call), nullptr, false).contains("error")) << call;
}

}  // namespace
}  // namespace preflop
