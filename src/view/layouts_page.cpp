// docs/layouts.md: published layouts against the search's best.
#include <fmt/format.h>

#include <map>

#include "src/base/text.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/validate/layouts.hpp"

namespace preflop {

namespace {

std::string sizes(const Recipe& r) {
  const Layout& l = r.layout;
  std::string out;
  for (const auto& [name, size] : {std::pair{"tp", l.tp},
                                   {"pp", l.pp},
                                   {"vpp", l.vpp},
                                   {"cp", l.cp},
                                   {"ep", l.ep},
                                   {"etp", l.etp},
                                   {"dp", l.dp}}) {
    if (size > 1) out += fmt::format("{} {} ", name, size);
  }
  return out + fmt::format("zero {} mb {} {}", l.zero, r.micro_batch, recompute_text(r.recompute));
}

}  // namespace

std::string layouts_page(const std::vector<PublishedLayout>& layouts) {
  struct Sum {
    std::size_t n = 0, near = 0, short_of_memory = 0;
  };
  std::map<std::string, Sum> sums;
  std::string far = "| row | job | published | best found | slower by | where |\n|---|---|---|---|---:|---|\n";
  for (const PublishedLayout& l : layouts) {
    for (Sum* sum : {&sums[l.source], &sums["~"]}) {
      ++sum->n;
      if (l.near()) ++sum->near;
      if (l.verdict == Verdict::no) ++sum->short_of_memory;
    }
    if (l.near()) continue;
    far += fmt::format("| {} | {} | {} | {} | {} | {} |\n", l.id, l.job, sizes(l.theirs), sizes(l.best),
                       text::percent(l.seconds / l.best_seconds - 1), l.difference);
  }
  std::string out =
      "# Layouts that experts published\n\n"
      "Written by `preflop validate --layouts > docs/layouts.md`. For each measured run that names its layout: the "
      "step "
      "that preflop predicts for it, against the best layout that `plan` finds for the same job (numerics, batch, "
      "sequence, stack and cluster as published; every layout axis, micro-batch and recomputation open).\n\n"
      "| source | layouts | within 5 % of the best | share | said not to fit |\n|---|---:|---:|---:|---:|\n";
  for (const auto& [source, sum] : sums)
    out += fmt::format("| {} | {} | {} | {} | {} |\n", source == "~" ? "all" : source, sum.n, sum.near,
                       text::percent(static_cast<double>(sum.near) / static_cast<double>(sum.n)), sum.short_of_memory);
  return out + "\nThose farther off, with the terms of the step that make the difference:\n\n" + far;
}

}  // namespace preflop
