// Pictures: the numbers in them are the estimate's, and each is well-formed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "src/adapt/plan_run.hpp"
#include "src/adapt/request.hpp"
#include "src/base/text.hpp"
#include "src/explain/explain.hpp"
#include "src/run/estimate.hpp"
#include "src/view/json.hpp"
#include "src/view/report.hpp"
#include "src/view/run_text.hpp"
#include "src/view/svg/pictures.hpp"
#include "src/view/svg/schedule.hpp"

namespace preflop {
namespace {

struct Drawn {
  Problem problem;
  Estimate estimate;
  IntervalCurve curve;
};

Drawn draw(const char* json) {
  static const Result<Catalogues> catalogues = Catalogues::load();
  Result<Problem> p = pose(*request_from_json(json), *catalogues);
  EXPECT_TRUE(p.ok()) << (p.ok() ? "" : p.error().text());
  Drawn out{std::move(p).value(), {}, {}};
  out.estimate = estimate<double>(out.problem.analysed, out.problem.cluster);
  out.curve = interval_curve(out.problem.analysed, out.problem.cluster, out.estimate);
  return out;
}

constexpr const char* kRun =
    R"({"model": "llama3-70b", "on": "64xh100-sxm", "tp": 8, "pp": 4, "tokens": "1T", "start": "2026-03-01"})";

// Every element that opens is closed, in order. Enough for what the views write.
bool well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = xml.find('<', at)) != std::string::npos;) {
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.starts_with("/")) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty() && xml.find("nan") == std::string::npos && xml.find("inf\"") == std::string::npos;
}

bool says(const svg::Picture& p, const std::string& words) {
  return p.body.find(">" + words) != std::string::npos || p.body.find(words + "<") != std::string::npos ||
         p.body.find(" " + words) != std::string::npos;
}

TEST(Svg, EveryPictureIsWellFormedAndReadable) {
  const Drawn d = draw(kRun);
  const std::vector<svg::Picture> all = estimate_pictures(d.estimate, d.curve);
  EXPECT_EQ(all.size(), 7U);
  for (const svg::Picture& p : all) {
    EXPECT_TRUE(well_formed(svg::document(p))) << p.name;
    EXPECT_LE(p.width, kPictureWidth);
    for (std::size_t at = 0; (at = p.body.find("font-size=\"", at)) != std::string::npos; ++at)
      EXPECT_GE(std::stod(p.body.substr(at + 11)), 11) << p.name;
  }
  EXPECT_TRUE(well_formed(svg::document(svg::sheet(all, "a & b"))));
}

// The value of an attribute of the element that begins at `at`.
std::string attribute(const std::string& body, std::size_t at, const std::string& name) {
  const std::size_t from = body.find(" " + name + "=\"", at) + name.size() + 3;
  return body.substr(from, body.find('"', from) - from);
}

TEST(Svg, NoTextLeavesItsPictureAtAnyWidth) {
  const Drawn d = draw(kRun);
  for (const double width : {kNarrowest, 340.0, 599.0, 600.0, kPictureWidth}) {
    for (const svg::Picture& p : estimate_pictures(d.estimate, d.curve, {width, false})) {
      EXPECT_EQ(p.width, width) << p.name;
      for (std::size_t at = 0; (at = p.body.find("<text", at)) != std::string::npos; ++at) {
        const std::size_t from = p.body.find('>', at) + 1;
        const std::string words = p.body.substr(from, p.body.find('<', from) - from);
        constexpr double kEm = 0.54;  // the mean letter of a sans serif
        const double size = std::stod(attribute(p.body, at, "font-size")), x = std::stod(attribute(p.body, at, "x"));
        const double length = static_cast<double>(words.size()) * size * kEm;
        const std::string anchor = attribute(p.body, at, "text-anchor");
        const double left = anchor == "start" ? x : anchor == "end" ? x - length : x - length / 2;
        EXPECT_GE(left, -1) << p.name << " " << width << ": " << words;
        EXPECT_LE(left + length, width + 1) << p.name << " " << width << ": " << words;
      }
    }
  }
}

