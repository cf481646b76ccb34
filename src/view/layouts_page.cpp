// docs/layouts.md: published layouts against the search's best.
#include <fmt/format.h>

#include <map>

#include "src/base/text.hpp"
#include "src/stack/stack_reader.hpp"
#include "src/validate/layouts.hpp"

namespace preflop {

std::string layout_sizes(const Recipe& r) {
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

namespace {

struct Sum {
  std::size_t n = 0, near = 0, overtaken = 0, short_of_memory = 0;
  void add(const PublishedLayout& l) {
    ++n;
    near += l.near();
    overtaken += !l.near() && l.overtaken;
    short_of_memory += l.verdict == Verdict::no;
  }
  std::string line(const std::string& name) const {
    return fmt::format("| {} | {} | {} | {} | {} | {} |\n", name, n, near,
                       text::percent(static_cast<double>(near) / static_cast<double>(n)), overtaken, short_of_memory);
  }
};

// How often a layout of the table, counted once for a model, GPU and precision however many sizes of cluster and
// releases it was published for, is near the best: where most of its rows are.
std::string distinct(const std::vector<PublishedLayout>& layouts) {
  std::map<std::string, Sum> sums;
  for (const PublishedLayout& l : layouts) {
    if (l.cut) continue;
    Recipe r = l.theirs;
    r.layout.dp = 1;
    sums[fmt::format("{} {} {} {} {}", l.params, l.gpu, r.precision, r.seq, layout_sizes(r))].add(l);
  }
  Sum all;
  for (const auto& [name, sum] : sums) {
    ++all.n;
    all.near += 2 * sum.near >= sum.n;
    all.overtaken += 2 * sum.near < sum.n && sum.overtaken > 0;
    all.short_of_memory += 2 * sum.short_of_memory > sum.n;
  }
  return all.line("whole models, a layout counted once for a model, GPU and precision");
}

std::string overtaken_words(const PublishedLayout& l, const std::vector<PublishedLayout>& all) {
  if (!l.overtaken) return "";
  const PublishedLayout& fast = all[*l.overtaken];
  return fmt::format("{}: {} faster with {}", fast.id, text::percent(l.measured_seconds / fast.measured_seconds - 1),
                     layout_sizes(fast.theirs));
}

}  // namespace

std::string layouts_page(const std::vector<PublishedLayout>& layouts) {
  std::map<std::string, Sum> sums;
  Sum all, whole;
  std::string far =
      "| row | job | published | best found | slower by | where | measured of the same job |\n"
      "|---|---|---|---|---:|---|---|\n";
  for (const PublishedLayout& l : layouts) {
    sums[l.source].add(l);
    all.add(l);
    if (!l.cut) whole.add(l);
    if (l.near()) continue;
    far +=
        fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", l.id, l.job, layout_sizes(l.theirs), layout_sizes(l.best),
                    text::percent(l.seconds / l.best_seconds - 1), l.difference, overtaken_words(l, layouts));
  }
  std::string out =
      "# Layouts that experts published\n\n"
      "Written by `preflop validate --layouts > docs/layouts.md`. For each measured run that names its layout: the "
      "step that preflop predicts for it, against the best layout that `plan` finds for the same job (numerics, "
      "batch, sequence, stack and cluster as published; every layout axis, micro-batch and recomputation open). "
      "*Overtaken*: not within 5 %, and measured more than 5 % slower than another published layout of the same job, "
      "which may be of a later release.\n\n"
      "| source | layouts | within 5 % of the best | share | overtaken | said not to fit |\n"
      "|---|---:|---:|---:|---:|---:|\n";
  for (const auto& [source, sum] : sums) out += sum.line(source);
  if (all.n > 0) out += all.line("all");
  if (whole.n > 0) out += whole.line("all but models cut to fewer layers, which keep the layout of the whole");
  if (whole.n > 0) out += distinct(layouts);
  return out + "\nThose farther off, with the terms of the step that make the difference:\n\n" + far;
}

}  // namespace preflop
