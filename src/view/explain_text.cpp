#include "src/view/explain_text.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "src/base/decimal.hpp"
#include "src/base/text.hpp"
#include "src/view/json.hpp"
#include "src/view/trace_tree.hpp"

namespace preflop {

namespace {

using Made = TraceNode::Op;

// Terms of a sum that are shown: more at the top than deep inside.
constexpr std::size_t shown_terms(std::size_t indent) { return indent < 4 ? 8 : 4; }

class Printer {
 public:
  explicit Printer(bool everything) : everything_(everything) {}

  // A number and, below it, what it is made of. `unit` serves where the node has none.
  void print(const TraceNode& node, std::size_t count, const std::string& unit, std::size_t indent) {
    std::string own = unit_of(node);
    if (own.empty()) own = unit;
    const TraceNode& inner = body(node);
    const bool again = !seen_.insert(signatures_.of(node)).second;
    std::string value = shown_number(node.value, own);
    if (count > 1)
      value += " x " + std::to_string(count) + " = " + shown_number(node.value * static_cast<double>(count), own);
    if (inner.op == Made::leaf) return leaf(node, inner, value, again, indent);
    if (again) return line(indent, title(node) + " = " + value + " (derived above)");
    if (inner.op == Made::sum) return sum(node, inner, value, own, indent);
    if ((inner.op == Made::maximum || inner.op == Made::minimum) && inner.inputs.size() > 2)
      return choice(node, inner, value, own, indent);
    const Formula f = formula(node, signatures_);
    if (label(node).empty()) {
      line(indent, f.names + " = " + value);
    } else {
      line(indent, label(node) + " = " + value);
      line(indent + 2, "= " + f.names);
    }
    line(indent + 2, "= " + f.numbers);
    for (const TraceNode* operand : f.operands) {
      if (says_more(*operand)) print(*operand, 1, "", indent + 2);
    }
  }

  std::vector<ExplainLine> take() { return std::move(out_); }

 private:
  // Leaves without detail or a source that is new are complete in the formula.
  bool says_more(const TraceNode& n) const {
    const TraceNode& inner = body(n);
    return inner.op != Made::leaf || !inner.detail.empty() ||
           (!inner.source.empty() && !sources_.contains(inner.source));
  }

  std::string title(const TraceNode& n) {
    if (!label(n).empty()) return label(n);
    const TraceNode& inner = body(n);
    if (inner.op == Made::sum) return "sum of " + std::to_string(inner.inputs.size());
    return inner.op == Made::leaf ? "" : formula(n, signatures_).names;
  }

  void leaf(const TraceNode& node, const TraceNode& inner, const std::string& value, bool again, std::size_t indent) {
    const std::string name = label(node).empty() ? inner.name : label(node);
    std::string text = name.empty() ? value : name + " = " + value;
    if (!inner.detail.empty()) text += " = " + inner.detail;
    line(indent, text);
    if (again || inner.source.empty() || !sources_.insert(inner.source).second) return;
    line(indent + 2, "source: " + inner.source);
  }

  void terms(const TraceNode& inner, const std::string& unit, std::size_t indent) {
    std::vector<TermGroup> groups = grouped_inputs(inner, signatures_);
    const std::size_t all = groups.size();
    std::erase_if(groups, [](const TermGroup& g) { return g.node->value == 0; });
    const std::size_t most =
        everything_ || groups.size() <= shown_terms(indent) + 1 ? groups.size() : shown_terms(indent);
    for (std::size_t i = 0; i < most; ++i) print(*groups[i].node, groups[i].count, unit, indent);
    std::size_t rest = 0;
    double rest_sum = 0;
    for (std::size_t i = most; i < groups.size(); ++i) {
      rest += groups[i].count;
      rest_sum += groups[i].node->value * static_cast<double>(groups[i].count);
    }
    if (rest > 0)
      line(indent, std::to_string(rest) + " smaller terms = " + shown_number(rest_sum, unit) + " (-v shows them)");
    if (everything_ && groups.size() < all) line(indent, "the other terms are 0");
  }

  void sum(const TraceNode& node, const TraceNode& inner, const std::string& value, const std::string& unit,
           std::size_t indent) {
    if (inner.inputs.empty() || node.value == 0) return line(indent, title(node) + " = " + value);
    std::size_t terms_that_count = 0;
    for (const TracePtr& input : inner.inputs) terms_that_count += input->value != 0 ? 1 : 0;
    const bool named = !label(node).empty();
    line(indent, title(node) + " = " + value +
                     (named && terms_that_count > 1 ? " = sum of " + std::to_string(terms_that_count) + ":" : ":"));
    terms(inner, unit, indent + 2);
  }

  void choice(const TraceNode& node, const TraceNode& inner, const std::string& value, const std::string& unit,
              std::size_t indent) {
    const std::string which = inner.op == Made::maximum ? "the largest of " : "the smallest of ";
    line(indent,
         title(node) + " = " + value + " = " + which + std::to_string(inner.inputs.size()) + ": " + inner.detail);
    const std::vector<TermGroup> groups = grouped_inputs(inner, signatures_);
    bool first = true;
    for (const TermGroup& g : groups) {
      // The winner in full, the others as one line each.
      if (first || everything_)
        print(*g.node, 1, unit, indent + 2);
      else
        line(indent + 2, "less: " + title(*g.node) + " = " + shown_number(g.node->value, unit));
      first = false;
    }
  }

  void line(std::size_t indent, const std::string& text) { out_.push_back({indent, text}); }

