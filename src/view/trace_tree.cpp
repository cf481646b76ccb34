#include "src/view/trace_tree.hpp"

#include <algorithm>
#include <bit>
#include <string_view>

#include "src/view/explain_text.hpp"

namespace preflop {

namespace {

using Made = TraceNode::Op;

// FNV-1a over everything that a node says.
struct Hash {
  std::uint64_t value = 14695981039346656037ULL;
  void byte(unsigned char b) { value = (value ^ b) * 1099511628211ULL; }
  void number(std::uint64_t n) {
    for (int i = 0; i < 8; ++i) byte(static_cast<unsigned char>(n >> (8 * i)));
  }
  void text(std::string_view s) {
    for (const char c : s) byte(static_cast<unsigned char>(c));
    byte(0);
  }
};

// Names and sums of one term are the number below them.
bool passes_on(const TraceNode& n) { return n.op == Made::named || (n.op == Made::sum && n.inputs.size() == 1); }

// "FLOP/s" as {FLOP: 1, s: -1}.
using Powers = std::map<std::string, int>;

Powers powers_of(std::string_view unit) {
  Powers out;
  int sign = 1;
  while (!unit.empty()) {
    const std::size_t end = std::min(unit.find('/'), unit.size());
    std::string base(unit.substr(0, end));
    if (base == "tokens") base = "token";
    if (!base.empty()) out[base] += sign;
    unit.remove_prefix(std::min(end + 1, unit.size()));
    sign = -1;
  }
  return out;
}

std::string text_of(const Powers& powers) {
  std::string above, below;
  for (const auto& [base, power] : powers) {
    if (power > 0) above += (above.empty() ? "" : " ") + (base == "token" ? "tokens" : base);
    if (power < 0) below += "/" + base;
  }
  return above.empty() && !below.empty() ? "1" + below : above + below;
}

Powers unit_powers(const TraceNode& n) {
  if (!n.unit.empty()) return powers_of(n.unit);
  if (n.inputs.empty()) return {};
  Powers out = unit_powers(*n.inputs[0]);
  if (n.op == Made::multiply || n.op == Made::divide) {
    for (const auto& [base, power] : unit_powers(*n.inputs[1])) out[base] += n.op == Made::multiply ? power : -power;
  }
  return out;
}

bool is_arithmetic(const TraceNode& n) {
  return n.op == Made::add || n.op == Made::subtract || n.op == Made::multiply || n.op == Made::divide;
}
bool is_choice(const TraceNode& n) { return n.op == Made::maximum || n.op == Made::minimum; }

int precedence(const TraceNode& n) {
  return n.op == Made::add || n.op == Made::subtract ? 1 : is_arithmetic(n) ? 2 : 3;
}

// Among the terms, once more or for the first time.
void count(const TraceNode& term, std::vector<TermGroup>& terms, Signatures& signatures) {
  const std::uint64_t mine = signatures.of(term);
  const auto same =
      std::find_if(terms.begin(), terms.end(), [&](const TermGroup& g) { return signatures.of(*g.node) == mine; });
  if (same != terms.end())
    ++same->count;
  else
    terms.push_back({&term, 1});
}

class Writer {
 public:
  Writer(Formula& out, Signatures& signatures) : out_(out), signatures_(signatures) {}

  void write(const TraceNode& n, bool top) {
    const TraceNode& inner = body(n);
    if (top || (label(n).empty() && (is_arithmetic(inner) || small_choice(inner)))) return inside(inner);
    operand(n);
  }

 private:
  static bool small_choice(const TraceNode& n) { return is_choice(n) && n.inputs.size() <= 2; }

  void both(std::string_view text) {
    out_.names += text;
    out_.numbers += text;
  }