TEST(Svg, MarksNameNumbersThatCanBeExplained) {
  const Drawn d = draw(kRun);
  int marks = 0;
  for (const svg::Picture& p : estimate_pictures(d.estimate, d.curve)) {
    for (std::size_t at = 0; (at = p.body.find("data-term", at)) != std::string::npos; ++at, ++marks) {
      const std::string term = attribute(p.body, at - 1, "data-term");
      EXPECT_TRUE(explain(term, d.problem.analysed, d.problem.cluster).ok()) << p.name << " " << term;
    }
  }
  EXPECT_GT(marks, 40);
}

TEST(Svg, MemoryIsShownInTheUnitThatIsAskedFor) {
  const Drawn d = draw(kRun);
  const double capacity = d.estimate.memory.capacity->number();
  EXPECT_TRUE(
      says(memory_picture(d.estimate, {kPictureWidth, true}), "capacity " + text::fixed(capacity / 1e9, 2) + " GB"));
  for (const svg::Picture& p : {memory_picture(d.estimate, {340, true}), moments_picture(d.estimate, {340, true})})
    EXPECT_EQ(p.body.find("GiB"), std::string::npos) << p.name;
}

TEST(Svg, EveryMomentOfTheFullestStageIsShown) {
  const Drawn d = draw(kRun);
  const auto& m = d.estimate.memory;
  const svg::Picture p = moments_picture(d.estimate);
  for (const auto& bytes : m.stages[m.peak_stage].moments) {
    if (bytes) {
      EXPECT_TRUE(says(p, text::fixed(bytes->number() / (1024.0 * 1024 * 1024), 1)));
    }
  }
}

TEST(Svg, PlansStandByTimeAndMemory) {
  static const Result<Catalogues> catalogues = Catalogues::load();
  const Result<Request> request = request_from_json(R"({"model": "llama3-8b", "on": "16xh100-sxm"})");
  PlanWords words;
  for (const auto& ons : {std::vector<std::string>{"16xh100-sxm"}, {"8..32xh100-sxm"}}) {
    words.on = ons;
    const Result<Plan> plan = make_plan(*request, words, *catalogues, search_all);
    ASSERT_TRUE(plan.ok());
    const svg::Picture p = plans_picture(*plan);
    EXPECT_TRUE(well_formed(svg::document(p)));
    const std::size_t points = plan->clusters.size() > 1 ? plan->clusters.size() : plan->plans.size();
    std::size_t circles = 0;
    for (std::size_t at = 0; (at = p.body.find("<circle", at)) != std::string::npos; ++at) ++circles;
    EXPECT_EQ(circles, points);
    EXPECT_EQ(p.body.find(">-"), std::string::npos) << "an axis below 0";
    for (std::size_t at = 0; (at = p.body.find("text-anchor=\"end\"", at)) != std::string::npos; ++at) {
      const std::size_t from = p.body.find('>', at) + 1;
      EXPECT_LE(p.body.find('<', from) - from, 10U) << p.body.substr(from, 20);
    }
    EXPECT_TRUE(says(p, text::seconds(plan->plans.front().step->seconds.number())) || plan->clusters.size() > 1);
  }
  EXPECT_TRUE(plans_picture(Plan{}).empty());
}

TEST(Svg, TheMemoryOfEachStageIsTheEstimates) {
  const Drawn d = draw(kRun);
  const svg::Picture p = memory_picture(d.estimate);
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  for (const auto& s : d.estimate.memory.stages)
    EXPECT_TRUE(says(p, text::fixed(s.device.number() / kGiB, 1))) << s.stage;
  EXPECT_TRUE(says(p, "capacity " + text::gib(d.estimate.memory.capacity->number(), 2)));
  EXPECT_TRUE(says(p, text::gib(d.estimate.memory.margin->number())));
}

TEST(Svg, PointsOfMfuSumToOne) {
  const Drawn d = draw(kRun);
  const svg::Picture p = mfu_picture(d.estimate);
  EXPECT_TRUE(says(p, text::percent(d.estimate.step->mfu.number())));
  for (int i = 0; i < kLost; ++i) {
    const Lost lost = static_cast<Lost>(i);
    if (lost == Lost::gemm || lost == Lost::attention || lost == Lost::logits || !d.estimate.step->breakdown[i])
      continue;
    const double share = d.estimate.step->breakdown[i]->number() / d.estimate.step->seconds.number();
    if (share > 0) {
      EXPECT_TRUE(says(p, "-" + text::percent(share))) << name(lost);
    }
  }
  EXPECT_TRUE(
      mfu_picture(draw(R"({"model": "llama3-8b", "on": "8xh100-sxm", "tp": 1, "mfu": "40%"})").estimate).empty());
}

