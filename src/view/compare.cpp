#include "src/view/compare.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "src/base/text.hpp"

namespace preflop {

namespace {

using Json = nlohmann::json;

// An estimate, or the first plan of a plan; null otherwise.
const Json* estimate_of(const Json& json) {
  if (!json.is_object()) return nullptr;
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_string()) return nullptr;
  if (*schema == "preflop.estimate/1") return &json;
  const auto plans = json.find("plans");
  if (*schema != "preflop.plan/1" || plans == json.end() || !plans->is_array() || plans->empty()) return nullptr;
  return &(*plans)[0];
}

std::string plain(const Json& value) {
  if (const auto* s = value.get_ptr<const std::string*>()) return *s;
  if (value.is_null()) return "-";
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Leaves by path. Stages are left out: the peak stage's terms stand for them.
void flatten(const Json& value, const std::string& path, std::map<std::string, Json>& out) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      if (path.empty() && (key == "sources" || key == "warnings" || key == "schema")) continue;
      if (key == "stages" || key == "assumed" || key == "way_out" || key == "conventions") continue;
      flatten(inner, path.empty() ? key : path + "." + key, out);
    }
    return;
  }
  if (value.is_array()) {
    std::string text;
    for (const Json& item : value) text += (text.empty() ? "" : ",") + plain(item);
    out[path] = text;
    return;
  }
  out[path] = value;
}

std::string title(const Json& e) {
  const auto at = [&](const char* section, const char* key) -> std::string {
    const auto s = e.find(section);
    if (s == e.end() || !s->is_object()) return "?";
    const auto v = s->find(key);
    return v == s->end() ? "?" : plain(*v);
  };
  return at("model", "name") + " on " + at("cluster", "gpus") + " x " + at("cluster", "gpu");
}

std::string shown(const std::string& path, const Json& value) {
  const auto* d = value.get_ptr<const double*>();
  const auto* i = value.get_ptr<const std::int64_t*>();
  const auto* u = value.get_ptr<const std::uint64_t*>();
  if (d == nullptr && i == nullptr && u == nullptr) return plain(value);
  const double number = d != nullptr ? *d : i != nullptr ? static_cast<double>(*i) : static_cast<double>(*u);
  if (path.ends_with("_bytes")) return text::gib(number);
  if (path.ends_with("seconds") || path.starts_with("step.breakdown") || path.starts_with("run.losses"))
    return text::seconds(number);
  if (path.ends_with("mfu") || path.ends_with("hfu")) return text::percent(number);
  constexpr double kGrouped = 1000, kMost = 1e15, kLeast = 1e-3;
  const double size = std::fabs(number);
  if (d == nullptr || (size >= kGrouped && size < kMost)) return text::grouped(std::llround(number));
  if (size >= kLeast && size < kGrouped) return text::fixed(number, size < 10 ? 3 : 1);
  return text::scientific(number, 4);
}

double number_of(const Json& value) { return value.is_number() ? value.get<double>() : std::nan(""); }

}  // namespace

Result<Comparison> compare_json(const Json& a, const Json& b) {
  const Json* first = estimate_of(a);
  const Json* second = estimate_of(b);
  for (const auto& [json, label] : {std::pair(first, "A"), std::pair(second, "B")}) {
    if (json == nullptr)
      return Error{label, "no estimate and no plan with a layout", "what preflop estimate or plan prints with --json"};
  }
  std::map<std::string, Json> left, right;
  flatten(*first, "", left);
  flatten(*second, "", right);
  Comparison out{title(*first), title(*second), {}};
  std::map<std::string, Json> all = left;
  all.insert(right.begin(), right.end());
  for (const auto& [path, unused] : all) {
    const auto x = left.find(path), y = right.find(path);
    if (x != left.end() && y != right.end() && x->second == y->second) continue;
    Comparison::Line line{path, x == left.end() ? "-" : shown(path, x->second),
                          y == right.end() ? "-" : shown(path, y->second), 0};
    const double p = x == left.end() ? std::nan("") : number_of(x->second),
                 q = y == right.end() ? std::nan("") : number_of(y->second);
    if (p > 0 && q >= 0) line.ratio = q / p;
    out.lines.push_back(std::move(line));
  }
  return out;
}

Json compare_json_value(const Comparison& c) {
  Json lines = Json::array();
  for (const Comparison::Line& line : c.lines)
    lines.push_back({{"path", line.path},
                     {"a", line.a},
                     {"b", line.b},
                     {"ratio", line.ratio > 0 ? Json(line.ratio) : Json(nullptr)}});
  return {{"schema", "preflop.compare/1"}, {"a", c.what_a}, {"b", c.what_b}, {"lines", std::move(lines)}};
}

namespace {

constexpr std::size_t kGaps = 6;    // between the four columns
constexpr std::size_t kRatio = 10;  // the last one: a few digits and three decimals

// Under the table: what is too long to stand beside its counterpart, such as the command line of a plan.
std::string long_lines(const std::vector<const Comparison::Line*>& lines) {
  std::string out;
  for (const Comparison::Line* line : lines) {
    out += (out.empty() ? "" : "\n") + line->path + "\n";
    for (const auto& [label, value] : {std::pair("A", &line->a), std::pair("B", &line->b)}) {
      std::string lead = std::string(label) + "  ";
      for (const std::string& part : text::wrapped(*value, text::kColumns - lead.size())) {
        out += lead + part + "\n";
        lead = std::string(lead.size(), ' ');
      }
    }
  }
  return out;
}

}  // namespace

std::string compare_text(const Comparison& c, bool everything) {
  if (c.lines.empty()) return "A and B are the same.\n";
  std::string out = "A  " + c.what_a + "\nB  " + c.what_b + "\n\n";
  text::Table table(text::kColumns, 0);
  const auto right = text::Table::Align::right;
  table.column("").column("A", right).column("B", right).column("B / A", right);
  std::size_t small = 0, path = 0;
  for (const Comparison::Line& line : c.lines) path = std::max(path, text::display_width(line.path));
  const std::size_t room = text::kColumns - kGaps - kRatio;
  const std::size_t widest = (room - std::min(path, room)) / 2;  // of a value, with every key in full
  std::vector<const Comparison::Line*> apart;
  for (const Comparison::Line& line : c.lines) {
    const bool number = line.ratio > 0;
    const bool minor = number && std::abs(line.ratio - 1) < 0.001;
    if (minor && !everything) {
      ++small;
      continue;
    }
    const bool fits = std::max(text::display_width(line.a), text::display_width(line.b)) <= widest;
    const std::string ratio = number ? text::fixed(line.ratio, 3) : "";
    if (fits && ratio.size() <= kRatio)
      table.row({line.path, line.a, line.b, ratio});
    else
      apart.push_back(&line);
  }
  if (!table.empty()) out += table.str();
  if (!apart.empty()) out += (table.empty() ? "" : "\n") + long_lines(apart) + (small > 0 ? "\n" : "");
  if (small > 0) out += "and " + std::to_string(small) + " that differ by less than 0.1 %: -v\n";
  return out;
}

}  // namespace preflop