  bool everything_;
  std::vector<ExplainLine> out_;
  Signatures signatures_;
  std::set<std::uint64_t> seen_;
  std::set<std::string> sources_;
};

// A derivation is a graph: what several numbers are made of is written once, where it first appears, under an id;
// elsewhere it is a reference. (Written out it can be a thousand times longer.)
class TreeWriter {
 public:
  explicit TreeWriter(const TraceNode& root) { count(root); }

  nlohmann::json write(const TraceNode& node) {
    static constexpr const char* kOps[] = {"leaf", "add",     "subtract", "multiply", "divide",
                                           "sum",  "maximum", "minimum",  "named"};
    nlohmann::json out = {{"op", kOps[static_cast<int>(node.op)]}, {"value", json_number(node.value)}};
    if (!node.name.empty()) out["name"] = node.name;
    if (!node.unit.empty()) out["unit"] = node.unit;
    const std::uint64_t mine = signatures_.of(node);
    if (!node.inputs.empty() && uses_[mine] > 1) {
      const auto [id, fresh] = ids_.try_emplace(mine, ids_.size() + 1);
      out[fresh ? "id" : "same_as"] = id->second;
      if (!fresh) return out;
    }
    if (!node.detail.empty()) out["detail"] = node.detail;
    if (!node.source.empty()) out["source"] = node.source;
    if (!node.inputs.empty()) out["inputs"] = inputs(node);
    return out;
  }

 private:
  void count(const TraceNode& node) {
    if (++uses_[signatures_.of(node)] > 1) return;
    for (const TracePtr& input : node.inputs) count(*input);
  }

  // Neighbours that are equal are one entry with a count: the order of the sum stays.
  nlohmann::json inputs(const TraceNode& node) {
    nlohmann::json out = nlohmann::json::array();
    std::uint64_t last = 0;
    for (const TracePtr& input : node.inputs) {
      const std::uint64_t mine = signatures_.of(*input);
      if (!out.empty() && mine == last) {
        nlohmann::json& count = out.back()["count"];
        count = count.is_null() ? 2 : count.get_ref<const nlohmann::json::number_integer_t&>() + 1;
      } else {
        out.push_back(write(*input));
      }
      last = mine;
    }
    return out;
  }

  Signatures signatures_;
  std::map<std::uint64_t, std::size_t> uses_, ids_;
};

}  // namespace

std::string shown_number(double value, std::string_view unit) {
  const std::string suffix = unit.empty() ? "" : " " + std::string(unit);
  if (unit == "s") return text::seconds(value);
  if (unit == "B") return std::fabs(value) >= 1024 ? text::bytes_iec(value) : shortest(value) + " B";
  if (unit == "B/s") return text::bytes_si(value) + "/s";
  if (unit == "FLOP" || unit == "FLOP/s" || unit == "FLOP/token") return text::scientific(value) + suffix;
  if (value == std::trunc(value) && std::fabs(value) < 1e15)
    return text::grouped(static_cast<long long>(value)) + suffix;
  if (std::fabs(value) < 1e-3 || std::fabs(value) >= 1e6) return text::scientific(value) + suffix;
  return text::fixed(value, value < 1 ? 5 : value < 100 ? 3 : 1) + suffix;
}

std::string explain_head(const Explanation& e) {
  std::string head = e.term + " = " + shortest(e.value) + (e.unit.empty() ? "" : " " + e.unit);
  if (e.unit == "B" || e.unit == "s") head += " = " + shown_number(e.value, e.unit);
  return head;
}

std::vector<ExplainLine> explain_lines(const Explanation& e, bool everything) {
  Printer printer(everything);
  printer.print(*e.tree, 1, e.unit, 0);
  return printer.take();
}

std::string explain_text(const Explanation& e, bool everything) {
  constexpr std::size_t kDeepest = 40;
  std::string head = explain_head(e);
  if (e.path != e.term) head += "\n" + e.path;
  if (!e.about.empty()) head += "\n" + e.about;
  std::string out;
  for (const std::string& part : text::wrapped(head, text::kColumns)) out += part + "\n";
  out += "\n";
  for (const ExplainLine& line : explain_lines(e, everything)) {
    const std::size_t indent = std::min(line.indent, kDeepest), hang = indent + 4;
    bool first = true;
    for (const std::string& part : text::wrapped(line.text, text::kColumns - hang)) {
      out += std::string(first ? indent : hang, ' ') + part + "\n";
      first = false;
    }
  }
  return out;
}

nlohmann::json explain_json_value(const Explanation& e) {
  return {{"schema", "preflop.explain/1"},
          {"term", e.term},
          {"path", e.path},
          {"unit", e.unit},
          {"value", json_number(e.value)},
          {"tree", TreeWriter(*e.tree).write(*e.tree)}};
}

std::string term_list_text(const std::vector<TermLine>& terms) {
  std::string out;
  std::size_t width = 0;
  for (const TermLine& t : terms) width = std::max(width, t.value ? t.term.size() : 0);
  for (const TermLine& t : terms) {
    if (!t.value) continue;
    std::string left = t.term;
    for (const std::string& part : text::wrapped(t.says, text::kColumns - width - 2)) {
      out += left + std::string(width - left.size() + 2, ' ') + part + "\n";
      left.clear();
    }
  }
  return out + "\nmemory.X is the fullest stage; memory.stages[N].X is any other.\n";
}

nlohmann::json term_list_json(const std::vector<TermLine>& terms) {
  nlohmann::json list = nlohmann::json::array();
  for (const TermLine& t : terms) {
    list.push_back({{"term", t.term},
                    {"unit", t.unit},
                    {"says", t.says},
                    {"value", t.value ? json_number(*t.value) : nlohmann::json(nullptr)}});
  }
  return {{"schema", "preflop.terms/1"}, {"terms", list}};
}

}  // namespace preflop