TEST(Svg, TheRunsPicturesShowTheForecast) {
  const Drawn d = draw(kRun);
  const RunEstimate<double>& r = *d.estimate.run;
  const svg::Picture days = days_picture(d.estimate), finish = finish_picture(d.estimate);
  EXPECT_TRUE(says(days, text::seconds(r.expected.number())));
  for (int i = 0; i < kRunLosses; ++i) {
    if (r.losses[i].number() > 0) {
      EXPECT_TRUE(says(days, text::seconds(r.losses[i].number()))) << words(static_cast<RunLoss>(i));
    }
  }
  for (const auto& [what, s] : {std::pair("P10 ", r.p10), {"P50 ", r.p50}, {"P90 ", r.p90}, {"ideal ", r.ideal}})
    EXPECT_TRUE(says(finish, what + text::seconds(s.number()))) << what;
  EXPECT_TRUE(says(interval_picture(d.curve), "chosen " + text::seconds(r.interval->number())));
}

TEST(Svg, SchedulesHaveTheBubblesOfTheLiterature) {
  // Narayanan et al. 2021: idle over useful time is (p - 1) / m, interleaved over v chunks (p - 1) / (v m).
  for (const std::int64_t p : {2, 4, 8}) {
    for (const std::int64_t m : {8, 16, 32}) {
      const double useful = 3.0 * static_cast<double>(m);
      for (const char* name : {"gpipe", "1f1b"})
        EXPECT_DOUBLE_EQ(pipeline_timeline(name, p, 1, m).length / useful - 1,
                         static_cast<double>(p - 1) / static_cast<double>(m))
            << name << " " << p << " " << m;
      for (const std::int64_t v : {2, 4})
        EXPECT_NEAR(pipeline_timeline("interleaved", p, v, m).length / useful - 1,
                    static_cast<double>(p - 1) / static_cast<double>(v * m), 1e-12)
            << p << " " << v << " " << m;
      EXPECT_EQ(pipeline_timeline("1f1b", p, 1, m).slots.size(), static_cast<std::size_t>(2 * p * m));
    }
  }
  EXPECT_TRUE(pipeline_timeline("dualpipe", 4, 1, 8).slots.empty());
}

TEST(Svg, NothingToShowIsNoPicture) {
  const Drawn d = draw(R"({"model": "llama3-8b", "on": "1x80GB"})");
  const std::vector<svg::Picture> all = estimate_pictures(d.estimate, d.curve);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "memory");
}

TEST(Svg, AxesEndAboveTheirMost) {
  for (const double most : {0.001, 0.7, 1.0, 3.0, 79.2, 83.0, 1e6}) {
    const std::vector<double> t = svg::ticks(most, 6);
    EXPECT_EQ(t.front(), 0);
    EXPECT_GE(t.back() * (1 + 1e-12), most);
    EXPECT_LE(t.size(), 7U);
    EXPECT_LT(t.back(), most * 2.6);
  }
}

TEST(Report, HoldsTheNumbersAndTheData) {
  const Drawn d = draw(kRun);
  const std::string html = report_html(d.estimate, d.curve), md = report_markdown(d.estimate);
  for (const std::string& page : {html, md}) {
    EXPECT_NE(page.find(text::seconds(d.estimate.run->expected.number())), std::string::npos);
    EXPECT_NE(page.find(text::gib(d.estimate.memory.capacity->number(), 2)), std::string::npos);
    for (const std::string& source : d.estimate.sources)
      EXPECT_NE(page.find(svg::escaped(source).substr(0, 30)), std::string::npos) << source;
  }
  EXPECT_EQ(html.find("http://", html.find("</style>")), html.find("http://www.w3.org/2000/svg"));  // nothing is loaded
  const std::size_t from = html.find("id=\"estimate\">") + 14;
  const std::string json = html.substr(from, html.find("</script>") - from);
  EXPECT_EQ(nlohmann::json::parse(json, nullptr, false), estimate_json_value(d.estimate));
}

}  // namespace
}  // namespace preflop
