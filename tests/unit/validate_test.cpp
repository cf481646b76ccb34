// Errors, summaries, the naive baseline, and the contract of preflop.validate/1.
#include "src/validate/validate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>

#include "src/base/embedded.hpp"
#include "src/base/text.hpp"
#include "src/validate/contradictions.hpp"
#include "src/validate/left_out.hpp"
#include "src/validate/order.hpp"
#include "src/view/validate.hpp"

namespace preflop {
namespace {

struct World {
  Catalogues catalogues = Catalogues::load().value();
  RowWords words = RowWords::load().value();
};
const World& world() {
  static const World kWorld;
  return kWorld;
}

Report run(const std::string& text, const std::string& file = "mine.csv") {
  Validator validator = Validator::make(world().catalogues, world().words).value();
  const auto table = RowTable::parse(text, file, world().words);
  EXPECT_TRUE(table.ok()) << (table ? "" : table.error().text());
  Report report;
  for (std::size_t i = 0; table && i < table->size(); ++i)
    report.mapping.add(validator.add(table->row(i), table->stem(), report.entries), table->stem());
  return report;
}
const Report& project() {
  static const Report kReport = [] {
    Report all;
    for (std::string_view path : embedded_paths()) {
      if (path.starts_with("measured/")) all.append(run(std::string(embedded(path)), std::string(path)));
    }
    return all;
  }();
  return kReport;
}

constexpr const char* kHead =
    "id,stack,model,gpu,gpus,precision,seq,gbs,mbs,tp,pp,vpp,cp,zero,seq_parallel,recompute,step_s,tok_s_gpu,tflops_"
    "gpu,convention,peak_mem_gib,mem_kind,oom\n";
constexpr const char* kRow = "megatron,llama3-8b,h100-sxm,8,bf16,8192,64,1,2,1,1,1,1,yes,none,";

TEST(Validate, ErrorIsPredictedOverMeasuredLessOne) {
  const Report r = run(std::string(kHead) + "a," + kRow + "10,,,,60,allocated,\n");
  ASSERT_EQ(r.entries.size(), 3U);
  for (const Entry& e : r.entries) {
    ASSERT_FALSE(e.skip) << e.skip.reason;
    if (e.metric != "fit.verdict") {
      EXPECT_DOUBLE_EQ(*e.error, *e.predicted / *e.measured - 1);
    }
  }
  EXPECT_EQ(*r.entries[0].measured, 10);
  EXPECT_EQ(r.entries[2].measured_verdict, "ran");
}

// A row that repeats another is not scored, and yet told what its run would take; the page of users' questions shows
// it.
TEST(Validate, WhatRepeatsAnotherRowIsSaidAndNotScored) {
  const std::string head = std::string(kHead).substr(0, std::string(kHead).size() - 1) + ",flags\n";
  const std::string row = std::string("a,") + kRow + "10,,,,60,allocated,";
  const Report scored = run(head + row + ",\n"), repeated = run(head + row + ",duplicate\n");
  ASSERT_EQ(scored.entries.size(), repeated.entries.size());
  for (std::size_t i = 0; i < scored.entries.size(); ++i) {
    const Entry &one = scored.entries[i], &two = repeated.entries[i];
    EXPECT_EQ(two.skip.reason, "duplicate of another row");
    EXPECT_FALSE(two.predicted || two.error);
    ASSERT_NE(two.unscored, nullptr);
    EXPECT_EQ(one.unscored, nullptr);
    EXPECT_EQ(two.unscored->predicted, one.predicted);
    EXPECT_EQ(two.unscored->predicted_verdict, one.predicted_verdict);
  }
  Report asked =
      run("id,stack,model,gpu,gpus,precision,seq,gbs,mbs,tp,recompute,peak_mem_gib,mem_kind,flags\n"
          "uc17a,megatron,llama3-8b,h100-sxm,8,bf16,8192,64,1,2,none,60,allocated,duplicate\n",
          "measured/user-cases.csv");
  const auto page = user_case_page(asked);
  ASSERT_TRUE(page.ok());
  EXPECT_NE(page->find(" %), fits; scored as a row of another source |"), std::string::npos) << *page;
}

TEST(Validate, SpeedsBecomeSecondsOfAStep) {
  const Report tokens = run(std::string(kHead) + "a," + kRow + ",4096,,,,,\n");
  EXPECT_DOUBLE_EQ(*tokens.entries[0].measured, 64.0 * 8192 / (4096.0 * 8));
  EXPECT_EQ(tokens.entries[0].convention, "");
  // 6N of 8,030,261,248 parameters
  const Report flops = run(std::string(kHead) + "a," + kRow + ",,400,6n,,,\n");
  EXPECT_NEAR(*flops.entries[0].measured, 6 * 8030261248.0 * 64 * 8192 / (400e12 * 8), 1e-9);
  EXPECT_EQ(flops.entries[0].convention, "6n");
  const Report unknown = run(std::string(kHead) + "a," + kRow + ",,400,unknown,,,\n");
  EXPECT_EQ(unknown.entries[0].skip.reason, "FLOP convention not stated");
  EXPECT_FALSE(unknown.entries[0].error.has_value());
}

TEST(Validate, Verdicts) {
  const Report right = run(std::string(kHead) + "a," + kRow + "10,,,,,,\n");
  EXPECT_EQ(right.entries[1].error, 0.0);
  const Report wrong = run(std::string(kHead) + "a," + kRow + ",,,,,,yes\n");
  ASSERT_EQ(wrong.entries.size(), 1U);
  EXPECT_EQ(wrong.entries[0].measured_verdict, "oom");
  EXPECT_EQ(wrong.entries[0].predicted_verdict, "fits");
  EXPECT_EQ(wrong.entries[0].error, 1.0);
  const auto summary = summarise(wrong.entries);
  EXPECT_EQ(summary.front().false_fit, 1U);
  EXPECT_EQ(summary.front().false_oom, 0U);
}

TEST(Validate, NaiveIsLeftOneOut) {
  EXPECT_FALSE(naive_error(std::vector<double>(kLeastNaive - 1, 0.4)).has_value());
  EXPECT_DOUBLE_EQ(*naive_error(std::vector<double>(kLeastNaive, 0.4)), 0);
  // nine rows of 0.4 and one of 0.8: the nine see a median of 0.4, the one is off by 0.8 / 0.4 - 1
  std::vector<double> mfus(9, 0.4);
  mfus.push_back(0.8);
  EXPECT_DOUBLE_EQ(*naive_error(mfus), 0.1);
}

Entry entry(double error, const std::string& convention = "") {
  static const auto kNone = std::make_shared<const std::vector<std::string>>();
  Entry e;
  e.source = "s";
  e.metric = "memory.allocated";
  e.convention = convention;
  e.measured = 1;
  e.predicted = 1 + error;
  e.error = error;
  e.assumed = e.not_modelled = e.flags = kNone;
  return e;
}

TEST(Summary, Figures) {
  const auto s = summarise({entry(-0.1), entry(0.2), entry(0.3), entry(-0.4)});
  ASSERT_EQ(s.size(), 2U);
  EXPECT_EQ(s[0].source, "all");
  EXPECT_EQ(s[1].source, "s");
  EXPECT_EQ(s[1].n, 4U);
  EXPECT_DOUBLE_EQ(*s[1].mape, 0.25);
  EXPECT_DOUBLE_EQ(*s[1].median, 0.2);
  EXPECT_DOUBLE_EQ(*s[1].p90, 0.4);
  EXPECT_DOUBLE_EQ(*s[1].max, 0.4);
  EXPECT_DOUBLE_EQ(*s[1].bias, 0);
  EXPECT_FALSE(s[1].false_fit.has_value());
}

TEST(Summary, ConvertedRowsStandApart) {
  const auto s = summarise({entry(0.1), entry(0.5, "bridge")});
  ASSERT_EQ(s.size(), 4U);
  EXPECT_DOUBLE_EQ(*s[0].mape, 0.1);
  EXPECT_EQ(s[1].convention, "converted");
  EXPECT_EQ(s[3].convention, "bridge");
}

TEST(Project, EveryRowHasAnEntryOfEachQuantityAndAReasonIfSkipped) {
  std::set<std::pair<std::string, std::string>> rows;
  std::set<std::string> seen;
  for (const Entry& e : project().entries) {
    EXPECT_FALSE(e.metric.empty()) << e.id;
    EXPECT_TRUE(seen.insert(e.source + "/" + e.id + "/" + e.metric).second) << e.id << " has " << e.metric << " twice";
    EXPECT_EQ(static_cast<bool>(e.skip), !e.error.has_value()) << e.id << " " << e.metric;
    EXPECT_EQ(static_cast<bool>(e.skip), !e.skip.reason.empty()) << e.id;
    if (e.error) {
      EXPECT_TRUE(std::isfinite(*e.error)) << e.id;
    }
    rows.emplace(e.source, e.id);
  }
  EXPECT_EQ(project().mapping.rows, 1874U);
  EXPECT_EQ(rows.size(), 1874U);
}

TEST(Project, NoStringOfOurTablesIsUnknown) {
  for (std::string_view path : embedded_paths()) {
    if (!path.starts_with("measured/")) continue;
    const auto table = RowTable::parse(embedded(path), path, world().words);
    ASSERT_TRUE(table.ok()) << table.error().text();
    EXPECT_TRUE(table->warnings().empty()) << path;
    for (std::size_t i = 0; i < table->size(); ++i)
      EXPECT_TRUE(table->row(i).unknown.empty()) << path << " " << table->row(i).id;
  }
}

// The acceptance of the mapping: of the rows that state enough and that preflop could run.
TEST(Project, NineteenOfTwentyStatedRowsBecomeLegalRecipes) {
  const Mapping& m = project().mapping;
  EXPECT_GE(m.stated, 1500U);
  ASSERT_TRUE(m.share().has_value());
  EXPECT_GE(*m.share(), 0.95);
}

TEST(Project, JsonKeepsTheContract) {
  const nlohmann::json json = validate_json_value(project());
  EXPECT_EQ(json["schema"], "preflop.validate/1");
  for (const auto& row : json["rows"]) {
    for (const char* key : {"id", "source", "group", "metric", "measured", "predicted", "low", "high", "error",
                            "assumed", "convention", "skipped"}) {
      ASSERT_TRUE(row.contains(key)) << key;
    }
    ASSERT_TRUE(row["metric"].is_string());
    ASSERT_EQ(row["skipped"].is_null(), !row["predicted"].is_null()) << row["id"];
    ASSERT_EQ(row["skipped"].is_null(), !row["error"].is_null()) << row["id"];
  }
  for (const auto& s : json["summary"]) {
    for (const char* key : {"source", "metric", "n", "skipped", "mape", "median", "p90", "max", "bias", "coverage",
                            "half_width", "naive_mape", "false_fit", "false_oom", "tight"}) {
      ASSERT_TRUE(s.contains(key)) << key;
    }
  }
}

TEST(Project, TextFitsEightyColumns) {
  std::string text = validate_text(project(), {50, true, false});
  EXPECT_NE(text.find("naive"), std::string::npos);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(text::display_width(std::string_view(text).substr(begin, end - begin)), 80U)
        << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(Project, MemoryOfTheDenseSimumaxRowsIsReproduced) {
  std::size_t rows = 0;
  for (const Entry& e : project().entries) {
    if (e.source != "simumax-b200" || e.metric != "memory.allocated" || e.id.find("llama3") == std::string::npos)
      continue;
    if (e.skip) continue;
    ++rows;
    EXPECT_LT(std::fabs(*e.error), 0.01) << e.id;
  }
  EXPECT_GE(rows, 15U);
}

// These ran with the scores stored: read as flash attention they would be half off.
TEST(Project, MemoryOfRunsBeforeFlashAttention) {
  std::size_t rows = 0;
  for (const Entry& e : project().entries) {
    if (e.source != "zero-bubble-2023" || e.metric != "memory.reserved" || e.skip) continue;
    ++rows;
    EXPECT_LT(std::fabs(*e.error), 0.08) << e.id;
  }
  EXPECT_GE(rows, 19U);
}

// Mixture-of-experts runs without expert sizes of their own split their experts by tp: read otherwise, they
// would not fit.
// The acceptance of memory: rows that ran are not refused, rows that ran out of memory are not said to fit, twice the
// largest micro-batch that ran mostly is.
TEST(Project, VerdictsHoldTheirLimits) {
  const std::vector<Summary> all = summarise(project().entries);
  const auto s = std::find_if(all.begin(), all.end(),
                              [](const Summary& x) { return x.source == "all" && x.metric == "fit.verdict"; });
  ASSERT_NE(s, all.end());
  const std::size_t oom = s->oom.value(), ran = s->n - oom, tight_oom = s->tight_oom.value();
  EXPECT_GE(oom, 14U);
  EXPECT_EQ(s->false_fit, 0U);
  EXPECT_EQ(s->contradicted, 1U);
  EXPECT_LE(tight_oom * 100, oom * 40);
  EXPECT_LE(s->false_oom.value() * 100, ran);
  EXPECT_LE((s->tight.value() - tight_oom) * 100, ran * 10);
  EXPECT_EQ(s->doubled, 170U);
  EXPECT_GE(s->doubled_no.value() * 100, s->doubled.value() * 70);
}

// A contradiction names rows that are there, and the row that it is about did run out of memory.
TEST(Project, ContradictionsAreMeasured) {
  std::map<std::string, std::string> verdicts;
  for (const Entry& e : project().entries) {
    if (e.metric == "fit.verdict") verdicts[e.id] = e.measured_verdict;
  }
  const auto known = contradictions();
  ASSERT_TRUE(known.ok());
  for (const auto& [row, c] : *known) {
    EXPECT_EQ(verdicts[row], "oom") << row;
    std::istringstream ids(c.against);
    std::size_t n = 0;
    for (std::string id; ids >> id; ++n) EXPECT_EQ(verdicts[id], "ran") << id;
    EXPECT_GT(n, 0U) << row;
    EXPECT_FALSE(c.reason.empty());
  }
}

// data/stacks holds the bands that today's rows make, and they are as wide as they may be.
TEST(Project, BandsOfMemoryAreThoseOfTheRows) {
  const std::map<std::string, double> widest = {
      {"megatron allocated", 0.02}, {"memory.allocated", 0.05}, {"memory.reserved", 0.05}, {"memory.device", 0.12}};
  std::set<std::string> metrics;
  for (const LeftOut& g : left_out(project().entries)) {
    if (g.rows < 8) continue;
    const bool all = g.like == "all";
    if (!all) {
      EXPECT_NEAR(g.band, g.band_of_rows, 0.0015) << g.like;
    }
    if (const auto most = widest.find(all ? g.metric : g.like); most != widest.end()) {
      EXPECT_LE(g.band, most->second) << g.like;
    }
    if (!all) continue;
    metrics.insert(g.metric);
    EXPECT_GE(g.coverage, 0.75) << g.metric;
    EXPECT_LE(g.coverage, 0.90) << g.metric;
    ASSERT_TRUE(g.left_out_coverage.has_value()) << g.metric;
    EXPECT_GE(*g.left_out_coverage, 0.75) << g.metric;
    EXPECT_LE(*g.left_out_coverage, 0.90) << g.metric;
  }
  EXPECT_EQ(metrics.size(), 3U);
}

TEST(LeftOut, RefitsOnOtherModelsAndTakesTheirBand) {
  const auto make = [](const char* model, double measured, double predicted) {
    Entry e;
    e.source = "mine";
    e.metric = "memory.reserved";
    e.like = "s reserved";
    e.fitted = "s reserved_factor";
    e.fitted_to = "mine";
    e.model = model;
    e.measured = measured;
    e.predicted = e.fitted_part = predicted;
    e.low = predicted * 0.9;
    e.high = predicted * 1.1;
    e.error = predicted / measured - 1;
    return e;
  };
  // The factor fits model a; b would need 1.2 of it, and alone would set it so.
  const std::vector<LeftOut> groups = left_out({make("a", 10, 10), make("a", 20, 20), make("b", 12, 10)});
  ASSERT_EQ(groups.size(), 2U);
  const LeftOut& g = groups[1];
  EXPECT_EQ(g.like, "s reserved");
  EXPECT_EQ(g.rows, 3U);
  EXPECT_EQ(g.models, 2U);
  EXPECT_EQ(g.fitted, "s reserved_factor");
  EXPECT_NEAR(g.coverage, 2.0 / 3, 1e-12);
  // a with the factor of b: 12 and 24; b with that of a: 10.
  EXPECT_NEAR(*g.left_out_mape, (0.2 + 0.2 + 2.0 / 12) / 3, 1e-12);
  EXPECT_NEAR(*conformal_half_width({0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}), 0.8, 1e-12);
  EXPECT_NEAR(*conformal_half_width({0.3, 0.1}), 0.3, 1e-12);
  EXPECT_FALSE(conformal_half_width({}).has_value());
}

TEST(Project, WhatRanFits) {
  std::size_t ran = 0;
  std::size_t refused = 0;
  for (const Entry& e : project().entries) {
    if (e.metric != "fit.verdict" || e.skip || !e.error) continue;
    ++ran;
    refused += *e.error < 0 ? 1 : 0;
  }
  EXPECT_GE(ran, 280U);
  EXPECT_LE(refused * 100, ran);
}

TEST(Explain, ShowsRecipeAndLedger) {
  Validator validator = Validator::make(world().catalogues, world().words).value();
  const auto table =
      RowTable::parse(std::string(kHead) + "a," + kRow + "10,,,,60,allocated,\n", "mine.csv", world().words);
  const Row row = table->row(0);
  const std::string text = explain_row_text(row, validator.explain(row, "mine"));
  for (const char* part : {"--on 8xh100-sxm", "--global-batch 64", "time.step_seconds", "Memory by stage",
                           "Not stated, assumed\n  nothing"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

// Five layouts of one job: of the ten pairs one is too close to count, one is predicted the wrong way round.
TEST(Validate, OrderOfLayouts) {
  const double measured[] = {10.0, 10.2, 12.0, 13.0, 15.0}, predicted[] = {9.0, 9.5, 14.0, 12.5, 15.0};
  std::vector<Entry> entries;
  for (int i = 0; i < 5; ++i) {
    Entry e;
    e.source = "mine";
    e.job = "a job";
    e.layout = "tp " + std::to_string(1 << i);
    e.metric = "time.step_seconds";
    e.measured = measured[i];
    e.predicted = predicted[i];
    entries.push_back(e);
  }
  std::vector<JobOrder> jobs = job_orders(entries);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].layouts, 5U);
  EXPECT_EQ(jobs[0].pairs, 9U);
  EXPECT_DOUBLE_EQ(jobs[0].right, 8);
  EXPECT_DOUBLE_EQ(jobs[0].regret, 0);
  EXPECT_NEAR(concordance(jobs), 8.0 / 9, 1e-15);
  entries[2].predicted = 8.0;  // now the first choice, a fifth slower than the best
  EXPECT_NEAR(job_orders(entries)[0].regret, 0.2, 1e-12);
  EXPECT_NEAR(largest_regret(job_orders(entries)), 0.2, 1e-12);
  entries[1].layout = entries[0].layout;  // two releases of one layout are four layouts
  EXPECT_TRUE(job_orders(entries).empty());
  EXPECT_EQ(job_orders(entries, 4)[0].layouts, 4U);
  EXPECT_EQ(job_orders(entries, 4)[0].pairs, 9U);
  entries[1].layout = "tp 2";
  entries[4].job = "another";  // four are too few
  EXPECT_TRUE(job_orders(entries).empty());
  EXPECT_EQ(job_orders(entries, 2).size(), 1U);
}

TEST(Validate, MarkedRowsAreTold) {
  Entry e;
  EXPECT_FALSE(marked(e));
  for (const auto& [flag, is] : {std::pair{"one-sample", false}, {"placement", true}, {"outlier", true}}) {
    e.flags = std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"old-flops", flag});
    EXPECT_EQ(marked(e), is) << flag;
  }
}

}  // namespace
}  // namespace preflop
