#include "src/step/lines.hpp"

#include "src/base/text.hpp"

namespace preflop {

namespace {

std::string factors(const Line& line) {
  std::string out =
      text::fixed(line.width, line.width == static_cast<int>(line.width) ? 0 : 4) + " B x " + line.volume.text();
  if (line.layers != 1) out += " x " + text::grouped(static_cast<long long>(line.layers)) + " layers";
  const double in_flight = line.copies / line.layers;
  const bool state = line.term == Term::weights || line.term == Term::gradients || line.term == Term::optimizer;
  if (in_flight != 1 && state)
    out += " x " + text::fixed(in_flight, 2) + " kept here";
  else if (in_flight != 1)
    out += " x " + text::fixed(in_flight, in_flight == static_cast<int>(in_flight) ? 0 : 2) + " in flight";
  return out;
}

}  // namespace

template <class N>
Bytes<N> price(const Line& line) {
  std::string label;
  if constexpr (is_traced<N>)
    label = line.tag.empty() ? std::string(line.what) : std::string(line.tag) + ": " + std::string(line.what);
  return Bytes<N>(
      leaf<N>(line.bytes(), [&] { return Origin{label.c_str(), "B", std::string(line.source), factors(line)}; }));
}
template Bytes<double> price<double>(const Line&);
template Bytes<Traced> price<Traced>(const Line&);

template <class N>
Ledger<N> add_up(const std::vector<Line>& lines, const char* ledger_name) {
  Ledger<N> out;
  std::vector<N> by_term[kTerms];
  for (const Line& line : lines) by_term[static_cast<int>(line.term)].push_back(price<N>(line).number());
  std::vector<N> sums;
  for (int t = 0; t < kTerms; ++t) {
    out.terms[t] = Bytes<N>(named(total(by_term[t]), name(static_cast<Term>(t)), "B"));
    sums.push_back(out.terms[t].number());
  }
  out.allocated = Bytes<N>(named(total(sums), ledger_name, "B"));
  return out;
}
template Ledger<double> add_up<double>(const std::vector<Line>&, const char*);
template Ledger<Traced> add_up<Traced>(const std::vector<Line>&, const char*);

}  // namespace preflop