  void inside(const TraceNode& n) {
    if (is_choice(n)) {
      both(n.op == Made::maximum ? "max(" : "min(");
      for (std::size_t i = 0; i < n.inputs.size(); ++i) {
        if (i > 0) both(", ");
        write(*n.inputs[i], false);
      }
      return both(")");
    }
    if (!is_arithmetic(n)) return operand(n);
    if (n.op == Made::add) return chain(n);
    static constexpr std::string_view kSign[] = {"", " + ", " - ", " x ", " / "};
    side(*n.inputs[0], precedence(n), false);
    both(kSign[static_cast<int>(n.op)]);
    side(*n.inputs[1], precedence(n), n.op == Made::subtract || n.op == Made::divide);
  }

  // Additions of additions are one sum, its equal terms counted: layers of two kinds that take turns are two terms.
  void chain(const TraceNode& n) {
    std::vector<TermGroup> terms;
    addends(n, terms);
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (i > 0) both(" + ");
      const bool many = terms[i].count > 1;
      if (many) both(std::to_string(terms[i].count) + " x ");
      side(*terms[i].node, many ? 2 : 1, false);
    }
  }

  void addends(const TraceNode& n, std::vector<TermGroup>& out) {
    for (const TracePtr& input : n.inputs) {
      if (label(*input).empty() && body(*input).op == Made::add)
        addends(body(*input), out);
      else
        count(*input, out, signatures_);
    }
  }

  void side(const TraceNode& n, int outer, bool strict) {
    const int mine = precedence(body(n));
    const bool brackets = label(n).empty() && (mine < outer || (strict && mine == outer));
    if (brackets) both("(");
    write(n, false);
    if (brackets) both(")");
  }

  void operand(const TraceNode& n) {
    const std::string number = shown_number(n.value, unit_of(n));
    const TraceNode& inner = body(n);
    if (!label(n).empty())
      out_.names += label(n);
    else if (inner.op == Made::sum)
      out_.names += "sum of " + std::to_string(inner.inputs.size());
    else if (is_choice(inner))
      out_.names += "largest of " + std::to_string(inner.inputs.size());
    else
      out_.names += number;
    out_.numbers += number;
    const std::uint64_t mine = signatures_.of(n);
    const bool seen = std::any_of(out_.operands.begin(), out_.operands.end(),
                                  [&](const TraceNode* o) { return signatures_.of(*o) == mine; });
    if (!seen) out_.operands.push_back(&n);
  }

  Formula& out_;
  Signatures& signatures_;
};

}  // namespace

std::uint64_t Signatures::of(const TraceNode& node) {
  const auto known = known_.find(&node);
  if (known != known_.end()) return known->second;
  Hash hash;
  hash.number(static_cast<std::uint64_t>(node.op));
  hash.number(std::bit_cast<std::uint64_t>(node.value));
  for (const std::string* text : {&node.name, &node.unit, &node.detail, &node.source}) hash.text(*text);
  for (const TracePtr& input : node.inputs) hash.number(of(*input));
  return known_[&node] = hash.value;
}

std::vector<TermGroup> grouped_inputs(const TraceNode& node, Signatures& signatures) {
  std::vector<TermGroup> out;
  for (const TracePtr& input : node.inputs) count(*input, out, signatures);
  std::stable_sort(out.begin(), out.end(), [](const TermGroup& a, const TermGroup& b) {
    return a.node->value * static_cast<double>(a.count) > b.node->value * static_cast<double>(b.count);
  });
  return out;
}

const TraceNode& body(const TraceNode& node) {
  const TraceNode* n = &node;
  while (passes_on(*n)) n = n->inputs.front().get();
  return *n;
}

const std::string& label(const TraceNode& node) {
  const TraceNode* n = &node;
  while (n->name.empty() && passes_on(*n)) n = n->inputs.front().get();
  return n->name;
}

std::string unit_of(const TraceNode& node) { return text_of(unit_powers(node)); }

Formula formula(const TraceNode& node, Signatures& signatures) {
  Formula out;
  Writer(out, signatures).write(node, true);
  return out;
}

}  // namespace preflop
