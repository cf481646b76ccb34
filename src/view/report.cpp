#include "src/view/report.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/text.hpp"
#include "src/view/json.hpp"
#include "src/view/run_text.hpp"
#include "src/view/svg/pictures.hpp"
#include "src/view/text.hpp"

namespace preflop {

namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string title_of(const Estimate& e) {
  return e.model.name + " on " + text::grouped(e.cluster.gpus) + " x " + e.cluster.gpu.id;
}

std::string verdict_of(const Estimate& e) {
  std::string line = estimate_text(e, {false, true});
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string whole(double n) { return std::fabs(n) < 1e15 ? text::grouped(std::llround(n)) : text::count(n); }

// The numbers that people ask for first.
Rows key_numbers(const Estimate& e) {
  const StageMemory<double>& peak = e.memory.stages[e.memory.peak_stage];
  Rows out = {{"parameters", text::grouped(e.model.params_total.get())},
              {"allocated on the fullest stage", text::gib(peak.allocated.number(), 2)},
              {"on the device there", text::gib(peak.device.number(), 2)}};
  if (e.memory.capacity) out.emplace_back("capacity", text::gib(e.memory.capacity->number(), 2));
  if (e.step) {
    out.emplace_back("step", text::seconds(e.step->seconds.number()));
    out.emplace_back("tokens/s, all GPUs", whole(e.step->tokens_per_second.number()));
    out.emplace_back("MFU (" + e.step->mfu_convention + ")", text::percent(e.step->mfu.number()));
  }
  if (!e.run) return out;
  const RunEstimate<double>& r = *e.run;
  out.emplace_back("tokens", text::count(r.tokens.number()));
  out.emplace_back("steps", text::grouped(r.steps));
  out.emplace_back("ideal time", text::seconds(r.ideal.number()));
  out.emplace_back("expected time", text::seconds(r.expected.number()));
  out.emplace_back("P10, P50, P90", text::seconds(r.p10.number()) + ", " + text::seconds(r.p50.number()) + ", " +
                                        text::seconds(r.p90.number()));
  out.emplace_back("GPU-hours at the median", whole(r.gpu_hours.number()));
  out.emplace_back("cost", r.cost ? text::dollars(r.cost->number()) : "not known");
  out.emplace_back("energy", r.energy_kwh ? whole(r.energy_kwh->number()) + " kWh" : "not known");
  out.emplace_back("CO2e", r.co2_kg ? whole(r.co2_kg->number()) + " kg" : "not known");
  return out;
}

// Every value of the recipe that is set, as its flag takes it.
Rows recipe_rows(const Estimate& e) {
  Rows out;
  const nlohmann::json recipe = estimate_json_value(e)["recipe"];
  for (const auto& [key, value] : recipe.items()) {
    if (value.is_null() || key == "assumed") continue;
    const auto* words = value.get_ptr<const std::string*>();
    out.emplace_back(key, words != nullptr ? *words : json_text(value));
  }
  return out;
}

std::vector<std::string> assumed_of(const Estimate& e) {
  std::vector<std::string> out = e.cluster.assumed;
  out.insert(out.end(), e.recipe.assumed.begin(), e.recipe.assumed.end());
  return out;
}

std::string html_table(const Rows& rows) {
  std::string out = "<table>\n";
  for (const auto& [what, value] : rows)
    out += "<tr><th scope=\"row\">" + svg::escaped(what) + "</th><td>" + svg::escaped(value) + "</td></tr>\n";
  return out + "</table>\n";
}
std::string html_figures(const Rows& rows) {
  std::string out = "<dl>\n";
  for (const auto& [what, value] : rows)
    out += "<div><dt>" + svg::escaped(what) + "</dt><dd>" + svg::escaped(value) + "</dd></div>\n";
  return out + "</dl>\n";
}
std::string html_list(const std::vector<std::string>& items) {
  std::string out = "<ul>\n";
  for (const std::string& item : items) out += "<li>" + svg::escaped(item) + "</li>\n";
  return out + "</ul>\n";
}

std::string md_cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}
std::string md_table(const Rows& rows) {
  std::string out = "| | |\n|---|---|\n";
  for (const auto& [what, value] : rows) out += "| " + md_cell(what) + " | " + md_cell(value) + " |\n";
  return out;
}
std::string md_list(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += "- " + item + "\n";
  return out;
}

// JSON inside a script element: "</" would end it.
std::string embedded_json(const Estimate& e) {
  std::string out = json_text(estimate_json_value(e));
  for (std::size_t at = 0; (at = out.find("</", at)) != std::string::npos; at += 3) out.insert(at + 1, "\\");
  return out;
}

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:800px;margin:2em auto;padding:0 "
    "1em}h1{font-size:1.6em;margin:0}h2{font-size:1.15em;margin:1.6em 0 .4em;break-after:avoid}"
    ".verdict{font-size:1.15em;font-weight:600;margin:.4em 0 1em}"
    "dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5em,1fr));gap:.7em 1.5em;margin:1em 0 1.5em}"
    "dt{font-size:.85em;color:#555}dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}"
    "table{border-collapse:collapse}th{text-align:left;font-weight:normal}th,td{padding:.15em 1em .15em 0;"
    "border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:anywhere}svg{display:block;max-width:100%;"
    "height:auto;margin:.6em 0}.columns{columns:20em 2}li{overflow-wrap:anywhere}@media print{body{margin:0;"
    "max-width:none;font-size:10pt}svg{width:15.5cm}svg,tr,li,dl div{break-inside:avoid}}";

}  // namespace

std::string report_html(const Estimate& e, const IntervalCurve& curve) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>" +
      svg::escaped(title_of(e)) + "</title>\n<style>" + kStyle + "</style></head>\n<body>\n<h1>" +
      svg::escaped(title_of(e)) + "</h1>\n<p class=\"verdict\">" + svg::escaped(verdict_of(e)) + "</p>\n";
  out += html_figures(key_numbers(e));
  for (const svg::Picture& p : estimate_pictures(e, curve)) out += svg::document(p);
  out += "<h2>Recipe</h2>\n<div class=\"columns\">" + html_table(recipe_rows(e)) + "</div>\n";
  if (const auto assumed = assumed_of(e); !assumed.empty()) out += "<h2>Assumed</h2>\n" + html_list(assumed);
  if (!e.warnings.empty()) out += "<h2>Notes</h2>\n" + html_list(e.warnings);
  out += "<h2>Sources</h2>\n" + html_list(e.sources);
  return out + "<script type=\"application/json\" id=\"estimate\">" + embedded_json(e) + "</script>\n</body></html>\n";
}

std::string report_markdown(const Estimate& e) {
  std::string out = "# " + title_of(e) + "\n\n" + verdict_of(e) + "\n\n" + md_table(key_numbers(e));
  out += "\n## Recipe\n\n" + md_table(recipe_rows(e));
  if (const auto assumed = assumed_of(e); !assumed.empty()) out += "\n## Assumed\n\n" + md_list(assumed);
  if (!e.warnings.empty()) out += "\n## Notes\n\n" + md_list(e.warnings);
  return out + "\n## Sources\n\n" + md_list(e.sources);
}

}  // namespace preflop
